//! Observations with a watch: a full walk that sets watches, and a partial walk of changed folders.

use std::collections::HashSet;
use std::ops::ControlFlow;

use retake_store::Store;

use super::progress::Counter;
use super::walk::{WatchContext, walk};
use super::watched_tree::WatchedTree;
use super::{Observation, SnapshotBuilder, SnapshotError, Workspace, build, snapshot_roots};
use crate::watch::Events;

/// Watches, each with the number of its folder, if the watched tree contains it.
pub(crate) type Watches = Vec<(i32, Option<u32>)>;

/// What a full walk found.
pub(crate) struct FullObservation {
    pub(crate) observation: Observation,
    /// For each root, what later walks compare with, and the watches that were set.
    pub(crate) roots: Vec<(Option<WatchedTree>, Watches)>,
}

/// What a walk of changed folders found.
pub(crate) struct PartialObservation {
    pub(crate) observation: Observation,
    /// The watches that were set, and whether their folders are captured.
    pub(crate) watches: Vec<(i32, bool)>,
}

/// Erasure counter of the store: the state in memory is valid only while it stays the same.
pub(crate) fn erasures(store: &Store) -> Result<i64, SnapshotError> {
    Ok(store.read()?.queries().erasure_epoch())
}

/// Walks everything and sets a watch on each folder before reading it. A root without reusable state gets none.
pub(crate) fn observe_all(
    store: &Store,
    workspace: &Workspace,
    events: &Events,
) -> Result<FullObservation, SnapshotError> {
    let builder = SnapshotBuilder::begin(store, super::Purpose::Observe)?;
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
    Ok(FullObservation { roots: roots.collect(), observation: taken.into() })
}

/// Walks only the changed folders of each root; the rest is as the full walk found it.
pub(crate) fn observe_changed(
    store: &Store,
    workspace: &Workspace,
    events: &Events,
    roots: &[(WatchedTree, HashSet<u32>)],
) -> Result<PartialObservation, SnapshotError> {
    let mut builder = SnapshotBuilder::begin(store, super::Purpose::Observe)?;
    let counter = Counter::new(&|_| ControlFlow::Continue(()));
    let mut watches = Vec::new();
    for (root, (watched_tree, changed_folders)) in workspace.roots().iter().zip(roots) {
        builder.check(root)?;
        let marks = watched_tree.marks(changed_folders);
        let watched = WatchContext { events: Some(events), marks: Some(&marks) };
        let cache = Some(watched_tree.cache());
        let walked = walk(root, workspace.options(), cache, &builder.sink, &counter, watched)?;
        let built = build::build_changed(root, walked, watched_tree)?;
        builder.objects.extend(built.objects);
        builder.snapshot.roots.push(built.root);
        watches.extend(built.watches);
    }
    let known = roots.first().map(|(watched_tree, _)| watched_tree.cache().snapshot);
    let (id, bytes) = builder.encode_snapshot();
    Ok(PartialObservation { observation: builder.finish(id, bytes, known)?.into(), watches })
}
