//! Takes: the branches of a thread, each with entries, a draft and a context of its own.

mod attached;

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

pub use attached::{Attached, Attachments, NewPicture, NotAPicture};

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
    /// When it was made.
    #[n(2)]
    pub created: Timestamp,
    /// Its entries.
    #[n(3)]
    pub entries: List<EntryCell>,
    /// What is being typed and not yet sent.
    #[n(4)]
    pub draft: String,
    /// Files of the take, files given to the model, and pictures given to the model.
    #[n(5)]
    pub files: Vec<FileItem>,
    /// Files whose content goes into the next request.
    #[n(6)]
    pub context_files: Vec<FileItem>,
    /// Pictures that go into the next request.
    #[n(7)]
    pub screenshots: Vec<FileItem>,
    /// The take that this one was branched from; it may be gone.
    #[n(8)]
    pub parent: Option<TakeId>,
    /// The last entry that this take shares with its parent; `None` if it shares none.
    #[n(9)]
    pub fork_point: Option<EntryId>,
    /// What the last send gave to the model.
    #[n(10)]
    pub sent: Option<Sent>,
    /// The turn that runs on it, or that failed. `None` is not written: takes from before there were turns keep
    /// their bytes.
    #[n(11)]
    pub agent: Option<Agent>,
    /// Pictures that go along with the draft.
    #[n(12)]
    pub attached: Attachments,
    /// The git commit that its source was at when it was branched off; `None` for a take that was not, or outside git.
    #[n(13)]
    pub git_commit: Option<String>,
}

/// A file that a take names. Fields that Retake does not know are kept.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileItem {
    /// The path, as the user gave it.
    #[n(0)]
    pub path: String,
    /// Whatever else came with it.
    #[n(1)]
    #[serde(flatten)]
    pub extra: BTreeMap<String, Json>,
}

// By hand: text that is kept to the byte cannot be read into a flattened field.
impl<'de> Deserialize<'de> for FileItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut extra = BTreeMap::<String, Json>::deserialize(deserializer)?;
        let path = extra.remove("path").ok_or_else(|| D::Error::missing_field("path"))?;
        let path = serde_json::from_str(path.as_str()).map_err(D::Error::custom)?;
        Ok(Self { path, extra })
    }
}

/// What was last given to the model, as blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sent {
    /// The conversation and context as Markdown.
    #[n(0)]
    pub markdown: ContentId,
    /// The system prompt that was active.
    #[n(1)]
    pub system_prompt: ContentId,
}

/// Which of a take's lists of files is meant.
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
    /// A take with nothing in it.
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

    /// Whether there is nothing in its draft that could be sent.
    pub fn has_no_draft(&self) -> bool {
        self.draft.trim().is_empty() && self.attached.is_empty()
    }

    /// Takes the draft out, as what somebody in that role says.
    pub fn take_draft(&mut self, role: &str, now: Timestamp) -> EntryVersion {
        let text = std::mem::take(&mut self.draft);
        let mut entry = EntryVersion::from_text(role, &text, now);
        // A picture that is sent without a word has no words, not empty ones.
        if text.trim().is_empty() && !self.attached.is_empty() {
            entry.blocks.clear();
        }
        entry.blocks.extend(std::mem::take(&mut self.attached).into_blocks());
        entry
    }

    /// The files in one of its lists.
    pub fn file_list(&self, which: FileList) -> &[FileItem] {
        match which {
            FileList::Files => &self.files,
            FileList::ContextFiles => &self.context_files,
            FileList::Screenshots => &self.screenshots,
        }
    }

    /// The same take with another list of files.
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
    /// A file with nothing but its path.
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
    fn takes_from_before_there_were_turns_keep_their_bytes() {
        let take = Take::empty(TakeId::from_bytes([1; 16]), FIRST_TAKE.to_owned(), Timestamp::from_millis(1));
        let bytes = encode(&take);
        // Nothing is written for what is not there at the end of the list of fields.
        assert_eq!(bytes[0], 0x88);
        let state = AgentState::Calling { attempt: 2, steered: false };
        let agent = Agent::kept(TurnId::from_bytes([2; 16]), state);
        let running = Take { agent, ..take.clone() };
        assert_eq!(encode(&running)[0], 0x8c);
        let mut typing = take.clone();
        typing.attached.push(Attached {
            media: "image/png".to_owned(),
            picture: ContentId::of(Kind::Blob, b"a picture"),
        });
        assert_eq!(encode(&typing)[0], 0x8d);
        for take in [take, running, typing] {
            assert_eq!(decode::<Take>(&encode(&take)), Ok(take));
        }
    }

    #[test]
    fn what_is_not_known_of_a_file_is_kept_as_it_came() {
        let text = r#"{"path":"a.txt","line":1.0,"more":{"b":[1e400],"a":null}}"#;
        let item: FileItem = serde_json::from_str(text).expect("a file");
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
