//! Files at one moment: folders as trees of content, so that what did not change is stored once and two moments
//! are compared in time proportional to their difference.
//!
//! ```text
//!   Snapshot ── root "" ──► Tree ─┬─ Cargo.toml   file, 0644, 412 bytes ──► blob
//!       │                         ├─ run          link ──► "target/run"
//!       │                         └─ src          folder, 0755 ──► Tree ── main.rs ──► blob
//!       └────── left out ──► LeftOut: target ignored · .env likely a secret · fifo not a file
//! ```
//!
//! A tree says nothing about times or owners: the same files have the same name on every machine. A snapshot
//! also states what it does not hold, and why.

mod build;
mod cursor;
mod difference;
mod read;
mod renames;

use minicbor::{Decode, Encode};
use serde::Serialize;

pub use build::{graft, resolve};
pub use cursor::{SnapshotCursor, TreeCursor};
pub use difference::{Compared, Difference, changes, compare, differences};
pub use read::{BeforeAfter, difference_at, read, read_piece};
pub use renames::{Happened, LARGEST_COMPARED, LIKE, MOST_COMPARED, MOST_READ, PathChange, pair_renames};

use crate::content::{Content, ContentId, Kind, Malformed};
use crate::path::FileName;

/// Files that are longer are stored in parts of this size, so that no step needs a whole file in memory.
pub const PART: u64 = 4 * 1024 * 1024;
/// The most things in one folder: content from elsewhere must not fill the memory.
pub const MOST_NAMES: usize = 1 << 20;

/// One folder: what is in it, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Tree(#[n(0)] Vec<TreeEntry>);

/// One thing in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TreeEntry {
    /// Its name.
    #[n(0)]
    pub name: FileName,
    /// What it is.
    #[n(1)]
    pub node: Node,
}

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Node {
    /// A file.
    #[n(0)]
    File {
        /// Its bytes: a blob up to [`PART`] bytes, [`Parts`] beyond.
        #[n(0)]
        content: ContentId,
        /// How many bytes.
        #[n(1)]
        size: u64,
        /// Permissions: the nine bits for owner, group and others.
        #[n(2)]
        mode: u16,
    },
    /// A symbolic link.
    #[n(1)]
    Link {
        /// Where it points to, as it stands.
        #[cbor(n(0), with = "minicbor::bytes")]
        target: Vec<u8>,
    },
    /// A folder.
    #[n(2)]
    Folder {
        /// What is in it.
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

/// The files of a workspace at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Snapshot {
    /// The roots, the main one first.
    #[n(0)]
    pub roots: Vec<SnapshotRoot>,
}

/// One root of a workspace at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotRoot {
    /// Its name; empty for the main root.
    #[n(0)]
    pub name: String,
    /// What is in it.
    #[n(1)]
    pub tree: ContentId,
    /// What it does not hold, if there is any: [`LeftOut`].
    #[n(2)]
    pub left_out: Option<ContentId>,
    /// How many files and links it holds.
    #[n(3)]
    pub files: u64,
    /// How many bytes they have.
    #[n(4)]
    pub bytes: u64,
    /// Files that it leaves out and that a tool has replaced, sealed: [`crate::sealed::SealedFiles`]. It is the last
    /// field, so that a root without any is encoded as it was before there were any.
    #[n(5)]
    pub sealed: Option<ContentId>,
}

/// Paths that a snapshot does not hold, or holds in part ([`Reason::ModeBits`]), in the order of their bytes. Of a
/// folder that is left out whole, only the folder is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct LeftOut(#[n(0)] pub Vec<LeftOutPath>);

/// A path that a snapshot does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct LeftOutPath {
    /// Its bytes, with slashes. Not a [`crate::path::TreePath`]: that it cannot be one may be the reason.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub path: Vec<u8>,
    /// Why.
    #[n(1)]
    pub reason: Reason,
}

/// Why a path is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LeftOutReason"))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// An ignore file names it.
    #[n(0)]
    Ignored,
    /// It is likely to hold a secret.
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
    /// It kept changing while it was read.
    #[n(5)]
    Changing,
    /// It belongs to a version control system, or to Retake itself.
    #[n(6)]
    Repository,
    /// Its name cannot be restored.
    #[n(7)]
    BadName,
    /// It is another file system, mounted there.
    #[n(8)]
    Mounted,
    /// It is held, but its setuid, setgid or sticky bit is not: a restore must not make a program that runs as its
    /// owner.
    #[n(9)]
    ModeBits,
    /// A tool replaced it, and its bytes are not sealed here: it is too large, there was no key, or it happened on another
    /// machine. No snapshot leaves a
    /// path out for this reason; a move that cannot bring one back gives it.
    #[n(10)]
    NotSealed,
    /// It is the folder of another project, or the worktree of a take.
    #[n(11)]
    OtherProject,
}

impl Content for Tree {
    const KIND: Kind = Kind::Tree;
}

impl Content for Parts {
    const KIND: Kind = Kind::Parts;
}

impl Content for Snapshot {
    const KIND: Kind = Kind::Snapshot;
}

impl Content for LeftOut {
    const KIND: Kind = Kind::LeftOut;
}

impl Tree {
    /// The folder with these things in it.
    pub fn new(mut entries: Vec<TreeEntry>) -> Self {
        entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        entries.dedup_by(|right, left| left.name == right.name);
        Self(entries)
    }

    /// What is in it, in the order of the names' bytes.
    pub fn entries(&self) -> &[TreeEntry] {
        &self.0
    }

    /// What stands under that name.
    pub fn get(&self, name: &FileName) -> Option<&Node> {
        let found = self.0.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
        Some(&self.0[found].node)
    }

    /// The same folder with something else, or nothing, under that name.
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

    /// Refuses a tree from elsewhere that is not in order, or that names something twice.
    pub fn check(&self) -> Result<(), Malformed> {
        let ordered = self.0.windows(2).all(|pair| pair[0].name < pair[1].name);
        let modes = self.0.iter().all(|entry| entry.node.mode().is_none_or(|mode| mode & !0o777 == 0));
        if ordered && modes && self.0.len() <= MOST_NAMES {
            Ok(())
        } else {
            Err(Malformed { kind: Kind::Tree })
        }
    }
}

impl LeftOut {
    /// Whether a path is left out, or is in a folder that is.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.covering(path).is_some()
    }

    /// What is left out if that path is: the path itself, or a folder that it is in.
    pub fn covering(&self, path: &[u8]) -> Option<&LeftOutPath> {
        if self.0.is_empty() {
            return None;
        }
        let named = |end: usize| {
            let found = self.0.binary_search_by(|left| left.path.as_slice().cmp(&path[..end])).ok()?;
            Some(&self.0[found]).filter(|left| left.reason != Reason::ModeBits)
        };
        let mut ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        named(path.len()).or_else(|| ends.find_map(named))
    }
}

impl Reason {
    /// Whether it is about the file itself, which was captured while it was otherwise, and not about a rule.
    pub fn is_of_content(self) -> bool {
        matches!(self, Self::TooLarge | Self::Special | Self::Unreadable | Self::Changing)
    }

    /// The reason in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Secret => "likely a secret",
            Self::TooLarge => "larger than the limit",
            Self::Special => "a pipe, a socket or a device",
            Self::Unreadable => "could not be read",
            Self::Changing => "kept changing while it was read",
            Self::Repository => "a repository's own data",
            Self::BadName => "a name that cannot be restored",
            Self::Mounted => "another file system",
            Self::NotSealed => "its bytes were not sealed here: too large, no key, or an imported thread",
            Self::ModeBits => "held without its setuid, setgid or sticky bit",
            Self::OtherProject => "another project, or the worktree of a take",
        }
    }
}

impl Node {
    /// The permissions, for what has some.
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

    /// The kind of content that holds a file of that size.
    pub fn kind_of(size: u64) -> Kind {
        if size > PART { Kind::Parts } else { Kind::Blob }
    }
}

impl Snapshot {
    /// Refuses a snapshot from elsewhere that names a root twice, or none.
    pub fn check(&self) -> Result<(), Malformed> {
        let mut names: Vec<&str> = self.roots.iter().map(|root| root.name.as_str()).collect();
        names.sort_unstable();
        let distinct = names.windows(2).all(|pair| pair[0] != pair[1]);
        let main_first = self.roots.first().is_some_and(|root| root.name.is_empty());
        if distinct && main_first { Ok(()) } else { Err(Malformed { kind: Kind::Snapshot }) }
    }

    /// The root with that name.
    pub fn root(&self, name: &str) -> Option<&SnapshotRoot> {
        self.roots.iter().find(|root| root.name == name)
    }

    /// How many files and links it holds.
    pub fn files(&self) -> u64 {
        self.roots.iter().map(|root| root.files).sum()
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        self.roots.iter().map(|root| root.bytes).sum()
    }
}
