//! Finds the files of an entry, backwards from the last files of its take.
//!
//! ```text
//!   main    1 ─ a ─ 2 ─ b ─ 3 ─ c             `a` to `e` are changes of files
//!   B                       └── 4 ─ d
//!   C                               └── 5 ─ e
//!
//!   C at entry 2: `e`, `d` and `b` are undone, newest first; `c` is not in the files of C
//! ```
//!
//! A summary has the files of the last entry that it replaces, and an inserted entry those of the entry before it: the
//! position of an entry matters, not when it was created.
//!
//! The log is read once, from its end. At the start of a take, the walk continues in its source take; at the start of the
//! thread, in the thread that it was promoted from.

use retake_model::content::ContentId;
use retake_model::history;
use retake_model::id::{EntryId, TakeId};
use retake_model::list::{EntryCell, List};
use retake_model::object::load;
use retake_model::operation::{FileChange, ForkOrigin, Operation, OperationKind, TurnStep, Version};
use retake_model::replay::FileStep;
use retake_model::state::ThreadState;
use retake_store::{Queries, StoreError, StoredOperation};

use super::FileError;
use super::plan::FileOperationWalk;
use super::takes::last_entry;
use crate::ChangeError;

/// Operations to read at a time.
const PAGE: usize = 500;

/// A change of files to undo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reversal {
    pub(super) step: FileStep,
    /// Whether another run may have made the change.
    pub(super) shared: bool,
}

/// A take at the end of a log, with its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakeEnd {
    /// The number of the thread.
    pub(super) thread: i64,
    /// The last operation of the log.
    pub(super) version: Version,
    pub(super) take: TakeId,
    pub(super) files: ContentId,
}

/// The changes from the last files of a take back to those of one of its entries, newest first; `None` if they are
/// unknown: many entries were added at once, or the source thread of a promotion is not in the store.
pub(super) fn reversals_to_entry(
    queries: &Queries<'_>,
    end: TakeEnd,
    entry: EntryId,
) -> Result<Option<Vec<Reversal>>, FileError> {
    let TakeEnd { mut thread, mut version, take, files } = end;
    let mut walk = Walk {
        queries,
        thread,
        take,
        until: version,
        entry,
        first_files: files,
        reversals: Vec::new(),
        skips: Vec::new(),
    };
    loop {
        if let Some(found) = walk.through(thread, version)? {
            return Ok(Some(walk.finish(thread, found)?));
        }
        let Some(source) = promoted_from(queries, thread)?.filter(|source| source.take == walk.take) else {
            let same = walk.reversals.is_empty() && !has_older_files(queries, thread)?;
            return Ok(same.then(Vec::new));
        };
        walk.enter_source(&source);
        (thread, version) = (source.thread, source.version);
    }
}

/// A walk backwards along a log.
struct Walk<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    /// The take whose changes are being undone.
    take: TakeId,
    /// Where another take was split off, or the end: later changes are not in the files.
    until: Version,
    entry: EntryId,
    /// The oldest files of this thread.
    first_files: ContentId,
    reversals: Vec<Reversal>,
    skips: Vec<Skip>,
}

/// A take that started with the files of an entry: later changes of its source take are not in its files.
struct Skip {
    entry: EntryId,
    /// Number of collected changes when the walk left the take.
    start: usize,
}

impl Walk<'_, '_> {
    /// Walks through a thread; returns the operation that added the entry, if it is there.
    fn through(&mut self, thread: i64, version: Version) -> Result<Option<Version>, FileError> {
        let mut from = version;
        while from > 0 {
            let page = self.queries.operations_back(thread, from, PAGE)?;
            for StoredOperation { operation, .. } in &page {
                if self.pass(operation)? {
                    return Ok(Some(operation.version));
                }
            }
            from = page.last().map_or(0, |last| last.operation.version - 1);
        }
        Ok(None)
    }

    /// Processes an operation; returns whether it added the entry.
    fn pass(&mut self, operation: &Operation) -> Result<bool, FileError> {
        for index in 0..self.skips.len() {
            match entry_arrival(self.queries, operation, self.skips[index].entry)? {
                Some(EntryArrival::AtEnd) => {
                    self.skip(index);
                    break;
                }
                Some(EntryArrival::WithFilesOf(other)) => self.skips[index].entry = other,
                None => {}
            }
        }
        match entry_arrival(self.queries, operation, self.entry)? {
            Some(EntryArrival::AtEnd) => return Ok(true),
            Some(EntryArrival::WithFilesOf(other)) => self.entry = other,
            None => {}
        }
        if let Some(files) = operation.files.filter(|_| operation.version > 1) {
            if !files.worktree || files.take == self.take {
                self.first_files = files.before;
            }
            if self.is_own(operation, &files)? {
                let step = FileStep::new(files.after, files.before);
                self.reversals.push(Reversal { step, shared: files.shared.is_some() });
            }
        }
        if let Some((from, at)) = origin(&operation.kind, self.take) {
            self.leave_take(operation, from, at)?;
        }
        Ok(false)
    }

    /// Returns whether an operation is a change by the take. Moving files into the folder when the take became active
    /// is not.
    fn is_own(&self, operation: &Operation, files: &FileChange) -> Result<bool, FileError> {
        let own = files.take == self.take && files.left.is_none() && files.before != files.after;
        // The first take of a promoted thread does not leave its files in the folder, so that `left` does not say it.
        let own = own && origin(&operation.kind, self.take).is_none();
        let is_step = own && !operation.kind.is_not_undoable();
        Ok(is_step && history::is_done(&self.queries.log(self.thread), self.until, operation.version)?)
    }

    /// Continues in the source take, at an entry or at its end.
    fn leave_take(
        &mut self,
        operation: &Operation,
        from: TakeId,
        at: Option<EntryId>,
    ) -> Result<(), FileError> {
        self.until = operation.version - 1;
        let before = self.queries.operation(self.thread, self.until)?;
        let Some(before) = before else { return Ok(()) };
        let state: ThreadState = load(self.queries, before.operation.after)?;
        if operation.files.is_none() {
            // Only the conversation was split off: the new take has the files of the folder.
            self.take = state.active;
            return Ok(());
        }
        self.take = from;
        let is_branch = matches!(operation.kind, OperationKind::TakeBranched { .. });
        let at = match at {
            // A branch at the last entry has all files of the take.
            Some(at) if is_branch && last_entry(self.queries, &state, from)? == Some(at) => None,
            at => at,
        };
        self.skips.extend(at.map(|entry| Skip { entry, start: self.reversals.len() }));
        Ok(())
    }

    /// Drops changes after the entry at which a take started.
    fn skip(&mut self, index: usize) {
        self.reversals.truncate(self.skips[index].start);
        self.skips.truncate(index);
    }

    /// Continues in the thread that this one was promoted from. Also undoes what another take had left in the folder:
    /// the promoted take has its own files.
    fn enter_source(&mut self, source: &Source) {
        // Changes in the folder after the promotion do not belong to the take.
        let from = source.found.unwrap_or(self.first_files);
        if let Some(to) = source.files.filter(|files| *files != from) {
            self.reversals.push(Reversal { step: FileStep::new(from, to), shared: false });
            self.first_files = to;
        }
        (self.thread, self.until) = (source.thread, source.version);
    }

    /// The changes to undo, once the entry was found.
    fn finish(mut self, thread: i64, found: Version) -> Result<Vec<Reversal>, FileError> {
        // An entry may be older than one that was inserted before it.
        for index in 0..self.skips.len() {
            if is_added(self.queries, thread, found, self.skips[index].entry)? {
                self.skip(index);
                break;
            }
        }
        Ok(self.reversals)
    }
}

/// The source take of a new take, and the entry at which it starts.
fn origin(kind: &OperationKind, new: TakeId) -> Option<(TakeId, Option<EntryId>)> {
    match kind {
        OperationKind::TakeBranched { take, from, at, .. } if *take == new => Some((*from, *at)),
        OperationKind::TakeForked { take, from, at, .. } if *take == new => Some((*from, Some(*at))),
        OperationKind::TurnAdvanced {
            take,
            step: TurnStep::Started { forked: Some(ForkOrigin { from, at, .. }) },
            ..
        } if *take == new => Some((*from, Some(*at))),
        _ => None,
    }
}

/// The origin of a promoted take.
pub(super) struct Source {
    thread: i64,
    /// The last operation before the promotion.
    version: Version,
    pub(super) take: TakeId,
    /// The files of the promoted take.
    pub(super) files: Option<ContentId>,
    /// The files in the folder at that time.
    pub(super) found: Option<ContentId>,
}

pub(super) fn promoted_from(queries: &Queries<'_>, thread: i64) -> Result<Option<Source>, StoreError> {
    let Some(first) = queries.operation(thread, 1)? else { return Ok(None) };
    let OperationKind::ThreadPromoted { from, take, by, .. } = first.operation.kind else { return Ok(None) };
    let files = first.operation.files.map(|files| files.after);
    let Some(row) = queries.thread(from)? else { return Ok(None) };
    let (thread, version) = (row.number, by.saturating_sub(1));
    let mut found = None;
    for last_file_operation in FileOperationWalk::up_to(queries, thread, version)? {
        let (_, files) = last_file_operation?;
        if !files.worktree {
            found = Some(files.after);
            break;
        }
    }
    Ok(Some(Source { thread, version, take, files, found }))
}

/// Returns whether a thread started with entries and their files: changes between them were made elsewhere.
fn has_older_files(queries: &Queries<'_>, thread: i64) -> Result<bool, FileError> {
    let Some(first) = queries.operation(thread, 1)? else { return Ok(false) };
    let state: ThreadState = load(queries, first.operation.after)?;
    let began = last_entry(queries, &state, state.active)?;
    Ok(first.operation.files.is_some() && began.is_some())
}

/// Returns whether an entry was added up to an operation, in a thread or in its source threads.
fn is_added(queries: &Queries<'_>, thread: i64, version: Version, entry: EntryId) -> Result<bool, FileError> {
    let (mut thread, mut from) = (thread, version);
    loop {
        while from > 0 {
            let page = queries.operations_back(thread, from, PAGE)?;
            for stored in &page {
                if entry_arrival(queries, &stored.operation, entry)?.is_some() {
                    return Ok(true);
                }
            }
            from = page.last().map_or(0, |last| last.operation.version - 1);
        }
        let Some(source) = promoted_from(queries, thread)? else { return Ok(false) };
        (thread, from) = (source.thread, source.version);
    }
}

/// How an operation added an entry to a take.
enum EntryArrival {
    /// At the end: it has the files of that time.
    AtEnd,
    /// Elsewhere: it has the files of an older entry.
    WithFilesOf(EntryId),
}

/// How an operation added an entry, alone or with a few others; `None` if it did not.
fn entry_arrival(
    queries: &Queries<'_>,
    operation: &Operation,
    entry: EntryId,
) -> Result<Option<EntryArrival>, FileError> {
    /// More entries come from an import or a script, where no single one has files of its own.
    const FEW: u64 = 16;
    if let OperationKind::Compressed { take, entry: summary, removed, .. } = operation.kind {
        return if summary == entry { replaced(queries, operation, take, entry, removed) } else { Ok(None) };
    }
    let (Some(added), Some(take)) = (operation.kind.added(), added_to(&operation.kind)) else {
        return Ok(None);
    };
    let of_turn = matches!(operation.kind, OperationKind::TurnAdvanced { .. });
    let is_first = added.entry == entry;
    let may_follow = of_turn && (2..FEW).contains(&added.count);
    if !is_first && !may_follow {
        return Ok(None);
    }
    let Some(entries) = entries_of(queries, operation.after, take)? else { return Ok(None) };
    let end = added.position + added.count;
    // A prompt comes after the entries added with it.
    if !is_first {
        let cells = entries.page(queries, added.position..end)?;
        if !cells.iter().any(|cell| cell.entry == entry) {
            return Ok(None);
        }
    }
    if end >= entries.len() {
        return Ok(Some(EntryArrival::AtEnd));
    }
    // Nothing changed before the first entry: the next one was added with the files of that time.
    let neighbour = added.position.checked_sub(1).unwrap_or(end);
    let neighbour = entries.get(queries, neighbour)?;
    Ok(Some(neighbour.map_or(EntryArrival::AtEnd, |cell| EntryArrival::WithFilesOf(cell.entry))))
}

/// How an operation added a summary that replaces that many entries.
fn replaced(
    queries: &Queries<'_>,
    operation: &Operation,
    take: TakeId,
    summary: EntryId,
    removed: u64,
) -> Result<Option<EntryArrival>, FileError> {
    let Some(after) = entries_of(queries, operation.after, take)? else { return Ok(None) };
    let Some((position, _)) = after.find(queries, summary.bytes())? else { return Ok(None) };
    let before = thread_number(queries, operation)?;
    let before = queries.operation(before, operation.version.saturating_sub(1))?;
    let Some(before) = before else { return Ok(None) };
    let Some(entries) = entries_of(queries, before.operation.after, take)? else { return Ok(None) };
    let last = entries.get(queries, (position + removed).saturating_sub(1))?;
    Ok(last.map(|cell| EntryArrival::WithFilesOf(cell.entry)))
}

/// The take to which an operation added entries.
fn added_to(kind: &OperationKind) -> Option<TakeId> {
    match kind {
        OperationKind::EntriesAdded { take, .. } | OperationKind::TurnAdvanced { take, .. } => Some(*take),
        _ => None,
    }
}

fn thread_number(queries: &Queries<'_>, operation: &Operation) -> Result<i64, FileError> {
    let row = queries.thread(operation.thread)?;
    Ok(row.ok_or(ChangeError::NoSuchThread(operation.thread))?.number)
}

fn entries_of(
    queries: &Queries<'_>,
    state: ContentId,
    take: TakeId,
) -> Result<Option<List<EntryCell>>, FileError> {
    let state: ThreadState = load(queries, state)?;
    Ok(state.take(queries, take)?.map(|take| take.entries))
}
