//! Promotes a take to a thread: two threads change in one transaction.
//!
//! ```text
//!   thread A   main, main_take_1, main_take_2    ──►   main, main_take_2
//!   thread B                                     ──►   main  (was main_take_1), parent: A
//! ```
//!
//! An undo in A restores the take there. If B is unchanged since, the same transaction deletes B, and a redo or jump
//! restores it; otherwise B stays, so that an undo in one thread never removes work in another.

use retake_model::command::{CommandContext, promote};
use retake_model::content::{ContentId, Kind, encode};
use retake_model::history;
use retake_model::id::{TakeId, ThreadId};
use retake_model::object::Additions;
use retake_model::operation::{FileChange, OperationKind, Version};
use retake_model::sharing::Sharing;
use retake_model::state::ThreadState;
use retake_store::runtime::TurnLeases;
use retake_store::{DeletedFilter, Facet, ThreadFilter, WriteTransaction};
use serde::Serialize;

use crate::clock::{Clock, ClockIds};
use crate::working_copy::files_of_promoted;
use crate::write::change::{Composer, Head, check_no_turn};
use crate::write::create::{free_title, publish_first};
use crate::{Caller, ChangeError, ChangeOutcome, Rules, Timeline};

/// The outcome of a promotion. Both parts are durable.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromoteOutcome {
    /// The change of the thread that the take left.
    pub source: ChangeOutcome,
    /// The new thread.
    pub promoted: ChangeOutcome,
}

impl Timeline {
    /// Promotes a take to a thread.
    pub fn promote(
        &self,
        thread: ThreadId,
        take: TakeId,
        title: Option<String>,
        caller: Caller,
    ) -> Result<PromoteOutcome, ChangeError> {
        self.settled(|| self.promote_once(thread, take, title.clone(), caller.clone()))
    }

    fn promote_once(
        &self,
        thread: ThreadId,
        take: TakeId,
        title: Option<String>,
        caller: Caller,
    ) -> Result<PromoteOutcome, ChangeError> {
        let (timeline, leases) = (self.clone(), self.store.turn_leases());
        let promoted = self.store.write(move |writing| {
            let at = Head::of(writing, thread, &caller)?;
            promote_in(&timeline, writing, &at, &leases, (take, title), &caller)
        })?;
        Ok(promoted)
    }
}

/// Promotes a take to a thread inside a write.
pub(crate) fn promote_in(
    timeline: &Timeline,
    writing: &WriteTransaction<'_>,
    at: &Head,
    leases: &TurnLeases,
    (take, title): (TakeId, Option<String>),
    caller: &Caller,
) -> Result<PromoteOutcome, ChangeError> {
    let (clock, rules, thread) = (&*timeline.clock, timeline.rules, at.row.summary.id);
    check_no_turn(writing, at, leases, Some(take))?;
    if at.state.deleted.is_some() {
        return Err(ChangeError::ThreadDeleted);
    }
    let into = ThreadId::generate(&mut ClockIds(clock));
    let mut additions = Additions::new(&**writing);
    let taken = |name: &str| Ok(writing.take_named(at.row.number, name)?.is_some());
    let mut context = CommandContext {
        additions: &mut additions,
        fresh: &mut ClockIds(clock),
        take_named: &taken,
        git_commit: None,
    };
    let done = promote(&at.state, thread, take, title.as_deref(), into, &mut context)?;
    let project = at.row.home;
    let title = free_title(writing, project, &done.promoted.title)?;
    // The current marks of the thread, which may differ from those of its state.
    let Sharing { visibility, private, shared_with_support } = at.row.summary.sharing();
    let state = ThreadState { title, visibility, private, shared_with_support, ..done.promoted };
    let files = files_of_promoted(writing, at.row.number, &at.last.operation, take)?;
    let composer = Composer { writing, at, caller, clock, rules };
    let source = composer.publish_change(additions, &done.source, done.kind)?;
    let by = source.version;
    let kind = OperationKind::ThreadPromoted { project, from: thread, take, by };
    let promoted = first_of_promoted(writing, into, &state, (kind, files), caller, clock)?;
    Ok(PromoteOutcome { source, promoted })
}

fn first_of_promoted(
    writing: &WriteTransaction<'_>,
    into: ThreadId,
    state: &ThreadState,
    (kind, files): (OperationKind, Option<FileChange>),
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<ChangeOutcome, ChangeError> {
    // The content of the new thread was stored with the operation of the old one.
    publish_first(writing, into, state, (kind, files), Additions::new(&**writing), caller, clock)
}

/// Deletes or restores promoted threads when the chain of their source thread moves across the promotion. A thread with
/// later changes stays as it is.
pub(crate) fn follow(
    writing: &WriteTransaction<'_>,
    at: &Head,
    to: Version,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<Vec<ThreadId>, ChangeError> {
    // The request id belongs to the move itself and not to the changes that follow from it.
    let caller = Caller { expected: None, request: None, ..caller.clone() };
    let from_here = ThreadFilter {
        deleted: DeletedFilter::Shown,
        facets: vec![(Facet::Parent, at.row.summary.id.to_string())],
        ..ThreadFilter::default()
    };
    let mut followed = Vec::new();
    for row in writing.threads(&from_here)? {
        let Some(first) = writing.operation(row.number, 1)? else { continue };
        let OperationKind::ThreadPromoted { by, .. } = first.operation.kind else { continue };
        // The thread may come from another machine, where its parent has a different history.
        let promotion = writing.operation(at.row.number, by)?.map(|found| found.operation.kind);
        if !matches!(promotion, Some(OperationKind::TakePromoted { into, .. }) if into == row.summary.id) {
            continue;
        }
        let log = writing.log(at.row.number);
        let stays = history::contains(&log, to, by)?;
        let head = at.last.operation.version;
        let now = history::thread_position(&history::OperationLog::step(&log, head)?, head);
        if stays == history::contains(&log, now.position, by)? {
            continue;
        }
        let promoted = Head::of(writing, row.summary.id, &caller)?;
        // A thread without changes since its promotion, apart from a deletion, and without recorded files has no work
        // to lose.
        let untouched = ThreadState { deleted: None, ..promoted.state.clone() };
        let has_new_files =
            promoted.last.operation.last_file_operation != first.operation.last_file_operation;
        if has_new_files || ContentId::of(Kind::State, &encode(&untouched)) != first.operation.after {
            continue;
        }
        let (deleted, kind) = match (stays, promoted.state.deleted) {
            (true, Some(_)) => (None, OperationKind::Restored),
            (false, None) => (Some(clock.now()), OperationKind::Deleted),
            _ => continue,
        };
        let state = ThreadState { deleted, ..promoted.state.clone() };
        let composer = Composer { writing, at: &promoted, caller: &caller, clock, rules: Rules::default() };
        composer.publish_change(Additions::new(&**writing), &state, kind)?;
        followed.push(row.summary.id);
    }
    Ok(followed)
}
