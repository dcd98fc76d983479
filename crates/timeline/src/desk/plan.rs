//! Which changes of files a move along the log takes back, and which it makes again.
//!
//! ```text
//!   1 ── 2 ── 3* ── 4 ── 5*          from 5 to 8: take back 5 and 3, then make 8 again   (* changed files)
//!         \
//!          7 ── 8*
//! ```
//!
//! Operations with files form a row of their own (`filed`), so that a long conversation between two of them
//! costs nothing.

use retake_model::content::ContentId;
use retake_model::history;
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

/// A move from one position to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    pub(super) from: Version,
    pub(super) to: Version,
    /// What moves.
    pub(super) halves: Halves,
}

/// What a move does to the files of a folder.
pub(super) fn steps_between(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    moved: Between,
    here: Here,
) -> Result<Way, StoreError> {
    let first = way_back(queries, thread, head, moved, here)?;
    let Between { from, to, .. } = moved;
    let log = queries.log(thread);
    let common = history::common(&log, from, to)?;
    let mut steps = Vec::new();
    for (_, files) in on_the_way(queries, thread, from, common, here)? {
        steps.push(Step { from: files.after, to: files.before });
    }
    for (_, files) in on_the_way(queries, thread, to, common, here)?.into_iter().rev() {
        steps.push(Step { from: files.before, to: files.after });
    }
    Ok(Way { first, steps })
}

/// The changes with files between a position and one of its ancestors, newest first.
pub(super) fn on_the_way(
    queries: &Queries<'_>,
    thread: i64,
    position: Version,
    ancestor: Version,
    here: Here,
) -> Result<Vec<(Version, FileChange)>, StoreError> {
    let log = queries.log(thread);
    let mut found = Vec::new();
    for filed in Filed::up_to(queries, thread, position)? {
        let (operation, files) = filed?;
        if operation.version <= ancestor {
            break;
        }
        let changed = files.before != files.after && here.holds(&files);
        if changed && !operation.kind.moves_only() && history::contains(&log, position, operation.version)? {
            found.push((operation.version, files));
        }
    }
    Ok(found)
}

/// The newest move that went just the other way and moved files: going back over it brings back, byte for byte,
/// what it found, whatever had to be merged on the way there.
fn way_back(
    queries: &Queries<'_>,
    thread: i64,
    head: Version,
    Between { from, to, halves }: Between,
    here: Here,
) -> Result<Option<Step>, StoreError> {
    for filed in Filed::up_to(queries, thread, head)? {
        let (operation, files) = filed?;
        // A move between two changes is younger than both.
        if operation.version <= from.max(to) {
            break;
        }
        let moved = match operation.kind {
            OperationKind::Undone { from, to }
            | OperationKind::Redone { from, to }
            | OperationKind::Jumped { from, to } => Some((from, to)),
            // Where the conversation moves too, it passes over such a move as over any other change.
            OperationKind::FilesMoved { from, to, .. } if halves == Halves::Files => Some((from, to)),
            _ => None,
        };
        if moved == Some((to, from)) && here.holds(&files) {
            let went = files.before != files.after;
            return Ok(went.then_some(Step { from: files.after, to: files.before }));
        }
    }
    Ok(None)
}

/// The way to the files of a take.
pub(super) struct ToTake {
    /// What brings them into the project's folder.
    pub(super) steps: Vec<Step>,
    /// The position at which they were last there; `None` if they never were.
    left_at: Option<Version>,
    take: TakeId,
}

impl ToTake {
    /// The same way, and from the take's end back to what its files were at that moment.
    pub(super) fn back_to(
        self,
        queries: &Queries<'_>,
        thread: i64,
        head: &Operation,
        moment: Version,
        here: Here,
    ) -> Result<Vec<Step>, StoreError> {
        let log = queries.log(thread);
        let mut steps = self.steps;
        // First what it did in a folder of its own: that came last.
        for filed in Filed::up_to(queries, thread, head.version)? {
            let (operation, files) = filed?;
            if operation.version <= moment {
                break;
            }
            let its_own = files.apart && files.take == self.take && files.before != files.after;
            if its_own
                && !operation.kind.moves_only()
                && history::contains(&log, head.place.position, operation.version)?
            {
                steps.push(Step { from: files.after, to: files.before });
            }
        }
        if let Some(position) = self.left_at {
            let ancestor = history::common(&log, position, moment)?;
            let changes = on_the_way(queries, thread, position, ancestor, here)?;
            steps.extend(changes.into_iter().map(|(_, files)| Step { from: files.after, to: files.before }));
        }
        Ok(steps)
    }
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
) -> Result<Option<ToTake>, StoreError> {
    let (mut steps, mut last) = (Vec::new(), None);
    for filed in Filed::up_to(queries, thread, head.version)? {
        let (operation, files) = filed?;
        if files.apart {
            if files.take == take {
                last = last.or(Some(files.after));
            }
            continue;
        }
        let back = Step { from: files.after, to: files.before };
        if let Some(known) = last_files(queries, thread, head, &operation, files, take)? {
            if known == files.before && known != files.after {
                steps.push(back);
            }
            steps.extend(last.map(|last| Step { from: known, to: last }));
            let left = files.left == Some(take);
            let left_at = Some(if left { operation.place.parent } else { operation.version });
            return Ok(Some(ToTake { steps, left_at, take }));
        }
        if files.before != files.after {
            steps.push(back);
        }
    }
    // It never was in the project's folder: there is nothing to go by but its own last files.
    Ok(last.map(|last| ToTake { steps: vec![Step { from: present, to: last }], left_at: None, take }))
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
    let on_the_way = !operation.kind.moves_only()
        && history::contains(&queries.log(thread), head.place.position, operation.version)?;
    Ok(on_the_way.then_some(known))
}

/// Whether changes between two positions were made to files that are in another folder than this one now.
pub(super) fn is_elsewhere(
    queries: &Queries<'_>,
    thread: i64,
    from: Version,
    to: Version,
    here: Here,
    open: &[TakeId],
) -> Result<bool, StoreError> {
    let log = queries.log(thread);
    let common = history::common(&log, from, to)?;
    for position in [from, to] {
        for filed in Filed::up_to(queries, thread, position)? {
            let (operation, files) = filed?;
            if operation.version <= common {
                break;
            }
            // The folder of a take that was closed is nobody's any more.
            let there = !files.apart || open.contains(&files.take);
            let changed = files.before != files.after && there && !here.holds(&files);
            if changed
                && !operation.kind.moves_only()
                && history::contains(&log, position, operation.version)?
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
