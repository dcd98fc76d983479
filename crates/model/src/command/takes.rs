//! Commands on takes: branch, fork, switch, rename, delete, promote, and the take's files and sent context.
//!
//! ```text
//!   main     1 ── 2 ── 3 ── 4
//!                 │    └────── fork at 3 (a user message): 1, 2; 3 is its draft
//!                 └─────────── branch at 2: 1, 2
//! ```
//!
//! Neither copies an entry: the new take's list shares every node with the old one.

use super::entries::with_entries;
use super::naming::{free_name, name_for_take};
use super::{
    CommandContext, CommandError, CommandOutcome, InsertPosition, NewEntry, find_take, take_cell, with_take,
};
use crate::content::Kind;
use crate::entry::{EntryVersion, RoleKind};
use crate::id::{EntryId, IdSource, TakeId, ThreadId};
use crate::limits::FILES;
use crate::list::{List, TakeCell};
use crate::name::{NameKind, check};
use crate::object::{ObjectError, Objects, load};
use crate::operation::OperationKind;
use crate::state::{ThreadParent, ThreadState};
use crate::take::{Attachments, FIRST_TAKE, FileItem, FileList, SentContext, Take};

pub(super) fn branch<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    from: TakeId,
    at: Option<EntryId>,
    name: Option<String>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let source = find_take(state, from, context)?;
    let end = match at {
        Some(entry) => {
            let found = source.entries.find(context.additions, entry.bytes())?;
            found.ok_or(CommandError::NoSuchEntry)?.0 + 1
        }
        None => 0,
    };
    let name = name_for_take(state, &source.name, name, context)?;
    let take = branch_take(&source, end, at, name, Draft::default(), context)?;
    let kind = OperationKind::TakeBranched { take: take.id, from, at, name: take.name.clone() };
    add_take(state, &take, kind, context)
}

pub(super) fn fork<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    from: TakeId,
    at: EntryId,
    name: Option<String>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let source = find_take(state, from, context)?;
    let (end, cell) = source.entries.find(context.additions, at.bytes())?.ok_or(CommandError::NoSuchEntry)?;
    let message: EntryVersion = load(context.additions, cell.version)?;
    if RoleKind::of(&message.role) != RoleKind::User {
        return Err(CommandError::NotAUserMessage { role: message.role });
    }
    let shared = match end.checked_sub(1) {
        Some(position) => source.entries.get(context.additions, position)?.map(|cell| cell.entry),
        None => None,
    };
    let name = name_for_take(state, &source.name, name, context)?;
    let draft = Draft { text: message.text(), attached: Attachments::of(&message) };
    let take = branch_take(&source, end, shared, name, draft, context)?;
    let kind = OperationKind::TakeForked { take: take.id, from, at, name: take.name.clone() };
    add_take(state, &take, kind, context)
}

pub(super) fn switch<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if take.id == state.active {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::TakeSwitched { from: state.active, to: take.id };
    Ok(CommandOutcome::Changed { state: ThreadState { active: take.id, ..state.clone() }, kind })
}

pub(super) fn rename<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    name: &str,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if take.name == check(NameKind::Take, name)? {
        return Ok(CommandOutcome::Unchanged);
    }
    let name = free_name(name, context)?;
    let kind = OperationKind::TakeRenamed { take: take.id, from: take.name.clone(), to: name.clone() };
    Ok(CommandOutcome::Changed { state: with_take(state, &Take { name, ..take }, context)?, kind })
}

pub(super) fn delete<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if state.takes.len() == 1 {
        return Err(CommandError::LastTake);
    }
    let kind = OperationKind::TakeDeleted { take: take.id, name: take.name.clone() };
    Ok(CommandOutcome::Changed { state: without_take(state, &take, context)?, kind })
}

pub(super) fn keep<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let kept = find_take(state, take, context)?;
    let deleted = alternatives(context.additions, state, &kept)?;
    if deleted.is_empty() && state.active == take {
        return Ok(CommandOutcome::Unchanged);
    }
    let mut after = ThreadState { active: take, ..state.clone() };
    for other in &deleted {
        after = without_take(&after, other, context)?;
    }
    let kind = OperationKind::TakeKept {
        take,
        name: kept.name,
        from: state.active,
        deleted: deleted.into_iter().map(|other| other.name).collect(),
    };
    Ok(CommandOutcome::Changed { state: after, kind })
}

pub(super) fn merge<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    into: TakeId,
    from: TakeId,
    entries: Vec<NewEntry>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let (take, source) = (find_take(state, into, context)?, find_take(state, from, context)?);
    if into == from {
        return Err(CommandError::SameTake);
    }
    let (take, added) = with_entries(take, InsertPosition::End, entries, context)?;
    let kind = OperationKind::TakeMerged { take: into, from, name: source.name, added };
    Ok(CommandOutcome::Changed { state: with_take(state, &take, context)?, kind })
}

/// Returns the takes that went on differently from the newest fork of a take, in the order of the thread: what
/// [`Command::Keep`](super::Command::Keep) deletes.
///
/// ```text
///   main      1 ── 2 ── 3 ── 4           newest fork of each of the three: after 2
///                  ├─ a ─ 3'             alternatives of a: main and b; of main: a and b
///                  └─ b ─ 3''
/// ```
///
/// Takes that were forked from one of them further on are not among them.
pub fn alternatives<O: Objects + ?Sized>(
    objects: &O,
    state: &ThreadState,
    take: &Take,
) -> Result<Vec<Take>, ObjectError> {
    let others: Vec<Take> =
        state.all_takes(objects)?.into_iter().filter(|other| other.id != take.id).collect();
    // The number of entries up to a fork point; `None` if the entry was deleted.
    let end = |take: &Take, fork_point: Option<EntryId>| -> Result<Option<u64>, ObjectError> {
        let Some(entry) = fork_point else { return Ok(Some(0)) };
        Ok(take.entries.find(objects, entry.bytes())?.map(|(position, _)| position + 1))
    };
    let mut newest = None;
    for other in others.iter().filter(|other| other.parent == Some(take.id)) {
        newest = newest.max(end(take, other.fork_point)?.map(|end| (end, other.fork_point)));
    }
    let mut found = Vec::new();
    for other in others {
        let is_one = match newest {
            Some((_, fork_point)) => other.parent == Some(take.id) && other.fork_point == fork_point,
            None if take.parent.is_none() => false,
            None if Some(other.id) == take.parent => {
                end(&other, take.fork_point)?.is_some_and(|end| end < other.entries.len())
            }
            None => other.parent == take.parent && other.fork_point == take.fork_point,
        };
        if is_one {
            found.push(other);
        }
    }
    Ok(found)
}

pub(super) fn set_files<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    list: FileList,
    items: Vec<FileItem>,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    if items.len() > FILES {
        return Err(CommandError::TooMuch { what: "files in one list", limit: FILES });
    }
    if take.file_list(list) == items {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::FilesListed { take: take.id, list, count: items.len() as u64 };
    Ok(CommandOutcome::Changed { state: with_take(state, &take.with_file_list(list, items), context)?, kind })
}

pub(super) fn record_send<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    markdown: String,
    system_prompt: String,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let take = find_take(state, take, context)?;
    let sent = Some(SentContext {
        markdown: context.additions.add_bytes(Kind::Blob, markdown.into_bytes()),
        system_prompt: context.additions.add_bytes(Kind::Blob, system_prompt.into_bytes()),
    });
    if take.sent == sent {
        return Ok(CommandOutcome::Unchanged);
    }
    let kind = OperationKind::SendRecorded { take: take.id };
    Ok(CommandOutcome::Changed { state: with_take(state, &Take { sent, ..take }, context)?, kind })
}

/// A take that was promoted to a thread.
#[derive(Clone, Debug)]
pub struct Promotion {
    /// The new state of the source thread.
    pub source: ThreadState,
    /// The kind of operation in the source thread.
    pub kind: OperationKind,
    /// The new thread.
    pub promoted: ThreadState,
}

/// Promotes a take of `thread` to a new thread called `title` (by default, the take's name).
pub fn promote<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    thread: ThreadId,
    take: TakeId,
    title: Option<&str>,
    into: ThreadId,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<Promotion, CommandError> {
    let take = find_take(state, take, context)?;
    if state.takes.len() == 1 {
        return Err(CommandError::OnlyTake);
    }
    let title = check(NameKind::Title, title.unwrap_or(&take.name))?;
    let source = without_take(state, &take, context)?;
    let kind = OperationKind::TakePromoted { take: take.id, name: take.name.clone(), into };
    let parent = Some(ThreadParent { thread, take: take.parent, fork_point: take.fork_point });
    let moved = Take { name: FIRST_TAKE.to_owned(), parent: None, agent: None, ..take };
    let content = context.additions.add(&moved);
    let takes = List::from_cells(context.additions, [take_cell(&moved, content)]);
    let promoted = ThreadState { title, takes, active: moved.id, parent, pinned: false, ..state.clone() };
    Ok(Promotion { source, kind, promoted })
}

/// The draft of a new take.
#[derive(Default)]
struct Draft {
    text: String,
    attached: Attachments,
}

/// Creates a take that shares the first entries of another.
fn branch_take<O: Objects + ?Sized, F: IdSource>(
    source: &Take,
    end: u64,
    fork_point: Option<EntryId>,
    name: String,
    draft: Draft,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<Take, CommandError> {
    let entries = source.entries.splice(context.additions, end..source.entries.len(), Vec::new())?;
    let created = context.fresh.now();
    let id = TakeId::generate(context.fresh);
    let parent = Some(source.id);
    let Draft { text, attached } = draft;
    // A running turn stays with the take in which it started.
    Ok(Take {
        id,
        name,
        created,
        entries,
        draft: text,
        attached,
        parent,
        fork_point,
        agent: None,
        git_commit: context.git_commit.map(str::to_owned).or_else(|| source.git_commit.clone()),
        ..source.clone()
    })
}

fn add_take<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: &Take,
    kind: OperationKind,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
    let content = context.additions.add(take);
    let end = state.takes.len();
    let takes = state.takes.splice(context.additions, end..end, vec![take_cell(take, content)])?;
    Ok(CommandOutcome::Changed { state: ThreadState { takes, active: take.id, ..state.clone() }, kind })
}

fn without_take<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: &Take,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<ThreadState, CommandError> {
    let (position, _) =
        state.takes.find(context.additions, take.id.bytes())?.ok_or(CommandError::NoSuchTake)?;
    let takes = state.takes.splice(context.additions, position..position + 1, Vec::new())?;
    let active =
        if state.active == take.id { next_active_take(&takes, take, context)? } else { state.active };
    Ok(ThreadState { takes, active, ..state.clone() })
}

/// Returns the take that becomes active when the active one is deleted: its parent, else the oldest.
fn next_active_take<O: Objects + ?Sized, F: IdSource>(
    takes: &List<TakeCell>,
    gone: &Take,
    context: &CommandContext<'_, '_, O, F>,
) -> Result<TakeId, CommandError> {
    if let Some(parent) = gone.parent
        && takes.find(context.additions, parent.bytes())?.is_some()
    {
        return Ok(parent);
    }
    takes.get(context.additions, 0)?.map(|cell| cell.take).ok_or(CommandError::LastTake)
}
