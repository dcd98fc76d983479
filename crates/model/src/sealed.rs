//! Sealed files: what tools replace in files that snapshots leave out (ignored files, likely secrets).
//!
//! A snapshot does not hold `.env`, and must not. But once a tool is about to replace it, an undo needs its bytes. They
//! are encrypted with a key that is kept apart from the store, and from then on the snapshots of the folder know the
//! path as *sealed*: how it was, and how it is.
//!
//! ```text
//!   Snapshot ── root "" ─┬─► Tree       what is held, in clear
//!                        ├─► LeftOut    .env likely a secret
//!                        └─► Sealed     .env ──► digest · size · mode · encrypted parts
//! ```
//!
//! Two versions are compared by a digest that only the owner of the key can make: without the key it says nothing
//! about the content. This module knows no cryptography; the store seals and opens.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::content::{Content, ContentId, Kind, Malformed};
use crate::object::{Objects, Unavailable, load};
use crate::path::TreePath;
use crate::tree::{Node, SnapshotRoot};

/// The largest file that is sealed. Larger ones are known to have been there, and cannot be brought back.
pub const LARGEST_SEALED: u64 = 32 * 1024 * 1024;

/// The sealed files of one root, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct SealedFiles(#[n(0)] Vec<SealedPath>);

/// One path, and what stands there.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
struct SealedPath {
    #[cbor(n(0), with = "minicbor::bytes")]
    path: Vec<u8>,
    #[n(1)]
    state: SealedState,
}

/// What stands at a path that snapshots leave out.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum SealedState {
    /// Nothing.
    #[n(0)]
    Nothing,
    /// A file, whose bytes are sealed.
    #[n(1)]
    File(#[n(0)] SealedFile),
    /// Something that was not sealed: too large, unreadable, no file, or there was no key.
    #[n(2)]
    NotKept {
        /// Tells it from another one: made of what the system says about it, not of its bytes.
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
    /// What the bytes are compared by: a hash with a key that is kept apart.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub digest: [u8; 32],
    /// How many bytes the file has.
    #[n(2)]
    pub size: u64,
    /// Its nine permission bits.
    #[n(3)]
    pub mode: u16,
}

/// The states of the sealed paths of a root.
pub type SealedMap = BTreeMap<TreePath, SealedState>;

impl Content for SealedFiles {
    const KIND: Kind = Kind::SealedFiles;
}

impl SealedFiles {
    /// The list of these paths.
    pub fn new(states: &SealedMap) -> Self {
        let path = |(path, state): (&TreePath, &SealedState)| SealedPath {
            path: path.bytes(),
            state: state.clone(),
        };
        let mut paths: Vec<SealedPath> = states.iter().map(path).collect();
        paths.sort_by(|left, right| left.path.cmp(&right.path));
        Self(paths)
    }

    /// The states, by path. A path that is none is passed over: it is never written to.
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
                SealedState::Nothing | SealedState::NotKept { .. } => &[],
            })
            .copied()
    }

    /// Refuses a list from elsewhere that is not in order, or names what is no path.
    pub fn check(&self) -> Result<(), Malformed> {
        let ordered = self.0.windows(2).all(|pair| pair[0].path < pair[1].path);
        let paths = self.0.iter().all(|sealed| TreePath::new(&sealed.path).is_ok());
        let modes = self.0.iter().all(|sealed| match &sealed.state {
            SealedState::File(file) => file.mode & !0o777 == 0,
            SealedState::Nothing | SealedState::NotKept { .. } => true,
        });
        if ordered && paths && modes { Ok(()) } else { Err(Malformed { kind: Kind::SealedFiles }) }
    }
}

impl SealedState {
    /// Whether both stand for the same bytes with the same permissions. The encrypted parts are not compared:
    /// they may have been made by another version of the program.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one.digest == other.digest && one.mode == other.mode,
            (Self::NotKept { stamp: one }, Self::NotKept { stamp: other }) => one == other,
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }

    /// What reports show of it. The content is named by its digest, under which nothing is stored.
    pub fn node(&self) -> Option<Node> {
        match self {
            Self::File(SealedFile { digest, size, mode, .. }) => {
                Some(Node::File { content: ContentId::from_bytes(*digest), size: *size, mode: *mode })
            }
            Self::Nothing | Self::NotKept { .. } => None,
        }
    }
}

/// The sealed paths of a root at one moment.
pub fn sealed_of(
    objects: &(impl Objects + ?Sized),
    root: Option<&SnapshotRoot>,
) -> Result<SealedMap, Unavailable> {
    match root.and_then(|root| root.sealed) {
        Some(id) => Ok(load::<SealedFiles>(objects, id)?.states()),
        None => Ok(SealedMap::new()),
    }
}

/// The paths that are known on both sides and differ, with what stood and stands there.
pub fn sealed_changes(before: &SealedMap, after: &SealedMap) -> Vec<(TreePath, SealedState, SealedState)> {
    let changed = |(path, after): (&TreePath, &SealedState)| {
        let before = before.get(path)?;
        (!before.same(after)).then(|| (path.clone(), before.clone(), after.clone()))
    };
    after.iter().filter_map(changed).collect()
}
