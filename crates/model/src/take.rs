//! Takes: the branches of a thread, each with its own entries, draft and context.

mod attachments;

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::agent::Agent;
use crate::content::{Content, ContentId, Kind};
use crate::entry::EntryVersion;
use crate::id::{EntryId, TakeId};
use crate::json::Json;
use crate::list::{EntryCell, List};
use crate::time::Timestamp;

pub use attachments::{Attachment, Attachments, InvalidPictureError, NewPicture};

/// The name of a thread's first take.
pub const FIRST_TAKE: &str = "main";

/// One branch of a thread.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Take {
    /// Its identity.
    #[n(0)]
    pub id: TakeId,
    /// Its name, unique within the thread.
    #[n(1)]
    pub name: String,
    /// Time of its creation.
    #[n(2)]
    pub created: Timestamp,
    /// Its entries.
    #[n(3)]
    pub entries: List<EntryCell>,
    /// The text being typed and not yet sent.
    #[n(4)]
    pub draft: String,
    /// Files of the take.
    #[n(5)]
    pub files: Vec<FileItem>,
    /// Files to include in the next request.
    #[n(6)]
    pub context_files: Vec<FileItem>,
    /// Pictures to include in the next request.
    #[n(7)]
    pub screenshots: Vec<FileItem>,
    /// The take it was branched from, which may no longer exist.
    #[n(8)]
    pub parent: Option<TakeId>,
    /// The last entry that it shares with its parent; `None` if it shares none.
    #[n(9)]
    pub fork_point: Option<EntryId>,
    /// The context of the last request to the model.
    #[n(10)]
    pub sent: Option<SentContext>,
    /// The turn that runs on it or failed. `None` is not encoded, so takes that predate turns keep their
    /// bytes.
    #[n(11)]
    pub agent: Option<Agent>,
    /// Pictures attached to the draft.
    #[n(12)]
    pub attached: Attachments,
    /// The git commit of its source at the time of the branch; `None` without a branch or outside git.
    #[n(13)]
    pub git_commit: Option<String>,
}

/// A file that a take lists. Unknown fields are preserved.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileItem {
    /// The path, as the user gave it.
    #[n(0)]
    pub path: String,
    /// Unknown fields.
    #[n(1)]
    #[serde(flatten)]
    pub extra: BTreeMap<String, Json>,
}

// Implemented manually because a flattened field cannot preserve text byte by byte.
impl<'de> Deserialize<'de> for FileItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut extra = BTreeMap::<String, Json>::deserialize(deserializer)?;
        let path = extra.remove("path").ok_or_else(|| D::Error::missing_field("path"))?;
        let path = serde_json::from_str(path.as_str()).map_err(D::Error::custom)?;
        Ok(Self { path, extra })
    }
}

/// The context last sent to the model, as blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentContext {
    /// The conversation and context as Markdown.
    #[n(0)]
    pub markdown: ContentId,
    /// The system prompt in use.
    #[n(1)]
    pub system_prompt: ContentId,
}

/// Selects one of the file lists of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum FileList {
    /// The take's files.
    #[n(0)]
    Files,
    /// The context files.
    #[n(1)]
    ContextFiles,
    /// The screenshots.
    #[n(2)]
    Screenshots,
}

impl Content for Take {
    const KIND: Kind = Kind::Take;
}

impl Take {
    /// Creates an empty take.
    pub fn empty(id: TakeId, name: String, created: Timestamp) -> Self {
        Self {
            id,
            name,
            created,
            entries: List::empty(),
            draft: String::new(),
            files: Vec::new(),
            context_files: Vec::new(),
            screenshots: Vec::new(),
            parent: None,
            fork_point: None,
            sent: None,
            agent: None,
            attached: Attachments::default(),
            git_commit: None,
        }
    }

    /// Whether its draft has nothing to send.
    pub fn has_no_draft(&self) -> bool {
        self.draft.trim().is_empty() && self.attached.is_empty()
    }

    /// Moves the draft into a message with that role.
    pub fn take_draft(&mut self, role: &str, now: Timestamp) -> EntryVersion {
        let text = std::mem::take(&mut self.draft);
        let mut entry = EntryVersion::from_text(role, &text, now);
        // A picture sent without text has no text block, instead of an empty one.
        if text.trim().is_empty() && !self.attached.is_empty() {
            entry.blocks.clear();
        }
        entry.blocks.extend(std::mem::take(&mut self.attached).into_blocks());
        entry
    }

    /// One of its file lists.
    pub fn file_list(&self, which: FileList) -> &[FileItem] {
        match which {
            FileList::Files => &self.files,
            FileList::ContextFiles => &self.context_files,
            FileList::Screenshots => &self.screenshots,
        }
    }

    /// Replaces one of its file lists.
    #[must_use]
    pub fn with_file_list(mut self, which: FileList, items: Vec<FileItem>) -> Self {
        match which {
            FileList::Files => self.files = items,
            FileList::ContextFiles => self.context_files = items,
            FileList::Screenshots => self.screenshots = items,
        }
        self
    }
}

impl FileItem {
    /// A file without extra fields.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), extra: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentState;
    use crate::content::{decode, encode};
    use crate::id::TurnId;

    #[test]
    fn takes_that_predate_turns_keep_their_bytes() {
        let take = Take::empty(TakeId::from_bytes([1; 16]), FIRST_TAKE.to_owned(), Timestamp::from_millis(1));
        let bytes = encode(&take);
        // Trailing `None` fields are not encoded.
        assert_eq!(bytes[0], 0x88);
        let state = AgentState::Calling { attempt: 2, steered: false };
        let agent = Agent::unless_idle(TurnId::from_bytes([2; 16]), state);
        let running = Take { agent, ..take.clone() };
        assert_eq!(encode(&running)[0], 0x8c);
        let mut typing = take.clone();
        typing.attached.push(Attachment {
            media: "image/png".to_owned(),
            picture: ContentId::of(Kind::Blob, b"a picture"),
        });
        assert_eq!(encode(&typing)[0], 0x8d);
        for take in [take, running, typing] {
            assert_eq!(decode::<Take>(&encode(&take)), Ok(take));
        }
    }

    #[test]
    fn unknown_fields_of_a_file_are_preserved() {
        let text = r#"{"path":"a.txt","line":1.0,"more":{"b":[1e400],"a":null}}"#;
        let item: FileItem = serde_json::from_str(text).expect("a valid file item");
        assert_eq!((item.path.as_str(), item.extra.len()), ("a.txt", 2));
        assert_eq!(
            serde_json::from_str::<FileItem>(&serde_json::to_string(&item).expect("JSON")).ok(),
            Some(item)
        );
        for bad in ["{}", r#"{"path":1}"#, r#"["a.txt"]"#] {
            assert!(serde_json::from_str::<FileItem>(bad).is_err(), "{bad}");
        }
    }
}
