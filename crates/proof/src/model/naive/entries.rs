//! Commands on the entries of one take, on a plain vector.

use std::collections::HashSet;

use retake_model::command::{NewEntry, Spot};
use retake_model::entry::{Block, EntryVersion, Fields, default_role};
use retake_model::id::{EntryId, TakeId};
use retake_model::time::Timestamp;

use super::super::mutant::Mutant;
use super::super::observe::said;
use super::super::picture::{EntryPicture, Part, Said, Shown, TakePicture, ThreadPicture};
use super::super::words;
use super::{Around, Refused, find, place_of};

pub(super) fn add(
    picture: &mut ThreadPicture,
    take: TakeId,
    at: Spot,
    entries: &[NewEntry],
    around: &mut Around<'_>,
) -> Result<(), Refused> {
    let take = find(picture, take)?;
    let place = match at {
        Spot::Start => 0,
        Spot::End => take.entries.len(),
        Spot::Before(entry) => place_of(take, entry)?,
        Spot::After(entry) => place_of(take, entry)? + 1,
    };
    if entries.iter().filter_map(|entry| entry.id).any(|id| place_of(take, id).is_ok()) {
        return Err(Refused::EntryExists);
    }
    let made = pictures(take.id, place, entries, around)?;
    for (offset, entry) in made.into_iter().enumerate() {
        take.entries.insert(place + offset, entry);
    }
    Ok(())
}

pub(super) fn send_draft(
    picture: &mut ThreadPicture,
    take: TakeId,
    role: Option<&str>,
    around: &mut Around<'_>,
) -> Result<(), Refused> {
    let TakePicture { draft, attached, .. } = find(picture, take)?.clone();
    if draft.trim().is_empty() && attached.is_empty() {
        return Err(Refused::EmptyDraft);
    }
    let role = role.map_or_else(|| default_role(around.roles).to_owned(), str::to_owned);
    let mut entry = EntryVersion::from_text(&role, &draft, Timestamp::from_millis(around.now));
    if draft.trim().is_empty() {
        entry.blocks.clear();
    }
    for Shown { media, picture: blob } in attached {
        entry.blocks.push(Block::Image { media, blob, extra: Fields::default() });
    }
    add(picture, take, Spot::End, &[entry.into()], around)?;
    let take = find(picture, take)?;
    take.draft.clear();
    take.attached.clear();
    Ok(())
}

pub(super) fn edit(
    picture: &mut ThreadPicture,
    take: TakeId,
    entry: EntryId,
    text: &str,
    around: &Around<'_>,
) -> Result<(), Refused> {
    let now = around.now;
    change(picture, take, entry, |before| {
        if let [Part::Answer(answer, kept)] = before.parts.as_slice() {
            let parts = vec![Part::Answer(text.to_owned(), kept.clone())];
            let same = answer == text;
            return if same { before.clone() } else { Said { parts, edited: Some(now), ..before.clone() } };
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
        Said { parts, edited: Some(now), ..before.clone() }
    })
}

pub(super) fn rewrite(
    picture: &mut ThreadPicture,
    take: TakeId,
    entry: EntryId,
    version: &EntryVersion,
) -> Result<(), Refused> {
    place_of(find(picture, take)?, entry)?;
    words::meaning(&version.role).ok_or(Refused::Name)?;
    change(picture, take, entry, |_| said(version))
}

pub(super) fn role(
    picture: &mut ThreadPicture,
    take: TakeId,
    entry: EntryId,
    role: &str,
) -> Result<(), Refused> {
    let role = words::meaning(role).ok_or(Refused::Name)?;
    change(picture, take, entry, |before| Said { role: role.clone(), ..before.clone() })
}

pub(super) fn delete(
    picture: &mut ThreadPicture,
    take: TakeId,
    entries: &[EntryId],
    mutant: Option<Mutant>,
) -> Result<(), Refused> {
    let take = find(picture, take)?;
    for entry in entries {
        let Ok(place) = place_of(take, *entry) else {
            continue;
        };
        take.entries.remove(place);
        if mutant == Some(Mutant::DeleteTakesTheNext) && place < take.entries.len() {
            take.entries.remove(place);
        }
    }
    Ok(())
}

pub(super) fn replace(
    picture: &mut ThreadPicture,
    take: TakeId,
    entries: &[NewEntry],
    around: &mut Around<'_>,
) -> Result<(), Refused> {
    let take = find(picture, take)?;
    take.entries = pictures(take.id, 0, entries, around)?;
    Ok(())
}

/// Keeps the last pairs: from the end, until enough user entries were found.
pub(super) fn truncate(picture: &mut ThreadPicture, take: TakeId, pairs: u64) -> Result<(), Refused> {
    let take = find(picture, take)?;
    let users: Vec<usize> =
        (0..take.entries.len()).filter(|place| take.entries[*place].said.is_from_user()).collect();
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
    picture: &mut ThreadPicture,
    take: TakeId,
    entry: EntryId,
    change: impl FnOnce(&Said) -> Said,
) -> Result<(), Refused> {
    let take = find(picture, take)?;
    let place = place_of(take, entry)?;
    take.entries[place] = EntryPicture::new(entry, change(&take.entries[place].said));
    Ok(())
}

fn pictures(
    take: TakeId,
    place: usize,
    entries: &[NewEntry],
    around: &mut Around<'_>,
) -> Result<Vec<EntryPicture>, Refused> {
    let mut seen = HashSet::new();
    if entries.iter().filter_map(|entry| entry.id).any(|id| !seen.insert(id)) {
        return Err(Refused::EntryExists);
    }
    if entries.iter().any(|entry| words::meaning(&entry.version.role).is_none()) {
        return Err(Refused::Name);
    }
    let made = entries.iter().enumerate().map(|(offset, entry)| {
        let id = entry.id.unwrap_or_else(|| around.learn.entry(take, place + offset));
        EntryPicture::new(id, said(&entry.version))
    });
    Ok(made.collect())
}
