//! What a walk finds, before it is put together.

use std::ffi::CString;

use retake_model::content::ContentId;
use retake_model::tree::Reason;

use super::rules::Fingerprint;
use super::stat::Stat;

/// What a walk found, by the number of the folder.
pub(super) struct Walked {
    pub(super) folders: Vec<Option<Found>>,
    pub(super) chunks: Vec<Vec<Chunk>>,
    /// When the walk began.
    pub(super) moment: i64,
}

/// What became of a folder.
pub(super) enum Found {
    Here(Box<Here>),
    /// It was passed over: nothing happened in it or below, so it is as the cache says.
    Passed {
        index: u32,
        path: Vec<u8>,
    },
    Left(Reason),
    Gone,
}

/// A folder that was walked.
pub(super) struct Here {
    /// From the root: nothing, or names that each begin with a slash.
    pub(super) path: Vec<u8>,
    pub(super) stat: Stat,
    pub(super) outer: Fingerprint,
    pub(super) rules: Fingerprint,
    pub(super) stamp: Fingerprint,
    /// Why it would be left out if nothing in it were included.
    pub(super) otherwise: Option<Reason>,
    /// Its number in the cache.
    pub(super) remembered: Option<u32>,
    /// The watch that was set on it before anything in it was looked at.
    pub(super) watch: Option<i32>,
}

/// Some names of a folder.
pub(super) struct Chunk {
    /// The place of the first.
    pub(super) start: usize,
    pub(super) length: usize,
    /// What stands under them; nothing if all is as the cache says.
    pub(super) entries: Option<Vec<Entry>>,
    /// The numbers of the folders among them, in their order.
    pub(super) folders: Vec<u32>,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Whether something among them is left out.
    pub(super) has_left: bool,
}

/// What stands under a name.
pub(super) struct Entry {
    pub(super) name: CString,
    pub(super) what: What,
}

pub(super) enum What {
    File { stat: Stat, content: ContentId },
    Link { stat: Stat, target: Vec<u8> },
    Folder { number: u32 },
    Left { reason: Reason, by_name: bool },
}
