//! Parts of an entry that its author removed from the context: models do not get them, and the entry keeps them.
//!
//! A field of the entry lists them, so that removing a part is an edit like any other, which undo reverts:
//!
//! ```text
//!   { role: Tool, blocks: [result "…100 KB…"], not_in_context: ["output"] }   ──►   result "[removed from the context]"
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Block, EntryVersion};
use crate::json::Json;

/// The field of an entry with the parts that are not in the context.
pub const NOT_IN_CONTEXT: &str = "not_in_context";
/// What a model gets instead of an output.
const NO_OUTPUT: &str = "[The user removed this output from the context.]";
/// What a model gets instead of pictures.
const NO_PICTURE: &str = "[The user removed a picture from the context.]";

/// A part of an entry that can be removed from the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextPart {
    /// The output of tools.
    Output,
    /// Pictures and documents.
    Images,
}

impl ContextPart {
    /// Whether a block is of this part.
    pub fn includes(self, block: &Block) -> bool {
        match self {
            Self::Output => matches!(block, Block::ToolResult { .. }),
            Self::Images => matches!(block, Block::Image { .. }),
        }
    }
}

impl EntryVersion {
    /// The parts that are not in the context.
    pub fn not_in_context(&self) -> BTreeSet<ContextPart> {
        // Another program may have written anything here.
        let field = self.extra.get(NOT_IN_CONTEXT);
        field.and_then(|field| serde_json::from_str(field.as_str()).ok()).unwrap_or_default()
    }

    /// The entry with these parts removed from the context, and all others in it.
    #[must_use]
    pub fn with_not_in_context(&self, parts: &BTreeSet<ContextPart>) -> Self {
        let mut changed = self.clone();
        if parts.is_empty() {
            changed.extra.remove(NOT_IN_CONTEXT);
        } else {
            let text = serde_json::to_string(parts).expect("names serialize to JSON");
            let field = Json::new(text).expect("it was just serialized");
            changed.extra.insert(NOT_IN_CONTEXT.to_owned(), field);
        }
        changed
    }

    /// The blocks that models get.
    pub fn blocks_in_context(&self) -> Cow<'_, [Block]> {
        let removed = self.not_in_context();
        if removed.is_empty() {
            return Cow::Borrowed(&self.blocks);
        }
        let is_removed = |block: &Block| removed.iter().any(|part| part.includes(block));
        let shown = self.blocks.iter().map(|block| match block {
            Block::ToolResult { call, failed, extra, .. } if is_removed(block) => Block::ToolResult {
                call: call.clone(),
                text: NO_OUTPUT.to_owned(),
                failed: *failed,
                extra: extra.clone(),
            },
            Block::Image { .. } if is_removed(block) => Block::of_text(NO_PICTURE),
            other => other.clone(),
        });
        Cow::Owned(shown.collect())
    }

    /// The number of bytes in its texts, as far as models get them.
    pub fn size_in_context(&self) -> usize {
        let all: usize = self.blocks.iter().map(Block::size).sum();
        let shown: usize = self.blocks_in_context().iter().map(Block::size).sum();
        (self.size() + shown).saturating_sub(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Fields;
    use crate::time::Timestamp;

    #[test]
    fn removed_parts_stay_in_the_entry() {
        let result = Block::ToolResult {
            call: "c".into(),
            text: "long ".repeat(100),
            failed: true,
            extra: Fields::default(),
        };
        let entry = EntryVersion {
            blocks: vec![result],
            ..EntryVersion::from_text("Tool", "", Timestamp::default())
        };
        assert_eq!(entry.blocks_in_context(), entry.blocks.as_slice());
        let removed = entry.with_not_in_context(&BTreeSet::from([ContextPart::Output]));
        assert_eq!(removed.blocks, entry.blocks);
        assert!(removed.size_in_context() < entry.size() / 2 && removed.size() > entry.size());
        let [Block::ToolResult { text, failed: true, .. }] = &*removed.blocks_in_context() else { panic!() };
        assert_eq!(text, NO_OUTPUT);
        assert_eq!(removed.with_not_in_context(&BTreeSet::new()), entry);
        // Pictures are another part.
        let other = entry.with_not_in_context(&BTreeSet::from([ContextPart::Images]));
        assert_eq!(other.blocks_in_context(), entry.blocks.as_slice());
    }

    #[test]
    fn values_of_other_programs_remove_nothing() {
        for value in ["null", "3", "\"output\"", "[\"other\"]", "{}", "[[]]"] {
            let mut entry = EntryVersion::from_text("User", "hi", Timestamp::default());
            entry.extra.insert(NOT_IN_CONTEXT.to_owned(), Json::new(value).expect("JSON"));
            assert!(entry.not_in_context().is_empty(), "{value}");
        }
    }
}
