//! Snapshots with a watcher: a full walk that sets watches, and a partial walk of changed folders.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use retake_store::Store;

use super::kept::{Kept, Patch};
use super::progress::Counter;
use super::walk::{Watched, walk};
use super::{Gathering, SnapshotError, Taken, Workspace, build, whole};
use crate::watch::Events;

/// Watches, each with the number of its folder, if the watched tree contains it.
pub(crate) type Watches = Vec<(i32, Option<u32>)>;

/// A snapshot with the data for the watcher, valid once it is stored.
pub(crate) struct Found<T> {
    pub(crate) taken: Taken,
    /// Set when the snapshot was stored and its cache saved.
    pub(crate) is_kept: Arc<AtomicBool>,
    /// For each root: the new state or patch, and the watches that were set.
    pub(crate) roots: Vec<(T, Watches)>,
}

/// Erasure counter of the store: the state in memory is valid only while it stays the same.
pub(crate) fn erasures(store: &Store) -> Result<i64, SnapshotError> {
    Ok(store.read()?.queries().erasures())
}

/// Walks everything and sets a watch on each folder before reading it. A root without reusable state gets none.
pub(crate) fn look_at_all(
    store: &Store,
    workspace: &Workspace,
    events: &Events,
) -> Result<Found<Option<Kept>>, SnapshotError> {
    let gathering = Gathering::begin(store, super::Purpose::Store)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let watched = Watched { events: Some(events), marks: None };
    let (taken, all) = whole(gathering, workspace, &counter, watched)?;
    let id = taken.id;
    let roots = all.into_iter().map(|left| {
        let cache = left.memory.or(left.cache).map(|mut cache| {
            cache.snapshot = id;
            cache
        });
        (cache.map(Kept::new), left.watches)
    });
    Ok(Found { roots: roots.collect(), is_kept: taken.kept(), taken })
}

/// Walks only the changed folders of each root; the rest comes from memory.
pub(crate) fn look_at_some(
    store: &Store,
    workspace: &Workspace,
    events: &Events,
    roots: &[(Kept, HashSet<u32>)],
) -> Result<Found<Patch>, SnapshotError> {
    let mut gathering = Gathering::begin(store, super::Purpose::Store)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let mut patches = Vec::new();
    for (root, (kept, happened)) in workspace.roots().iter().zip(roots) {
        gathering.check(root)?;
        let marks = kept.marks(happened);
        let watched = Watched { events: Some(events), marks: Some(&marks) };
        let cache = Some(kept.cache());
        let walked = walk(root, workspace.options(), cache, &gathering.sink, &counter, watched)?;
        let (built, patch) = build::patch(root, walked, kept)?;
        gathering.objects.extend(built.objects);
        gathering.snapshot.roots.push(built.root);
        patches.push((patch, built.watches));
    }
    let known = roots.first().map(|(kept, _)| kept.cache().snapshot);
    let (id, bytes) = gathering.named();
    let taken = gathering.finish(id, bytes, known)?;
    Ok(Found { roots: patches, is_kept: taken.kept(), taken })
}
