//! Looking ahead: what a change or a move would do to a conversation, without doing it.
//!
//! What it would do to files is told by the desk ([`crate::Handling::preview`]).

use retake_model::command::{Applied, Context, apply};
use retake_model::id::ThreadId;
use retake_model::object::{Additions, load};
use retake_model::operation::{OperationKind, Version};
use retake_model::state::ThreadState;
use serde::Serialize;

use crate::change::with_marks;
use crate::clock::Ticks;
use crate::{Caller, ChangeError, Command, Goal, LookError, Looking, Timeline};

/// What would come of something that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Foreseen {
    /// The thread's version now, which stays.
    pub version: Version,
    /// What would be done; `None` if there is nothing to do.
    pub kind: Option<OperationKind>,
    /// How many entries the active take has.
    pub entries_before: u64,
    /// How many the active take would have then.
    pub entries_after: u64,
}

impl Timeline {
    /// What a command would do. It is refused as the command itself would be.
    pub fn foresee(
        &self,
        thread: ThreadId,
        command: Command,
        caller: &Caller,
    ) -> Result<Foreseen, ChangeError> {
        let looking = self.look()?;
        let now = Now::of(&looking, thread, caller)?;
        if now.state.deleted.is_some() && !matches!(command, Command::Restore | Command::Delete) {
            return Err(ChangeError::ThreadDeleted);
        }
        let Some(command) = with_marks(command, &looking.thread(thread).map_err(unseen)?.summary) else {
            return Ok(now.foreseen(None, now.entries));
        };
        let queries = looking.queries();
        let mut additions = Additions::new(&queries);
        let taken = |name: &str| Ok(queries.take_named(now.number, name)?.is_some());
        let mut context =
            Context { additions: &mut additions, fresh: &mut Ticks(&*self.clock), take_named: &taken };
        match apply(&now.state, command, &mut context)? {
            Applied::Unchanged => Ok(now.foreseen(None, now.entries)),
            Applied::Changed { state, kind } => {
                let entries = state.active_take(&additions)?.entries.len();
                Ok(now.foreseen(Some(kind), entries))
            }
        }
    }

    /// What a move along the log would do.
    pub fn foresee_move(
        &self,
        thread: ThreadId,
        goal: Goal,
        caller: &Caller,
    ) -> Result<Foreseen, ChangeError> {
        let looking = self.look()?;
        let now = Now::of(&looking, thread, caller)?;
        let queries = looking.queries();
        let head = looking.head(thread).map_err(unseen)?.operation;
        let to = goal.destination(&queries, now.number, &head, self.rules)?.to.position;
        if to == head.place.position {
            return Ok(now.foreseen(None, now.entries));
        }
        let there = looking.state_at(thread, to).map_err(unseen)?;
        let entries = there.active_take(&queries)?.entries.len();
        Ok(now.foreseen(Some(goal.kind(head.place.position, to)), entries))
    }
}

/// A thread at the moment of looking.
struct Now {
    number: i64,
    version: Version,
    state: ThreadState,
    entries: u64,
}

impl Now {
    fn of(looking: &Looking<'_>, thread: ThreadId, caller: &Caller) -> Result<Self, ChangeError> {
        let row = looking.thread(thread).map_err(unseen)?;
        let head = looking.queries().last_operation(&row)?.operation;
        match caller.expected {
            Some(expected) if expected != head.version => {
                return Err(ChangeError::Conflict { expected, current: head.version });
            }
            _ => {}
        }
        let state: ThreadState = load(&looking.queries(), head.after)?;
        let entries = state.active_take(&looking.queries())?.entries.len();
        Ok(Self { number: row.number, version: head.version, state, entries })
    }

    fn foreseen(&self, kind: Option<OperationKind>, entries_after: u64) -> Foreseen {
        Foreseen { version: self.version, kind, entries_before: self.entries, entries_after }
    }
}

fn unseen(error: LookError) -> ChangeError {
    match error {
        LookError::NoSuchThread(thread) => ChangeError::NoSuchThread(thread),
        LookError::NoSuchVersion { asked, current } => ChangeError::NoSuchVersion { asked, current },
        LookError::NoSuchSequence { asked, .. } => {
            ChangeError::Store(retake_store::StoreError::Damaged(format!("there is no sequence {asked}")))
        }
        LookError::Store(error) => ChangeError::Store(error),
    }
}
