//! Snapshots: captures the files of a workspace as content for the store.
//!
//! ```text
//!   walk ──► folders on all cores ──► names: ignore rules, secrets ──► captured, or excluded with a reason
//!     │                                                                   │
//!     │  stat cache: same stamps as when it was last read? ── yes ──► the node from then
//!     │                                                     └─ no ──► read, hash ──► sink: a few objects, or a pack
//!     └► build: trees from the leaves up ──► Snapshot ──► CapturedSnapshot ──► store (with an operation) ──► save_cache
//! ```
//!
//! Taking a snapshot writes neither to the database nor to the user's folder. The caller stores the [`Taken`] snapshot
//! together with the operation that needs it and then saves the stat cache, so that the cache never names content that
//! is not stored.
//!
//! **Captured.** Files, links and folders (including empty ones) with their permission bits. Excluded are paths in
//! ignore files (`.gitignore`, `.ignore`, `.retakeignore` in every folder, `.git/info/exclude`, and those of the parents
//! up to the top of the repository; also in folders without git), likely secrets, and version control data. The
//! user's git configuration is ignored, so that the same folder has the same snapshot on every machine. Excluded paths
//! are listed with the reason.
//!
//! **Links.** Links are captured as links and never followed. Every file is opened from the descriptor of its folder,
//! without following a link and without blocking on a pipe.
//!
//! **Limits of the stamps.** A file is not read again while its inode, size, permissions and both times are the same
//! and those times were clearly in the past when it was read (see `snapshot/stat.rs`). A write through a memory mapping
//! that was already dirty may leave the times unchanged; so does a disk that is changed below the file system. Code that
//! overwrites files therefore checks each one itself.

mod build;
mod cache;
mod excluded;
mod found;
mod include;
mod kept;
mod known;
mod listing;
mod narrow;
mod options;
mod others;
mod progress;
mod queue;
mod read;
mod rules;
mod sink;
mod stat;
mod taken;
mod walk;
mod workspace;

pub use excluded::is_excluded;
pub(crate) use kept::{Kept, Patch};
pub use known::Known;
pub(crate) use narrow::{Found, Watches, erasures, look_at_all, look_at_some};
pub use options::{DEFAULT_LARGEST_FILE, Options, SECRETS};
pub use progress::Progress;
pub use taken::{StoreTakenError, Taken};
pub use workspace::{OpenError, Root, Workspace, check_folder};

use std::collections::HashSet;
use std::ops::ControlFlow;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::object::NewObject;
use retake_model::tree::Snapshot;
use retake_store::{Store, StoreError};

use cache::Cache;
use others::OtherFolders;
use progress::Counter;
use sink::{Purpose, Sink};

/// Why no snapshot was taken. Nothing was stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A root cannot be read.
    #[error("{}: {error}", path.display())]
    Root {
        /// The folder.
        path: std::path::PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// The folder contains the store.
    #[error("{} contains Retake's own data; choose another folder", path.display())]
    Own {
        /// The folder.
        path: std::path::PathBuf,
    },
    /// The caller cancelled it.
    #[error("the snapshot was cancelled")]
    Cancelled,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a snapshot of a workspace.
pub fn snapshot(store: &Store, workspace: &Workspace) -> Result<Taken, SnapshotError> {
    snapshot_with(store, workspace, &|_| ControlFlow::Continue(()))
}

/// Like [`snapshot`], with progress reports; a break cancels it.
pub fn snapshot_with(
    store: &Store,
    workspace: &Workspace,
    progress: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Taken, SnapshotError> {
    let gathering = Gathering::begin(store, Purpose::Store)?;
    let counter = Counter::new(progress);
    let (taken, _) = whole(gathering, workspace, &counter, walk::Watched::default())?;
    Ok(taken)
}

/// The current files of a workspace, without writing to the store or next to it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Id that a snapshot of them has.
    pub id: ContentId,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Objects missing in the store, except for the bytes of files beyond the first megabyte.
    pub objects: Vec<NewObject>,
    /// Erasure counter of the store at that time.
    pub epoch: i64,
}

/// Reads the files of a workspace without storing anything.
pub fn observe(store: &Store, workspace: &Workspace) -> Result<Observation, SnapshotError> {
    let gathering = Gathering::begin(store, Purpose::Observe)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let (taken, _) = whole(gathering, workspace, &counter, walk::Watched::default())?;
    Ok(Observation { id: taken.id, snapshot: taken.snapshot, objects: taken.objects, epoch: taken.epoch })
}

/// Result of the walk over one root: the cache that it used, and the watches that it set.
struct Left {
    cache: Option<Cache>,
    memory: Option<Cache>,
    watches: Watches,
}

/// Takes a snapshot by walking all roots.
fn whole(
    mut gathering: Gathering<'_>,
    workspace: &Workspace,
    counter: &Counter<'_>,
    watched: walk::Watched<'_>,
) -> Result<(Taken, Vec<Left>), SnapshotError> {
    let store = gathering.store;
    let mut all = Vec::new();
    for root in workspace.roots() {
        gathering.check(root)?;
        let place = cache::Place::of(store, root);
        let cache = Cache::load(&place, gathering.epoch, store)?;
        let sink = &gathering.sink;
        let walked = walk::walk(root, workspace.options(), cache.as_ref(), sink, counter, watched)?;
        let built = build::build(root, walked, cache.as_ref())?;
        let memory = match (&built.memory, watched.events) {
            // The snapshot gets its id below.
            (Some(memory), Some(_)) => Cache::of(memory, root.device, ContentId::from_bytes([0; 32])),
            _ => None,
        };
        all.push(Left { cache, memory, watches: built.watches });
        gathering.objects.extend(built.objects);
        gathering.snapshot.roots.push(built.root);
        gathering.memories.push((place, built.memory));
    }
    let main = all.first().and_then(|left| left.cache.as_ref());
    let known = main.map(|cache| cache.snapshot);
    let (id, bytes) = gathering.named();
    if known != Some(id)
        && let (Some(main), Some((_, memory @ None))) = (main, gathering.memories.first_mut())
    {
        *memory = Some(main.memory());
    }
    Ok((gathering.finish(id, bytes, known)?, all))
}

/// Builds a snapshot root by root.
struct Gathering<'store> {
    store: &'store Store,
    /// Erasure counter of the store.
    epoch: i64,
    sink: Sink<'store>,
    snapshot: Snapshot,
    objects: Vec<NewObject>,
    memories: Vec<(cache::Place, Option<cache::Memory>)>,
}

impl<'store> Gathering<'store> {
    fn begin(store: &'store Store, purpose: Purpose) -> Result<Self, SnapshotError> {
        let (epoch, redacted, others) = {
            let reading = store.read()?;
            let queries = reading.queries();
            let redacted: HashSet<ContentId> = queries.redacted()?.into_iter().collect();
            (queries.erasures(), redacted, OtherFolders::read(&queries)?)
        };
        Ok(Self {
            store,
            epoch,
            sink: Sink::new(store, redacted, others, purpose),
            snapshot: Snapshot { roots: Vec::new() },
            objects: Vec::new(),
            memories: Vec::new(),
        })
    }

    fn check(&self, root: &Root) -> Result<(), SnapshotError> {
        if root.path.starts_with(self.store.folder()) {
            return Err(SnapshotError::Own { path: root.path.clone() });
        }
        Ok(())
    }

    /// Id and bytes of the snapshot.
    fn named(&self) -> (ContentId, Vec<u8>) {
        let bytes = encode(&self.snapshot);
        (ContentId::of(Kind::Snapshot, &bytes), bytes)
    }

    /// All objects that the store may lack; it has the snapshot `known`.
    fn finish(self, id: ContentId, bytes: Vec<u8>, known: Option<ContentId>) -> Result<Taken, SnapshotError> {
        let (blobs, packed) = self.sink.finish()?;
        // Objects come after those that they refer to.
        let mut all = blobs;
        all.extend(self.objects);
        if known != Some(id) {
            all.push(NewObject { id, kind: Kind::Snapshot, bytes: bytes.into() });
        }
        let mut seen = HashSet::new();
        all.retain(|object| seen.insert(object.id));
        Ok(Taken::new(id, self.snapshot, all, packed, self.epoch, self.memories))
    }
}
