//! Texts that are to be destroyed, and which other texts hold them.

use retake_model::entry::{Block, EntryVersion};

/// A text that is shorter may stand somewhere by accident; then only the very same text counts.
const TELLING: usize = 8;

/// Texts that are to be destroyed.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// As they were written.
    texts: Vec<String>,
    /// With single spaces between words and without what cannot stand in a title.
    folded: Vec<String>,
}

impl Secrets {
    /// These texts.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut texts: Vec<String> =
            texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
        texts.sort();
        texts.dedup();
        let folded = texts.iter().map(|text| fold(text)).collect();
        Self { texts, folded }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All that an entry says: its texts and thoughts, and what went into and came out of its calls.
    pub fn of_entry(entry: &EntryVersion) -> Vec<String> {
        let mut found = vec![entry.text()];
        for block in &entry.blocks {
            match block {
                Block::Text { text, .. } | Block::Thinking { text, .. } | Block::ToolResult { text, .. } => {
                    found.push(text.clone());
                }
                Block::ToolCall { input, .. } => {
                    if let Ok(input) = serde_json::from_str(input.as_str()) {
                        strings(&input, &mut found);
                    }
                }
                Block::Image { .. } | Block::Unknown { .. } => {}
            }
        }
        found
    }

    /// Whether a text holds one of these whole, whatever its white space.
    pub fn are_in(&self, text: &str) -> bool {
        let same = |secret: &String| secret == text.trim();
        let within = |text: &str, secret: &String| secret.len() >= TELLING && text.contains(secret.as_str());
        if self.texts.iter().any(|secret| same(secret) || within(text, secret)) {
            return true;
        }
        let folded = fold(text);
        self.folded.iter().any(|secret| within(&folded, secret))
    }

    /// Whether bytes hold one of these whole.
    pub(crate) fn are_in_bytes(&self, bytes: &[u8]) -> bool {
        self.are_in(&String::from_utf8_lossy(bytes))
    }

    /// Whether a short text was made of one of these: it holds one, or is part of one, as a title or a draft is.
    pub fn cover(&self, text: &str) -> bool {
        if self.are_in(text) {
            return true;
        }
        let folded = fold(text);
        let part = folded.trim_end_matches('…').trim_end();
        self.folded.iter().any(|secret| {
            // A second thread of the same prompt has a number behind its title.
            let numbered = folded.strip_prefix(secret.as_str()).is_some_and(|rest| rest.starts_with(" ("));
            (part.len() >= TELLING && secret.contains(part))
                || (!secret.is_empty() && (numbered || folded == *secret))
        })
    }

    /// Whether a JSON text holds one of these, however it is written there.
    pub(crate) fn are_in_json(&self, json: &str) -> bool {
        let mut found = Vec::new();
        match serde_json::from_str(json) {
            Ok(value) => strings(&value, &mut found),
            Err(_) => found.push(json.to_owned()),
        }
        found.iter().any(|text| self.are_in(text))
    }
}

/// A text as a title holds it.
fn fold(text: &str) -> String {
    let shown = retake_model::name::for_title(&text.replace(['\n', '\t'], " "));
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All texts in a JSON value that are long enough to say something.
fn strings(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.len() >= TELLING => found.push(text.clone()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| strings(value, found)),
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
            "short",
            "short (3)",
        ] {
            assert!(secrets.cover(made), "{made}");
        }
        for other in ["", "the", "shorter", "Fix the login", "a short one", "…"] {
            assert!(!secrets.cover(other), "{other}");
        }
    }
}
