//! Streams an offline answer word by word.

use retake_model::entry::{Block, Fields};
use retake_model::json::Json;
use serde_json::Value;

use super::{Answer, CallError, Cancel, Delta, Fault, MODEL, Stop};

/// An answer while it streams.
pub(super) struct Speech<'a> {
    blocks: Vec<Block>,
    /// Number of earlier messages; it makes call ids unique across rounds.
    before: usize,
    cancel: &'a Cancel,
    on: &'a mut dyn FnMut(Delta),
}

impl<'a> Speech<'a> {
    pub(super) fn new(before: usize, cancel: &'a Cancel, on: &'a mut dyn FnMut(Delta)) -> Self {
        Self { blocks: Vec::new(), before, cancel, on }
    }

    /// Streams a text word by word, as a new paragraph.
    pub(super) fn say(&mut self, text: &str) -> Result<(), CallError> {
        if matches!(self.blocks.last(), Some(Block::Text { .. })) {
            self.add("\n\n")?;
        }
        words(text).into_iter().try_for_each(|word| self.add(word))
    }

    /// Appends to the current text.
    pub(super) fn add(&mut self, piece: &str) -> Result<(), CallError> {
        self.check()?;
        match self.blocks.last_mut() {
            Some(Block::Text { text, .. }) => text.push_str(piece),
            _ => self.blocks.push(Block::of_text(piece)),
        }
        (self.on)(Delta::Text(piece.to_owned()));
        Ok(())
    }

    pub(super) fn think(&mut self, thought: &str) -> Result<(), CallError> {
        self.blocks.push(Block::Thinking { text: String::new(), signature: None, extra: Fields::default() });
        for word in words(thought) {
            self.check()?;
            if let Some(Block::Thinking { text, .. }) = self.blocks.last_mut() {
                text.push_str(word);
            }
            (self.on)(Delta::Thinking(word.to_owned()));
        }
        Ok(())
    }

    pub(super) fn call(&mut self, tool: &str, input: &Value) -> Result<(), CallError> {
        self.check()?;
        let block = self.blocks.len();
        let call = format!("offline_{}_{block}", self.before);
        let text = input.to_string();
        (self.on)(Delta::CallStarted { block, call: call.clone(), name: tool.to_owned() });
        (self.on)(Delta::CallInput { block, text: text.clone() });
        (self.on)(Delta::CallEnded { block });
        let input = Json::new(text).expect("a value is JSON");
        self.blocks.push(Block::ToolCall { call, name: tool.to_owned(), input, extra: Fields::default() });
        Ok(())
    }

    pub(super) fn into_answer(self, stop: Stop) -> Answer {
        Answer { blocks: self.blocks, stop, model: Some(MODEL.to_owned()), ..Answer::default() }
    }

    fn check(&self) -> Result<(), CallError> {
        if self.cancel.is_set() { Err(CallError::new(Fault::Interrupted, "interrupted")) } else { Ok(()) }
    }
}

/// Splits a text into words, each with the white space before it.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, letter) in text.char_indices() {
        if letter.is_whitespace() && in_word {
            words.push(&text[start..at]);
            start = at;
        }
        in_word = !letter.is_whitespace();
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn splitting_into_words_preserves_the_text() {
        for text in ["", " ", "a", " a  b\n\nc ", "é ✓"] {
            assert_eq!(words(text).concat(), text);
        }
        assert_eq!(words("a bc  d"), ["a", " bc", "  d"]);
    }
}
