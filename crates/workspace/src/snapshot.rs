//! Snapshots: the files of a workspace at one moment, as content that the store can hold.
//!
//! ```text
//!   walk ──► folders on all cores ──► names: ignore rules, secrets ──► held, or left out with the reason
//!     │                                                                   │
//!     │  stat cache: same stamps as when it was last read? ── yes ──► the node from then
//!     │                                                     └─ no ──► read, hash ──► sink: a few objects, or a pack
//!     └► build: trees from the leaves up ──► Snapshot ──► Taken ──► store (with an operation) ──► remember
//! ```
//!
//! Taking one writes nothing into the database and nothing into the user's folder. The caller stores what was
//! [`Taken`] together with the operation that needs it, and then lets it be remembered: so the stat cache never
//! names content that is not stored.
//!
//! **What is held.** Files, links and folders (empty ones too) with their permission bits. Not what ignore
//! files name (`.gitignore`, `.ignore`, `.retakeignore` in every folder, `.git/info/exclude`, and those of the
//! folders around it up to the top of the repository; in folders without git just the same), not what is likely
//! to hold a secret, nothing of version control itself. The user's own configuration of git is not asked: the
//! same folder has the same snapshot on every machine. What is left out is named, with the reason.
//!
//! **What a link can do.** Nothing: links are held as links and never followed. Every file is opened from the
//! descriptor of its folder, without following a link and without waiting for a pipe.
//!
//! **What the stamps can miss.** A file is not read again while its inode, size, permissions and both times are
//! the same, and those times were clearly in the past when it was read (see [`Stat::is_settled`](stat)). A
//! program that writes through a memory mapping that was dirty before may leave the times as they are; so does
//! a disk that is changed beneath the file system. Whoever overwrites files therefore checks each one himself.

mod build;
mod cache;
mod include;
mod known;
mod listing;
mod options;
mod progress;
mod queue;
mod read;
mod rules;
mod sink;
mod stat;
mod taken;
mod walk;
mod workspace;

pub use known::Known;
pub use options::{DEFAULT_LARGEST_FILE, Options, SECRETS};
pub use progress::Progress;
pub use taken::{StoreTakenError, Taken};
pub use workspace::{OpenError, Root, Workspace};

use std::collections::HashSet;
use std::ops::ControlFlow;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::object::NewObject;
use retake_model::tree::Snapshot;
use retake_store::{Store, StoreError};

use cache::Cache;
use progress::Counter;
use sink::Sink;

/// Why no snapshot was taken. Nothing was stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A root cannot be read.
    #[error("{}: {error}", path.display())]
    Root {
        /// Which folder.
        path: std::path::PathBuf,
        /// What happened.
        error: std::io::Error,
    },
    /// It is where the store is.
    #[error("{} is where Retake keeps its own files; choose another folder", path.display())]
    Own {
        /// Which folder.
        path: std::path::PathBuf,
    },
    /// The caller wanted no more.
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

/// The same, saying from time to time how far it is; a break cancels it.
pub fn snapshot_with(
    store: &Store,
    workspace: &Workspace,
    progress: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Taken, SnapshotError> {
    let (epoch, redacted) = {
        let reading = store.read()?;
        let queries = reading.queries();
        let redacted: HashSet<ContentId> = queries.redacted()?.into_iter().collect();
        (queries.erasures(), redacted)
    };
    let sink = Sink::new(store, redacted);
    let counter = Counter::new(progress);
    let mut snapshot = Snapshot { roots: Vec::new() };
    let mut objects = Vec::new();
    let mut memories = Vec::new();
    let mut main = None;
    for root in workspace.roots() {
        if root.path.starts_with(store.folder()) {
            return Err(SnapshotError::Own { path: root.path.clone() });
        }
        let place = cache::Place::of(store, root);
        let cache = Cache::load(&place, epoch, store)?;
        let walked = walk::walk(root, workspace.options(), cache.as_ref(), &sink, &counter)?;
        let built = build::build(root, walked, cache.as_ref())?;
        objects.extend(built.objects);
        snapshot.roots.push(built.root);
        memories.push((place, built.memory));
        if main.is_none() {
            main = cache;
        }
    }
    let bytes = encode(&snapshot);
    let id = ContentId::of(Kind::Snapshot, &bytes);
    // The snapshot is new, or the cache of the main root says that it was stored.
    let known = main.as_ref().map(|cache: &Cache| cache.snapshot);
    if known != Some(id)
        && let (Some(main), Some((_, memory @ None))) = (&main, memories.first_mut())
    {
        *memory = Some(main.memory());
    }
    let (blobs, packed) = sink.finish()?;
    // Each piece after those that it refers to.
    let mut all = blobs;
    all.extend(objects);
    if known != Some(id) {
        all.push(NewObject { id, kind: Kind::Snapshot, bytes: bytes.into() });
    }
    let mut seen = HashSet::new();
    all.retain(|object| seen.insert(object.id));
    Ok(Taken::new(id, snapshot, all, packed, epoch, memories))
}
