//! Sealed files: encrypted copies of excluded files (ignored files, likely secrets) that tools replace.
//!
//! A snapshot must not contain `.env`. But if a tool is about to replace it, undo needs its bytes. They are
//! encrypted with a key stored outside the store, and from then on the snapshots of the folder list the path
//! as *sealed*, with its state before and after.
//!
//! ```text
//!   Snapshot ── root "" ─┬─► Tree       captured files, in plain text
//!                        ├─► Excluded   .env likely a secret
//!                        └─► Sealed     .env ──► digest · size · mode · encrypted parts
//! ```
//!
//! Versions are compared by a keyed digest, which reveals nothing about the content without the key. This
//! module contains no cryptography; the store encrypts and decrypts.
//!
//! A path stays in the list after it is captured again, because ignore rules changed. Its states in the lists are then
//! one continuous history, whatever the rules said in between:
//!
//! ```text
//!                 write (ignored)     .gitignore edited      write            .gitignore restored
//!   tree          –          –        –          B           B        C       C          –
//!   sealed        A    ──►   B        B    ──►   B           B  ──►   C       C    ──►   C
//! ```
//!
//! Snapshots from before a path was first sealed have only its captured node. [`SealedTwins`] are the sealed states of
//! such nodes, so that a move can follow the path beyond that point.

use std::collections::{BTreeMap, HashMap};

use minicbor::{Decode, Encode};

use crate::content::{Content, ContentId, Kind, MalformedError};
use crate::object::{ObjectError, Objects, load};
use crate::path::TreePath;
use crate::tree::{Node, SnapshotRoot};

/// Maximum size of a sealed file. The existence of larger files is recorded, but they cannot be restored.
pub const MAX_SEALED: u64 = 32 * 1024 * 1024;

/// The sealed files of one root, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct SealedFiles(#[n(0)] Vec<SealedPath>);

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct SealedPath {
    #[cbor(n(0), with = "minicbor::bytes")]
    path: Vec<u8>,
    #[n(1)]
    state: SealedState,
}

/// The state of an excluded path.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum SealedState {
    /// Nothing exists at the path.
    #[n(0)]
    Nothing,
    /// A file with sealed bytes.
    #[n(1)]
    File(#[n(0)] SealedFile),
    /// Something that was not sealed: too large, unreadable, not a file, or no key was available.
    #[n(2)]
    NotStored {
        /// Distinguishes it from other versions; derived from file metadata, not from its bytes.
        #[n(0)]
        stamp: u64,
    },
}

/// A file whose bytes are sealed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SealedFile {
    /// The encrypted bytes, in parts.
    #[n(0)]
    pub parts: Vec<ContentId>,
    /// The keyed digest by which bytes are compared; the key is stored separately.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub digest: [u8; 32],
    /// Size of the file in bytes.
    #[n(2)]
    pub size: u64,
    /// Its nine permission bits.
    #[n(3)]
    pub mode: u16,
}

/// The states of the sealed paths of a root.
pub type SealedMap = BTreeMap<TreePath, SealedState>;

/// The sealed states of captured nodes, by path. Whoever has the key computes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedTwins(HashMap<(TreePath, Node), SealedState>);

impl SealedTwins {
    /// Adds the sealed state of a captured node.
    pub fn insert(&mut self, path: TreePath, node: Node, state: SealedState) {
        self.0.insert((path, node), state);
    }

    /// The sealed state of a captured node, if known.
    pub fn get(&self, path: &TreePath, node: &Node) -> Option<&SealedState> {
        self.0.get(&(path.clone(), node.clone()))
    }
}

impl Content for SealedFiles {
    const KIND: Kind = Kind::SealedFiles;
}

impl SealedFiles {
    /// Creates the list from these states.
    pub fn new(states: &SealedMap) -> Self {
        let path = |(path, state): (&TreePath, &SealedState)| SealedPath {
            path: path.bytes(),
            state: state.clone(),
        };
        let mut paths: Vec<SealedPath> = states.iter().map(path).collect();
        paths.sort_by(|left, right| left.path.cmp(&right.path));
        Self(paths)
    }

    /// The states by path. Invalid paths are skipped, so they are never written to.
    pub fn states(&self) -> SealedMap {
        let path = |sealed: &SealedPath| Some((TreePath::new(&sealed.path).ok()?, sealed.state.clone()));
        self.0.iter().filter_map(path).collect()
    }

    /// The encrypted parts of all files.
    pub fn parts(&self) -> impl Iterator<Item = ContentId> + '_ {
        self.0
            .iter()
            .flat_map(|sealed| match &sealed.state {
                SealedState::File(file) => file.parts.as_slice(),
                SealedState::Nothing | SealedState::NotStored { .. } => &[],
            })
            .copied()
    }

    /// Refuses an imported list that is not sorted or contains an invalid path.
    pub fn check(&self) -> Result<(), MalformedError> {
        let ordered = self.0.windows(2).all(|pair| pair[0].path < pair[1].path);
        let paths = self.0.iter().all(|sealed| TreePath::new(&sealed.path).is_ok());
        let modes = self.0.iter().all(|sealed| match &sealed.state {
            SealedState::File(file) => file.mode & !0o777 == 0,
            SealedState::Nothing | SealedState::NotStored { .. } => true,
        });
        if ordered && paths && modes { Ok(()) } else { Err(MalformedError { kind: Kind::SealedFiles }) }
    }
}

impl SealedState {
    /// Whether both have the same bytes and permissions. The encrypted parts are not compared, because
    /// another version of the program may have encrypted them.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one.digest == other.digest && one.mode == other.mode,
            (Self::NotStored { stamp: one }, Self::NotStored { stamp: other }) => one == other,
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }

    /// The node for reports. Its content id is the digest, which does not address any stored content.
    pub fn node(&self) -> Option<Node> {
        match self {
            Self::File(SealedFile { digest, size, mode, .. }) => {
                Some(Node::file(ContentId::from_bytes(*digest), *size, *mode))
            }
            Self::Nothing | Self::NotStored { .. } => None,
        }
    }
}

/// The sealed paths of a root of a snapshot.
pub fn sealed_of(
    objects: &(impl Objects + ?Sized),
    root: Option<&SnapshotRoot>,
) -> Result<SealedMap, ObjectError> {
    match root.and_then(|root| root.sealed) {
        Some(id) => Ok(load::<SealedFiles>(objects, id)?.states()),
        None => Ok(SealedMap::new()),
    }
}

/// The paths that both sides have and that differ, with their states before and after.
pub fn sealed_changes(before: &SealedMap, after: &SealedMap) -> Vec<(TreePath, SealedState, SealedState)> {
    let changed = |(path, after): (&TreePath, &SealedState)| {
        let before = before.get(path)?;
        (!before.same(after)).then(|| (path.clone(), before.clone(), after.clone()))
    };
    after.iter().filter_map(changed).collect()
}
