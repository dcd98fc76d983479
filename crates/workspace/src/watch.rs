//! A watch over a folder for long-running programs: observing it costs nothing while nothing changes, and little after a
//! change.
//!
//! ```text
//!   first ───► full walk; sets a watch on each captured folder before reading it ◄──┐
//!                   │                                                               │ events lost, a root moved,
//!   next ────► events from the queue ──► none yet: what the full walk found         │ content erased, a minute over
//!                   │                                                               │
//!                   └─────────────────► changed folders since the full walk ────────┘
//!                                          └──► walk: only those and their parents; the rest as the full walk found it
//! ```
//!
//! There is no thread. Events wait in the kernel until they are read; events during a walk count for the next
//! observation. Changed folders accumulate until the next full walk, so that a partial walk always compares with the full
//! one. Files with unreliable stamps (see the stat cache) are checked again without an event, and so are entries that are
//! excluded by their type rather than by their name.
//!
//! If the system has no watches left, every observation walks everything, and a later one tries again.
//!
//! **Never trusted.** The kernel does not report everything: not a write through a mapping before the file is closed,
//! not a write through another hard link, not changes by other machines on a network file system, nor a disk that is
//! changed below. An observation may therefore miss such a change until the next full walk, which is due after a minute.
//! It is for showing a folder. Code that records or moves files takes a snapshot, and code that moves files checks each
//! path right before the move.

mod events;

pub(crate) use events::Events;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use retake_model::object::NewObject;
use retake_store::Store;

use crate::git::{self, DirtyMemo, GitFacts};
use crate::snapshot::{
    Observation, Root, SnapshotError, WatchedTree, Workspace, erasures, observe, observe_all, observe_changed,
};
use events::{DrainOutcome, Event};

/// Resource limits of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of folders to watch; in a larger workspace, none are.
    pub watches: usize,
    /// Number of events to process; beyond it, everything is walked.
    pub events: usize,
    /// How long a full walk is relied on.
    pub trust: Duration,
    /// How long to wait before watches are set again after that failed.
    pub retry: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            watches: 100_000,
            events: 200_000,
            trust: Duration::from_mins(1),
            retry: Duration::from_mins(10),
        }
    }
}

/// A watch over the folders of a workspace.
#[derive(Default)]
pub struct FolderWatch {
    roots: Vec<Root>,
    limits: Limits,
    state: State,
    dirty: DirtyMemo,
    /// Whether something changed since the last poll.
    has_news: bool,
}

#[derive(Default)]
enum State {
    /// The next observation walks everything.
    #[default]
    Fresh,
    /// Setting watches failed at this time.
    Failed(Instant),
    Watching(Box<ActiveWatch>),
}

struct ActiveWatch {
    events: Events,
    /// For each root, what the full walk found, and the folders that changed since.
    roots: Vec<(WatchedTree, HashSet<u32>)>,
    /// Root and folder of each watch that the full walk set. Partial walks set more, for new folders; their parents are
    /// among the changed folders anyway.
    folders: HashMap<i32, (usize, u32)>,
    /// Watches that partial walks set.
    added: HashSet<i32>,
    /// Changes whenever the store erases content.
    epoch: i64,
    /// Time of the full walk.
    since: Instant,
    /// New objects of the full walk, which those of a partial walk refer to.
    objects: Vec<NewObject>,
    last: Arc<Observation>,
    /// Whether something changed after the last observation.
    has_changed: bool,
}

impl FolderWatch {
    /// Creates a watch. The first observation sets it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`FolderWatch::new`], with other limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns whether changes are noticed without a walk.
    pub fn is_watching(&self) -> bool {
        matches!(self.state, State::Watching(_))
    }

    /// Returns whether something changed since the last call. Never blocks. If the folder was removed or events were lost,
    /// the watch ends until the next observation.
    pub fn poll(&mut self) -> bool {
        self.read_events();
        std::mem::take(&mut self.has_news)
    }

    fn read_events(&mut self) {
        let State::Watching(watching) = &mut self.state else { return };
        let (is_new, is_sound) = watching.read_events();
        if is_new || !is_sound {
            self.has_news = true;
            self.dirty.forget();
        }
        if !is_sound {
            self.state = State::Fresh;
        }
    }

    /// The current files of a workspace, without storing anything.
    pub fn observe(
        &mut self,
        store: &Store,
        workspace: &Workspace,
    ) -> Result<Arc<Observation>, SnapshotError> {
        if self.roots != workspace.roots() {
            self.roots = workspace.roots().to_vec();
            self.state = State::Fresh;
        }
        self.read_events();
        // After a failure there is no usable state.
        match std::mem::take(&mut self.state) {
            State::Failed(when) if when.elapsed() < self.limits.retry => {
                self.state = State::Failed(when);
                self.dirty.forget();
                Ok(Arc::new(observe(store, workspace)?))
            }
            State::Watching(watching)
                if watching.since.elapsed() < self.limits.trust && watching.epoch == erasures(store)? =>
            {
                if watching.is_settled() {
                    let last = Arc::clone(&watching.last);
                    self.state = State::Watching(watching);
                    return Ok(last);
                }
                self.observe_changed(store, workspace, watching)
            }
            _ => self.observe_all(store, workspace),
        }
    }

    /// The git facts about a folder of the workspace. While nothing changes, its files are not compared again.
    pub fn git(&mut self, folder: &Path) -> GitFacts {
        let is_idle = matches!(&self.state, State::Watching(watching) if !watching.has_changed);
        if !is_idle {
            self.dirty.forget();
        }
        git::observe_remembering(folder, &mut self.dirty)
    }

    fn observe_all(
        &mut self,
        store: &Store,
        workspace: &Workspace,
    ) -> Result<Arc<Observation>, SnapshotError> {
        self.dirty.forget();
        let Some(events) = Events::begin(self.limits) else {
            self.state = State::Failed(Instant::now());
            return Ok(Arc::new(observe(store, workspace)?));
        };
        // Read before the walk, so that content erased during it is noticed.
        let epoch = erasures(store)?;
        let since = Instant::now();
        let found = observe_all(store, workspace, &events)?;
        let last = Arc::new(found.observation);
        if events.has_failed() {
            self.state = State::Failed(Instant::now());
            return Ok(last);
        }
        let (mut roots, mut folders) = (Vec::new(), HashMap::new());
        for (number, (watched_tree, watches)) in found.roots.into_iter().enumerate() {
            let Some(watched_tree) = watched_tree else { return Ok(last) };
            roots.push((watched_tree, HashSet::new()));
            for (watch, folder) in watches {
                match folder {
                    Some(folder) => drop(folders.insert(watch, (number, folder))),
                    // The folder is excluded.
                    None => events.forget(watch),
                }
            }
        }
        self.state = State::Watching(Box::new(ActiveWatch {
            events,
            roots,
            folders,
            added: HashSet::new(),
            epoch,
            since,
            objects: last.objects.clone(),
            last: Arc::clone(&last),
            has_changed: false,
        }));
        Ok(last)
    }

    fn observe_changed(
        &mut self,
        store: &Store,
        workspace: &Workspace,
        mut watching: Box<ActiveWatch>,
    ) -> Result<Arc<Observation>, SnapshotError> {
        watching.has_changed = false;
        let found = observe_changed(store, workspace, &watching.events, &watching.roots)?;
        let mut observation = found.observation;
        observation.objects.splice(0..0, watching.objects.iter().cloned());
        let observation = Arc::new(observation);
        if watching.events.has_failed() {
            self.state = State::Failed(Instant::now());
            return Ok(observation);
        }
        for (watch, is_captured) in found.watches {
            if watching.folders.contains_key(&watch) {
                continue;
            }
            if is_captured {
                watching.added.insert(watch);
            } else {
                watching.added.remove(&watch);
                watching.events.forget(watch);
            }
        }
        watching.events.count(watching.folders.len() + watching.added.len());
        watching.last = Arc::clone(&observation);
        self.state = State::Watching(watching);
        Ok(observation)
    }
}

impl std::fmt::Debug for FolderWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let watching = self.is_watching();
        let mut shown = formatter.debug_struct("FolderWatch");
        shown.field("roots", &self.roots).field("watching", &watching).finish_non_exhaustive()
    }
}

impl ActiveWatch {
    /// Returns whether the full walk still holds: no folder has changed since, and none has to be checked without an event.
    /// Only the full walk knows of all entries that may change without an event.
    fn is_settled(&self) -> bool {
        let is_same = |(tree, changed): &(WatchedTree, HashSet<u32>)| changed.is_empty() && !tree.has_stale();
        !self.has_changed && self.roots.iter().all(is_same)
    }

    /// Reads the events. Returns whether there were any, and whether they are complete.
    fn read_events(&mut self) -> (bool, bool) {
        let Self { events, roots, folders, added, has_changed, .. } = self;
        let (mut is_new, mut is_sound) = (false, true);
        let drained = events.drain(|watch, event| {
            let Some(&(root, index)) = folders.get(&watch) else {
                // A folder that appeared after the full walk, or a watch that was removed with events in the queue.
                is_new |= added.contains(&watch);
                if event == Event::Ended {
                    added.remove(&watch);
                }
                return;
            };
            is_new = true;
            is_sound &= index != 0 || event == Event::Changed;
            if event == Event::Ended {
                folders.remove(&watch);
            }
            let (watched_tree, changed_folders) = &mut roots[root];
            // The parent has its permissions and its name.
            changed_folders.extend([index, watched_tree.parent(index)]);
        });
        *has_changed |= is_new;
        (is_new, is_sound && drained == DrainOutcome::All)
    }
}
