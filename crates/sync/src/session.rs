//! One round of synchronization with a remote: what is new there, what is new here, and the exchange of both.
//!
//! What has to be sent follows from the log and the links ("the log is longer than where both agreed, and the thread is
//! not private"), what has to be fetched from the remote's news. So a round that dies in the middle loses nothing: the
//! next one finds the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use retake_model::id::{ProjectId, ThreadId};
use retake_model::rebase::MergeReport;
use retake_store::{DeletedFilter, StoreError, ThreadFilter};
use retake_timeline::{PauseReason, ReadError, Timeline};

use crate::config::{ConfigError, RemoteState, Remotes};
use crate::engine::{Sync, SyncError, SyncReport};
use crate::links::{Link, Links, Pending, PendingOperation};
use crate::projects::{LocalProject, ProjectTable};
use crate::remote::{FeedEvent, OpenRemoteError, ProjectKey, Remedy, Remote, RemoteError, RemoteHead, Seen};

/// Which failures a round tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Those whose time has come.
    Due,
    /// All: a person asks.
    Now,
}

/// What a round did with a thread.
#[derive(Clone, Debug)]
pub struct ThreadRound {
    /// The thread.
    pub thread: ThreadId,
    /// Its title.
    pub title: String,
    /// Operations sent.
    pub pushed: u64,
    /// Operations taken over.
    pub pulled: u64,
    /// Whether it is new on this machine.
    pub is_new: bool,
    /// Merges with what another machine did.
    pub merges: Vec<MergeReport>,
    /// Why it was left as it is.
    pub paused: Option<PauseReason>,
    /// Whether the remote had less than before, because it was restored from an older copy.
    pub remote_went_back: bool,
    /// Why it failed.
    pub error: Option<Pending>,
    /// Whether it was purged on the remote.
    pub purged: bool,
}

/// What a round did.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Threads with an exchange that did something or failed.
    pub threads: Vec<ThreadRound>,
    /// Threads of the remote whose project this machine does not know, or knows several times.
    pub elsewhere: Vec<Elsewhere>,
    /// Threads with content that was redacted on the remote, and still is here.
    pub redacted: Vec<ThreadId>,
}

/// A thread of the remote that no project of this machine matches.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The thread.
    pub thread: ThreadId,
    /// Its last bundle.
    pub head: RemoteHead,
    /// The projects that match; none, or several.
    pub projects: Vec<ProjectId>,
}

/// Why a round ended early. What it did before stays.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The remote failed as a whole.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The configuration failed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The remote cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenRemoteError),
    /// The store failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The remote failed before, and is not tried again yet.
    #[error("{} (tried {} times)", .0.error, .0.tries)]
    Waiting(Box<Pending>),
}

impl From<StoreError> for RoundError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

impl From<RemoteError> for RoundError {
    fn from(error: RemoteError) -> Self {
        Self::Sync(error.into())
    }
}

/// A remote of a store, opened.
pub struct Session<'session> {
    /// The store.
    pub timeline: &'session Timeline,
    /// The remotes of the store.
    pub remotes: &'session Remotes,
    /// The name of this one.
    pub name: &'session str,
    /// The remote.
    pub remote: &'session dyn Remote,
}

/// Stores that a remote could not be opened, and when it is tried again.
pub fn open_failed(remotes: &Remotes, name: &str, error: &str, now: i64) -> Result<(), ConfigError> {
    let mut state = remotes.state(name);
    let tries = state.pending.as_ref().map_or(0, |pending| pending.tries);
    let error =
        RemoteError::Unreachable { place: name.to_owned(), error: std::io::Error::other(error.to_owned()) };
    state.pending = Some(Pending::after(&error.into(), PendingOperation::Pull, now, tries));
    remotes.put_state(name, &state)
}

/// A thread of this machine.
struct LocalThread {
    title: String,
    version: u64,
    home: ProjectId,
    is_private: bool,
}

impl Session<'_> {
    /// Exchanges everything that is due. `observe` gets the number of threads that are done, and of all.
    pub fn round(
        &self,
        retry: Retry,
        now: i64,
        observe: &mut dyn FnMut(u64, u64),
    ) -> Result<Round, RoundError> {
        let mut state = self.remotes.state(self.name);
        if let Some(pending) = state.pending.clone()
            && retry == Retry::Due
            && now < pending.not_before
        {
            return Err(RoundError::Waiting(Box::new(pending)));
        }
        let done = self.exchange_all(&mut state, retry, now, observe);
        match &done {
            Ok(_) => (state.pending, state.synced_at) = (None, Some(now)),
            Err(RoundError::Sync(error)) => {
                let tries = state.pending.as_ref().map_or(0, |pending| pending.tries);
                state.pending = Some(Pending::after(error, PendingOperation::Pull, now, tries));
            }
            Err(_) => {}
        }
        self.remotes.put_state(self.name, &state)?;
        done
    }

    /// Waits for news of the remote; returns whether there are any.
    pub fn wait(&self, wait: Duration) -> Result<bool, RoundError> {
        let links = self.remotes.links(self.name);
        let seen = Self::seen(&self.remotes.state(self.name), &all_links(&links)?);
        Ok(!self.remote.feed(&seen, wait)?.events.is_empty())
    }

    /// Exchanges one thread, also one that is new here, which is then listed in `project`.
    pub fn exchange(
        &self,
        thread: ThreadId,
        project: ProjectId,
        now: i64,
    ) -> Result<ThreadRound, RoundError> {
        let mut projects = Projects::read(self)?;
        let key = projects.key_of(project);
        projects.save(self.remotes)?;
        let is_new = !self.local_threads()?.contains_key(&thread);
        let links = self.remotes.links(self.name);
        let sync = Sync { timeline: self.timeline, remote: self.remote, links: &links };
        let report = sync.exchange(thread, (project, key), now)?;
        self.reported(thread, is_new, Ok(report), &links)
    }

    /// Removes a thread from the remote for good. It stays here, and is not sent again.
    pub fn purge(&self, thread: ThreadId) -> Result<(), RoundError> {
        // First, so that nothing is sent while it is purged, and a purge that fails can be repeated.
        let link = Link { purged: true, ..Link::default() };
        self.remotes.links(self.name).put(thread, &link).map_err(SyncError::Links)?;
        Ok(self.remote.purge(thread)?)
    }

    fn seen(state: &RemoteState, links: &BTreeMap<ThreadId, Link>) -> Seen {
        let number = |link: &Link| match (&link.base, &link.elsewhere) {
            (Some(base), _) => Some(base.number),
            (None, Some(head)) => Some(head.number),
            (None, None) => None,
        };
        let heads = links.iter().filter_map(|(thread, link)| Some((*thread, number(link)?))).collect();
        Seen { cursor: state.cursor.clone(), heads }
    }

    fn exchange_all(
        &self,
        state: &mut RemoteState,
        retry: Retry,
        now: i64,
        observe: &mut dyn FnMut(u64, u64),
    ) -> Result<Round, RoundError> {
        let links = self.remotes.links(self.name);
        let mut known = all_links(&links)?;
        let feed = self.remote.feed(&Self::seen(state, &known), Duration::ZERO)?;
        let mut round = Round::default();
        let local = self.local_threads()?;
        let mut moved = BTreeSet::new();
        for event in feed.events {
            match event {
                FeedEvent::Moved(thread) => drop(moved.insert(thread)),
                FeedEvent::Purged(thread) => {
                    let link = Link { purged: true, ..Link::default() };
                    if known.insert(thread, link.clone()).as_ref() != Some(&link) {
                        links.put(thread, &link).map_err(SyncError::Links)?;
                        if let Some(here) = local.get(&thread).filter(|here| !here.is_private) {
                            round.threads.push(ThreadRound { purged: true, ..ThreadRound::of(thread, here) });
                        }
                    }
                }
                FeedEvent::Redacted(thread) => {
                    if local.contains_key(&thread) && self.has_redacted(thread)? {
                        round.redacted.push(thread);
                    }
                    moved.insert(thread);
                }
            }
        }
        let mut projects = Projects::read(self)?;
        let mut due: Vec<(ThreadId, ProjectId, bool)> = Vec::new();
        for (thread, here) in &local {
            let link = known.get(thread);
            let base = link.and_then(|link| link.base).map_or(0, |base| base.version);
            let waits = link.is_some_and(|link| link.waits(now));
            let news = here.version != base
                || moved.contains(thread)
                || link.is_some_and(|link| link.pending.is_some() || link.paused.is_some());
            let may = !here.is_private && !link.is_some_and(|link| link.purged);
            if may && news && (!waits || retry == Retry::Now) {
                due.push((*thread, here.home, false));
            }
        }
        self.find_new(moved, &local, &mut known, (retry, now), &mut round)?;
        // Also those of earlier rounds: a project may be known since.
        for (thread, link) in &known {
            let Some(head) = link.elsewhere.clone().filter(|_| !local.contains_key(thread)) else { continue };
            match projects.matching(&head.summary.project)[..] {
                [_] if retry == Retry::Due && link.waits(now) => {}
                [project] => due.push((*thread, project, true)),
                ref several => {
                    round.elsewhere.push(Elsewhere { thread: *thread, head, projects: several.to_vec() });
                }
            }
        }
        let keys: BTreeMap<ProjectId, ProjectKey> =
            due.iter().map(|(_, project, _)| (*project, projects.key_of(*project))).collect();
        projects.save(self.remotes)?;
        let total = due.len() as u64;
        for (done, (thread, project, is_new)) in due.into_iter().enumerate() {
            observe(done as u64, total);
            let key = keys.get(&project).cloned().unwrap_or_default();
            let sync = Sync { timeline: self.timeline, remote: self.remote, links: &links };
            let result = sync.exchange(thread, (project, key), now);
            match result {
                Err(SyncError::Remote(error)) if stops_all(&error) => return Err(error.into()),
                result => {
                    let reported = self.reported(thread, is_new, result, &links)?;
                    if reported.is_news() {
                        round.threads.push(reported);
                    }
                }
            }
        }
        observe(total, total);
        // Only now: a round that failed sees the same news again.
        state.cursor = feed.cursor;
        Ok(round)
    }

    /// Asks for the newest head of threads that are only on the remote.
    fn find_new(
        &self,
        moved: BTreeSet<ThreadId>,
        local: &BTreeMap<ThreadId, LocalThread>,
        known: &mut BTreeMap<ThreadId, Link>,
        (retry, now): (Retry, i64),
        round: &mut Round,
    ) -> Result<(), RoundError> {
        let links = self.remotes.links(self.name);
        // Also those that failed in an earlier round, of which no news come again.
        let failed = known
            .iter()
            .filter(|(_, link)| link.pending.is_some() && link.base.is_none() && link.elsewhere.is_none());
        let asked: BTreeSet<ThreadId> = failed.map(|(thread, _)| *thread).chain(moved).collect();
        for thread in asked {
            let old = known.get(&thread).cloned().unwrap_or_default();
            if local.contains_key(&thread) || old.purged || (retry == Retry::Due && old.waits(now)) {
                continue;
            }
            let link = match self.remote.heads(thread, 0) {
                Ok(heads) => {
                    let Some(head) = heads.into_iter().next_back() else { continue };
                    let pending = old.pending.filter(|_| old.elsewhere.is_some());
                    Link { elsewhere: Some(head), pending, ..old }
                }
                Err(RemoteError::Purged) => continue,
                Err(error) if stops_all(&error) => return Err(error.into()),
                Err(error) => {
                    let tries = old.pending.as_ref().map_or(0, |pending| pending.tries);
                    let pending = Pending::after(&error.into(), PendingOperation::Pull, now, tries);
                    Link { pending: Some(pending), ..old }
                }
            };
            links.put(thread, &link).map_err(SyncError::Links)?;
            if link.elsewhere.is_none() {
                round.threads.push(self.reported(thread, false, Ok(SyncReport::default()), &links)?);
            }
            known.insert(thread, link);
        }
        Ok(())
    }

    fn reported(
        &self,
        thread: ThreadId,
        is_new: bool,
        result: Result<SyncReport, SyncError>,
        links: &Links,
    ) -> Result<ThreadRound, RoundError> {
        let reader = self.timeline.read()?;
        let title = match reader.thread(thread) {
            Ok(row) => row.summary.title,
            Err(ReadError::NoSuchThread(_)) => String::new(),
            Err(error) => return Err(error.into()),
        };
        let link = links.get(thread);
        let is_new = is_new && result.is_ok();
        let report = result.unwrap_or_default();
        Ok(ThreadRound {
            thread,
            title,
            is_new,
            pushed: report.pushed,
            pulled: report.pulled,
            merges: report.merges,
            paused: report.paused,
            remote_went_back: report.remote_went_back,
            error: link.pending,
            purged: link.purged,
        })
    }

    fn local_threads(&self) -> Result<BTreeMap<ThreadId, LocalThread>, RoundError> {
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let rows = self.timeline.read()?.threads(&filter)?;
        let of = |row: retake_store::ThreadRow| {
            let local = LocalThread {
                title: row.summary.title,
                version: row.summary.version,
                home: row.home,
                is_private: row.summary.private,
            };
            (row.summary.id, local)
        };
        Ok(rows.into_iter().map(of).collect())
    }

    /// Whether content that was redacted on the remote is still here.
    fn has_redacted(&self, thread: ThreadId) -> Result<bool, RoundError> {
        let content = self.remote.redactions(thread)?;
        let reader = self.timeline.read()?;
        for id in content {
            for kind in [retake_model::content::Kind::Entry, retake_model::content::Kind::Blob] {
                if reader.queries().contains(kind, id)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl ThreadRound {
    fn of(thread: ThreadId, here: &LocalThread) -> Self {
        Self {
            thread,
            title: here.title.clone(),
            pushed: 0,
            pulled: 0,
            is_new: false,
            merges: Vec::new(),
            paused: None,
            remote_went_back: false,
            error: None,
            purged: false,
        }
    }

    fn is_news(&self) -> bool {
        self.pushed > 0
            || self.pulled > 0
            || !self.merges.is_empty()
            || self.paused.is_some()
            || self.remote_went_back
            || self.error.is_some()
            || self.purged
    }
}

/// What stops one thread stops all: a hundred more requests would not help.
fn stops_all(error: &RemoteError) -> bool {
    matches!(error.remedy(), Remedy::Wait | Remedy::Login | Remedy::Update)
}

fn all_links(links: &Links) -> Result<BTreeMap<ThreadId, Link>, RoundError> {
    let threads = links.threads().map_err(SyncError::Links)?;
    Ok(threads.into_iter().map(|thread| (thread, links.get(thread))).collect())
}

/// The projects of this machine, with their keys.
pub struct Projects {
    rows: Vec<retake_store::ProjectRow>,
    table: ProjectTable,
    before: ProjectTable,
    keys: BTreeMap<ProjectId, ProjectKey>,
}

impl Projects {
    /// Reads the projects of a session's store.
    pub fn read(session: &Session<'_>) -> Result<Self, RoundError> {
        Self::of(session.timeline, session.remotes)
    }

    /// Reads the projects of a store.
    pub fn of(timeline: &Timeline, remotes: &Remotes) -> Result<Self, RoundError> {
        let rows = timeline.read()?.queries().projects()?;
        let table = remotes.projects()?;
        Ok(Self { rows, before: table.clone(), table, keys: BTreeMap::new() })
    }

    /// How other machines recognize a project.
    pub fn key_of(&mut self, project: ProjectId) -> ProjectKey {
        if let Some(key) = self.keys.get(&project) {
            return key.clone();
        }
        let row = self.rows.iter().find(|row| row.id == project);
        let key = row.map_or_else(ProjectKey::default, |row| {
            self.table.key_of(LocalProject { id: project, path: &row.path, remote: row.remote.as_deref() })
        });
        self.keys.insert(project, key.clone());
        key
    }

    /// The projects of this machine that are certainly this one.
    pub fn matching(&mut self, key: &ProjectKey) -> Vec<ProjectId> {
        let with_folder: Vec<ProjectId> =
            self.rows.iter().filter(|row| !row.path.is_empty()).map(|row| row.id).collect();
        let is_same = |project: &ProjectId| {
            self.key_of(*project).matches(key) || self.table.link(*project).also.contains(key)
        };
        with_folder.into_iter().filter(is_same).collect()
    }

    /// Stores what was read from repositories.
    pub fn save(&mut self, remotes: &Remotes) -> Result<(), ConfigError> {
        if self.table != self.before {
            remotes.put_projects(&self.table)?;
            self.before = self.table.clone();
        }
        Ok(())
    }
}
