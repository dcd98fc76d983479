//! What was asked in the turn that an operation is a step of.
//!
//! ```text
//!   asked ── answered ── runs edit ── edit ran      each step of a turn knows its turn,
//!     └───────────────◄──────────────────┘          and the way back to what began it
//! ```

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, ThreadId};
use retake_model::object::load;
use retake_model::operation::{OperationKind, TurnStep, Version};
use retake_model::state::ThreadState;
use retake_timeline::Looking;
use retake_timeline::store::ThreadRow;

use crate::failed::Failed;

/// So many operations are gone back at most. A turn with more steps is known by its steps alone.
const FURTHEST: usize = 500;

/// What somebody asked.
#[derive(Clone)]
pub(crate) struct Question {
    /// The entry that holds it.
    pub(crate) entry: EntryId,
    /// How it begins.
    pub(crate) text: String,
}

/// What was asked in the turn that an operation is a step of; `None` if it is a step of none.
pub(crate) fn of(
    looking: &Looking<'_>,
    row: &ThreadRow,
    version: Version,
) -> Result<Option<Question>, Failed> {
    let queries = looking.queries();
    let (mut next, mut turn) = (version, None);
    for _ in 0..FURTHEST {
        let Some(found) = queries.operation(row.number, next)? else { return Ok(None) };
        let operation = found.operation;
        let OperationKind::TurnAdvanced { take, step, added } = operation.kind else {
            // Others may have changed something between two steps, but what is no step itself was not asked for.
            if turn.is_none() {
                return Ok(None);
            }
            next -= 1;
            continue;
        };
        if *turn.get_or_insert(operation.turn) == operation.turn && matches!(step, TurnStep::Started { .. }) {
            let state: ThreadState = load(&queries, operation.after)?;
            let (Some(added), Some(take)) = (added, state.take(&queries, take)?) else { return Ok(None) };
            // What was asked stands behind what went along with it.
            let last = added.position + added.count - 1;
            let Some(cell) = take.entries.page(&queries, last..last + 1)?.into_iter().next() else {
                return Ok(None);
            };
            let entry: EntryVersion = load(&queries, cell.version)?;
            return Ok(Some(Question { entry: cell.entry, text: entry.preview() }));
        }
        next -= 1;
    }
    Ok(None)
}

/// The address of an entry where it stands now; `None` if the take that is worked on does not hold it.
pub(crate) fn address_of(
    looking: &Looking<'_>,
    thread: ThreadId,
    entry: EntryId,
) -> Result<Option<String>, Failed> {
    let (queries, state) = (looking.queries(), looking.state(thread)?);
    let Some(take) = state.take(&queries, state.active)? else { return Ok(None) };
    let found = take.entries.find(&queries, entry.bytes())?;
    Ok(found.map(|(position, _)| format!("/studio/threads/{thread}?from={position}#e-{entry}")))
}
