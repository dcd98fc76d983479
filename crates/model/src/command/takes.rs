//! Commands on takes: branch, fork, switch, rename, delete, promote, and the take's files and sent context.
//!
//! ```text
//!   main     1 ── 2 ── 3 ── 4
//!                 │    └────── fork at 3 (a user message): 1, 2; 3 is its draft
//!                 └─────────── branch at 2: 1, 2
//! ```
//!
//! Neither copies an entry: the new take's list shares every node with the old one.

use super::naming::{free_name, name_for_take};
use super::{Applied, Context, Refusal, find_take, take_cell, with_take};
use crate::content::Kind;
use crate::entry::{EntryVersion, RoleKind};
use crate::id::{EntryId, Fresh, TakeId, ThreadId};
use crate::limits::FILES;
use crate::list::{List, TakeCell};
use crate::name::{Naming, check};
use crate::object::{Objects, load};
use crate::operation::OperationKind;
use crate::state::{ThreadParent, ThreadState};
use crate::take::{Attachments, FIRST_TAKE, FileItem, FileList, Sent, Take};

pub(super) fn branch<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    from: TakeId,
    at: Option<EntryId>,
    name: Option<String>,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let source = find_take(state, from, context)?;
    let end = match at {
        Some(entry) => {
            let found = source.entries.find(context.additions, entry.bytes())?;
            found.ok_or(Refusal::NoSuchEntry)?.0 + 1
        }
        None => 0,
    };
    let name = name_for_take(state, &source.name, name, context)?;
    let take = split_off(&source, end, at, name, Draft::default(), context)?;
    let kind = OperationKind::TakeBranched { take: take.id, from, at, name: take.name.clone() };
    add_take(state, &take, kind, context)
}

pub(super) fn fork<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    from: TakeId,
    at: EntryId,
    name: Option<String>,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let source = find_take(state, from, context)?;
    let (end, cell) = source.entries.find(context.additions, at.bytes())?.ok_or(Refusal::NoSuchEntry)?;
    let message: EntryVersion = load(context.additions, cell.version)?;
    if RoleKind::of(&message.role) != RoleKind::User {
        return Err(Refusal::NotAUserMessage { role: message.role });
    }
    let shared = match end.checked_sub(1) {
        Some(position) => source.entries.get(context.additions, position)?.map(|cell| cell.entry),
        None => None,
    };
    let name = name_for_take(state, &source.name, name, context)?;
    let draft = Draft { text: message.text(), attached: Attachments::of(&message) };
    let take = split_off(&source, end, shared, name, draft, context)?;
    let kind = OperationKind::TakeForked { take: take.id, from, at, name: take.name.clone() };
    add_take(state, &take, kind, context)
}

pub(super) fn switch<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    if take.id == state.active {
        return Ok(Applied::Unchanged);
    }
    let kind = OperationKind::TakeSwitched { from: state.active, to: take.id };
    Ok(Applied::Changed { state: ThreadState { active: take.id, ..state.clone() }, kind })
}

pub(super) fn rename<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    name: &str,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    if take.name == check(Naming::Take, name)? {
        return Ok(Applied::Unchanged);
    }
    let name = free_name(name, context)?;
    let kind = OperationKind::TakeRenamed { take: take.id, from: take.name.clone(), to: name.clone() };
    Ok(Applied::Changed { state: with_take(state, &Take { name, ..take }, context)?, kind })
}

pub(super) fn delete<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    if state.takes.len() == 1 {
        return Err(Refusal::LastTake);
    }
    let kind = OperationKind::TakeDeleted { take: take.id, name: take.name.clone() };
    Ok(Applied::Changed { state: without_take(state, &take, context)?, kind })
}

pub(super) fn set_files<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    list: FileList,
    items: Vec<FileItem>,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    if items.len() > FILES {
        return Err(Refusal::TooMuch { what: "files in one list", limit: FILES });
    }
    if take.file_list(list) == items {
        return Ok(Applied::Unchanged);
    }
    let kind = OperationKind::FilesListed { take: take.id, list, count: items.len() as u64 };
    Ok(Applied::Changed { state: with_take(state, &take.with_file_list(list, items), context)?, kind })
}

pub(super) fn record_send<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    markdown: String,
    system_prompt: String,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let take = find_take(state, take, context)?;
    let sent = Some(Sent {
        markdown: context.additions.add_bytes(Kind::Blob, markdown.into_bytes()),
        system_prompt: context.additions.add_bytes(Kind::Blob, system_prompt.into_bytes()),
    });
    if take.sent == sent {
        return Ok(Applied::Unchanged);
    }
    let kind = OperationKind::SendRecorded { take: take.id };
    Ok(Applied::Changed { state: with_take(state, &Take { sent, ..take }, context)?, kind })
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
pub fn promote<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    thread: ThreadId,
    take: TakeId,
    title: Option<&str>,
    into: ThreadId,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Promotion, Refusal> {
    let take = find_take(state, take, context)?;
    if state.takes.len() == 1 {
        return Err(Refusal::OnlyTake);
    }
    let title = check(Naming::Title, title.unwrap_or(&take.name))?;
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
fn split_off<O: Objects + ?Sized, F: Fresh>(
    source: &Take,
    end: u64,
    fork_point: Option<EntryId>,
    name: String,
    draft: Draft,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Take, Refusal> {
    let entries = source.entries.splice(context.additions, end..source.entries.len(), Vec::new())?;
    let created = context.fresh.now();
    let id = TakeId::fresh(context.fresh);
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

fn add_take<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: &Take,
    kind: OperationKind,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    let content = context.additions.add(take);
    let end = state.takes.len();
    let takes = state.takes.splice(context.additions, end..end, vec![take_cell(take, content)])?;
    Ok(Applied::Changed { state: ThreadState { takes, active: take.id, ..state.clone() }, kind })
}

fn without_take<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: &Take,
    context: &mut Context<'_, '_, O, F>,
) -> Result<ThreadState, Refusal> {
    let (position, _) = state.takes.find(context.additions, take.id.bytes())?.ok_or(Refusal::NoSuchTake)?;
    let takes = state.takes.splice(context.additions, position..position + 1, Vec::new())?;
    let active = if state.active == take.id { heir(&takes, take, context)? } else { state.active };
    Ok(ThreadState { takes, active, ..state.clone() })
}

/// Returns the take that becomes active when the active one is deleted: its parent, else the oldest.
fn heir<O: Objects + ?Sized, F: Fresh>(
    takes: &List<TakeCell>,
    gone: &Take,
    context: &Context<'_, '_, O, F>,
) -> Result<TakeId, Refusal> {
    if let Some(parent) = gone.parent
        && takes.find(context.additions, parent.bytes())?.is_some()
    {
        return Ok(parent);
    }
    takes.get(context.additions, 0)?.map(|cell| cell.take).ok_or(Refusal::LastTake)
}
