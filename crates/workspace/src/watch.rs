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
//! [`Taken::remember`]. Only full walks write the stat cache on disk; for other processes, an older one only means
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
    Found, Kept, Patch, Root, SnapshotError, Taken, Watches, Workspace, erasures, look_at_all, look_at_some,
    snapshot,
};
use events::{Drained, Event};

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
    Watching(Box<Watching>),
}

struct Watching {
    events: Events,
    /// For each root, its state and the changed folders.
    roots: Vec<(Kept, HashSet<u32>)>,
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
    pending: Option<Pending>,
}

/// Result of the last snapshot, until it is stored.
struct Pending {
    id: ContentId,
    is_kept: Arc<AtomicBool>,
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
) -> Result<Taken, SnapshotError> {
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
                && watching.settle()
                && watching.listen();
            if !is_usable {
                return watcher.look_at_all(store, workspace);
            }
            let found = look_at_some(store, workspace, &watching.events, &watching.roots)?;
            if watching.events.has_failed() {
                watcher.state = State::Off;
                return Ok(found.taken);
            }
            let taken = watching.wait_for(found);
            watcher.state = State::Watching(watching);
            Ok(taken)
        }
        State::Fresh => watcher.look_at_all(store, workspace),
    }
}

impl Watcher {
    fn look_at_all(&mut self, store: &Store, workspace: &Workspace) -> Result<Taken, SnapshotError> {
        let Some(events) = Events::begin(self.limits) else {
            self.state = State::Off;
            return snapshot(store, workspace);
        };
        // Read before the walk, so that content erased during it is noticed.
        let epoch = erasures(store)?;
        let since = Instant::now();
        let found = look_at_all(store, workspace, &events)?;
        if events.has_failed() {
            self.state = State::Off;
            return Ok(found.taken);
        }
        let mut watching = Watching {
            events,
            roots: Vec::new(),
            folders: HashMap::new(),
            watches: HashMap::new(),
            ended: HashSet::new(),
            epoch,
            since,
            pending: None,
        };
        for (number, (kept, watches)) in found.roots.into_iter().enumerate() {
            let Some(kept) = kept else { return Ok(found.taken) };
            watching.roots.push((kept, HashSet::new()));
            watching.connect(number, &watches);
        }
        if !found.taken.is_stored() {
            let (id, is_kept) = (found.taken.id, found.is_kept);
            watching.pending = Some(Pending { id, is_kept, patches: Vec::new() });
        }
        self.state = State::Watching(Box::new(watching));
        Ok(found.taken)
    }
}

impl Watching {
    /// Applies the result of the last snapshot. Returns whether the state is usable.
    fn settle(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return true };
        pending.is_kept.load(Ordering::Acquire) && self.take_over(pending.id, &pending.patches)
    }

    /// Applies the result of a snapshot, now or once it is stored.
    fn wait_for(&mut self, found: Found<Patch>) -> Taken {
        let Found { taken, is_kept, roots: patches } = found;
        // If the store has everything, the snapshot names nothing new.
        if taken.is_stored() {
            is_kept.store(true, Ordering::Release);
        }
        self.pending = Some(Pending { id: taken.id, is_kept, patches });
        taken
    }

    fn take_over(&mut self, id: ContentId, patches: &[(Patch, Watches)]) -> bool {
        let mut is_sound = true;
        let mut gone = Vec::new();
        for (number, (patch, _)) in patches.iter().enumerate() {
            let (kept, happened) = &mut self.roots[number];
            happened.clear();
            let Some(indexes) = kept.take_over(patch, id) else { return false };
            is_sound &= !kept.is_wasteful();
            gone.extend(indexes.into_iter().map(|index| (number, index)));
        }
        for place in &gone {
            self.watches.remove(place);
        }
        // First all existing folders: a moved folder, perhaps into another root, keeps its watch.
        for (number, (_, watches)) in patches.iter().enumerate() {
            gone.extend(self.connect(number, watches));
        }
        for watch in self.abandoned(&gone) {
            self.end(watch);
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
                    self.end(*watch);
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
    fn abandoned(&self, gone: &[(usize, u32)]) -> Vec<i32> {
        if gone.is_empty() {
            return Vec::new();
        }
        let gone: HashSet<(usize, u32)> = gone.iter().copied().collect();
        let is_abandoned = |watch: i32, place| {
            gone.contains(&place) && self.watches.get(&place).is_none_or(|current| *current != watch)
        };
        let leading = self.folders.iter().map(|(watch, place)| (*watch, *place));
        leading.filter(|(watch, place)| is_abandoned(*watch, *place)).map(|(watch, _)| watch).collect()
    }

    fn end(&mut self, watch: i32) {
        self.folders.remove(&watch);
        self.events.forget(watch);
        self.ended.insert(watch);
    }

    /// Reads the events. Returns whether they are complete.
    fn listen(&mut self) -> bool {
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
            let (kept, happened) = &mut roots[root];
            // The parent has its permissions and its name.
            happened.extend([index, kept.parent(index)]);
        });
        is_sound && drained == Drained::All
    }
}
