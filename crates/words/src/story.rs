//! Describes operations together with their content: the edited entry, the new active take.
//!
//! The log refers to content by id, so this reads the state after the operation. Missing content is omitted: an
//! incomplete description is better than none.

use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, preview};
use retake_model::id::{EntryId, TakeId};
use retake_model::object::{Unavailable, load};
use retake_model::operation::OperationKind;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_timeline::{LookError, Looking};

use crate::number::counted;
use crate::operation;

/// Description of an operation.
pub struct Told {
    /// Clause that says what the operation did.
    pub words: String,
    /// Start of the affected text.
    pub preview: Option<String>,
}

/// Describes an operation that led to a state.
pub fn tell(looking: &Looking<'_>, kind: &OperationKind, state: ContentId) -> Result<Told, LookError> {
    let entry = |version: ContentId| -> Result<Option<String>, LookError> {
        match load::<EntryVersion>(&looking.queries(), version) {
            Ok(entry) => Ok(Some(entry.preview()).filter(|preview| !preview.is_empty())),
            Err(Unavailable::Missing { .. } | Unavailable::Damaged { .. }) => Ok(None),
            Err(error @ Unavailable::Unreadable(_)) => Err(error.into()),
        }
    };
    let words = operation(kind);
    Ok(match kind {
        OperationKind::EntriesAdded { version, .. } | OperationKind::EntriesDeleted { version, .. } => {
            Told { words, preview: entry(*version)? }
        }
        OperationKind::TurnAdvanced { added: Some(added), .. } => {
            // The preview is the question itself, which follows the entries added with it.
            Told { words, preview: entry(added.version)? }
        }
        OperationKind::Compressed { version, .. } => Told { words, preview: entry(*version)? },
        OperationKind::EntryEdited { take, entry: id, to, .. } => {
            let words = match number_of(looking, state, *take, *id)? {
                Some(number) => format!("edited entry {number}"),
                None => words,
            };
            Told { words, preview: entry(*to)? }
        }
        OperationKind::RoleChanged { take, entry: id, from, to } => {
            let words = match number_of(looking, state, *take, *id)? {
                Some(number) => format!("changed entry {number} from {from} to {to}"),
                None => words,
            };
            Told { words, preview: None }
        }
        OperationKind::TakeSwitched { to, .. } => {
            let name = take_of(looking, state, *to)?.map(|take| take.name);
            Told { words: name.map_or(words, |name| format!("switched to take {name}")), preview: None }
        }
        OperationKind::TakeForked { take, .. } => {
            let draft = take_of(looking, state, *take)?.map(|take| draft(&take));
            Told { words, preview: draft.filter(|draft| !draft.is_empty()) }
        }
        OperationKind::DraftChanged { take } => {
            let text = take_of(looking, state, *take)?.map(|take| preview(&take.draft));
            match text {
                Some(text) if text.is_empty() => {
                    Told { words: "emptied the draft".to_owned(), preview: None }
                }
                text => Told { words, preview: text },
            }
        }
        _ => Told { words, preview: None },
    })
}

/// A short preview of a take's draft; empty if there is none.
pub fn draft(take: &Take) -> String {
    let words = preview(&take.draft);
    let pictures = || counted(take.attached.len() as u64, "picture", "pictures");
    match (words.is_empty(), take.attached.is_empty()) {
        (_, true) => words,
        (true, false) => pictures(),
        (false, false) => format!("{words} (and {})", pictures()),
    }
}

fn take_of(looking: &Looking<'_>, state: ContentId, take: TakeId) -> Result<Option<Take>, LookError> {
    let queries = looking.queries();
    let state: ThreadState = load(&queries, state)?;
    Ok(state.take(&queries, take)?)
}

/// Position of an entry in its take, counted from 1.
fn number_of(
    looking: &Looking<'_>,
    state: ContentId,
    take: TakeId,
    entry: EntryId,
) -> Result<Option<u64>, LookError> {
    let Some(take) = take_of(looking, state, take)? else { return Ok(None) };
    let found = take.entries.find(&looking.queries(), entry.bytes())?;
    Ok(found.map(|(position, _)| position + 1))
}
