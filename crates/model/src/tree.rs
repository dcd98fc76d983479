//! Snapshots of files: folders as trees of content, so that unchanged content is stored once and comparing
//! two snapshots takes time proportional to their difference.
//!
//! ```text
//!   Snapshot ── root "" ──► Tree ─┬─ Cargo.toml   file, 0644, 412 bytes ──► blob
//!       │                         ├─ run          link ──► "target/run"
//!       │                         └─ src          folder, 0755 ──► Tree ── main.rs ──► blob
//!       └────── excluded ──► Excluded: target ignored · .env likely a secret · fifo not a file
//! ```
//!
//! A tree has no times or owners, so the same files have the same content id on every machine. A snapshot
//! also lists the paths it excludes, with reasons.

mod chunks;
mod cursor;
mod difference;
mod edit;
mod folder;
mod read;
mod renames;

use std::hash::{Hash, Hasher};

use minicbor::{Decode, Encode};
use serde::Serialize;

pub use chunks::{Chunk, Chunker, Chunks, FileHasher, MAX_FILE, MAX_WHOLE, chunk_ranges};
pub use cursor::{SnapshotCursor, TreeCursor};
pub use difference::{Difference, SnapshotComparison, changes, compare, differences};
pub use edit::{graft, resolve};
pub use folder::{MAX_LEAF, TreeNode, entry};
pub use read::{BeforeAfter, add_file, difference_at, each_piece, read, read_piece};
pub use renames::{
    MAX_COMPARED, MAX_COMPARED_BYTES, MAX_READ, MIN_SIMILARITY, PathChange, PathChangeKind, pair_renames,
};

use crate::content::{Content, ContentId, Kind, MalformedError};
use crate::path::{FileName, TreePath};

/// The content id of a longer file is that of a list of parts of this size.
pub const PART: u64 = 4 * 1024 * 1024;
/// Maximum number of entries of a folder: imported content must not exhaust memory.
pub const MAX_NAMES: usize = 1 << 20;

/// A folder: its entries by name. It is stored as one or more [`TreeNode`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(Vec<TreeEntry>);

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TreeEntry {
    /// Its name.
    #[n(0)]
    pub name: FileName,
    /// The file, link or folder.
    #[n(1)]
    pub node: Node,
}

/// A file, link or folder. Files with the same content are equal, however their bytes are stored.
#[derive(Clone, Debug, Encode, Decode)]
pub enum Node {
    /// A file.
    #[n(0)]
    File {
        /// The id of its bytes: of a blob up to [`PART`] bytes, of [`Parts`] beyond.
        #[n(0)]
        content: ContentId,
        /// Size in bytes.
        #[n(1)]
        size: u64,
        /// Permissions: the nine bits for owner, group and others.
        #[n(2)]
        mode: u16,
        /// Where its bytes are, if it has more than [`MAX_WHOLE`]: [`Chunks`]. `None` in trees of older versions, in
        /// which the blob or the parts are stored. It is not encoded there, so that small files keep their encoding.
        #[n(3)]
        chunks: Option<ContentId>,
    },
    /// A symbolic link.
    #[n(1)]
    Link {
        /// Its target, unmodified.
        #[cbor(n(0), with = "minicbor::bytes")]
        target: Vec<u8>,
    },
    /// A folder.
    #[n(2)]
    Folder {
        /// Its content.
        #[n(0)]
        tree: ContentId,
        /// Permissions.
        #[n(1)]
        mode: u16,
    },
}

/// The parts of a long file, in order; each but the last has [`PART`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Parts(#[n(0)] pub Vec<ContentId>);

/// A snapshot of the files of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Snapshot {
    /// The roots, the main one first.
    #[n(0)]
    pub roots: Vec<SnapshotRoot>,
}

/// One root of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotRoot {
    /// Its name; empty for the main root.
    #[n(0)]
    pub name: String,
    /// Its content.
    #[n(1)]
    pub tree: ContentId,
    /// The paths it excludes, if any: an `Excluded` list.
    #[n(2)]
    pub excluded: Option<ContentId>,
    /// Number of its files and links.
    #[n(3)]
    pub files: u64,
    /// Their total size in bytes.
    #[n(4)]
    pub bytes: u64,
    /// Excluded files that a tool has replaced: [`crate::sealed::SealedFiles`]. As the last field, it leaves
    /// the encoding of roots without sealed files unchanged.
    #[n(5)]
    pub sealed: Option<ContentId>,
}

/// Paths that a snapshot does not capture, or captures partly (`ExclusionReason::ModeBits`), in byte order.
/// An excluded folder stands for everything below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Excluded(#[n(0)] pub Vec<ExcludedPath>);

/// A path that a snapshot excludes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct ExcludedPath {
    /// Its bytes, with slashes. Not a [`crate::path::TreePath`], because it may be excluded for not being a
    /// valid one.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub path: Vec<u8>,
    /// The reason.
    #[n(1)]
    pub reason: ExclusionReason,
    /// What exists there. As an optional last field, it leaves the encoding of other paths unchanged.
    #[n(2)]
    pub kind: Option<ExcludedKind>,
}

/// What exists at an excluded path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum ExcludedKind {
    /// A folder. For other kinds, and in older snapshots, nothing is recorded.
    #[n(0)]
    Folder,
}

/// Reason why a path is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExclusionReason"))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionReason {
    /// An ignore file names it.
    #[n(0)]
    Ignored,
    /// It probably contains a secret.
    #[n(1)]
    Secret,
    /// It is larger than the limit.
    #[n(2)]
    TooLarge,
    /// It is a pipe, a socket or a device.
    #[n(3)]
    Special,
    /// It could not be read.
    #[n(4)]
    Unreadable,
    /// It kept changing during the read.
    #[n(5)]
    Changing,
    /// It belongs to a version control system, or to Retake itself.
    #[n(6)]
    Repository,
    /// Its name cannot be restored.
    #[n(7)]
    InvalidName,
    /// Another file system is mounted there.
    #[n(8)]
    Mounted,
    /// It is captured, but without its setuid, setgid or sticky bit: a restore must not create a program that
    /// runs as its owner.
    #[n(9)]
    ModeBits,
    /// A tool replaced it, and its bytes are not sealed here: it is too large, there was no key, or it
    /// happened on another machine. No snapshot excludes a path for this reason; a move reports it for a path
    /// that it cannot restore.
    #[n(10)]
    NotSealed,
    /// It is the folder of another project, or the worktree of a take.
    #[n(11)]
    OtherProject,
}

impl Content for Parts {
    const KIND: Kind = Kind::Parts;
}

impl Content for Snapshot {
    const KIND: Kind = Kind::Snapshot;
}

impl Content for Excluded {
    const KIND: Kind = Kind::Excluded;
}

impl Tree {
    /// Creates a folder from these entries.
    pub fn new(mut entries: Vec<TreeEntry>) -> Self {
        entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        entries.dedup_by(|right, left| left.name == right.name);
        Self(entries)
    }

    /// Its entries, in the byte order of their names.
    pub fn entries(&self) -> &[TreeEntry] {
        &self.0
    }

    /// The node with that name.
    pub fn get(&self, name: &FileName) -> Option<&Node> {
        folder::find(&self.0, name)
    }

    /// The same folder with another node, or none, under that name.
    #[must_use]
    pub fn with(&self, name: &FileName, node: Option<Node>) -> Self {
        let mut entries = self.0.clone();
        match (entries.binary_search_by(|entry| entry.name.cmp(name)), node) {
            (Ok(found), Some(node)) => entries[found].node = node,
            (Ok(found), None) => {
                entries.remove(found);
            }
            (Err(place), Some(node)) => entries.insert(place, TreeEntry { name: name.clone(), node }),
            (Err(_), None) => {}
        }
        Self(entries)
    }

    /// Refuses an imported folder that is not sorted, has a duplicate name, or permissions beyond the nine bits.
    pub fn check(&self) -> Result<(), MalformedError> {
        Self::check_entries(&self.0)
    }

    fn check_entries(entries: &[TreeEntry]) -> Result<(), MalformedError> {
        let ordered = entries.windows(2).all(|pair| pair[0].name < pair[1].name);
        let modes = entries.iter().all(|entry| entry.node.mode().is_none_or(|mode| mode & !0o777 == 0));
        if ordered && modes { Ok(()) } else { Err(MalformedError { kind: Kind::Tree }) }
    }
}

impl Excluded {
    /// Whether a path is excluded, or is in an excluded folder.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.covering(path).is_some()
    }

    /// The exclusion of exactly this path.
    pub fn at(&self, path: &[u8]) -> Option<&ExcludedPath> {
        let found = self.0.binary_search_by(|left| left.path.as_slice().cmp(path)).ok()?;
        Some(&self.0[found]).filter(|left| left.reason != ExclusionReason::ModeBits)
    }

    /// The exclusion that covers a path: of the path itself or of a folder above it.
    pub fn covering(&self, path: &[u8]) -> Option<&ExcludedPath> {
        if self.0.is_empty() {
            return None;
        }
        let named = |end: usize| self.at(&path[..end]);
        let mut ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        named(path.len()).or_else(|| ends.find_map(named))
    }
}

impl ExcludedPath {
    /// Whether a folder was excluded here, and the node of another snapshot is a file or link. Whatever the folder
    /// contained, it is not this node.
    pub fn is_folder_instead_of(&self, path: &TreePath, node: &Node) -> bool {
        self.kind == Some(ExcludedKind::Folder) && !node.is_folder() && self.path == path.bytes()
    }
}

impl ExclusionReason {
    /// Whether the reason depends on the file itself, which may have been captured before, and not on a rule.
    pub fn is_about_content(self) -> bool {
        matches!(self, Self::TooLarge | Self::Special | Self::Unreadable | Self::Changing)
    }

    /// A short description of the reason.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Secret => "likely a secret",
            Self::TooLarge => "larger than the limit",
            Self::Special => "a pipe, a socket or a device",
            Self::Unreadable => "could not be read",
            Self::Changing => "kept changing while it was read",
            Self::Repository => "a repository's own data",
            Self::InvalidName => "a name that cannot be restored",
            Self::Mounted => "another file system",
            Self::NotSealed => "its bytes were not sealed here: too large, no key, or an imported thread",
            Self::ModeBits => "captured without its setuid, setgid or sticky bit",
            Self::OtherProject => "another project, or the worktree of a take",
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { content, size, mode, chunks: _ },
                Self::File { content: other_content, size: other_size, mode: other_mode, chunks: _ },
            ) => (content, size, mode) == (other_content, other_size, other_mode),
            (Self::Link { target }, Self::Link { target: other }) => target == other,
            (Self::Folder { tree, mode }, Self::Folder { tree: other, mode: other_mode }) => {
                (tree, mode) == (other, other_mode)
            }
            _ => false,
        }
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // As for equality, it does not matter how the bytes are stored.
            Self::File { content, size, mode, chunks: _ } => (0, content, size, mode).hash(state),
            Self::Link { target } => (1, target).hash(state),
            Self::Folder { tree, mode } => (2, tree, mode).hash(state),
        }
    }
}

impl Node {
    /// A file that is stored whole, or in parts by older versions.
    pub fn file(content: ContentId, size: u64, mode: u16) -> Self {
        Self::File { content, size, mode, chunks: None }
    }

    /// The same node with other permissions; links have none.
    #[must_use]
    pub fn with_mode(self, mode: u16) -> Self {
        match self {
            Self::File { content, size, chunks, .. } => Self::File { content, size, mode, chunks },
            Self::Folder { tree, .. } => Self::Folder { tree, mode },
            Self::Link { target } => Self::Link { target },
        }
    }

    /// The object with the bytes, and its kind; `None` if it is no file.
    pub fn stored_as(&self) -> Option<(Kind, ContentId)> {
        match self {
            Self::File { chunks: Some(chunks), .. } => Some((Kind::Chunks, *chunks)),
            Self::File { content, size, .. } if *size > PART => Some((Kind::Parts, *content)),
            Self::File { content, .. } => Some((Kind::Blob, *content)),
            Self::Link { .. } | Self::Folder { .. } => None,
        }
    }

    /// The permissions, unless it is a link.
    pub fn mode(&self) -> Option<u16> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode, .. } => Some(*mode),
            Self::Link { .. } => None,
        }
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }
}

impl Snapshot {
    /// Refuses an imported snapshot without roots or with a duplicate root.
    pub fn check(&self) -> Result<(), MalformedError> {
        let mut names: Vec<&str> = self.roots.iter().map(|root| root.name.as_str()).collect();
        names.sort_unstable();
        let distinct = names.windows(2).all(|pair| pair[0] != pair[1]);
        let main_first = self.roots.first().is_some_and(|root| root.name.is_empty());
        if distinct && main_first { Ok(()) } else { Err(MalformedError { kind: Kind::Snapshot }) }
    }

    /// The root with that name.
    pub fn root(&self, name: &str) -> Option<&SnapshotRoot> {
        self.roots.iter().find(|root| root.name == name)
    }

    /// Number of its files and links.
    pub fn files(&self) -> u64 {
        self.roots.iter().map(|root| root.files).sum()
    }

    /// Their total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.roots.iter().map(|root| root.bytes).sum()
    }
}
