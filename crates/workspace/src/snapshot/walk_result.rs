//! Result of a walk, before trees are built from it.

use std::ffi::CString;

use retake_model::tree::ExclusionReason;

use super::cache::Exclusion;
use super::read::FileContent;
use super::rules::Fingerprint;
use super::stat::Stat;

/// Result of a walk, by the number of the folder.
pub(super) struct WalkResult {
    pub(super) folders: Vec<Option<FolderResult>>,
    pub(super) chunks: Vec<Vec<Chunk>>,
    /// Start time of the walk.
    pub(super) now_nanos: i64,
}

/// Result of one folder.
pub(super) enum FolderResult {
    Walked(Box<WalkedFolder>),
    /// Skipped: nothing changed in or below it, so the cache is still valid.
    Unchanged {
        index: u32,
        path: Vec<u8>,
    },
    Excluded(ExclusionReason),
    Gone,
}

/// A folder that was walked.
pub(super) struct WalkedFolder {
    /// Path from the root: empty, or names that each begin with a slash.
    pub(super) path: Vec<u8>,
    pub(super) stat: Stat,
    pub(super) outer: Fingerprint,
    pub(super) rules: Fingerprint,
    pub(super) stamp: Fingerprint,
    /// Why it is excluded if nothing in it is included.
    pub(super) default_reason: Option<ExclusionReason>,
    /// Number in the cache.
    pub(super) cached: Option<u32>,
    /// The watch that was set on it before its content was read.
    pub(super) watch: Option<i32>,
}

/// Some names of a folder.
pub(super) struct Chunk {
    /// Index of the first name.
    pub(super) start: usize,
    pub(super) length: usize,
    /// Their entries; `None` if all match the cache.
    pub(super) entries: Option<Vec<Entry>>,
    /// Numbers of the folders among them, in order.
    pub(super) folders: Vec<u32>,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Whether any of them is excluded.
    pub(super) has_excluded: bool,
}

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) name: CString,
    pub(super) kind: EntryKind,
}

pub(super) enum EntryKind {
    File { stat: Stat, content: FileContent },
    Link { stat: Stat, target: Vec<u8> },
    Folder { number: u32 },
    Excluded(Exclusion),
}
