//! Commands on the entries of one take. Each is one splice of the take's list.

use std::collections::HashSet;

use super::{CommandContext, CommandError, CommandOutcome, InsertPosition, NewEntry, find_take, with_take};
use crate::content::{ContentId, Kind};
use crate::entry::{Block, EntryVersion, RoleKind};
use crate::id::{EntryId, IdSource, TakeId};
use crate::limits::ENTRY_BYTES;
use crate::list::{EntryCell, List, MAX_CELLS};
use crate::name::{NameKind, check};
use crate::object::{ObjectError, Objects, load};
use crate::operation::{AddedEntries, OperationKind};
use crate::state::ThreadState;
use crate::take::Take;

pub(super) fn add<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    at: InsertPosition,
    entries: Vec<NewEntry>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    add_to(state, take, at, entries, context)
}

/// Inserts entries into a loaded take.
pub(super) fn add_to<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: Take,
    at: InsertPosition,
    entries: Vec<NewEntry>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let (take, Some(added)) = with_entries(take, at, entries, context)? else {
        return Ok(CommandOutcome::Unchanged);
    };
    let AddedEntries { entry, version, count, position } = added;
    let kind = OperationKind::EntriesAdded { take: take.id, entry, version, count, position };
    Ok(CommandOutcome::Changed { state: with_take(state, &take, context)?, kind })
}

/// Returns the take with the new entries, and a description of them if there are any.
pub(super) fn with_entries<O: Objects + ?Sized, F: IdSource>(
    take: Take,
    at: InsertPosition,
    entries: Vec<NewEntry>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<(Take, Option<AddedEntries>), CommandError> {
    let position = position_of(&take, at, context)?;
    for chosen in entries.iter().filter_map(|entry| entry.id) {
        if take.entries.find(context.additions, chosen.bytes())?.is_some() {
            return Err(CommandError::EntryExists(chosen));
        }
    }
    let cells = store_entries(entries, context)?;
    let Some(first) = cells.first().copied() else {
        return Ok((take, None));
    };
    let count = cells.len() as u64;
    if take.entries.len() + count > MAX_CELLS {
        return Err(CommandError::TooMuch { what: "entries of a take", limit: MAX_CELLS as usize });
    }
    let entries = take.entries.splice(context.additions, position..position, cells)?;
    let added = AddedEntries { entry: first.entry, version: first.version, count, position };
    Ok((Take { entries, ..take }, Some(added)))
}

pub(super) fn edit<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    entry: EntryId,
    text: &str,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let found = LocatedEntry::entry(state, take, entry, context)?;
    if found.version.editable_text() == text {
        return Ok(CommandOutcome::Unchanged);
    }
    let version = found.version.with_edit(text, context.fresh.now());
    put_version(state, found, &version, context)
}

pub(super) fn rewrite<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    entry: EntryId,
    version: &EntryVersion,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let found = LocatedEntry::entry(state, take, entry, context)?;
    put_version(state, found, version, context)
}

pub(super) fn change_role<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    entry: EntryId,
    role: &str,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let role = check(NameKind::Role, role)?;
    let found = LocatedEntry::entry(state, take, entry, context)?;
    if found.version.role == role {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::RoleChanged {
        take: found.take.id,
        entry,
        from: found.version.role.clone(),
        to: role.clone(),
    };
    let version = EntryVersion { role, ..found.version.clone() };
    let version = store_version(&version, context)?;
    replace_cell(state, found, version, kind, context)
}

pub(super) fn delete<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    entries: &[EntryId],
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let mut list = take.entries;
    let mut first = None;
    let mut count = 0;
    for entry in entries {
        // Deleting a missing entry is not an error: two windows may delete the same one.
        let Some((position, cell)) = list.find(context.additions, entry.bytes())? else {
            continue;
        };
        list = list.splice(context.additions, position..position + 1, Vec::new())?;
        first.get_or_insert(cell);
        count += 1;
    }
    let Some(first) = first else {
        return Ok(CommandOutcome::Unchanged);
    };
    let kind =
        OperationKind::EntriesDeleted { take: take.id, entry: first.entry, version: first.version, count };
    changed(state, take, list, kind, context)
}

pub(super) fn replace<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    entries: Vec<NewEntry>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let cells = store_entries(entries, context)?;
    let list = List::from_cells(context.additions, cells);
    if list == take.entries {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::EntriesReplaced { take: take.id, from: take.entries.len(), to: list.len() };
    changed(state, take, list, kind, context)
}

pub(super) fn truncate<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    pairs: u64,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let cut = start_of_last_pairs(&take, pairs, context)?;
    if cut == 0 {
        return Ok(CommandOutcome::Unchanged);
    }
    let list = take.entries.splice(context.additions, 0..cut, Vec::new())?;
    let kind = OperationKind::Truncated { take: take.id, pairs, removed: cut };
    changed(state, take, list, kind, context)
}

pub(super) fn clear<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if take.entries.is_empty() {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::Cleared { take: take.id, removed: take.entries.len() };
    changed(state, take, List::empty(), kind, context)
}

/// Returns the start of the last pairs. A pair is a user entry and everything up to the next user entry, so
/// tool results and notes stay with their exchange.
fn start_of_last_pairs<O: Objects + ?Sized, F: IdSource>(
    take: &Take,
    pairs: u64,
    context: &CommandContext<'_, '_, O, F>,
) -> Result<u64, CommandError> {
    let mut position = take.entries.len();
    let mut seen = 0;
    if pairs == 0 {
        return Ok(position);
    }
    for cell in take.entries.iter_back(context.additions, position) {
        position -= 1;
        let version: EntryVersion = load(context.additions, cell?.version)?;
        if RoleKind::of(&version.role) == RoleKind::User {
            seen += 1;
            if seen == pairs {
                return Ok(position);
            }
        }
    }
    Ok(0)
}

/// An entry with its position and its take.
struct LocatedEntry {
    take: Take,
    position: u64,
    cell: EntryCell,
    version: EntryVersion,
}

impl LocatedEntry {
    fn entry<O: Objects + ?Sized, F: IdSource>(
        state: &ThreadState,
        take: TakeId,
        entry: EntryId,
        context: &CommandContext<'_, '_, O, F>,
    ) -> Result<Self, CommandError> {
        let take = find_take(state, take, context)?;
        let (position, cell) =
            take.entries.find(context.additions, entry.bytes())?.ok_or(CommandError::NoSuchEntry)?;
        let version = load(context.additions, cell.version)?;
        Ok(Self { take, position, cell, version })
    }
}

fn put_version<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    found: LocatedEntry,
    version: &EntryVersion,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let version = store_version(version, context)?;
    if version == found.cell.version {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::EntryEdited {
        take: found.take.id,
        entry: found.cell.entry,
        from: found.cell.version,
        to: version,
    };
    replace_cell(state, found, version, kind, context)
}

fn replace_cell<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    found: LocatedEntry,
    version: ContentId,
    kind: OperationKind,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let LocatedEntry { take, position, cell, .. } = found;
    let list = take.entries.splice(
        context.additions,
        position..position + 1,
        vec![EntryCell { version, ..cell }],
    )?;
    changed(state, take, list, kind, context)
}

fn changed<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: Take,
    entries: List<EntryCell>,
    kind: OperationKind,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = Take { entries, ..take };
    Ok(CommandOutcome::Changed { state: with_take(state, &take, context)?, kind })
}

fn position_of<O: Objects + ?Sized, F: IdSource>(
    take: &Take,
    at: InsertPosition,
    context: &CommandContext<'_, '_, O, F>,
) -> Result<u64, CommandError> {
    let find = |entry: EntryId| -> Result<u64, CommandError> {
        let found = take.entries.find(context.additions, entry.bytes())?;
        found.map(|(position, _)| position).ok_or(CommandError::NoSuchEntry)
    };
    match at {
        InsertPosition::Start => Ok(0),
        InsertPosition::End => Ok(take.entries.len()),
        InsertPosition::Before(entry) => find(entry),
        InsertPosition::After(entry) => find(entry).map(|position| position + 1),
    }
}

pub(super) fn store_entries<O: Objects + ?Sized, F: IdSource>(
    entries: Vec<NewEntry>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<Vec<EntryCell>, CommandError> {
    // Thousands of ids may share one timestamp. Ascending order keeps the list searchable by id.
    let nameless = entries.iter().filter(|entry| entry.id.is_none()).count();
    let mut fresh: Vec<EntryId> = (0..nameless).map(|_| EntryId::generate(context.fresh)).collect();
    fresh.sort_unstable();
    let mut fresh = fresh.into_iter();
    let mut seen = HashSet::new();
    entries
        .into_iter()
        .map(|NewEntry { id, version, blobs }| {
            for blob in blobs {
                context.additions.add_bytes(Kind::Blob, blob);
            }
            let entry = id.or_else(|| fresh.next()).expect("one id was generated per entry without an id");
            if !seen.insert(entry) {
                return Err(CommandError::EntryExists(entry));
            }
            let version = store_version(&version, context)?;
            Ok(EntryCell { entry, version, files: None })
        })
        .collect()
}

/// Rejects a version that is too large or has an invalid role.
pub(super) fn check_version(version: &EntryVersion) -> Result<(), CommandError> {
    check(NameKind::Role, &version.role)?;
    if version.size() > ENTRY_BYTES {
        return Err(CommandError::TooMuch { what: "bytes of an entry", limit: ENTRY_BYTES });
    }
    Ok(())
}

fn store_version<O: Objects + ?Sized, F: IdSource>(
    version: &EntryVersion,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<ContentId, CommandError> {
    check_version(version)?;
    // An entry with a missing picture would break every later export and check.
    for blob in version.blocks.iter().filter_map(Block::picture) {
        match context.additions.bytes(Kind::Blob, blob) {
            Ok(_) => {}
            Err(ObjectError::Missing { .. }) => return Err(CommandError::NoSuchPicture(blob)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(context.additions.add(version))
}
