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
//! Taking a snapshot writes neither to the database nor to the user's folder. The caller stores the [`CapturedSnapshot`] snapshot
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
mod captured;
mod excluded;
mod globs;
mod known_files;
mod listing;
mod options;
mod other_folders;
mod partial;
mod progress;
mod queue;
mod read;
mod rules;
mod sink;
mod stat;
mod walk;
mod walk_result;
mod watched_tree;
mod workspace;

pub use captured::{CapturedSnapshot, StoreSnapshotError};
pub use excluded::is_excluded;
pub use known_files::KnownFiles;
pub use options::{DEFAULT_LARGEST_FILE, Options, SECRETS};
pub(crate) use partial::{Watches, erasures, observe_all, observe_changed};
pub use progress::Progress;
pub(crate) use watched_tree::WatchedTree;
pub use workspace::{OpenError, Root, Workspace, check_folder};

use std::collections::HashSet;
use std::ops::ControlFlow;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::object::NewObject;
use retake_model::tree::Snapshot;
use retake_store::{Store, StoreError};

use cache::Cache;
use other_folders::OtherFolders;
use progress::Counter;
use sink::{Purpose, Sink};

/// Why no snapshot was taken. Nothing was stored.
#[derive(Debug, thiserror::Error)]
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
pub fn snapshot(store: &Store, workspace: &Workspace) -> Result<CapturedSnapshot, SnapshotError> {
    snapshot_with(store, workspace, &|_| ControlFlow::Continue(()))
}

/// Like [`snapshot`], with progress reports; a break cancels it.
pub fn snapshot_with(
    store: &Store,
    workspace: &Workspace,
    progress: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<CapturedSnapshot, SnapshotError> {
    let builder = SnapshotBuilder::begin(store, Purpose::Store)?;
    let counter = Counter::new(progress);
    let (taken, _) = snapshot_roots(builder, workspace, &counter, walk::WatchContext::default())?;
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
    let builder = SnapshotBuilder::begin(store, Purpose::Observe)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let (taken, _) = snapshot_roots(builder, workspace, &counter, walk::WatchContext::default())?;
    Ok(taken.into())
}

impl From<CapturedSnapshot> for Observation {
    fn from(taken: CapturedSnapshot) -> Self {
        Self { id: taken.id, snapshot: taken.snapshot, objects: taken.objects, epoch: taken.epoch }
    }
}

/// Result of the walk over one root: the cache that it used, and the watches that it set.
struct RootWalk {
    cache: Option<Cache>,
    cache_data: Option<Cache>,
    watches: Watches,
}

/// Takes a snapshot by walking all roots.
fn snapshot_roots(
    mut builder: SnapshotBuilder<'_>,
    workspace: &Workspace,
    counter: &Counter<'_>,
    watched: walk::WatchContext<'_>,
) -> Result<(CapturedSnapshot, Vec<RootWalk>), SnapshotError> {
    let store = builder.store;
    let mut all = Vec::new();
    for root in workspace.roots() {
        builder.check(root)?;
        let cache_file = cache::CacheFile::of(store, root);
        let cache = Cache::load(&cache_file, builder.epoch, store)?;
        let sink = &builder.sink;
        let walked = walk::walk(root, workspace.options(), cache.as_ref(), sink, counter, watched)?;
        let built = build::build(root, walked, cache.as_ref())?;
        let cache_data = match (&built.cache_data, watched.events) {
            // The snapshot gets its id below.
            (Some(cache_data), Some(_)) => Cache::of(cache_data, root.device, ContentId::from_bytes([0; 32])),
            _ => None,
        };
        all.push(RootWalk { cache, cache_data, watches: built.watches });
        builder.objects.extend(built.objects);
        builder.snapshot.roots.push(built.root);
        builder.cache_updates.push((cache_file, built.cache_data));
    }
    let main = all.first().and_then(|left| left.cache.as_ref());
    let known = main.map(|cache| cache.snapshot);
    let (id, bytes) = builder.encode_snapshot();
    if known != Some(id)
        && let (Some(main), Some((_, cache_data @ None))) = (main, builder.cache_updates.first_mut())
    {
        *cache_data = Some(main.cache_data());
    }
    Ok((builder.finish(id, bytes, known)?, all))
}

/// Builds a snapshot root by root.
struct SnapshotBuilder<'store> {
    store: &'store Store,
    /// Erasure counter of the store.
    epoch: i64,
    sink: Sink<'store>,
    snapshot: Snapshot,
    objects: Vec<NewObject>,
    cache_updates: Vec<(cache::CacheFile, Option<cache::CacheData>)>,
}

impl<'store> SnapshotBuilder<'store> {
    fn begin(store: &'store Store, purpose: Purpose) -> Result<Self, SnapshotError> {
        let (epoch, redacted, others) = {
            let reading = store.read()?;
            let queries = reading.queries();
            let redacted: HashSet<ContentId> = queries.redacted()?.into_iter().collect();
            (queries.erasure_epoch(), redacted, OtherFolders::read(&queries)?)
        };
        Ok(Self {
            store,
            epoch,
            sink: Sink::new(store, redacted, others, purpose),
            snapshot: Snapshot { roots: Vec::new() },
            objects: Vec::new(),
            cache_updates: Vec::new(),
        })
    }

    fn check(&self, root: &Root) -> Result<(), SnapshotError> {
        if root.path.starts_with(self.store.folder()) {
            return Err(SnapshotError::Own { path: root.path.clone() });
        }
        Ok(())
    }

    /// Id and bytes of the snapshot.
    fn encode_snapshot(&self) -> (ContentId, Vec<u8>) {
        let bytes = encode(&self.snapshot);
        (ContentId::of(Kind::Snapshot, &bytes), bytes)
    }

    /// All objects that the store may lack; it has the snapshot `known_files`.
    fn finish(
        self,
        id: ContentId,
        bytes: Vec<u8>,
        known: Option<ContentId>,
    ) -> Result<CapturedSnapshot, SnapshotError> {
        let (blobs, packed) = self.sink.finish()?;
        // Objects come after those that they refer to.
        let mut all = blobs;
        all.extend(self.objects);
        if known != Some(id) {
            all.push(NewObject { id, kind: Kind::Snapshot, bytes: bytes.into() });
        }
        let mut seen = HashSet::new();
        all.retain(|object| seen.insert(object.id));
        Ok(CapturedSnapshot::new(id, self.snapshot, all, packed, self.epoch, self.cache_updates))
    }
}
