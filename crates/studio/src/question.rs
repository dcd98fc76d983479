//! Finds the prompt of the turn that an operation belongs to.
//!
//! ```text
//!   prompt ── answer ── edit starts ── edit ends     each step knows its turn, so that
//!     └──────────────◄──────────────────┘            walking back finds the prompt
//! ```

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, ThreadId};
use retake_model::object::load;
use retake_model::operation::{OperationKind, TurnStep, Version};
use retake_model::state::ThreadState;
use retake_timeline::{Reader, ThreadRow};

use crate::page_error::PageError;

/// Maximum operations to walk back. Longer turns show no prompt.
const MAX_SCANNED: usize = 500;

/// The prompt of a turn.
#[derive(Clone)]
pub(crate) struct Prompt {
    /// Its entry.
    pub(crate) entry: EntryId,
    /// A preview of its text.
    pub(crate) text: String,
}

/// The prompt of the turn that an operation belongs to; `None` if it belongs to none.
pub(crate) fn of(
    reader: &Reader<'_>,
    row: &ThreadRow,
    version: Version,
) -> Result<Option<Prompt>, PageError> {
    let queries = reader.queries();
    let (mut next, mut turn) = (version, None);
    for _ in 0..MAX_SCANNED {
        let Some(found) = queries.operation(row.number, next)? else { return Ok(None) };
        let operation = found.operation;
        let OperationKind::TurnAdvanced { take, step, added } = operation.kind else {
            // Skip other operations between steps, but the operation itself must be a step.
            if turn.is_none() {
                return Ok(None);
            }
            next -= 1;
            continue;
        };
        if *turn.get_or_insert(operation.turn) == operation.turn && matches!(step, TurnStep::Started { .. }) {
            let state: ThreadState = load(&queries, operation.after)?;
            let (Some(added), Some(take)) = (added, state.take(&queries, take)?) else { return Ok(None) };
            // The prompt comes after its context entries.
            let last = added.position + added.count - 1;
            let Some(cell) = take.entries.page(&queries, last..last + 1)?.into_iter().next() else {
                return Ok(None);
            };
            let entry: EntryVersion = load(&queries, cell.version)?;
            return Ok(Some(Prompt { entry: cell.entry, text: entry.preview() }));
        }
        next -= 1;
    }
    Ok(None)
}

/// The address of an entry in the active take; `None` if it is not there.
pub(crate) fn address_of(
    reader: &Reader<'_>,
    thread: ThreadId,
    entry: EntryId,
) -> Result<Option<String>, PageError> {
    let (queries, state) = (reader.queries(), reader.state(thread)?);
    let Some(take) = state.take(&queries, state.active)? else { return Ok(None) };
    let found = take.entries.find(&queries, entry.bytes())?;
    Ok(found.map(|(position, _)| format!("/studio/threads/{thread}?from={position}#e-{entry}")))
}
