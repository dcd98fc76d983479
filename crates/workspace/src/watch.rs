//! A watcher for processes that live long: it narrows the walk of a snapshot to where something happened.
//!
//! ```text
//!   first ───► a walk over everything; a watch on each held folder, set before the folder is looked at
//!                   │                                                       ▲
//!                   ▼                                                       │ events lost, a watch unknown, a root
//!   next ────► events from the queue ──► folders that something happened in │ moved, content destroyed, not
//!                   │                                                       │ remembered, a minute over
//!                   └──► walk: only those, and the way to them ─────────────┘
//!                         the rest as the last snapshot found it, from memory
//! ```
//!
//! There is no thread. Events wait in the kernel until a snapshot is taken; those that come while it is taken
//! count for the next one. What the stamps could not vouch for the last time (see the stat cache) is looked at
//! again without any event, and so is what is left out for what it is rather than for its name.
//!
//! **Never trusted.** The kernel does not tell of everything: not of a write through a mapping before the file is
//! closed, not of a write through another hard link, not of what another machine does on a network file system,
//! nor of a disk that is changed beneath. A snapshot that was narrowed may therefore be older than the files for
//! such a change. It is never wrong about what it names: content is hashed when it is read and stored under that
//! hash. Whoever moves files checks each path himself right before he does, whatever a snapshot says; and a walk
//! over everything, at least once a minute, corrects what was missed.
//!
//! Nothing is gone by that is not stored: what a snapshot found counts for the next one only after
//! [`Taken::remember`]. The stat cache on disk is written by walks over everything alone; for other processes an
//! older one only means a little more to read.

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

/// What a watcher may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Folders that are watched; in a workspace with more, none is.
    pub watches: usize,
    /// Events that are looked at; after more, everything is walked.
    pub events: usize,
    /// How long snapshots may be narrowed before everything is walked.
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
    /// The next snapshot looks at everything.
    Fresh,
    /// Watching failed: so does every one after it.
    Off,
    Watching(Box<Watching>),
}

struct Watching {
    events: Events,
    /// For each root what is kept, and the folders in which something happened.
    roots: Vec<(Kept, HashSet<u32>)>,
    /// From a watch to a root and a folder of it.
    folders: HashMap<i32, (usize, u32)>,
    /// And back.
    watches: HashMap<(usize, u32), i32>,
    /// Watches that were ended, of which events may still be on their way.
    ended: HashSet<i32>,
    /// Changes whenever the store destroys content.
    epoch: i64,
    /// When everything was last looked at.
    since: Instant,
    pending: Option<Pending>,
}

/// What the last snapshot found, until it is known to be stored.
struct Pending {
    id: ContentId,
    is_kept: Arc<AtomicBool>,
    patches: Vec<(Patch, Watches)>,
}

impl Watcher {
    /// A watcher for a workspace. It sets its watches with the first snapshot.
    pub fn new(workspace: &Workspace) -> Self {
        Self::with_limits(workspace, Limits::default())
    }

    /// The same, with other limits.
    pub fn with_limits(workspace: &Workspace, limits: Limits) -> Self {
        Self { roots: workspace.roots().to_vec(), limits, state: State::Fresh }
    }

    /// Whether the next snapshot can be narrowed, as far as is known before the events are asked for.
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

/// Takes a snapshot of a workspace, and looks only where something happened since the last one with this watcher.
/// The workspace is the one that the watcher was made for, with the same options.
pub fn snapshot_watched(
    store: &Store,
    workspace: &Workspace,
    watcher: &mut Watcher,
) -> Result<Taken, SnapshotError> {
    if watcher.roots != workspace.roots() {
        *watcher = Watcher::with_limits(workspace, watcher.limits);
    }
    // What fails on the way leaves nothing to go by.
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
        // Before the walk: what is destroyed while it runs is not gone by.
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
    /// Takes over what the last snapshot found. Says whether it can be gone by.
    fn settle(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return true };
        pending.is_kept.load(Ordering::Acquire) && self.take_over(pending.id, &pending.patches)
    }

    /// Keeps what a snapshot found, at once or until it is stored.
    fn wait_for(&mut self, found: Found<Patch>) -> Taken {
        let Found { taken, is_kept, roots: patches } = found;
        // If the store has all of it, nothing new is named.
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
        // All that is there first: a folder that was moved, perhaps into another root, has kept its watch.
        for (number, (_, watches)) in patches.iter().enumerate() {
            gone.extend(self.connect(number, watches));
        }
        for watch in self.abandoned(&gone) {
            self.end(watch);
        }
        self.events.count(self.folders.len());
        is_sound
    }

    /// Lets watches lead to their folders. Returns the places at which another folder stood before.
    fn connect(&mut self, root: usize, watches: &[(i32, Option<u32>)]) -> Vec<(usize, u32)> {
        let mut replaced = Vec::new();
        for (watch, index) in watches {
            let Some(index) = *index else {
                // Nothing of that folder is held.
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

    /// The watches that lead to places where their folder is not any more.
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

    /// Asks what happened. Says whether that can be gone by.
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
            // The one around it holds its permissions, and its name.
            happened.extend([index, kept.parent(index)]);
        });
        is_sound && drained == Drained::All
    }
}
