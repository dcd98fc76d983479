//! Brings a thread and its remote to the same log.
//!
//! ```text
//!   the remote has        the log here has       then
//!   the same              the same               clean
//!   the same              more                   ahead: push
//!   more                  the same               behind: adopt
//!   more                  more                   diverged: adopt (ours follow theirs), then push
//! ```
//!
//! Hashes decide, not counters: a machine that was cloned or restored, or a remote that was restored from an older copy,
//! is compared by the ids of operations, and continues from the last common one.

use std::collections::BTreeSet;

use retake_model::environment::Environment;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::operation::Version;
use retake_model::rebase::MergeReport;
use retake_model::replica::ReplicaOperation;
use retake_model::summary::ThreadSummary;
use retake_timeline::{AdoptError, Adoption, PauseReason, ReadError, ReplicaError, ReplicaPoint, Timeline};

use crate::bundle::{self, BundleError, BundleId, BundleWriter};
use crate::links::{Base, Link, Links, Pending, PendingOperation};
use crate::remote::{ProjectKey, PushOutcome, Remedy, Remote, RemoteError, RemoteHead, RemoteSummary};
use crate::wire::ThreadDetails;

/// How often one exchange starts again because another machine was faster.
const MAX_RACES: u32 = 20;
/// The first pause after a failure, in milliseconds; it doubles.
const FIRST_PAUSE: i64 = 2_000;
const LONGEST_PAUSE: i64 = 15 * 60 * 1000;
/// A bundle is closed when it has this many bytes, unpacked.
const BUNDLE_BYTES: usize = 8 << 20;
/// What is taken over at once may cost this much memory and one bundle more.
const PULL_COST: u64 = 64 << 20;
/// The same where ours follow theirs: each part costs a merge.
const MERGE_COST: u64 = 512 << 20;

/// The state of a thread towards its remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncState {
    /// It was purged on the remote, and stays here.
    Purged,
    /// Both have the same log.
    Clean,
    /// The log here has more operations.
    Ahead(Version),
    /// The remote has more.
    Behind(Version),
    /// Both have operations that the other has not: first the remote's.
    Diverged(Version, Version),
    /// The thread was fetched, and waits.
    Paused(PauseReason),
    /// The last exchange failed.
    Blocked(Pending),
    /// The thread never leaves this machine.
    Private,
}

/// What an exchange did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Operations sent.
    pub pushed: u64,
    /// Operations taken over.
    pub pulled: u64,
    /// Merges, in order.
    pub merges: Vec<MergeReport>,
    /// Why the thread was left as it is.
    pub paused: Option<PauseReason>,
    /// Whether the remote has less than it had: it was restored from an older copy.
    pub remote_went_back: bool,
}

/// Why an exchange failed. What was acknowledged before stays.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The remote failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A bundle could not be read or written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The operations of the remote were refused.
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    /// The thread could not be read.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The remote has another thread's bundle under this thread.
    #[error("the remote is damaged: a bundle belongs to another thread or version")]
    WrongBundle,
    /// Other machines were always faster.
    #[error("other machines changed the thread {MAX_RACES} times meanwhile")]
    Busy,
    /// The links could not be written.
    #[error("the state of sync could not be written: {0}")]
    Links(#[from] std::io::Error),
}

impl SyncError {
    /// What is necessary before it can succeed.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Remote(error) => error.remedy(),
            Self::Bundle(BundleError::Newer { .. }) => Remedy::Update,
            Self::Busy => Remedy::Wait,
            Self::Bundle(_) | Self::Adopt(_) | Self::Replica(_) | Self::WrongBundle | Self::Links(_) => {
                Remedy::Look
            }
        }
    }
}

impl Pending {
    /// A failure now, after so many others in a row.
    pub(crate) fn after(error: &SyncError, operation: PendingOperation, now: i64, tries: u32) -> Self {
        let asked = match error {
            SyncError::Remote(RemoteError::Busy { after, .. }) => {
                after.map_or(0, |after| i64::try_from(after.as_millis()).unwrap_or(LONGEST_PAUSE))
            }
            _ => 0,
        };
        let pause = FIRST_PAUSE.saturating_mul(1 << tries.min(20)).min(LONGEST_PAUSE).max(asked);
        Self {
            operation,
            error: error.to_string(),
            remedy: error.remedy(),
            failed_at: now,
            tries: tries.saturating_add(1),
            not_before: now.saturating_add(pause),
        }
    }
}

/// One remote of one store.
pub struct Sync<'sync> {
    /// The store.
    pub timeline: &'sync Timeline,
    /// The remote.
    pub remote: &'sync dyn Remote,
    /// What is known of its threads.
    pub links: &'sync Links,
}

/// Where the log here and the list of bundles part.
struct Comparison {
    /// The last bundle whose end both have.
    agreed: Option<(RemoteHead, ReplicaPoint)>,
    /// The bundles after it.
    new: Vec<RemoteHead>,
    /// The version here.
    version: Version,
    /// Whether the thread exists here.
    is_here: bool,
    went_back: bool,
}

/// What became of the operations of the remote.
enum Pulled {
    /// They were taken over, or the first of them.
    Some,
    /// The log here changed meanwhile.
    Moved,
    /// The thread waits.
    Paused(PauseReason),
}

impl Sync<'_> {
    /// Exchanges a thread in both directions. A thread that is new here is listed in `project`.
    pub fn exchange(
        &self,
        thread: ThreadId,
        project: (ProjectId, ProjectKey),
        now: i64,
    ) -> Result<SyncReport, SyncError> {
        let mut report = SyncReport::default();
        if self.links.get(thread).purged {
            return Err(RemoteError::Purged.into());
        }
        let mut doing = PendingOperation::Pull;
        let done = self.exchange_into(thread, project, &mut report, &mut doing);
        let before = self.links.get(thread);
        let mut link = Link { paused: report.paused, ..before.clone() };
        match &done {
            Ok(()) => (link.pending, link.elsewhere) = (None, None),
            Err(SyncError::Remote(RemoteError::Purged)) => {
                link = Link { purged: true, ..Link::default() };
            }
            Err(error) => {
                let tries = before.pending.as_ref().map_or(0, |pending| pending.tries);
                link.pending = Some(Pending::after(error, doing, now, tries));
            }
        }
        if link != before {
            self.links.put(thread, &link)?;
        }
        done.map(|()| report)
    }

    fn exchange_into(
        &self,
        thread: ThreadId,
        (project, key): (ProjectId, ProjectKey),
        report: &mut SyncReport,
        doing: &mut PendingOperation,
    ) -> Result<(), SyncError> {
        let mut races = 0;
        while races < MAX_RACES {
            *doing = PendingOperation::Pull;
            let Some(compared) = self.compare(thread)? else { return Ok(()) };
            report.remote_went_back |= compared.went_back;
            if !compared.new.is_empty() {
                match self.pull(thread, project, &compared, report)? {
                    Pulled::Paused(reason) => {
                        report.paused = Some(reason);
                        return Ok(());
                    }
                    Pulled::Moved => races += 1,
                    Pulled::Some => {}
                }
                continue;
            }
            let at = compared.agreed.as_ref().map_or_else(ReplicaPoint::default, |(_, point)| *point);
            if !compared.is_here || at.version == compared.version {
                return Ok(());
            }
            *doing = PendingOperation::Push;
            if let Some(reason) = self.running(thread)? {
                report.paused = Some(reason);
                return Ok(());
            }
            let number = compared.agreed.map_or(0, |(head, _)| head.number);
            self.push(thread, (number, at), &key, report)?;
            races += 1;
        }
        Err(SyncError::Busy)
    }

    /// The state of a thread, without changing anything here or there.
    pub fn state(&self, thread: ThreadId) -> Result<SyncState, SyncError> {
        let link = self.links.get(thread);
        if link.purged {
            return Ok(SyncState::Purged);
        }
        let Some(compared) = self.compare(thread)? else { return Ok(SyncState::Private) };
        if let Some(pending) = link.pending {
            return Ok(SyncState::Blocked(pending));
        }
        if let Some(reason) = link.paused {
            return Ok(SyncState::Paused(reason));
        }
        let at = compared.agreed.as_ref().map_or(0, |(_, point)| point.version);
        let ahead = compared.version.saturating_sub(at);
        let behind = compared.new.last().map_or(0, |head| head.last.saturating_sub(at));
        Ok(match (behind, ahead) {
            (0, 0) => SyncState::Clean,
            (0, ahead) => SyncState::Ahead(ahead),
            (behind, 0) => SyncState::Behind(behind),
            (behind, ahead) => SyncState::Diverged(behind, ahead),
        })
    }

    /// Compares the log here with the list of bundles; `None` for a private thread, about which nothing is asked either.
    fn compare(&self, thread: ThreadId) -> Result<Option<Comparison>, SyncError> {
        let reader = self.timeline.read().map_err(ReplicaError::from)?;
        let replica = match reader.replica(thread) {
            Ok(replica) => Some(replica),
            Err(ReadError::NoSuchThread(_)) => None,
            Err(error) => return Err(ReplicaError::from(error).into()),
        };
        let Some(replica) = replica else {
            let new = self.remote.heads(thread, 0)?;
            return Ok(Some(Comparison { agreed: None, new, version: 0, is_here: false, went_back: false }));
        };
        if replica.is_private() {
            return Ok(None);
        }
        let version = replica.version();
        let base = self.links.get(thread).base;
        if let Some(base) = base {
            let point = ReplicaPoint { version: base.version, id: Some(base.id), local: Some(base.local) };
            let heads = self.remote.heads(thread, base.number - 1)?;
            let still_there = heads.first().is_some_and(|head| head.head == base.id);
            if still_there && replica.has(point)? {
                let mut heads = heads.into_iter();
                let agreed = heads.next().map(|head| (head, point));
                let new = heads.collect();
                return Ok(Some(Comparison { agreed, new, version, is_here: true, went_back: false }));
            }
        }
        let heads = self.remote.heads(thread, 0)?;
        let points = replica.points(ReplicaPoint::default())?;
        let point_of = |head: &RemoteHead| {
            let point = points.get(usize::try_from(head.last).ok()?.checked_sub(1)?)?;
            (point.id == Some(head.head)).then_some(*point)
        };
        let shared = heads.iter().take_while(|head| point_of(head).is_some()).count();
        let agreed =
            shared.checked_sub(1).and_then(|last| Some((heads[last].clone(), point_of(&heads[last])?)));
        let went_back = base.is_some_and(|base| heads.last().map_or(0, |head| head.last) < base.version);
        let new = heads[shared..].to_vec();
        Ok(Some(Comparison { agreed, new, version, is_here: true, went_back }))
    }

    /// A turn that runs is not sent: elsewhere it would look like one that died.
    fn running(&self, thread: ThreadId) -> Result<Option<PauseReason>, SyncError> {
        let reader = self.timeline.read().map_err(ReplicaError::from)?;
        let replica = reader.replica(thread).map_err(ReplicaError::from)?;
        Ok(replica.has_open_turn()?.then_some(PauseReason::Running))
    }

    fn pull(
        &self,
        thread: ThreadId,
        project: ProjectId,
        compared: &Comparison,
        report: &mut SyncReport,
    ) -> Result<Pulled, SyncError> {
        let diverged = compared.is_here
            && compared.agreed.as_ref().map_or(0, |(_, point)| point.version) < compared.version;
        let most = if diverged { MERGE_COST } else { PULL_COST };
        let mut at = compared.agreed.as_ref().map_or_else(ReplicaPoint::default, |(_, point)| *point);
        let mut previous = at.id;
        let mut operations: Vec<ReplicaOperation> = Vec::new();
        let mut next = at.version + 1;
        let (mut cost, mut end) = (0, None);
        for head in &compared.new {
            if cost >= most {
                break;
            }
            let (header, found) = bundle::decode(&self.remote.bundle(thread, head)?)?;
            let fits = header.thread == thread
                && (header.first, header.last()) == (head.first, head.last)
                && header.first == next
                && header.previous == previous;
            if !fits {
                return Err(SyncError::WrongBundle);
            }
            (next, previous) = (header.last() + 1, Some(head.head));
            cost += found.iter().map(bundle::cost).sum::<u64>();
            end = Some(head);
            operations.extend(found);
            if operations.last().map(bundle::operation_id) != previous {
                return Err(SyncError::WrongBundle);
            }
        }
        // A bundle can begin with operations that are here already.
        if compared.is_here {
            let reader = self.timeline.read().map_err(ReplicaError::from)?;
            let replica = reader.replica(thread).map_err(ReplicaError::from)?;
            let mine = replica.points(at)?;
            let shared = mine
                .iter()
                .zip(&operations)
                .take_while(|(point, operation)| point.id == Some(bundle::operation_id(operation)));
            let shared = shared.count();
            if let Some(last) = shared.checked_sub(1) {
                at = mine[last];
                operations.drain(..shared);
            }
        }
        let count = operations.len() as u64;
        match self.timeline.adopt_operations(thread, project, at, operations)? {
            Adoption::Paused(reason) => return Ok(Pulled::Paused(reason)),
            Adoption::Moved => return Ok(Pulled::Moved),
            Adoption::Merged(merged) => report.merges.push(merged),
            Adoption::Advanced => {}
        }
        report.pulled += count;
        if let Some(head) = end {
            self.remember(thread, head)?;
        }
        Ok(Pulled::Some)
    }

    fn push(
        &self,
        thread: ThreadId,
        (number, after): (u64, ReplicaPoint),
        project: &ProjectKey,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let (head, bytes) = {
            let reader = self.timeline.read().map_err(ReplicaError::from)?;
            let replica = reader.replica(thread).map_err(ReplicaError::from)?;
            // Read again with the operations themselves: the mark may be new.
            if replica.is_private() || !replica.has(after)? {
                return Ok(());
            }
            let mut writer = BundleWriter::new(thread, after.version + 1, after.id)?;
            let (mut size, mut failed) = (0, None);
            let end = replica.operations(after, |operation| {
                let bytes: usize = operation.objects.iter().map(|object| object.bytes.len()).sum();
                if !writer.is_empty() && (size + bytes > BUNDLE_BYTES || !writer.has_room_for(&operation)) {
                    return false;
                }
                size += bytes + operation.operation.len();
                failed = writer.add(&operation).err();
                failed.is_none()
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            let Some(id) = end.id else { return Ok(()) };
            let bytes = writer.finish()?;
            let row = reader.thread(thread).map_err(ReplicaError::from)?.summary;
            let details = details(&row);
            let (title, updated) = (row.title, row.updated.millis());
            let summary = RemoteSummary { title, project: project.clone(), updated, details };
            let head = RemoteHead {
                number: number + 1,
                first: after.version + 1,
                last: end.version,
                head: id,
                bundle: BundleId::of(&bytes),
                bytes: bytes.len() as u64,
                summary,
            };
            (head, bytes)
        };
        if self.remote.push(thread, &head, &bytes)? == PushOutcome::Added {
            report.pushed += head.last - head.first + 1;
            self.remember(thread, &head)?;
        }
        Ok(())
    }

    /// Stores that both agree on the end of a bundle.
    fn remember(&self, thread: ThreadId, head: &RemoteHead) -> Result<(), SyncError> {
        let reader = self.timeline.read().map_err(ReplicaError::from)?;
        let row = reader.thread(thread).map_err(ReplicaError::from)?;
        let found = reader.queries().operation(row.number, head.last).map_err(ReplicaError::from)?;
        let Some(found) = found else { return Ok(()) };
        let base = Base { number: head.number, version: head.last, id: head.head, local: found.id };
        let link = self.links.get(thread);
        Ok(self.links.put(thread, &Link { base: Some(base), ..link })?)
    }
}

/// What a hub finds the thread by, from its row.
fn details(row: &ThreadSummary) -> ThreadDetails {
    let environments = [&row.first_seen, &row.last_seen];
    let values = |of: fn(&Environment) -> &Option<String>| -> Vec<String> {
        let found: BTreeSet<String> = environments.into_iter().filter_map(|seen| of(seen).clone()).collect();
        found.into_iter().collect()
    };
    ThreadDetails {
        tags: row.tags.clone(),
        branches: values(|seen| &seen.git_branch),
        commits: values(|seen| &seen.git_commit),
        directories: values(|seen| &seen.working_directory),
        agent_state: String::new(),
        messages: row.active.entries,
        text: row.active.preview.clone(),
    }
}
