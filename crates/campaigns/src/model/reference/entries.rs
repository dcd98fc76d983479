//! Commands on the entries of one take, on a plain vector.

use std::collections::HashSet;

use retake_model::command::{InsertPosition, NewEntry};
use retake_model::entry::{Block, EntryVersion, Fields, default_role};
use retake_model::id::{EntryId, TakeId};
use retake_model::time::Timestamp;

use super::super::fault::ModelFault;
use super::super::names;
use super::super::observe::entry_content;
use super::super::plain::{EntryContent, ImageRef, Part, PlainEntry, PlainTake, PlainThread};
use super::{CommandContext, ExpectedRefusal, find, place_of};

pub(super) fn add(
    picture: &mut PlainThread,
    take: TakeId,
    at: InsertPosition,
    entries: &[NewEntry],
    around: &mut CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let take = find(picture, take)?;
    let place = match at {
        InsertPosition::Start => 0,
        InsertPosition::End => take.entries.len(),
        InsertPosition::Before(entry) => place_of(take, entry)?,
        InsertPosition::After(entry) => place_of(take, entry)? + 1,
    };
    if entries.iter().filter_map(|entry| entry.id).any(|id| place_of(take, id).is_ok()) {
        return Err(ExpectedRefusal::EntryExists);
    }
    let made = pictures(take.id, place, entries, around)?;
    for (offset, entry) in made.into_iter().enumerate() {
        take.entries.insert(place + offset, entry);
    }
    Ok(())
}

pub(super) fn send_draft(
    picture: &mut PlainThread,
    take: TakeId,
    role: Option<&str>,
    around: &mut CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let PlainTake { draft, attached, .. } = find(picture, take)?.clone();
    if draft.trim().is_empty() && attached.is_empty() {
        return Err(ExpectedRefusal::EmptyDraft);
    }
    let role = role.map_or_else(|| default_role(around.roles).to_owned(), str::to_owned);
    let mut entry = EntryVersion::from_text(&role, &draft, Timestamp::from_millis(around.now));
    if draft.trim().is_empty() {
        entry.blocks.clear();
    }
    for ImageRef { media, picture: blob } in attached {
        entry.blocks.push(Block::Image { media, blob, extra: Fields::default() });
    }
    add(picture, take, InsertPosition::End, &[entry.into()], around)?;
    let take = find(picture, take)?;
    take.draft.clear();
    take.attached.clear();
    Ok(())
}

pub(super) fn edit(
    picture: &mut PlainThread,
    take: TakeId,
    entry: EntryId,
    text: &str,
    around: &CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let now = around.now;
    change(picture, take, entry, |before| {
        if let [Part::Answer(answer, kept)] = before.parts.as_slice() {
            let parts = vec![Part::Answer(text.to_owned(), kept.clone())];
            let same = answer == text;
            return if same {
                before.clone()
            } else {
                EntryContent { parts, edited: Some(now), ..before.clone() }
            };
        }
        if before.text() == text {
            return before.clone();
        }
        let mut parts = Vec::new();
        let mut placed = false;
        for part in &before.parts {
            match part {
                Part::Kept(_) | Part::Picture(_) | Part::Answer(..) => parts.push(part.clone()),
                Part::Text(_) if placed => {}
                Part::Text(_) => {
                    parts.push(Part::Text(text.to_owned()));
                    placed = true;
                }
            }
        }
        if !placed {
            parts.push(Part::Text(text.to_owned()));
        }
        EntryContent { parts, edited: Some(now), ..before.clone() }
    })
}

pub(super) fn rewrite(
    picture: &mut PlainThread,
    take: TakeId,
    entry: EntryId,
    version: &EntryVersion,
) -> Result<(), ExpectedRefusal> {
    place_of(find(picture, take)?, entry)?;
    names::meaning(&version.role).ok_or(ExpectedRefusal::Name)?;
    change(picture, take, entry, |_| entry_content(version))
}

pub(super) fn role(
    picture: &mut PlainThread,
    take: TakeId,
    entry: EntryId,
    role: &str,
) -> Result<(), ExpectedRefusal> {
    let role = names::meaning(role).ok_or(ExpectedRefusal::Name)?;
    change(picture, take, entry, |before| EntryContent { role: role.clone(), ..before.clone() })
}

pub(super) fn delete(
    picture: &mut PlainThread,
    take: TakeId,
    entries: &[EntryId],
    fault: Option<ModelFault>,
) -> Result<(), ExpectedRefusal> {
    let take = find(picture, take)?;
    for entry in entries {
        let Ok(place) = place_of(take, *entry) else {
            continue;
        };
        take.entries.remove(place);
        if fault == Some(ModelFault::DeleteRemovesTheNextEntry) && place < take.entries.len() {
            take.entries.remove(place);
        }
    }
    Ok(())
}

pub(super) fn replace(
    picture: &mut PlainThread,
    take: TakeId,
    entries: &[NewEntry],
    around: &mut CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let take = find(picture, take)?;
    take.entries = pictures(take.id, 0, entries, around)?;
    Ok(())
}

/// Keeps the last pairs: from the end, until enough user entries were found.
pub(super) fn truncate(picture: &mut PlainThread, take: TakeId, pairs: u64) -> Result<(), ExpectedRefusal> {
    let take = find(picture, take)?;
    let users: Vec<usize> =
        (0..take.entries.len()).filter(|place| take.entries[*place].entry_content.is_from_user()).collect();
    let pairs = usize::try_from(pairs).unwrap_or(usize::MAX);
    let cut = if pairs == 0 {
        take.entries.len()
    } else if pairs > users.len() {
        0
    } else {
        users[users.len() - pairs]
    };
    take.entries = take.entries[cut..].to_vec();
    Ok(())
}

fn change(
    picture: &mut PlainThread,
    take: TakeId,
    entry: EntryId,
    change: impl FnOnce(&EntryContent) -> EntryContent,
) -> Result<(), ExpectedRefusal> {
    let take = find(picture, take)?;
    let place = place_of(take, entry)?;
    take.entries[place] = PlainEntry::new(entry, change(&take.entries[place].entry_content));
    Ok(())
}

fn pictures(
    take: TakeId,
    place: usize,
    entries: &[NewEntry],
    around: &mut CommandContext<'_>,
) -> Result<Vec<PlainEntry>, ExpectedRefusal> {
    let mut seen = HashSet::new();
    if entries.iter().filter_map(|entry| entry.id).any(|id| !seen.insert(id)) {
        return Err(ExpectedRefusal::EntryExists);
    }
    if entries.iter().any(|entry| names::meaning(&entry.version.role).is_none()) {
        return Err(ExpectedRefusal::Name);
    }
    let made = entries.iter().enumerate().map(|(offset, entry)| {
        let id = entry.id.unwrap_or_else(|| around.learn.entry(take, place + offset));
        PlainEntry::new(id, entry_content(&entry.version))
    });
    Ok(made.collect())
}
