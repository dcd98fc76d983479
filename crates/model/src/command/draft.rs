//! Commands on a take's draft and its pictures.

use super::entries::add_to;
use super::{CommandContext, CommandError, CommandOutcome, InsertPosition, find_take, with_take};
use crate::content::{ContentId, Kind};
use crate::entry::default_role;
use crate::id::{IdSource, TakeId};
use crate::limits::{PICTURES, TEXT_BYTES};
use crate::object::Objects;
use crate::operation::OperationKind;
use crate::state::ThreadState;
use crate::take::{Attachments, NewPicture, Take};

pub(super) fn set<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    text: String,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if text.len() > TEXT_BYTES {
        return Err(CommandError::TooMuch { what: "bytes of a draft", limit: TEXT_BYTES });
    }
    let kind = OperationKind::DraftChanged { take: take.id };
    change(state, take.clone(), Take { draft: text, ..take }, kind, context)
}

pub(super) fn attach<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    pictures: Vec<NewPicture>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let mut all = take.attached.clone();
    for NewPicture { attached, bytes } in pictures {
        context.additions.add_bytes(Kind::Blob, bytes);
        all.push(attached);
        // A fork copies all pictures of a message, even above the limit, but no more can be added.
        if all.len() > PICTURES.max(take.attached.len()) {
            return Err(CommandError::TooMuch { what: "pictures of a draft", limit: PICTURES });
        }
    }
    with_pictures(state, take, all, context)
}

pub(super) fn detach<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    picture: ContentId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let mut left = take.attached.clone();
    if !left.remove(picture) {
        return Err(CommandError::NotAttached(picture));
    }
    with_pictures(state, take, left, context)
}

pub(super) fn clear<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let kind = OperationKind::DraftCleared { take: take.id };
    let empty = Take { draft: String::new(), attached: Attachments::default(), ..take.clone() };
    change(state, take, empty, kind, context)
}

/// Turns the draft into an entry and clears it in one operation, so that one undo reverts both.
pub(super) fn send<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    role: Option<&str>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let mut take = find_take(state, take, context)?;
    if take.has_no_draft() {
        return Err(CommandError::EmptyDraft { take: take.name });
    }
    let role = role.unwrap_or_else(|| default_role(&state.roles));
    let entry = take.take_draft(role, context.fresh.now());
    add_to(state, take, InsertPosition::End, vec![entry.into()], context)
}

fn with_pictures<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: Take,
    attached: Attachments,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let kind = OperationKind::DraftAttached { take: take.id, pictures: attached.len() as u64 };
    change(state, take.clone(), Take { attached, ..take }, kind, context)
}

fn change<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    before: Take,
    after: Take,
    kind: OperationKind,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    if before == after {
        return Ok(CommandOutcome::Unchanged);
    }
    Ok(CommandOutcome::Changed { state: with_take(state, &after, context)?, kind })
}
