//! Entries: the messages, tool calls, results and notes of a conversation.
//!
//! An entry has an id ([`crate::id::EntryId`]) that never changes, and immutable versions. An edit replaces
//! only the text: role, time, usage, thinking, tool blocks and unknown fields remain.
//!
//! ```text
//!   entry  ──► version 1 { role, blocks: [thinking, text, tool call], created, usage, model, extra… }
//!        └──► version 2 { the same, other text, edited }
//! ```

mod block;
mod context;
mod fields;
mod json_form;
mod picture;
mod role;
mod thinking;
mod usage;

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

pub use block::Block;
pub use context::{ContextPart, NOT_IN_CONTEXT};
pub use fields::Fields;
pub(crate) use json_form::{ENTRY_FIELDS, block_fields};
pub use json_form::{InvalidEntryError, from_json};
pub use picture::{PDF, attachment_media_of, detect_media_type};
pub use role::{DEFAULT_ROLES, RoleKind, default_role};
pub use thinking::split_thinking;
pub(crate) use usage::USAGE_FIELDS;
pub use usage::Usage;

use crate::content::{Content, Kind};
use crate::json::Json;
use crate::limits::PREVIEW_CHARS;
use crate::time::Timestamp;

/// One version of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EntryVersion {
    /// The role: any text, not necessarily from the thread's list of roles.
    #[n(0)]
    pub role: String,
    /// The content, in order.
    #[n(1)]
    pub blocks: Vec<Block>,
    /// When the entry was created.
    #[n(2)]
    pub created: Timestamp,
    /// Unknown fields, stored verbatim.
    #[n(3)]
    pub extra: BTreeMap<String, Json>,
    /// When a user last edited the text.
    #[n(4)]
    pub edited: Option<Timestamp>,
    /// Token counts from the provider.
    #[n(5)]
    pub usage: Option<Usage>,
    /// The model that wrote it.
    #[n(6)]
    pub model: Option<String>,
}

impl Content for EntryVersion {
    const KIND: Kind = Kind::Entry;
}

impl EntryVersion {
    /// Creates an entry from text. In an assistant's text, thinking tags become thinking blocks.
    pub fn from_text(role: &str, text: &str, created: Timestamp) -> Self {
        let blocks = if RoleKind::of(role) == RoleKind::Assistant {
            split_thinking(text)
        } else {
            vec![Block::of_text(text)]
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

    /// Returns the text blocks, separated by blank lines.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.blocks.iter().filter_map(Block::text).collect();
        texts.join("\n\n")
    }

    /// Returns the text that an edit changes: [`Self::text`], or the tool's output if the entry is only a
    /// tool result.
    pub fn editable_text(&self) -> String {
        match self.single_tool_result() {
            Some(Block::ToolResult { text, .. }) => text.clone(),
            _ => self.text(),
        }
    }

    /// Returns the tool result if the entry consists of nothing else.
    fn single_tool_result(&self) -> Option<&Block> {
        match self.blocks.as_slice() {
            [result @ Block::ToolResult { .. }] => Some(result),
            _ => None,
        }
    }

    /// Returns the entry with an edited [`Self::editable_text`]. If the entry is only a tool result, the
    /// edit changes its output, so that the model reads the edited version.
    #[must_use]
    pub fn with_edit(&self, text: &str, edited: Timestamp) -> Self {
        if self.single_tool_result().is_none() {
            return self.with_text(text, edited);
        }
        let mut changed = Self { edited: Some(edited), ..self.clone() };
        if let [Block::ToolResult { text: answer, .. }] = changed.blocks.as_mut_slice() {
            text.clone_into(answer);
        }
        changed
    }

    /// Returns the entry with new text in place of the first text block. Everything else stays, including
    /// unknown fields of the text blocks.
    #[must_use]
    pub fn with_text(&self, text: &str, edited: Timestamp) -> Self {
        let texts = self.blocks.iter().filter(|block| block.text().is_some());
        let extra = texts.fold(Fields::default(), |kept, block| kept.or(block.extra()));
        let new = Block::Text { text: text.to_owned(), extra };
        let first = self.blocks.iter().position(|block| block.text().is_some());
        let mut blocks: Vec<Block> =
            self.blocks.iter().filter(|block| block.text().is_none()).cloned().collect();
        blocks.insert(first.unwrap_or(blocks.len()), new);
        Self { blocks, edited: Some(edited), ..self.clone() }
    }

    /// Returns the provider of the model, if known.
    pub fn provider(&self) -> Option<String> {
        serde_json::from_str(self.extra.get("provider")?.as_str()).ok()
    }

    /// Returns its cost in millionths of a dollar, if it was recorded.
    pub fn micro_dollars(&self) -> Option<u64> {
        self.extra.get("micro_dollars")?.as_str().parse().ok()
    }

    /// Returns a one-line preview.
    pub fn preview(&self) -> String {
        let text =
            self.blocks.iter().find_map(Block::text).map_or_else(|| self.fallback_preview(), str::to_owned);
        preview(&text)
    }

    /// Returns all text that search indexes, in the order of the blocks.
    pub fn searchable_text(&self) -> String {
        let mut all = String::new();
        self.blocks.iter().for_each(|block| block.add_words(&mut all));
        all
    }

    /// Returns the number of bytes in its texts.
    pub fn size(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::size).sum();
        let extra: usize = self.extra.iter().map(|(name, value)| name.len() + value.as_str().len()).sum();
        let usage = self.usage.as_ref().map_or(0, |usage| usage.extra.size());
        blocks + extra + usage + self.role.len()
    }

    fn fallback_preview(&self) -> String {
        self.blocks.first().map_or_else(String::new, |block| match block {
            Block::Text { text, .. } | Block::Thinking { text, .. } => text.clone(),
            Block::ToolCall { name, input, .. } => format!("{name} {}", input.as_str()),
            Block::ToolResult { text, failed, .. } => {
                format!("{} {text}", if *failed { "failed:" } else { "→" })
            }
            Block::Image { media, .. } => format!("[{media}]"),
            Block::Unknown { kind, .. } => format!("[{kind}]"),
        })
    }
}

/// Returns the first characters of a text on one line, with white space collapsed.
pub fn preview(text: &str) -> String {
    // Read only the beginning: an entry may be megabytes long.
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
        Block::of_text(text)
    }

    fn fields(fields: &[(&str, &str)]) -> Fields {
        let value = |text: &str| Json::new(text).expect("valid JSON");
        fields.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
    }

    #[test]
    fn editing_a_tool_result_changes_its_output() {
        let result = |text: &str| Block::ToolResult {
            call: "1".to_owned(),
            text: text.to_owned(),
            failed: true,
            extra: fields(&[("n", "1")]),
        };
        let answered = entry(vec![result("old")]);
        assert_eq!(answered.editable_text(), "old");
        let edited = answered.with_edit("new", Timestamp::from_millis(2));
        assert_eq!((edited.blocks, edited.edited), (vec![result("new")], Some(Timestamp::from_millis(2))));
        // If the entry also has text, the edit changes the text.
        let both = entry(vec![result("old"), text("said")]);
        assert_eq!(both.editable_text(), "said");
        let edited = both.with_edit("new", Timestamp::from_millis(2));
        assert_eq!(edited.blocks, vec![result("old"), text("new")]);
    }

    #[test]
    fn editing_replaces_text_and_keeps_the_rest() {
        let thought = Block::Thinking {
            text: "hm".to_owned(),
            signature: Some("sealed".to_owned()),
            extra: fields(&[("n", "1")]),
        };
        let call = Block::ToolCall {
            call: "1".to_owned(),
            name: "read".to_owned(),
            input: Json::new("{}").expect("valid JSON"),
            extra: Fields::default(),
        };
        let unknown = Block::Unknown { kind: "citation".to_owned(), extra: fields(&[("page", "7")]) };
        let marked =
            |text: &str, extra: &[(&str, &str)]| Block::Text { text: text.to_owned(), extra: fields(extra) };
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
        check(
            vec![
                unknown.clone(),
                marked("a", &[("x", "1")]),
                unknown.clone(),
                marked("b", &[("x", "2"), ("y", "3")]),
            ],
            vec![unknown.clone(), marked("new", &[("x", "1"), ("y", "3")]), unknown],
        );
    }

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(preview("  two\n words "), "two words");
        let long = preview(&"wörd ".repeat(1000));
        assert_eq!(long.chars().count(), PREVIEW_CHARS);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn old_content_without_unknown_fields_keeps_its_bytes() {
        // The encoding of the previous version: the variant's number and its fields, without unknown
        // fields.
        let old = [0x82, 0x00, 0x81, 0x62, b'h', b'i'];
        assert_eq!(minicbor::decode::<Block>(&old).expect("a block"), text("hi"));
        assert_eq!(minicbor::to_vec(text("hi")).expect("encoding into memory cannot fail"), old);
        let usage = [0x84, 0x03, 0x00, 0x00, 0x00];
        let decoded: Usage = minicbor::decode(&usage).expect("usage");
        assert_eq!(decoded, Usage { input_tokens: 3, ..Usage::default() });
        assert_eq!(minicbor::to_vec(decoded).expect("encoding into memory cannot fail"), usage);
    }

    #[test]
    fn empty_fields_have_one_encoding() {
        let good = entry(vec![text("hi")]);
        let bytes = crate::content::encode(&good);
        let place =
            bytes.windows(4).position(|window| window == [0x81, 0x62, b'h', b'i']).expect("the block");
        let mut spelled = bytes.clone();
        spelled[place] = 0x82;
        spelled.insert(place + 4, 0xa0);
        assert!(crate::content::decode::<EntryVersion>(&bytes).is_ok());
        assert!(crate::content::decode::<EntryVersion>(&spelled).is_err());
    }
}
