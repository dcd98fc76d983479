//! The state of every thread towards a remote, and what waits.

use std::collections::BTreeSet;
use std::time::Duration;

use retake_model::id::ThreadId;
use retake_model::operation::Version;
use retake_store::{DeletedFilter, ThreadFilter};
use retake_timeline::{PauseReason, Timeline};
use serde::Serialize;

use crate::config::{RemoteConfig, Remotes};
use crate::engine::{Sync, SyncState};
use crate::links::{Pending, PendingOperation};
use crate::remote::{FeedEvent, Remedy, Remote, Seen};
use crate::session::RoundError;

/// The state of a remote.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoteStatus {
    /// Its name on this machine.
    pub remote: String,
    /// Its address.
    pub url: String,
    /// The last round without failure, in milliseconds since 1970.
    pub synced_at: Option<i64>,
    /// Why the remote as a whole could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Threads that are not private.
    pub threads: Vec<ThreadStatus>,
    /// What failed and is tried again.
    pub pending: Vec<PendingEntry>,
}

/// The state of a thread towards a remote.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadStatus {
    /// The thread.
    pub thread: ThreadId,
    /// Its title.
    pub title: String,
    /// Its state.
    pub state: StateName,
    /// Operations that the remote does not have.
    pub ahead: Version,
    /// Operations of the remote that are not here; 0 if the remote was not asked.
    pub behind: Version,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseReason>,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Both have the same log.
    Clean,
    /// The log here has more operations.
    Ahead,
    /// The remote has more.
    Behind,
    /// Both have operations that the other has not.
    Diverged,
    /// It was fetched, and waits for a turn, a move of files or a worktree.
    Paused,
    /// The last exchange failed.
    Blocked,
    /// It was purged on the remote, and stays here.
    Purged,
}

/// Something that failed and is tried again.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingEntry {
    /// The thread; `None` if the remote as a whole failed.
    pub thread: Option<ThreadId>,
    /// What failed.
    pub operation: PendingOperation,
    /// When, in milliseconds since 1970.
    pub failed_at: i64,
    /// How often it has failed in a row.
    pub retries: u32,
    /// The last error.
    pub last_error: String,
    /// What is necessary before it can succeed.
    pub remedy: Remedy,
    /// It is not tried again by itself before this time.
    pub not_before: i64,
}

impl PendingEntry {
    fn new(thread: Option<ThreadId>, pending: Pending) -> Self {
        Self {
            thread,
            operation: pending.operation,
            failed_at: pending.failed_at,
            retries: pending.tries,
            last_error: pending.error,
            remedy: pending.remedy,
            not_before: pending.not_before,
        }
    }
}

impl RemoteStatus {
    /// The state of every thread towards a remote. Changes nothing. Without the remote, it is what this machine knows.
    pub fn read(
        timeline: &Timeline,
        remotes: &Remotes,
        config: &RemoteConfig,
        remote: Result<&dyn Remote, String>,
    ) -> Result<Self, RoundError> {
        let name = config.name.as_str();
        let links = remotes.links(name);
        let state = remotes.state(name);
        let mut heads = std::collections::BTreeMap::new();
        for thread in links.threads().map_err(crate::engine::SyncError::Links)? {
            heads.extend(links.get(thread).base.map(|base| (thread, base.number)));
        }
        let seen = Seen { cursor: state.cursor.clone(), heads };
        let news = remote
            .clone()
            .and_then(|remote| remote.feed(&seen, Duration::ZERO).map_err(|error| error.to_string()));
        let (moved, error) = match news {
            Ok(feed) => {
                let moved = feed.events.into_iter().filter_map(|event| match event {
                    FeedEvent::Moved(thread) => Some(thread),
                    FeedEvent::Purged(_) | FeedEvent::Redacted(_) => None,
                });
                (moved.collect(), None)
            }
            Err(error) => (BTreeSet::new(), Some(error)),
        };
        let mut status = Self {
            remote: name.to_owned(),
            url: config.url.clone(),
            synced_at: state.synced_at,
            error,
            threads: Vec::new(),
            pending: state.pending.map(|pending| PendingEntry::new(None, pending)).into_iter().collect(),
        };
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let mut here = BTreeSet::new();
        for row in timeline.read()?.threads(&filter)? {
            let thread = row.summary.id;
            here.insert(thread);
            if row.summary.private {
                continue;
            }
            let link = links.get(thread);
            let version = row.summary.version;
            let unasked = || match version.saturating_sub(link.base.map_or(0, |base| base.version)) {
                0 => SyncState::Clean,
                ahead => SyncState::Ahead(ahead),
            };
            let found = if link.purged {
                SyncState::Purged
            } else if let Some(pending) = link.pending.clone() {
                SyncState::Blocked(pending)
            } else if let Some(reason) = link.paused {
                SyncState::Paused(reason)
            } else if moved.contains(&thread)
                && let Ok(remote) = remote
            {
                let sync = Sync { timeline, remote, links: &links };
                sync.state(thread).unwrap_or_else(|_| unasked())
            } else {
                unasked()
            };
            let (mut ahead, mut behind, mut paused) = (0, 0, None);
            let name = match found {
                SyncState::Private => continue,
                SyncState::Clean => StateName::Clean,
                SyncState::Purged => StateName::Purged,
                SyncState::Ahead(operations) => {
                    ahead = operations;
                    StateName::Ahead
                }
                SyncState::Behind(operations) => {
                    behind = operations;
                    StateName::Behind
                }
                SyncState::Diverged(theirs, ours) => {
                    (behind, ahead) = (theirs, ours);
                    StateName::Diverged
                }
                SyncState::Paused(reason) => {
                    paused = Some(reason);
                    StateName::Paused
                }
                SyncState::Blocked(pending) => {
                    status.pending.push(PendingEntry::new(Some(thread), pending));
                    StateName::Blocked
                }
            };
            status.threads.push(ThreadStatus {
                thread,
                title: row.summary.title,
                state: name,
                ahead,
                behind,
                paused,
            });
        }
        // Threads that are new on the remote and could not be fetched.
        for thread in links.threads().map_err(crate::engine::SyncError::Links)? {
            let pending = links.get(thread).pending.filter(|_| !here.contains(&thread));
            status.pending.extend(pending.map(|pending| PendingEntry::new(Some(thread), pending)));
        }
        Ok(status)
    }
}
