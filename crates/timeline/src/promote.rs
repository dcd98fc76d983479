//! Promoting a take: two threads change in one transaction.
//!
//! ```text
//!   thread A   main, main_take_1, main_take_2    ──►   main, main_take_2
//!   thread B                                     ──►   main  (was main_take_1), parent: A
//! ```
//!
//! An undo in A brings the take back there. If nobody has worked on B since, B is put away in the same
//! transaction, and a redo brings it back; if somebody has, B stays: nobody's work goes with another's undo.

use retake_model::command::{Context, promote};
use retake_model::id::{TakeId, ThreadId};
use retake_model::object::Additions;
use retake_model::operation::{OperationKind, Version};
use retake_model::state::ThreadState;
use retake_store::Writing;
use serde::Serialize;

use crate::change::{Head, publish};
use crate::clock::{Clock, Ticks};
use crate::create::{free_title, publish_first};
use crate::{Caller, ChangeError, Done, Rules, Timeline};

/// What came of a promotion. Both parts are durable.
#[derive(Clone, Debug, Serialize)]
pub struct Promoted {
    /// What happened to the thread that the take left.
    pub source: Done,
    /// The thread that it became.
    pub promoted: Done,
}

impl Timeline {
    /// Makes a take a thread of its own.
    pub fn promote(
        &self,
        thread: ThreadId,
        take: TakeId,
        title: Option<String>,
        caller: Caller,
    ) -> Result<Promoted, ChangeError> {
        let clock = self.clock.clone();
        let rules = self.rules;
        let promoted = self.store.write(move |writing| {
            let at = Head::of(writing, thread, &caller)?;
            if at.state.deleted.is_some() {
                return Err(ChangeError::ThreadDeleted);
            }
            let into = ThreadId::fresh(&mut Ticks(&*clock));
            let mut additions = Additions::new(&**writing);
            let taken = |name: &str| Ok(writing.take_named(at.row.number, name)?.is_some());
            let mut context =
                Context { additions: &mut additions, fresh: &mut Ticks(&*clock), take_named: &taken };
            let done = promote(&at.state, thread, take, title.as_deref(), into, &mut context)?;
            let project = at.row.summary.project;
            let title = free_title(writing, project, &done.promoted.title)?;
            let state = ThreadState { title, ..done.promoted };
            let source = publish(writing, &at, additions, &done.source, done.kind, &caller, &*clock, rules)?;
            let kind = OperationKind::ThreadPromoted { project, from: thread, take };
            let promoted = first_of_promoted(writing, into, &state, kind, &caller, &*clock)?;
            Ok(Promoted { source, promoted })
        })?;
        Ok(promoted)
    }
}

fn first_of_promoted(
    writing: &Writing<'_>,
    into: ThreadId,
    state: &ThreadState,
    kind: OperationKind,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<Done, ChangeError> {
    // What the new thread refers to was stored with the operation of the old one.
    publish_first(writing, into, state, kind, Additions::new(&**writing), caller, clock)
}

/// Puts away threads that promotions made which an undo takes back.
pub(crate) fn follow_undo(
    writing: &Writing<'_>,
    at: &Head,
    to: Version,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<Vec<ThreadId>, ChangeError> {
    let made = promotions(writing, at.row.number, at.last.operation.place.position, to)?;
    follow(writing, made, caller, clock, |promoted| {
        if promoted.state.deleted.is_some() || !untouched(writing, promoted)? {
            return Ok(None);
        }
        let deleted = Some(clock.now());
        Ok(Some((ThreadState { deleted, ..promoted.state.clone() }, OperationKind::Deleted)))
    })
}

/// Whether nobody has done anything with a promoted thread but put it away and take it back.
fn untouched(writing: &Writing<'_>, promoted: &Head) -> Result<bool, ChangeError> {
    for version in (2..=promoted.last.operation.version).rev() {
        let found = writing.operation(promoted.row.number, version)?;
        let kind = found.map(|found| found.operation.kind);
        if !matches!(kind, Some(OperationKind::Deleted | OperationKind::Restored)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Brings back threads that promotions made which a redo makes again.
pub(crate) fn follow_redo(
    writing: &Writing<'_>,
    at: &Head,
    to: Version,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<Vec<ThreadId>, ChangeError> {
    let made = promotions(writing, at.row.number, to, at.last.operation.place.position)?;
    follow(writing, made, caller, clock, |promoted| {
        let put_away = matches!(promoted.last.operation.kind, OperationKind::Deleted);
        Ok(put_away
            .then(|| (ThreadState { deleted: None, ..promoted.state.clone() }, OperationKind::Restored)))
    })
}

fn follow(
    writing: &Writing<'_>,
    made: Vec<ThreadId>,
    caller: &Caller,
    clock: &dyn Clock,
    change: impl Fn(&Head) -> Result<Option<(ThreadState, OperationKind)>, ChangeError>,
) -> Result<Vec<ThreadId>, ChangeError> {
    let caller = Caller { expected: None, ..caller.clone() };
    let mut followed = Vec::new();
    for thread in made {
        if writing.thread(thread)?.is_none() {
            continue;
        }
        let promoted = Head::of(writing, thread, &caller)?;
        if let Some((state, kind)) = change(&promoted)? {
            let additions = Additions::new(&**writing);
            publish(writing, &promoted, additions, &state, kind, &caller, clock, Rules::default())?;
            followed.push(thread);
        }
    }
    Ok(followed)
}

/// Threads made by promotions between a change and one of its ancestors.
fn promotions(
    writing: &Writing<'_>,
    thread: i64,
    from: Version,
    ancestor: Version,
) -> Result<Vec<ThreadId>, ChangeError> {
    let mut made = Vec::new();
    let mut version = from;
    while version != ancestor && version != 0 {
        let Some(found) = writing.operation(thread, version)? else { break };
        if let OperationKind::TakePromoted { into, .. } = found.operation.kind {
            made.push(into);
        }
        version = found.operation.place.parent;
    }
    Ok(made)
}
