//! Snapshots with a watcher: a full walk that sets watches, and a partial walk of changed folders.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use retake_store::Store;

use super::progress::Counter;
use super::walk::{WatchContext, walk};
use super::watched_tree::{Patch, WatchedTree};
use super::{CapturedSnapshot, SnapshotBuilder, SnapshotError, Workspace, build, snapshot_roots};
use crate::watch::Events;

/// Watches, each with the number of its folder, if the watched tree contains it.
pub(crate) type Watches = Vec<(i32, Option<u32>)>;

/// A snapshot with the data for the watcher, valid once it is stored.
pub(crate) struct WatchedSnapshot<T> {
    pub(crate) taken: CapturedSnapshot,
    /// Set when the snapshot was stored and its cache saved.
    pub(crate) is_stored_flag: Arc<AtomicBool>,
    /// For each root: the new state or patch, and the watches that were set.
    pub(crate) roots: Vec<(T, Watches)>,
}

/// Erasure counter of the store: the state in memory is valid only while it stays the same.
pub(crate) fn erasures(store: &Store) -> Result<i64, SnapshotError> {
    Ok(store.read()?.queries().erasure_epoch())
}

/// Walks everything and sets a watch on each folder before reading it. A root without reusable state gets none.
pub(crate) fn snapshot_all(
    store: &Store,
    workspace: &Workspace,
    events: &Events,
) -> Result<WatchedSnapshot<Option<WatchedTree>>, SnapshotError> {
    let builder = SnapshotBuilder::begin(store, super::Purpose::Store)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let watched = WatchContext { events: Some(events), marks: None };
    let (taken, all) = snapshot_roots(builder, workspace, &counter, watched)?;
    let id = taken.id;
    let roots = all.into_iter().map(|left| {
        let cache = left.cache_data.or(left.cache).map(|mut cache| {
            cache.snapshot = id;
            cache
        });
        (cache.map(WatchedTree::new), left.watches)
    });
    Ok(WatchedSnapshot { roots: roots.collect(), is_stored_flag: taken.is_stored_flag(), taken })
}

/// Walks only the changed folders of each root; the rest comes from memory.
pub(crate) fn snapshot_changed(
    store: &Store,
    workspace: &Workspace,
    events: &Events,
    roots: &[(WatchedTree, HashSet<u32>)],
) -> Result<WatchedSnapshot<Patch>, SnapshotError> {
    let mut builder = SnapshotBuilder::begin(store, super::Purpose::Store)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let mut patches = Vec::new();
    for (root, (watched_tree, changed_folders)) in workspace.roots().iter().zip(roots) {
        builder.check(root)?;
        let marks = watched_tree.marks(changed_folders);
        let watched = WatchContext { events: Some(events), marks: Some(&marks) };
        let cache = Some(watched_tree.cache());
        let walked = walk(root, workspace.options(), cache, &builder.sink, &counter, watched)?;
        let (built, patch) = build::patch(root, walked, watched_tree)?;
        builder.objects.extend(built.objects);
        builder.snapshot.roots.push(built.root);
        patches.push((patch, built.watches));
    }
    let known = roots.first().map(|(watched_tree, _)| watched_tree.cache().snapshot);
    let (id, bytes) = builder.encode_snapshot();
    let taken = builder.finish(id, bytes, known)?;
    Ok(WatchedSnapshot { roots: patches, is_stored_flag: taken.is_stored_flag(), taken })
}
