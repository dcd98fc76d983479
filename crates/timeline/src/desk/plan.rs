//! Which changes of files a move along the log takes back, and which it makes again.
//!
//! The route of a move ([`retake_model::history::Cursor`]) names the changes in the order in which they are passed over;
//! those that changed files of the folder are steps from snapshot to snapshot.
//!
//! Operations with files form a row of their own (`filed`), so that a long conversation between two of them
//! costs nothing.

use retake_model::content::ContentId;
use retake_model::history::{self, RouteStep};
use retake_model::id::TakeId;
use retake_model::operation::{FileChange, Operation, OperationKind, Version};
use retake_model::replay::{Step, Way};
use retake_store::{Queries, StoreError};

use super::Halves;

/// Which folder is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    /// The project's.
    Project,
    /// The one that a take has for itself.
    Apart(TakeId),
}

impl Here {
    /// Whether an operation's files are in that folder.
    fn holds(self, files: &FileChange) -> bool {
        match self {
            Self::Project => !files.apart,
            Self::Apart(take) => files.apart && files.take == take,
        }
    }
}

/// The operations of a thread that have files, newest first.
pub(super) struct Filed<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    thread: i64,
    next: Option<Version>,
}

impl<'queries, 'transaction> Filed<'queries, 'transaction> {
    /// Those up to and including a version.
    pub(super) fn up_to(
        queries: &'queries Queries<'transaction>,
        thread: i64,
        version: Version,
    ) -> Result<Self, StoreError> {
        let next = match queries.operation(thread, version)? {
            Some(found) => found.operation.filed,
            None => None,
        };
        Ok(Self { queries, thread, next })
    }

    fn read(&mut self, version: Version) -> Result<(Operation, FileChange), StoreError> {
        let missing = || StoreError::Damaged(format!("operation {version} is missing"));
        let operation = self.queries.operation(self.thread, version)?.ok_or_else(missing)?.operation;
        let files = operation
            .files
            .ok_or_else(|| StoreError::Damaged(format!("operation {version} should have files")))?;
        self.next = match version.checked_sub(1).filter(|before| *before > 0) {
            Some(before) => {
                self.queries.operation(self.thread, before)?.and_then(|found| found.operation.filed)
            }
            None => None,
        };
        Ok((operation, files))
    }
}

impl Iterator for Filed<'_, '_> {
    type Item = Result<(Operation, FileChange), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let version = self.next.take()?;
        Some(self.read(version))
    }
}

/// What a move does to the files of a folder.
pub(super) fn steps_between(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    (moved, halves): (&crate::moves::Way, Halves),
    here: Here,
) -> Result<Way, StoreError> {
    let back = way_back(queries, thread, head, (moved, halves), here)?;
    let mut steps = Vec::new();
    for step in moved.cursor.route() {
        let Some(files) = file_change(queries, thread, step.version())?.filter(|files| here.holds(files))
        else {
            continue;
        };
        steps.push(match step {
            RouteStep::Back(_) => Step::new(files.after, files.before),
            RouteStep::Forward(_) => Step::new(files.before, files.after),
        });
    }
    Ok(Way { back, steps })
}

/// Whether any step of a route changed files of a folder.
pub(super) fn changes_files(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
    here: Here,
) -> Result<bool, StoreError> {
    for step in route {
        if file_change(queries, thread, step.version())?.is_some_and(|files| here.holds(&files)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether any step of a route changed files, in whatever folder.
pub(crate) fn changes_any_files(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
) -> Result<bool, StoreError> {
    for step in route {
        if file_change(queries, thread, step.version())?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The changes on a route that are taken back although another run may have made them.
pub(super) fn shared_changes(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
    here: Here,
) -> Result<Vec<FileChange>, StoreError> {
    let mut shared = Vec::new();
    for step in route {
        let RouteStep::Back(version) = step else { continue };
        let files = file_change(queries, thread, *version)?;
        shared.extend(files.filter(|files| here.holds(files) && files.shared.is_some()));
    }
    Ok(shared)
}

/// The files that an operation changed.
fn file_change(
    queries: &Queries<'_>,
    thread: i64,
    version: Version,
) -> Result<Option<FileChange>, StoreError> {
    let missing = || StoreError::Damaged(format!("operation {version} is missing"));
    let operation = queries.operation(thread, version)?.ok_or_else(missing)?.operation;
    Ok(operation.files.filter(|files| files.before != files.after))
}

/// Back over the moves that led here from just where this one leads: that brings back, byte for byte, what the first of
/// them found, whatever had to be merged on the way here, and leaves alone what they left alone.
///
/// ```text
///   place    P ──undo 2──► Q ──redo──► R ──redo──► P         the second redo: back over the first one, and over the undo
/// ```
fn way_back(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    (way, halves): (&crate::moves::Way, Halves),
    here: Here,
) -> Result<Vec<Step>, StoreError> {
    let log = queries.log(thread);
    let there = way.cursor.clone().place(&log)?;
    let redoes = way.cursor.route().iter().all(|step| matches!(step, RouteStep::Forward(_)));
    // Where the chains of a take and of the thread were after an operation.
    let place = |version: Version, take: TakeId| -> Result<(TakeId, Version, Version), StoreError> {
        let thread = history::thread_position(&history::Log::step(&log, version)?, version);
        Ok((take, history::take_position(&log, version, take)?.position, thread.position))
    };
    let mut back = Vec::new();
    for filed in Filed::up_to(queries, thread, head)? {
        let (operation, files) = filed?;
        // A move between two changes is younger than both.
        if operation.version <= way.from.max(way.to) {
            break;
        }
        if !here.holds(&files) {
            continue;
        }
        let version = operation.version;
        let leads_back = match operation.kind {
            OperationKind::Undone { .. } | OperationKind::Redone { .. } | OperationKind::Jumped { .. } => {
                // The files alone go back over one move only: the conversation stands elsewhere.
                let from_here = halves != Halves::Files || place(version, way.now.0)? == way.now;
                from_here && place(version - 1, there.0)? == there
            }
            OperationKind::FilesSeen { .. } => continue,
            // Where the conversation moves too, it passes over such a move as over any other change.
            OperationKind::FilesMoved { from, to, .. } if halves == Halves::Files => {
                (from, to) == (way.to, way.from)
            }
            _ => break,
        };
        if halves == Halves::Files {
            back.clear();
        }
        back.push(Step::new(files.after, files.before));
        // An undo that found nothing to do to files is taken back by doing nothing. A redo that found nothing to do may
        // have found files that an undo of the conversation alone had left there, and the undo of that takes them back.
        let went = back.iter().any(|step| step.from != step.to);
        if leads_back && (went || redoes) {
            return Ok(back);
        }
        if leads_back {
            break;
        }
    }
    Ok(Vec::new())
}

/// What brings the files of a take back into the project's folder that it left some time ago: everything that this
/// thread did there since is taken back, and what the take did in a folder of its own is made. `None` if nothing
/// is known of the take's files.
///
/// Where the take was left is looked for on the way that led to the present position: a move along the log may have
/// shown older files of the same take since, and those are not its last ones.
pub(super) fn steps_to_take(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    take: TakeId,
    present: ContentId,
) -> Result<Option<Vec<Step>>, StoreError> {
    let (mut steps, mut last) = (Vec::new(), None);
    for filed in Filed::up_to(queries, thread, head.version)? {
        let (operation, files) = filed?;
        if files.apart {
            if files.take == take {
                last = last.or(Some(files.after));
            }
            continue;
        }
        let back = Step::new(files.after, files.before);
        if let Some(known) = last_files(queries, thread, head, &operation, files, take)? {
            if known == files.before && known != files.after {
                steps.push(back);
            }
            steps.extend(last.map(|last| Step::between_folders(known, last)));
            return Ok(Some(steps));
        }
        if files.before != files.after {
            steps.push(back);
        }
    }
    // It never was in the project's folder: there is nothing to go by but its own last files.
    Ok(last.map(|last| vec![Step::between_folders(present, last)]))
}

/// The last files of a take that are known.
pub(crate) fn files_of_take(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    take: TakeId,
) -> Result<Option<ContentId>, StoreError> {
    for filed in Filed::up_to(queries, thread, head.version)? {
        let (operation, files) = filed?;
        if files.apart && files.take == take {
            return Ok(Some(files.after));
        }
        if let Some(known) = last_files(queries, thread, head, &operation, files, take)? {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// The files of a take as an operation left them, if it lies on the way to the present position.
fn last_files(
    queries: &Queries<'_>,
    thread: i64,
    head: &Operation,
    operation: &Operation,
    files: FileChange,
    take: TakeId,
) -> Result<Option<ContentId>, StoreError> {
    let known = if files.left == Some(take) {
        files.before
    } else if files.take == take && !files.apart {
        files.after
    } else {
        return Ok(None);
    };
    let done = !operation.kind.moves_only()
        && history::is_done(&queries.log(thread), head.version, operation.version)?;
    Ok(done.then_some(known))
}

/// Whether a route passes over changes of files that are in another folder than this one now.
pub(super) fn is_elsewhere(
    queries: &Queries<'_>,
    thread: i64,
    route: &[RouteStep],
    here: Here,
    open: &[TakeId],
) -> Result<bool, StoreError> {
    for step in route {
        let Some(files) = file_change(queries, thread, step.version())? else { continue };
        // The folder of a take that was closed is nobody's any more.
        let there = !files.apart || open.contains(&files.take);
        if there && !here.holds(&files) {
            return Ok(true);
        }
    }
    Ok(false)
}
