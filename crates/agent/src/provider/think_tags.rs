//! Splits thinking from text while it streams, for local models that write their thinking inside `<think>`
//! tags.
//!
//! Only a tag at the *start* of an answer counts: later tags are content, such as code.
//!
//! ```text
//!   Start ──"<think>"──► Inside(tag) ──"</think>"──► After ──first text──► Text
//!     └──anything else──────────────────────────────────────────────────────┘
//! ```

/// Known tags.
const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

/// Maximum white space before a tag.
const HELD_BYTES: usize = 64;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text of the answer.
    Text(String),
    /// Thinking.
    Thinking(String),
}

/// The state of the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Only white space so far, and perhaps the start of a tag.
    #[default]
    Start,
    /// Inside the tag with this index.
    Inside(usize),
    /// After the closing tag, with only line breaks since.
    After,
    /// Everything else is text.
    Text,
}

/// Splits thinking from text, however the stream is cut into pieces.
#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    state: State,
    /// Text that may be the start of a tag.
    buffered: String,
}

impl ThinkTags {
    /// Turns splitting off: the model sends its thinking in a separate field.
    pub(super) fn disable(&mut self) {
        if self.state == State::Start && self.buffered.is_empty() {
            self.state = State::Text;
        }
    }

    /// Adds text; returns the pieces that are certain.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.state == State::Text {
            pieces.push(Piece::Text(text.to_owned()));
            return pieces;
        }
        self.buffered.push_str(text);
        while self.advance(&mut pieces) {}
        pieces
    }

    /// Returns the buffered text when something other than text follows.
    pub(super) fn flush(&mut self) -> Option<Piece> {
        let buffered = std::mem::take(&mut self.buffered);
        if buffered.is_empty() {
            return None;
        }
        Some(if let State::Inside(_) = self.state {
            Piece::Thinking(buffered)
        } else {
            self.state = State::Text;
            Piece::Text(buffered)
        })
    }

    /// The opening tag that has not been closed.
    pub(super) fn unclosed(&self) -> Option<&'static str> {
        match self.state {
            State::Inside(tag) => Some(TAGS[tag].0),
            _ => None,
        }
    }

    /// Advances to the next state; `false` if more text is needed.
    fn advance(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.state {
            State::Start => {
                let begun = self.buffered.trim_start();
                if let Some(tag) = TAGS.iter().position(|(open, _)| begun.starts_with(open)) {
                    let inside = begun[TAGS[tag].0.len()..].to_owned();
                    self.buffered = inside;
                    self.state = State::Inside(tag);
                    return true;
                }
                // Do not buffer an answer of only white space for ever.
                if self.buffered.len() < HELD_BYTES && TAGS.iter().any(|(open, _)| open.starts_with(begun)) {
                    return false;
                }
                self.state = State::Text;
                true
            }
            State::Inside(tag) => {
                let close = TAGS[tag].1;
                if let Some(at) = self.buffered.find(close) {
                    let rest = self.buffered.split_off(at + close.len());
                    self.buffered.truncate(at);
                    push(pieces, Piece::Thinking(std::mem::replace(&mut self.buffered, rest)));
                    self.state = State::After;
                    return true;
                }
                let safe = self.buffered.len() - overlap(&self.buffered, close);
                let rest = self.buffered.split_off(safe);
                push(pieces, Piece::Thinking(std::mem::replace(&mut self.buffered, rest)));
                false
            }
            State::After => {
                let begun = self.buffered.trim_start_matches(['\r', '\n']);
                if begun.is_empty() {
                    self.buffered.clear();
                    return false;
                }
                self.buffered = begun.to_owned();
                self.state = State::Text;
                true
            }
            State::Text => {
                push(pieces, Piece::Text(std::mem::take(&mut self.buffered)));
                false
            }
        }
    }
}

fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if !matches!(&piece, Piece::Text(text) | Piece::Thinking(text) if text.is_empty()) {
        pieces.push(piece);
    }
}

/// Number of bytes at the end of a text that may be the start of a tag.
fn overlap(text: &str, tag: &str) -> usize {
    let most = text.len().min(tag.len() - 1);
    (1..=most).rev().find(|count| text.as_bytes().ends_with(&tag.as_bytes()[..*count])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&str]) -> (String, String, Option<&'static str>) {
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut tags = ThinkTags::default();
        let mut take = |piece: Piece| match piece {
            Piece::Text(more) => text.push_str(&more),
            Piece::Thinking(more) => thinking.push_str(&more),
        };
        for piece in pieces {
            tags.push(piece).into_iter().for_each(&mut take);
        }
        tags.flush().into_iter().for_each(&mut take);
        (thinking, text, tags.unclosed())
    }

    #[test]
    fn only_an_answer_that_begins_with_a_tag_is_split() {
        let check = |text: &str, thinking: &str, text_out: &str, open: Option<&str>| {
            assert_eq!(split(&[text]), (thinking.to_owned(), text_out.to_owned(), open), "{text:?}");
        };
        check("<think>hm</think>\n\nyes", "hm", "yes", None);
        check("\n <thinking>hm</thinking>yes", "hm", "yes", None);
        check("<think></think>yes", "", "yes", None);
        check("yes", "", "yes", None);
        check("  yes", "", "  yes", None);
        check("<th", "", "<th", None);
        check("<thing>x</thing>", "", "<thing>x</thing>", None);
        check("<think>never closed </thin", "never closed </thin", "", Some("<think>"));
        let code = "Use it like this:\n```\n<think>x</think>\n```\n";
        check(code, "", code, None);
        check(&format!("<think>a</think>{code}"), "a", code, None);
        check("<think>a</think>b<think>c</think>", "a", "b<think>c</think>", None);
    }

    #[test]
    fn think_tags_are_text_if_reasoning_has_its_own_field() {
        let mut tags = ThinkTags::default();
        tags.disable();
        assert_eq!(tags.push("<think>"), [Piece::Text("<think>".to_owned())]);
    }

    proptest! {
        #[test]
        fn think_tags_are_found_however_the_text_is_chunked(
            text in "(<think>|<thought>|\n)?(a|<|é|</think>|/|>|\n|</though){0,12}(</think>|</thought>)?[a-z<\n]{0,6}",
            sizes in prop::collection::vec(1_usize..5, 1..8),
        ) {
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let at = rest.ceil_char_boundary(*size).min(rest.len());
                let (piece, after) = rest.split_at(at);
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(split(&pieces), split(&[&text]));
        }
    }
}
