//! Entries: the messages, tool calls, results and notes that a conversation is made of.
//!
//! An entry has an identity ([`crate::id::EntryId`]) that never changes, and versions that are each immutable
//! content. Editing an entry replaces its text and nothing else: role, time, usage, thinking, tool blocks
//! and fields that Retake does not know all survive.
//!
//! ```text
//!   entry  ──► version 1 { role, blocks: [thinking, text, tool call], created, usage, model, extra… }
//!        └──► version 2 { the same, other text, edited }
//! ```

mod form;
mod role;
mod thinking;

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

pub use form::{BadEntry, from_json};
pub use role::{DEFAULT_ROLES, RoleKind, default_role};
pub use thinking::split_thinking;

use crate::content::{Content, ContentId, Kind};
use crate::json::Json;
use crate::limits::PREVIEW_CHARS;
use crate::time::Timestamp;

/// One version of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EntryVersion {
    /// Who speaks: any text, from the thread's list of roles or not.
    #[n(0)]
    pub role: String,
    /// What is said, in order.
    #[n(1)]
    pub blocks: Vec<Block>,
    /// When the entry was first made.
    #[n(2)]
    pub created: Timestamp,
    /// Fields that Retake does not know, kept as they came.
    #[n(3)]
    pub extra: BTreeMap<String, Json>,
    /// When the text was last changed by hand.
    #[n(4)]
    pub edited: Option<Timestamp>,
    /// Tokens, as the provider counted them.
    #[n(5)]
    pub usage: Option<Usage>,
    /// The model that wrote it.
    #[n(6)]
    pub model: Option<String>,
}

/// A part of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text, Markdown as a rule.
    #[n(0)]
    Text {
        /// The text.
        #[n(0)]
        text: String,
    },
    /// What the model thought before it answered.
    #[n(1)]
    Thinking {
        /// The thought.
        #[n(0)]
        text: String,
        /// The provider's seal on it, which only holds while the entry is unedited.
        #[n(1)]
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool that the model wants run.
    #[n(2)]
    ToolCall {
        /// The provider's name for this call.
        #[n(0)]
        call: String,
        /// The tool.
        #[n(1)]
        name: String,
        /// What the tool is given.
        #[n(2)]
        input: Json,
    },
    /// What came of a tool call.
    #[n(3)]
    ToolResult {
        /// The call that this answers.
        #[n(0)]
        call: String,
        /// What the tool said.
        #[n(1)]
        text: String,
        /// Whether the tool failed.
        #[n(2)]
        failed: bool,
    },
    /// A picture.
    #[n(4)]
    Image {
        /// Its media type, such as `image/png`.
        #[n(0)]
        media: String,
        /// Its bytes, as a blob.
        #[n(1)]
        blob: ContentId,
    },
}

/// Tokens that an entry cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read.
    #[n(0)]
    #[serde(alias = "input")]
    pub input_tokens: u64,
    /// Tokens written.
    #[n(1)]
    #[serde(alias = "output")]
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    #[n(2)]
    #[serde(alias = "cache_read")]
    pub cache_read_input_tokens: u64,
    /// Tokens written to the provider's cache.
    #[n(3)]
    #[serde(alias = "cache_write")]
    pub cache_creation_input_tokens: u64,
}

impl Content for EntryVersion {
    const KIND: Kind = Kind::Entry;
}

impl EntryVersion {
    /// An entry with that text. What an assistant thought aloud becomes thinking blocks of their own.
    pub fn from_text(role: &str, text: &str, created: Timestamp) -> Self {
        let blocks = if RoleKind::of(role) == RoleKind::Assistant {
            split_thinking(text)
        } else {
            vec![Block::Text { text: text.to_owned() }]
        };
        Self {
            role: role.to_owned(),
            blocks,
            created,
            extra: BTreeMap::new(),
            edited: None,
            usage: None,
            model: None,
        }
    }

    /// The text that a person reads and edits: the text blocks, a blank line between them.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.blocks.iter().filter_map(Block::text).collect();
        texts.join("\n\n")
    }

    /// The same entry with other text. All that is not text stays; the new text stands where the first text
    /// block stood.
    #[must_use]
    pub fn with_text(&self, text: &str, edited: Timestamp) -> Self {
        let first = self.blocks.iter().position(|block| block.text().is_some()).unwrap_or(self.blocks.len());
        let mut blocks: Vec<Block> = Vec::with_capacity(self.blocks.len() + 1);
        for (index, block) in self.blocks.iter().enumerate() {
            if index == first {
                blocks.push(Block::Text { text: text.to_owned() });
            }
            if block.text().is_none() {
                blocks.push(block.clone());
            }
        }
        if first == self.blocks.len() {
            blocks.push(Block::Text { text: text.to_owned() });
        }
        Self { blocks, edited: Some(edited), ..self.clone() }
    }

    /// One line that stands for the entry where there is no room for more.
    pub fn preview(&self) -> String {
        let text = self.blocks.iter().find_map(Block::text).map_or_else(|| self.substitute(), str::to_owned);
        preview(&text)
    }

    /// Every word that a search should find, in the order of the blocks.
    pub fn searchable(&self) -> String {
        let mut all = String::new();
        for block in &self.blocks {
            let parts: [&str; 2] = match block {
                Block::Text { text } | Block::Thinking { text, .. } | Block::ToolResult { text, .. } => {
                    [text, ""]
                }
                Block::ToolCall { name, input, .. } => [name, input.as_str()],
                Block::Image { media, .. } => [media, ""],
            };
            for part in parts {
                all.push_str(part);
                all.push('\n');
            }
        }
        all
    }

    /// How many bytes its texts have.
    pub fn size(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::size).sum();
        let extra: usize = self.extra.iter().map(|(name, value)| name.len() + value.as_str().len()).sum();
        blocks + extra + self.role.len()
    }

    fn substitute(&self) -> String {
        self.blocks.first().map_or_else(String::new, |block| match block {
            Block::Text { text } | Block::Thinking { text, .. } => text.clone(),
            Block::ToolCall { name, input, .. } => format!("{name} {}", input.as_str()),
            Block::ToolResult { text, failed, .. } => {
                format!("{} {text}", if *failed { "failed:" } else { "→" })
            }
            Block::Image { media, .. } => format!("[{media}]"),
        })
    }
}

impl Block {
    /// The text of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }

    /// The bytes of a picture.
    pub fn picture(&self) -> Option<ContentId> {
        match self {
            Self::Image { blob, .. } => Some(*blob),
            _ => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Thinking { text, signature } => text.len() + signature.as_ref().map_or(0, String::len),
            Self::ToolCall { call, name, input } => call.len() + name.len() + input.as_str().len(),
            Self::ToolResult { call, text, .. } => call.len() + text.len(),
            Self::Image { media, .. } => media.len(),
        }
    }
}

/// The first characters of a text on one line, with white space folded.
pub fn preview(text: &str) -> String {
    // Only the beginning is looked at: an entry may be megabytes long.
    let beginning: String = text.chars().take(PREVIEW_CHARS * 8).collect();
    let folded = beginning.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= PREVIEW_CHARS {
        return folded;
    }
    let mut cut: String = folded.chars().take(PREVIEW_CHARS - 1).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(blocks: Vec<Block>) -> EntryVersion {
        EntryVersion { blocks, ..EntryVersion::from_text("User", "", Timestamp::from_millis(1)) }
    }

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    #[test]
    fn editing_replaces_text_and_keeps_the_rest() {
        let thought = Block::Thinking { text: "hm".to_owned(), signature: Some("sealed".to_owned()) };
        let call = Block::ToolCall {
            call: "1".to_owned(),
            name: "read".to_owned(),
            input: Json::new("{}").expect("valid JSON"),
        };
        let check = |before: Vec<Block>, expected: Vec<Block>| {
            let edited = entry(before).with_text("new", Timestamp::from_millis(2));
            assert_eq!(edited.blocks, expected);
            assert_eq!(edited.text(), "new");
            assert_eq!(edited.created, Timestamp::from_millis(1));
        };
        check(vec![text("old")], vec![text("new")]);
        check(vec![], vec![text("new")]);
        check(
            vec![thought.clone(), text("a"), call.clone(), text("b")],
            vec![thought.clone(), text("new"), call.clone()],
        );
        check(vec![thought.clone(), call.clone()], vec![thought, call, text("new")]);
    }

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(preview("  two\n words "), "two words");
        let long = preview(&"wörd ".repeat(1000));
        assert_eq!(long.chars().count(), PREVIEW_CHARS);
        assert!(long.ends_with('…'));
    }
}
