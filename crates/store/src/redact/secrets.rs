//! Texts that are to be destroyed, and which other texts hold them.

use memchr::memmem;
use retake_model::approval::{TOOLS_VERSION, fingerprint};
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::ProjectId;
use serde_json::Value;

/// A text that is shorter may stand somewhere by accident; then only the very same text counts.
const TELLING: usize = 8;

/// Fields of a tool call that name files. Snapshots and lists of files have these names too, for reasons of their own.
const PATH_FIELDS: [&str; 2] = ["path", "directory"];

/// Texts that are to be destroyed.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    texts: Vec<Secret>,
    /// Tool calls that are to be forgotten: their tool and input.
    calls: Vec<(String, Value)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Secret {
    /// As it was written.
    text: String,
    /// With single spaces between words and without what cannot stand in a title.
    folded: String,
    /// As it stands within JSON.
    escaped: String,
    /// Whether it counts wherever it stands.
    telling: bool,
}

impl Secret {
    fn new(text: &str, is_passage: bool) -> Option<Self> {
        let text = text.trim();
        let quoted = Value::from(text).to_string();
        let secret = Self {
            folded: fold(text),
            escaped: quoted[1..quoted.len() - 1].to_owned(),
            telling: is_passage || text.len() >= TELLING,
            text: text.to_owned(),
        };
        (!text.is_empty()).then_some(secret)
    }
}

impl Secrets {
    /// These texts, each the whole of something. A short one counts only where it is the whole of something else too.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut secrets = Self::default();
        for text in texts {
            secrets.add(&text, false);
        }
        secrets
    }

    /// Adds a passage: it counts wherever it stands, however short it is.
    pub fn add_passage(&mut self, text: &str) {
        self.add(text, true);
    }

    /// Adds all that an entry says, and the calls it makes.
    pub fn add_entry(&mut self, entry: &EntryVersion) {
        for text in Self::of_entry(entry) {
            self.add(&text, false);
        }
        for block in &entry.blocks {
            if let Block::ToolCall { name, input, .. } = block {
                let input = serde_json::from_str(input.as_str()).unwrap_or_default();
                self.calls.push((name.clone(), input));
            }
        }
    }

    fn add(&mut self, text: &str, is_passage: bool) {
        if let Some(secret) = Secret::new(text, is_passage)
            && !self.texts.contains(&secret)
        {
            self.texts.push(secret);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty()
    }

    /// All that an entry says: its texts and thoughts, and what went into and came out of its calls.
    pub fn of_entry(entry: &EntryVersion) -> Vec<String> {
        let mut found = vec![entry.text()];
        for block in &entry.blocks {
            match block {
                Block::Text { text, .. } | Block::Thinking { text, .. } | Block::ToolResult { text, .. } => {
                    found.push(text.clone());
                }
                Block::ToolCall { input, .. } => match serde_json::from_str(input.as_str()) {
                    Ok(Value::Object(fields)) => {
                        let fields = fields.iter().filter(|(name, _)| !PATH_FIELDS.contains(&name.as_str()));
                        fields.for_each(|(_, value)| strings(value, &mut found));
                    }
                    Ok(other) => strings(&other, &mut found),
                    Err(_) => {}
                },
                Block::Image { .. } | Block::Unknown { .. } => {}
            }
        }
        found
    }

    /// Whether a text holds one of these whole, whatever its white space.
    pub fn are_in(&self, text: &str) -> bool {
        let within = |secret: &Secret| secret.telling && text.contains(secret.text.as_str());
        if self.texts.iter().any(|secret| secret.text == text.trim() || within(secret)) {
            return true;
        }
        let folded = fold(text);
        let is_within = |secret: &Secret| {
            secret.telling && !secret.folded.is_empty() && folded.contains(secret.folded.as_str())
        };
        self.texts.iter().any(is_within)
    }

    /// Whether an entry holds one of these, anywhere in it.
    pub fn are_in_entry(&self, entry: &EntryVersion, encoded: &[u8]) -> bool {
        self.stand_in(encoded) || Self::of_entry(entry).iter().any(|text| self.are_in(text))
    }

    /// Whether bytes hold one of these whole.
    pub(crate) fn are_in_bytes(&self, bytes: &[u8]) -> bool {
        self.are_in(&String::from_utf8_lossy(bytes))
    }

    /// Whether one of these stands in bytes as it was written, or as JSON has it. This is for bulk content, where
    /// other white space is not worth the time.
    pub(crate) fn stand_in(&self, bytes: &[u8]) -> bool {
        self.texts.iter().filter(|secret| secret.telling).any(|secret| {
            memmem::find(bytes, secret.text.as_bytes()).is_some()
                || (secret.escaped != secret.text && memmem::find(bytes, secret.escaped.as_bytes()).is_some())
        })
    }

    /// The longest form of any of these, in bytes: one that stands across two pieces needs that much of both.
    pub(crate) fn longest(&self) -> usize {
        self.texts.iter().map(|secret| secret.escaped.len().max(secret.text.len())).max().unwrap_or(0)
    }

    /// Whether a short text was made of one of these: it holds one, or is part of one, as a title or a draft is.
    pub fn cover(&self, text: &str) -> bool {
        if self.are_in(text) {
            return true;
        }
        let folded = fold(text);
        let part = folded.trim_end_matches('…').trim_end();
        self.texts.iter().any(|secret| {
            let whole = secret.folded.as_str();
            // A second thread of the same prompt has a number behind its title.
            let numbered = folded.strip_prefix(whole).is_some_and(|rest| rest.starts_with(" ("));
            (part.len() >= TELLING && whole.contains(part))
                || (!whole.is_empty() && (numbered || folded == *whole))
                || ends_in_beginning(part, whole)
        })
    }

    /// Whether a JSON text holds one of these, however it is written there.
    pub(crate) fn are_in_json(&self, json: &str) -> bool {
        let mut found = Vec::new();
        match serde_json::from_str(json) {
            Ok(value) => strings(&value, &mut found),
            Err(_) => found.push(json.to_owned()),
        }
        self.stand_in(json.as_bytes()) || found.iter().any(|text| self.are_in(text))
    }

    /// Whether an approval is of one of these calls, or the text that it is shown by has a line of one of these.
    pub(crate) fn are_in_approval(&self, project: ProjectId, name: &[u8], shown: &str) -> bool {
        let project = project.to_string();
        let is_call = self.calls.iter().any(|(tool, input)| {
            (1..=TOOLS_VERSION).any(|version| fingerprint(tool, input, &project, version).bytes() == name)
        });
        is_call || self.cover(shown) || self.have_line_in(shown)
    }

    /// Questions show texts line by line, each behind a mark, and characters that cannot be seen as numbers.
    fn have_line_in(&self, shown: &str) -> bool {
        let shown: Vec<String> = shown.lines().map(|line| fold(&unescape(line))).collect();
        self.texts.iter().any(|secret| {
            let mut lines = secret.text.lines().map(fold);
            lines.any(|line| {
                let telling = line.len() >= TELLING || (secret.telling && line == secret.folded);
                telling && shown.iter().any(|shown| shown.contains(&line))
            })
        })
    }
}

/// A text as a title holds it.
fn fold(text: &str) -> String {
    let shown = retake_model::name::for_title(&text.replace(['\n', '\t'], " "));
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text breaks off within a secret, as a draft does that was saved while it was typed.
fn ends_in_beginning(text: &str, secret: &str) -> bool {
    let longest = secret.len().min(text.len());
    (TELLING..=longest).any(|length| {
        secret.is_char_boundary(length) && text.as_bytes().ends_with(&secret.as_bytes()[..length])
    })
}

/// A line of a question, with the characters that it shows as numbers.
fn unescape(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("\\u{") {
        let (before, escape) = rest.split_at(at);
        plain.push_str(before);
        let number = escape[3..].split_once('}');
        let character =
            number.and_then(|(hex, _)| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        if let (Some(character), Some((_, after))) = (character, number) {
            plain.push(character);
            rest = after;
        } else {
            plain.push_str("\\u{");
            rest = &escape[3..];
        }
    }
    plain + rest
}

/// All texts in a JSON value that are long enough to say something.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= TELLING => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_of_a_text_is_covered_and_nothing_else() {
        let secrets = Secrets::new(["the key is\n  sk-123456, keep it".to_owned(), "short".to_owned()]);
        for made in [
            "the key is sk-123456, keep it",
            "the key is sk-1234…",
            "sk-123456",
            "the key is sk-123456, keep it (2)",
            "before: the key is\n  sk-123456, keep it",
            "please note: the key is sk-1",
            "short",
            "short (3)",
        ] {
            assert!(secrets.cover(made), "{made}");
        }
        for other in ["", "the", "shorter", "Fix the login", "a short one", "…"] {
            assert!(!secrets.cover(other), "{other}");
        }
    }

    #[test]
    fn a_passage_counts_wherever_it_stands_however_short() {
        let mut secrets = Secrets::new(["pin".to_owned()]);
        secrets.add_passage("hunter2");
        assert!(secrets.are_in("use hunter2 there") && secrets.stand_in(b"\0hunter2\0"));
        assert!(!secrets.are_in("a pinned thread") && !secrets.stand_in(b"pin"));
        secrets.add_passage("two\n\"lines\"");
        assert!(secrets.stand_in(br#"{"a":"two\n\"lines\""}"#));
    }

    #[test]
    fn an_approval_is_recognised_by_its_call_and_by_a_line() {
        let project = ProjectId::from_bytes([1; 16]);
        let text = "export A=1\nTOKEN=\u{200b}tk-4711-abc\tcurl x";
        let secrets = Secrets::new([text.to_owned()]);
        let shown = "shell: $ export A=1\n> TOKEN=\\u{200b}tk-4711-abc    curl x";
        assert!(secrets.are_in_approval(project, &[], shown));
        assert!(!secrets.are_in_approval(project, &[], "shell: $ cargo test"));
        let input: Value = serde_json::json!({"command": "ls\nrm x"});
        let mut secrets = Secrets::default();
        secrets.calls.push(("shell".to_owned(), input.clone()));
        let name = fingerprint("shell", &input, &project.to_string(), TOOLS_VERSION);
        assert!(secrets.are_in_approval(project, name.bytes(), "shell: $ ls\n> rm x"));
        assert!(!secrets.are_in_approval(
            ProjectId::from_bytes([2; 16]),
            name.bytes(),
            "shell: $ ls\n> rm x"
        ));
    }
}
