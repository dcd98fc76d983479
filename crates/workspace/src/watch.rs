//! A watcher for long-running processes: it limits the walk of a snapshot to changed folders.
//!
//! ```text
//!   first ───► full walk; sets a watch on each captured folder before reading it
//!                   │                                                       ▲
//!                   ▼                                                       │ events lost, unknown watch, a root
//!   next ────► events from the queue ──► changed folders                    │ moved, content erased, cache not
//!                   │                                                       │ saved, a minute over
//!                   └──► walk: only those and their parents ────────────────┘
//!                         the rest from memory, as of the last snapshot
//! ```
//!
//! There is no thread. Events wait in the kernel until the next snapshot; events during a snapshot count for the one
//! after it. Files with unreliable stamps (see the stat cache) are checked again without an event, and so are entries
//! that are excluded by their type rather than by their name.
//!
//! **Never trusted.** The kernel does not report everything: not a write through a mapping before the file is closed,
//! not a write through another hard link, not changes by other machines on a network file system, nor a disk that is
//! changed below. A partial snapshot may therefore miss such a change. It is never wrong about the content it names:
//! content is hashed when it is read and stored under that hash. Code that moves files checks each path right before the
//! move, whatever a snapshot contains; and a full walk, at least once a minute, corrects missed changes.
//!
//! The watcher relies only on stored content: the results of a snapshot count for the next one only after
//! [`CapturedSnapshot::save_cache`]. Only full walks write the stat cache on disk; for other processes, an older one only means
//! reading a little more.

mod events;

pub(crate) use events::Events;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use retake_model::content::ContentId;
use retake_store::Store;

use crate::snapshot::{
    CapturedSnapshot, Patch, Root, SnapshotError, WatchedSnapshot, WatchedTree, Watches, Workspace, erasures,
    snapshot, snapshot_all, snapshot_changed,
};
use events::{DrainOutcome, Event};

/// Resource limits of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of folders to watch; in a larger workspace, none are.
    pub watches: usize,
    /// Number of events to process; beyond it, everything is walked.
    pub events: usize,
    /// How long partial snapshots are allowed before a full walk.
    pub trust: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { watches: 100_000, events: 200_000, trust: Duration::from_mins(1) }
    }
}

/// Watches the folders of a workspace between two snapshots.
pub struct Watcher {
    roots: Vec<Root>,
    limits: Limits,
    state: State,
}

enum State {
    /// The next snapshot walks everything.
    Fresh,
    /// Watching failed: all later snapshots walk everything.
    Off,
    Watching(Box<ActiveWatch>),
}

struct ActiveWatch {
    events: Events,
    /// For each root, its state and the changed folders.
    roots: Vec<(WatchedTree, HashSet<u32>)>,
    /// Root and folder of each watch.
    folders: HashMap<i32, (usize, u32)>,
    /// Watch of each folder.
    watches: HashMap<(usize, u32), i32>,
    /// Removed watches that may still have events in the queue.
    ended: HashSet<i32>,
    /// Changes whenever the store erases content.
    epoch: i64,
    /// Time of the last full walk.
    since: Instant,
    pending: Option<PendingPatch>,
}

/// Result of the last snapshot, until it is stored.
struct PendingPatch {
    id: ContentId,
    is_stored_flag: Arc<AtomicBool>,
    patches: Vec<(Patch, Watches)>,
}

impl Watcher {
    /// Creates a watcher. The first snapshot sets its watches.
    pub fn new(workspace: &Workspace) -> Self {
        Self::with_limits(workspace, Limits::default())
    }

    /// Like [`Watcher::new`], with other limits.
    pub fn with_limits(workspace: &Workspace, limits: Limits) -> Self {
        Self { roots: workspace.roots().to_vec(), limits, state: State::Fresh }
    }

    /// Returns whether the next snapshot can be partial, as far as is known before reading the events.
    pub fn is_watching(&self) -> bool {
        matches!(self.state, State::Watching(_))
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let watching = self.is_watching();
        let mut shown = formatter.debug_struct("Watcher");
        shown.field("roots", &self.roots).field("watching", &watching).finish_non_exhaustive()
    }
}

/// Takes a snapshot of a workspace, walking only folders that changed since the last one with this watcher. The
/// workspace must be the watcher's, with the same options.
pub fn snapshot_watched(
    store: &Store,
    workspace: &Workspace,
    watcher: &mut Watcher,
) -> Result<CapturedSnapshot, SnapshotError> {
    if watcher.roots != workspace.roots() {
        *watcher = Watcher::with_limits(workspace, watcher.limits);
    }
    // After a failure there is no usable state.
    match std::mem::replace(&mut watcher.state, State::Fresh) {
        State::Off => {
            watcher.state = State::Off;
            snapshot(store, workspace)
        }
        State::Watching(mut watching) => {
            let is_usable = watching.since.elapsed() < watcher.limits.trust
                && watching.epoch == erasures(store)?
                && watching.apply_pending()
                && watching.read_events();
            if !is_usable {
                return watcher.snapshot_all(store, workspace);
            }
            let found = snapshot_changed(store, workspace, &watching.events, &watching.roots)?;
            if watching.events.has_failed() {
                watcher.state = State::Off;
                return Ok(found.taken);
            }
            let taken = watching.hold_patch(found);
            watcher.state = State::Watching(watching);
            Ok(taken)
        }
        State::Fresh => watcher.snapshot_all(store, workspace),
    }
}

impl Watcher {
    fn snapshot_all(
        &mut self,
        store: &Store,
        workspace: &Workspace,
    ) -> Result<CapturedSnapshot, SnapshotError> {
        let Some(events) = Events::begin(self.limits) else {
            self.state = State::Off;
            return snapshot(store, workspace);
        };
        // Read before the walk, so that content erased during it is noticed.
        let epoch = erasures(store)?;
        let since = Instant::now();
        let found = snapshot_all(store, workspace, &events)?;
        if events.has_failed() {
            self.state = State::Off;
            return Ok(found.taken);
        }
        let mut watching = ActiveWatch {
            events,
            roots: Vec::new(),
            folders: HashMap::new(),
            watches: HashMap::new(),
            ended: HashSet::new(),
            epoch,
            since,
            pending: None,
        };
        for (number, (watched_tree, watches)) in found.roots.into_iter().enumerate() {
            let Some(watched_tree) = watched_tree else { return Ok(found.taken) };
            watching.roots.push((watched_tree, HashSet::new()));
            watching.connect(number, &watches);
        }
        if !found.taken.is_stored() {
            let (id, is_stored_flag) = (found.taken.id, found.is_stored_flag);
            watching.pending = Some(PendingPatch { id, is_stored_flag, patches: Vec::new() });
        }
        self.state = State::Watching(Box::new(watching));
        Ok(found.taken)
    }
}

impl ActiveWatch {
    /// Applies the result of the last snapshot. Returns whether the state is usable.
    fn apply_pending(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return true };
        pending.is_stored_flag.load(Ordering::Acquire) && self.apply_patch(pending.id, &pending.patches)
    }

    /// Applies the result of a snapshot, now or once it is stored.
    fn hold_patch(&mut self, found: WatchedSnapshot<Patch>) -> CapturedSnapshot {
        let WatchedSnapshot { taken, is_stored_flag, roots: patches } = found;
        // If the store has everything, the snapshot names nothing new.
        if taken.is_stored() {
            is_stored_flag.store(true, Ordering::Release);
        }
        self.pending = Some(PendingPatch { id: taken.id, is_stored_flag, patches });
        taken
    }

    fn apply_patch(&mut self, id: ContentId, patches: &[(Patch, Watches)]) -> bool {
        let mut is_sound = true;
        let mut removed = Vec::new();
        for (number, (patch, _)) in patches.iter().enumerate() {
            let (watched_tree, changed_folders) = &mut self.roots[number];
            changed_folders.clear();
            let Some(indexes) = watched_tree.apply_patch(patch, id) else { return false };
            is_sound &= !watched_tree.needs_compaction();
            removed.extend(indexes.into_iter().map(|index| (number, index)));
        }
        for place in &removed {
            self.watches.remove(place);
        }
        // First all existing folders: a moved folder, perhaps into another root, keeps its watch.
        for (number, (_, watches)) in patches.iter().enumerate() {
            removed.extend(self.connect(number, watches));
        }
        for watch in self.unused_watches(&removed) {
            self.remove_watch(watch);
        }
        self.events.count(self.folders.len());
        is_sound
    }

    /// Assigns watches to folders. Returns the entries that had another folder before.
    fn connect(&mut self, root: usize, watches: &[(i32, Option<u32>)]) -> Vec<(usize, u32)> {
        let mut replaced = Vec::new();
        for (watch, index) in watches {
            let Some(index) = *index else {
                // The folder is excluded.
                if !self.folders.contains_key(watch) {
                    self.remove_watch(*watch);
                }
                continue;
            };
            let place = (root, index);
            self.ended.remove(watch);
            if let Some(before) = self.folders.insert(*watch, place)
                && self.watches.get(&before) == Some(watch)
            {
                self.watches.remove(&before);
            }
            if self.watches.insert(place, *watch).is_some_and(|before| before != *watch) {
                replaced.push(place);
            }
        }
        replaced
    }

    /// Watches of folders that are no longer at their path.
    fn unused_watches(&self, removed: &[(usize, u32)]) -> Vec<i32> {
        if removed.is_empty() {
            return Vec::new();
        }
        let removed: HashSet<(usize, u32)> = removed.iter().copied().collect();
        let is_abandoned = |watch: i32, place| {
            removed.contains(&place) && self.watches.get(&place).is_none_or(|current| *current != watch)
        };
        let leading = self.folders.iter().map(|(watch, place)| (*watch, *place));
        leading.filter(|(watch, place)| is_abandoned(*watch, *place)).map(|(watch, _)| watch).collect()
    }

    fn remove_watch(&mut self, watch: i32) {
        self.folders.remove(&watch);
        self.events.forget(watch);
        self.ended.insert(watch);
    }

    /// Reads the events. Returns whether they are complete.
    fn read_events(&mut self) -> bool {
        let Self { events, roots, folders, watches, ended, .. } = self;
        let mut is_sound = true;
        let drained = events.drain(|watch, event| {
            if ended.contains(&watch) {
                if event == Event::Ended {
                    ended.remove(&watch);
                }
                return;
            }
            let Some(&(root, index)) = folders.get(&watch) else {
                is_sound = false;
                return;
            };
            if index == 0 && event != Event::Changed {
                is_sound = false;
                return;
            }
            if event == Event::Ended {
                folders.remove(&watch);
                watches.remove(&(root, index));
            }
            let (watched_tree, changed_folders) = &mut roots[root];
            // The parent has its permissions and its name.
            changed_folders.extend([index, watched_tree.parent(index)]);
        });
        is_sound && drained == DrainOutcome::All
    }
}
