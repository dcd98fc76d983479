//! From the last files of a take back to those of one of its entries.
//!
//! ```text
//!   main    1 ─ a ─ 2 ─ b ─ 3 ─ c             `a` to `e` are changes of files
//!   B                       └── 4 ─ d
//!   C                               └── 5 ─ e
//!
//!   C at entry 2: `e`, `d` and `b` are undone, newest first; `c` is not in the files of C
//! ```
//!
//! The log is read once, from its end. Where a take begins, the walk continues in the take that it was split off from; where
//! the thread begins, in the thread that it was promoted from.

use retake_model::content::ContentId;
use retake_model::history;
use retake_model::id::{EntryId, TakeId};
use retake_model::object::load;
use retake_model::operation::{FileChange, Forked, Operation, OperationKind, TurnStep, Version};
use retake_model::replay::Step;
use retake_model::state::ThreadState;
use retake_store::{Queries, StoredOperation};

use super::FileError;
use super::takes::last_entry;

/// How many operations are read at a time.
const PAGE: usize = 500;

/// A change of files that is undone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reversal {
    pub(super) step: Step,
    /// Whether another run may have made the change.
    pub(super) shared: bool,
}

/// A take at the end of a log, and its files there.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakeEnd {
    /// The number of the thread.
    pub(super) thread: i64,
    /// The last operation of the log.
    pub(super) version: Version,
    pub(super) take: TakeId,
    pub(super) files: ContentId,
}

/// The changes that lead from the last files of a take back to those of one of its entries, newest first; `None` if it is
/// not known when the entry was added.
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
            return Ok(None);
        };
        walk.enter_source(&source);
        (thread, version) = (source.thread, source.version);
    }
}

/// A walk back along a log.
struct Walk<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    /// The take whose changes are undone now.
    take: TakeId,
    /// Where it is split off, or its end: only what is done there is in the files.
    until: Version,
    entry: EntryId,
    /// The oldest files that this thread has seen.
    first_files: ContentId,
    reversals: Vec<Reversal>,
    skips: Vec<Skip>,
}

/// A take that began with the files of an entry: the later changes of the take that it was split off from are not in its files.
struct Skip {
    entry: EntryId,
    /// How many changes were to be undone when the walk left the take.
    start: usize,
}

impl Walk<'_, '_> {
    /// Walks through a thread; the operation that added the entry, if it is there.
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

    /// Passes an operation; whether it added the entry.
    fn pass(&mut self, operation: &Operation) -> Result<bool, FileError> {
        for index in 0..self.skips.len() {
            if adds(self.queries, operation, self.skips[index].entry)? {
                self.skip(index);
                break;
            }
        }
        if adds(self.queries, operation, self.entry)? {
            return Ok(true);
        }
        if let Some(files) = operation.files.filter(|_| operation.version > 1) {
            if !files.apart || files.take == self.take {
                self.first_files = files.before;
            }
            if self.is_own(operation, &files)? {
                let step = Step::new(files.after, files.before);
                self.reversals.push(Reversal { step, shared: files.shared.is_some() });
            }
        }
        if let Some((from, at)) = origin(&operation.kind, self.take) {
            self.leave_take(operation, from, at)?;
        }
        Ok(false)
    }

    /// Whether an operation is a change that the take made. One that brought files into the folder, when the take became
    /// active, is not.
    fn is_own(&self, operation: &Operation, files: &FileChange) -> Result<bool, FileError> {
        let own = files.take == self.take && files.left.is_none() && files.before != files.after;
        let is_step = own && !operation.kind.moves_only();
        Ok(is_step && history::is_done(&self.queries.log(self.thread), self.until, operation.version)?)
    }

    /// Continues in the take that this one was split off from, at an entry or at its end.
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
            // The conversation alone: the new take has the files that were in the folder.
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

    /// Drops the changes that came after the entry that a take began at.
    fn skip(&mut self, index: usize) {
        self.reversals.truncate(self.skips[index].start);
        self.skips.truncate(index);
    }

    /// Continues in the thread that this one was promoted from. What another take had left in the folder by then is undone too:
    /// the promoted take comes with its own files.
    fn enter_source(&mut self, source: &Source) {
        let from = self.first_files;
        if let Some(to) = source.files.filter(|files| *files != from) {
            self.reversals.push(Reversal { step: Step::new(from, to), shared: false });
            self.first_files = to;
        }
        (self.thread, self.until) = (source.thread, source.version);
    }

    /// The changes that are undone, now that the entry was found.
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

/// The take that a new one was split off from by an operation, and the entry at which.
fn origin(kind: &OperationKind, new: TakeId) -> Option<(TakeId, Option<EntryId>)> {
    match kind {
        OperationKind::TakeBranched { take, from, at, .. } if *take == new => Some((*from, *at)),
        OperationKind::TakeForked { take, from, at, .. } if *take == new => Some((*from, Some(*at))),
        OperationKind::TurnAdvanced {
            take,
            step: TurnStep::Started { forked: Some(Forked { from, at, .. }) },
            ..
        } if *take == new => Some((*from, Some(*at))),
        _ => None,
    }
}

/// Where a take was before it became a thread of its own.
struct Source {
    thread: i64,
    /// The last operation before the promotion.
    version: Version,
    take: TakeId,
    /// The files that it took along.
    files: Option<ContentId>,
}

fn promoted_from(queries: &Queries<'_>, thread: i64) -> Result<Option<Source>, FileError> {
    let Some(first) = queries.operation(thread, 1)? else { return Ok(None) };
    let OperationKind::ThreadPromoted { from, take, by, .. } = first.operation.kind else { return Ok(None) };
    let files = first.operation.files.map(|files| files.after);
    let source = queries.thread(from)?;
    Ok(source.map(|row| Source { thread: row.number, version: by.saturating_sub(1), take, files }))
}

/// Whether an entry was added up to an operation, in a thread or in one that it was promoted from.
fn is_added(queries: &Queries<'_>, thread: i64, version: Version, entry: EntryId) -> Result<bool, FileError> {
    let (mut thread, mut from) = (thread, version);
    loop {
        while from > 0 {
            let page = queries.operations_back(thread, from, PAGE)?;
            for stored in &page {
                if adds(queries, &stored.operation, entry)? {
                    return Ok(true);
                }
            }
            from = page.last().map_or(0, |last| last.operation.version - 1);
        }
        let Some(source) = promoted_from(queries, thread)? else { return Ok(false) };
        (thread, from) = (source.thread, source.version);
    }
}

/// Whether an operation added an entry, alone or with a few others.
fn adds(queries: &Queries<'_>, operation: &Operation, entry: EntryId) -> Result<bool, FileError> {
    /// More come from an import or a script, where no single one stands for a moment.
    const FEW: u64 = 16;
    let Some(added) = operation.kind.added() else { return Ok(false) };
    if added.entry == entry {
        return Ok(true);
    }
    let OperationKind::TurnAdvanced { take, .. } = &operation.kind else { return Ok(false) };
    if !(2..FEW).contains(&added.count) {
        return Ok(false);
    }
    // A prompt comes behind what goes along with it.
    let state: ThreadState = load(queries, operation.after)?;
    let Some(take) = state.take(queries, *take)? else { return Ok(false) };
    let cells = take.entries.page(queries, added.position..added.position + added.count)?;
    Ok(cells.iter().any(|cell| cell.entry == entry))
}
