//! Merges another take into the active one: its file changes since the fork, and its conclusion.
//!
//! ```text
//!   files at the fork ──┬── other take ─── changed here: F ► T
//!                       └── this take ──── present files P          P with F ► T applied, path by path: three-way
//! ```
//!
//! A path that both changed differently is a conflict: it is reported, and stays as it is unless the options say otherwise.

use retake_model::command::NewEntry;
use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, RoleKind};
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::json::Json;
use retake_model::list::List;
use retake_model::operation::Operation;
use retake_model::replay::FileStep;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::time::Timestamp;
use retake_store::Queries;

use super::entry_files::Reversal;
use super::plan::{FileOperationWalk, files_of_take};
use super::{FileError, Scope};
use crate::{Command, ReadError, Reader};

/// The role of the entry with the conclusion of a merged take.
const ROLE: &str = "Context";
/// Entries to read at a time.
const PAGE: u64 = 50;

impl Reader<'_> {
    /// The command that merges a take into another: with the conclusion of the take, unless only files are merged.
    pub fn merge(
        &self,
        thread: ThreadId,
        (into, from): (&Take, &Take),
        scope: Scope,
        now: Timestamp,
    ) -> Result<Command, ReadError> {
        let conclusion = match scope {
            Scope::Files => None,
            Scope::Both | Scope::Conversation => self.conclusion(thread, (into, from))?,
        };
        let entries = conclusion.map(|(entry, text)| conclusion_entry(from, entry, &text, now));
        Ok(Command::Merge { into: into.id, from: from.id, entries: entries.into_iter().collect() })
    }

    /// The last answer of a take that the other one does not have, with its text.
    fn conclusion(
        &self,
        thread: ThreadId,
        (into, from): (&Take, &Take),
    ) -> Result<Option<(EntryId, String)>, ReadError> {
        let changes = List::diff(&self.queries(), &into.entries, &from.entries)?;
        let Some(start) = changes.first().map(|first| first.old_start) else { return Ok(None) };
        let mut end = from.entries.len();
        while end > start {
            let begin = end.saturating_sub(PAGE).max(start);
            let page = self.entries(thread, from).page(begin..end)?;
            let found = page.iter().rev().find(|view| {
                RoleKind::of(&view.entry.role) == RoleKind::Assistant && !view.entry.text().trim().is_empty()
            });
            if let Some(view) = found {
                return Ok(Some((view.id, view.entry.text())));
            }
            end = begin;
        }
        Ok(None)
    }
}

fn conclusion_entry(from: &Take, entry: EntryId, text: &str, now: Timestamp) -> NewEntry {
    let text = format!("Conclusion of take {:?}:\n\n{text}", from.name);
    let mut version = EntryVersion::from_text(ROLE, &text, now);
    let source = serde_json::json!({"take": from.id, "name": from.name, "entry": entry}).to_string();
    let source = Json::new(source).expect("an object of texts is valid JSON");
    version.extra.insert("merged_from".to_owned(), source);
    version.into()
}

/// The step that applies the file changes of a take since its fork from the other.
pub(super) fn merge_steps(
    queries: &Queries<'_>,
    (thread, head): (i64, &Operation),
    state: &ThreadState,
    (into, from): (TakeId, TakeId),
) -> Result<Vec<Reversal>, FileError> {
    if into != state.active {
        return Err(FileError::OtherTake);
    }
    let Some(theirs) = files_of_take(queries, thread, head, from)? else { return Ok(Vec::new()) };
    let fork = fork_of(queries, state, (into, from))?;
    let Some(base) = first_files(queries, thread, head, fork)? else { return Ok(Vec::new()) };
    let worktree = queries.folders()?.iter().any(|folder| {
        folder.worktree.is_some_and(|worktree| worktree.thread == head.thread && worktree.take == from)
    });
    let step = if worktree { FileStep::between_folders(base, theirs) } else { FileStep::new(base, theirs) };
    Ok(vec![Reversal { step, shared: false }])
}

/// The take whose first files are those at the fork of two takes.
fn fork_of(
    queries: &Queries<'_>,
    state: &ThreadState,
    (into, from): (TakeId, TakeId),
) -> Result<TakeId, FileError> {
    let ours = lineage(queries, state, into)?;
    let theirs = lineage(queries, state, from)?;
    let common = theirs.iter().position(|take| ours.iter().any(|other| other.id == take.id));
    let name = |takes: &[Take]| takes.first().map(|take| take.name.clone()).unwrap_or_default();
    let Some(common) = common else {
        return Err(FileError::NoCommonFork { one: name(&ours), other: name(&theirs) });
    };
    let ancestor = &theirs[common];
    let here = ours.iter().position(|take| take.id == ancestor.id).unwrap_or_default();
    // The children of the common take on the way to either.
    let (our_child, their_child) =
        (here.checked_sub(1).map(|at| &ours[at]), common.checked_sub(1).map(|at| &theirs[at]));
    let end = |take: &Take| -> Result<u64, FileError> {
        let Some(entry) = take.fork_point else { return Ok(0) };
        let found = ancestor.entries.find(queries, entry.bytes())?;
        Ok(found.map_or(u64::MAX, |(position, _)| position + 1))
    };
    match (our_child, their_child) {
        (Some(ours), Some(theirs)) if end(ours)? < end(theirs)? => Ok(ours.id),
        (_, Some(theirs)) => Ok(theirs.id),
        (Some(ours), None) => Ok(ours.id),
        (None, None) => Ok(from),
    }
}

/// A take and those that it was forked from, as far as they exist.
fn lineage(queries: &Queries<'_>, state: &ThreadState, take: TakeId) -> Result<Vec<Take>, FileError> {
    let (mut found, mut next): (Vec<Take>, _) = (Vec::new(), Some(take));
    while let Some(id) = next {
        let Some(take) = state.take(queries, id)? else { break };
        next = take.parent.filter(|parent| found.iter().all(|known| known.id != *parent));
        found.push(take);
    }
    Ok(found)
}

/// The files with which a take started, or the first ones known of it.
fn first_files(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    take: TakeId,
) -> Result<Option<ContentId>, FileError> {
    let mut first = None;
    for found in FileOperationWalk::up_to(queries, thread, head.version)? {
        let (operation, files) = found?;
        if operation.kind.created_take() == Some(take) {
            return Ok(Some(files.after));
        }
        if files.left == Some(take) {
            first = Some(files.before);
        } else if files.take == take {
            let arrived = files.left.is_some_and(|left| left != take);
            first = Some(if arrived { files.after } else { files.before });
        }
    }
    Ok(first)
}
