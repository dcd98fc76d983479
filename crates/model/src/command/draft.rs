//! Commands on what is being typed in a take, and on the pictures that go along with it.

use super::entries::add_to;
use super::{Applied, Context, Refusal, Spot, find_take, with_take};
use crate::content::{ContentId, Kind};
use crate::entry::default_role;
use crate::id::{Fresh, TakeId};
use crate::limits::{PICTURES, TEXT_BYTES};
use crate::object::Objects;
use crate::operation::OperationKind;
use crate::state::ThreadState;
use crate::take::{Attachments, NewPicture, Take};

pub(super) fn set<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    text: String,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    if text.len() > TEXT_BYTES {
        return Err(Refusal::TooMuch { what: "bytes of a draft", limit: TEXT_BYTES });
    }
    let attached = take.attached.clone();
    change(state, take, text, attached, context)
}

pub(super) fn attach<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    pictures: Vec<NewPicture>,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    let mut all = take.attached.clone();
    for NewPicture { attached, bytes } in pictures {
        context.additions.add_bytes(Kind::Blob, bytes);
        all.push(attached);
        // A fork brings as many as the message had; more are not put to them.
        if all.len() > PICTURES.max(take.attached.len()) {
            return Err(Refusal::TooMuch { what: "pictures of a draft", limit: PICTURES });
        }
    }
    let text = take.draft.clone();
    change(state, take, text, all, context)
}

pub(super) fn detach<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    picture: ContentId,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    let mut left = take.attached.clone();
    if !left.remove(picture) {
        return Err(Refusal::NotAttached(picture));
    }
    let text = take.draft.clone();
    change(state, take, text, left, context)
}

pub(super) fn clear<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    change(state, take, String::new(), Attachments::default(), context)
}

/// The draft becomes an entry and is empty then, both at once: one undo brings both back.
pub(super) fn send<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    role: Option<&str>,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let mut take = find_take(state, take, context)?;
    if take.has_no_draft() {
        return Err(Refusal::EmptyDraft { take: take.name });
    }
    let role = role.unwrap_or_else(|| default_role(&state.roles));
    let entry = take.take_draft(role, context.fresh.now());
    add_to(state, take, Spot::End, vec![entry.into()], context)
}

fn change<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: Take,
    draft: String,
    attached: Attachments,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    if take.draft == draft && take.attached == attached {
        return Ok(Applied::Unchanged);
    }
    let kind = OperationKind::DraftChanged { take: take.id };
    Ok(Applied::Changed { state: with_take(state, &Take { draft, attached, ..take }, context)?, kind })
}
