//! Describes operations together with their content: the edited entry, the new active take.
//!
//! The log refers to content by id, so this reads the state after the operation. Missing content is omitted: an
//! incomplete description is better than none.

use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, preview};
use retake_model::id::{EntryId, TakeId};
use retake_model::object::{ObjectError, load};
use retake_model::operation::OperationKind;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{ReadError, Reader};

use crate::number::counted;
use crate::operation;

/// Description of an operation.
pub struct Description {
    /// Clause that says what the operation did.
    pub summary: String,
    /// Start of the affected text.
    pub preview: Option<String>,
}

/// Describes an operation that led to a state.
pub fn describe(
    reader: &Reader<'_>,
    kind: &OperationKind,
    state: ContentId,
) -> Result<Description, ReadError> {
    let entry = |version: ContentId| -> Result<Option<String>, ReadError> {
        match load::<EntryVersion>(&reader.queries(), version) {
            Ok(entry) => Ok(Some(entry.preview()).filter(|preview| !preview.is_empty())),
            Err(ObjectError::Missing { .. } | ObjectError::Damaged { .. }) => Ok(None),
            Err(error @ ObjectError::Unreadable(_)) => Err(error.into()),
        }
    };
    let summary = operation(kind);
    Ok(match kind {
        OperationKind::EntriesAdded { version, .. } | OperationKind::EntriesDeleted { version, .. } => {
            Description { summary, preview: entry(*version)? }
        }
        OperationKind::TurnAdvanced { added: Some(added), .. } => {
            // The preview is the question itself, which follows the entries added with it.
            Description { summary, preview: entry(added.version)? }
        }
        OperationKind::Compressed { version, .. } => Description { summary, preview: entry(*version)? },
        OperationKind::EntryEdited { take, entry: id, to, .. } => {
            let summary = match number_of(reader, state, *take, *id)? {
                Some(number) => format!("edited entry {number}"),
                None => summary,
            };
            Description { summary, preview: entry(*to)? }
        }
        OperationKind::RoleChanged { take, entry: id, from, to } => {
            let summary = match number_of(reader, state, *take, *id)? {
                Some(number) => format!("changed entry {number} from {from} to {to}"),
                None => summary,
            };
            Description { summary, preview: None }
        }
        OperationKind::TakeSwitched { to, .. } => {
            let name = take_of(reader, state, *to)?.map(|take| take.name);
            Description {
                summary: name.map_or(summary, |name| format!("switched to take {name}")),
                preview: None,
            }
        }
        OperationKind::TakeForked { take, .. } => {
            let draft = take_of(reader, state, *take)?.map(|take| draft(&take));
            Description { summary, preview: draft.filter(|draft| !draft.is_empty()) }
        }
        OperationKind::DraftChanged { take } => {
            let text = take_of(reader, state, *take)?.map(|take| preview(&take.draft));
            match text {
                Some(text) if text.is_empty() => {
                    Description { summary: "emptied the draft".to_owned(), preview: None }
                }
                text => Description { summary, preview: text },
            }
        }
        _ => Description { summary, preview: None },
    })
}

/// A short preview of a take's draft; empty if there is none.
pub fn draft(take: &Take) -> String {
    let summary = preview(&take.draft);
    let pictures = || counted(take.attached.len() as u64, "picture", "pictures");
    match (summary.is_empty(), take.attached.is_empty()) {
        (_, true) => summary,
        (true, false) => pictures(),
        (false, false) => format!("{summary} (and {})", pictures()),
    }
}

fn take_of(reader: &Reader<'_>, state: ContentId, take: TakeId) -> Result<Option<Take>, ReadError> {
    let queries = reader.queries();
    let state: ThreadState = load(&queries, state)?;
    Ok(state.take(&queries, take)?)
}

/// Position of an entry in its take, counted from 1.
fn number_of(
    reader: &Reader<'_>,
    state: ContentId,
    take: TakeId,
    entry: EntryId,
) -> Result<Option<u64>, ReadError> {
    let Some(take) = take_of(reader, state, take)? else { return Ok(None) };
    let found = take.entries.find(&reader.queries(), entry.bytes())?;
    Ok(found.map(|(position, _)| position + 1))
}
