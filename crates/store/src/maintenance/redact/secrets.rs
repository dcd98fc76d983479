//! Secrets to redact, and how to recognise them in other texts.

use memchr::memmem;
use retake_model::approval::{TOOLS_VERSION, fingerprint};
use retake_model::entry::{Block, EntryVersion};
use retake_model::id::ProjectId;
use serde_json::Value;

/// A shorter secret may occur by coincidence, so only an exact match counts.
const MIN_DISTINCTIVE: usize = 8;

/// Fields of a tool call with file paths. Snapshots and file lists contain the same paths for other reasons.
const PATH_FIELDS: [&str; 2] = ["path", "directory"];

#[derive(Clone, Debug, Default)]
pub struct Secrets {
    texts: Vec<Secret>,
    /// Tool calls to redact: tool and input.
    calls: Vec<(String, Value)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Secret {
    text: String,
    /// With whitespace collapsed, and without characters that a title cannot contain.
    folded: String,
    /// As JSON escapes it.
    escaped: String,
    /// Whether an occurrence inside other text counts.
    distinctive: bool,
}

impl Secret {
    fn new(text: &str, is_passage: bool) -> Option<Self> {
        let text = text.trim();
        let quoted = Value::from(text).to_string();
        let secret = Self {
            folded: fold(text),
            escaped: quoted[1..quoted.len() - 1].to_owned(),
            distinctive: is_passage || text.len() >= MIN_DISTINCTIVE,
            text: text.to_owned(),
        };
        (!text.is_empty()).then_some(secret)
    }
}

impl Secrets {
    /// Whole texts. A short one counts only as an exact match.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut secrets = Self::default();
        for text in texts {
            secrets.add(&text, false);
        }
        secrets
    }

    /// Adds a passage, which counts wherever it occurs, however short it is.
    pub fn add_passage(&mut self, text: &str) {
        self.add(text, true);
    }

    /// Adds all texts and tool calls of an entry.
    pub fn add_entry(&mut self, entry: &EntryVersion) {
        for text in Self::entry_texts(entry) {
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

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty()
    }

    /// All texts of an entry: text, thinking, and the input and output of tool calls.
    pub fn entry_texts(entry: &EntryVersion) -> Vec<String> {
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

    /// Whether a text contains a whole secret, ignoring whitespace.
    pub fn occur_in(&self, text: &str) -> bool {
        let within = |secret: &Secret| secret.distinctive && text.contains(secret.text.as_str());
        if self.texts.iter().any(|secret| secret.text == text.trim() || within(secret)) {
            return true;
        }
        let folded = fold(text);
        let is_within = |secret: &Secret| {
            secret.distinctive && !secret.folded.is_empty() && folded.contains(secret.folded.as_str())
        };
        self.texts.iter().any(is_within)
    }

    /// Whether an entry contains a secret.
    pub fn occur_in_entry(&self, entry: &EntryVersion, encoded: &[u8]) -> bool {
        self.occur_verbatim_in(encoded) || Self::entry_texts(entry).iter().any(|text| self.occur_in(text))
    }

    /// Whether bytes contain a whole secret, ignoring whitespace.
    pub(crate) fn occur_in_bytes(&self, bytes: &[u8]) -> bool {
        self.occur_in(&String::from_utf8_lossy(bytes))
    }

    /// Whether bytes contain a secret verbatim or JSON-escaped. For bulk content, where ignoring whitespace would be
    /// too slow.
    pub(crate) fn occur_verbatim_in(&self, bytes: &[u8]) -> bool {
        self.texts.iter().filter(|secret| secret.distinctive).any(|secret| {
            memmem::find(bytes, secret.text.as_bytes()).is_some()
                || (secret.escaped != secret.text && memmem::find(bytes, secret.escaped.as_bytes()).is_some())
        })
    }

    /// The longest form of any secret in bytes, which is the overlap needed to search in chunks.
    pub(crate) fn longest(&self) -> usize {
        self.texts.iter().map(|secret| secret.escaped.len().max(secret.text.len())).max().unwrap_or(0)
    }

    /// Whether a short text is derived from a secret: it contains one, or is part of one, like a title or a draft.
    pub fn match_excerpt(&self, text: &str) -> bool {
        if self.occur_in(text) {
            return true;
        }
        let folded = fold(text);
        let part = folded.trim_end_matches('…').trim_end();
        self.texts.iter().any(|secret| {
            let whole = secret.folded.as_str();
            // A second thread with the same prompt has a number after its title.
            let numbered = folded.strip_prefix(whole).is_some_and(|rest| rest.starts_with(" ("));
            (part.len() >= MIN_DISTINCTIVE && whole.contains(part))
                || (!whole.is_empty() && (numbered || folded == *whole))
                || ends_with_prefix_of(part, whole)
        })
    }

    /// Whether a JSON text contains a secret, in any escaping.
    pub(crate) fn occur_in_json(&self, json: &str) -> bool {
        let mut found = Vec::new();
        match serde_json::from_str(json) {
            Ok(value) => strings(&value, &mut found),
            Err(_) => found.push(json.to_owned()),
        }
        self.occur_verbatim_in(json.as_bytes()) || found.iter().any(|text| self.occur_in(text))
    }

    /// Whether an approval is of a redacted call, or its description contains a line of a secret.
    pub(crate) fn match_approval(&self, project: ProjectId, name: &[u8], shown: &str) -> bool {
        let project = project.to_string();
        let is_call = self.calls.iter().any(|(tool, input)| {
            (1..=TOOLS_VERSION).any(|version| fingerprint(tool, input, &project, version).bytes() == name)
        });
        is_call || self.match_excerpt(shown) || self.share_line_with(shown)
    }

    /// Approvals show texts line by line after a marker, with invisible characters as escapes.
    fn share_line_with(&self, shown: &str) -> bool {
        let shown: Vec<String> = shown.lines().map(|line| fold(&unescape(line))).collect();
        self.texts.iter().any(|secret| {
            let mut lines = secret.text.lines().map(fold);
            lines.any(|line| {
                let distinctive =
                    line.len() >= MIN_DISTINCTIVE || (secret.distinctive && line == secret.folded);
                distinctive && shown.iter().any(|shown| shown.contains(&line))
            })
        })
    }
}

/// A text in the form of a title.
fn fold(text: &str) -> String {
    let shown = retake_model::name::strip_for_title(&text.replace(['\n', '\t'], " "));
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text ends within a secret, like a draft that was saved while typing.
fn ends_with_prefix_of(text: &str, secret: &str) -> bool {
    let longest = secret.len().min(text.len());
    (MIN_DISTINCTIVE..=longest).any(|length| {
        secret.is_char_boundary(length) && text.as_bytes().ends_with(&secret.as_bytes()[..length])
    })
}

/// A line of an approval with its escapes decoded.
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

/// All strings in a JSON value that are long enough to be distinctive.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= MIN_DISTINCTIVE => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_texts_match_and_nothing_else() {
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
            assert!(secrets.match_excerpt(made), "{made}");
        }
        for other in ["", "the", "shorter", "Fix the login", "a short one", "…"] {
            assert!(!secrets.match_excerpt(other), "{other}");
        }
    }

    #[test]
    fn a_passage_matches_anywhere_however_short() {
        let mut secrets = Secrets::new(["pin".to_owned()]);
        secrets.add_passage("hunter2");
        assert!(secrets.occur_in("use hunter2 there") && secrets.occur_verbatim_in(b"\0hunter2\0"));
        assert!(!secrets.occur_in("a pinned thread") && !secrets.occur_verbatim_in(b"pin"));
        secrets.add_passage("two\n\"lines\"");
        assert!(secrets.occur_verbatim_in(br#"{"a":"two\n\"lines\""}"#));
    }

    #[test]
    fn an_approval_is_recognised_by_its_call_and_by_a_line() {
        let project = ProjectId::from_bytes([1; 16]);
        let text = "export A=1\nTOKEN=\u{200b}tk-4711-abc\tcurl x";
        let secrets = Secrets::new([text.to_owned()]);
        let shown = "shell: $ export A=1\n> TOKEN=\\u{200b}tk-4711-abc    curl x";
        assert!(secrets.match_approval(project, &[], shown));
        assert!(!secrets.match_approval(project, &[], "shell: $ cargo test"));
        let input: Value = serde_json::json!({"command": "ls\nrm x"});
        let mut secrets = Secrets::default();
        secrets.calls.push(("shell".to_owned(), input.clone()));
        let name = fingerprint("shell", &input, &project.to_string(), TOOLS_VERSION);
        assert!(secrets.match_approval(project, name.bytes(), "shell: $ ls\n> rm x"));
        assert!(!secrets.match_approval(ProjectId::from_bytes([2; 16]), name.bytes(), "shell: $ ls\n> rm x"));
    }
}
