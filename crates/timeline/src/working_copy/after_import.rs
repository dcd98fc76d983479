//! Handles an import into a thread whose files are in a local folder.

use retake_model::content::ContentId;
use retake_model::history;
use retake_model::id::{FolderId, ThreadId};
use retake_model::object::{Additions, load};
use retake_model::operation::{Actor, FileChange, Version};
use retake_model::replay::{FileStep, OnConflict, ReplayPlan, replay};
use retake_model::state::ThreadState;
use retake_model::tree::Snapshot;
use retake_store::{Queries, StoreError, WriteTransaction};
use retake_workspace::folder::path_from_text;

use super::jump::is_hand_edit;
use super::moves::LABELS;
use super::plan::{FileOperationWalk, FolderKind, take_in_folder};
use super::record_changes::with_files;
use super::route::changes_any_files;
use crate::clock::Clock;
use crate::write::change::{Composer, Head, finish};
use crate::write::moves::view_of;
use crate::{Caller, ChangeError, FileError, Goal, Rules};

/// Moves a thread back to its version before an import, if the imported operations change files: an import
/// moves no files, and a later jump moves conversation and files together. Returns the version to jump to;
/// `None` if nothing had to move.
pub(crate) fn move_back_to_files(
    writing: &WriteTransaction<'_>,
    thread: ThreadId,
    before: Version,
    clock: &dyn Clock,
) -> Result<Option<Version>, ChangeError> {
    let at = Head::any_version(writing, thread)?;
    let (number, newest) = (at.row.number, at.last.operation.version);
    check_worktrees(writing, &at, before)?;
    let folder = writing.folder(FolderId::of_project(at.row.home))?;
    let Some(snapshot) = folder.and_then(|folder| folder.snapshot) else { return Ok(None) };
    if at.state.deleted.is_some() {
        return Ok(None);
    }
    let missing = || StoreError::Damaged(format!("operation {before} is missing"));
    let last = writing.operation(number, before)?.ok_or_else(missing)?.operation;
    let state: ThreadState = load(&**writing, last.after)?;
    let goal = Goal::Jump(before);
    let view = view_of(writing, thread, &at.state, None)?;
    let way = goal.destination(writing, number, newest, Rules::default(), view)?;
    let route = way.cursor.route();
    if route.is_empty() || (state.active == at.state.active && !changes_any_files(writing, number, route)?) {
        return Ok(None);
    }
    let take = take_in_folder(writing, number, before, &state)?;
    let mut additions = Additions::new(&**writing);
    let files = files_around_import(writing, &mut additions, (number, before, newest))?;
    let (with_import, without) = files.unwrap_or((snapshot, snapshot));
    let caller = Caller { actor: Actor::Sync, ..Caller::human() };
    let kind = goal.kind(way.from, way.to);
    writing.put_contents(&additions.into_new(), clock.now())?;
    // A single operation, so that no version combines the conversation of one side with the files of the
    // other.
    let composer = Composer { writing, at: &at, caller: &caller, clock, rules: Rules::default() };
    let composed = composer.moved(&way.cursor, kind)?;
    let (before, after) = (with_import, without);
    let files = FileChange { before, after, take, worktree: false, left: None, shared: None };
    finish(writing, &at, with_files(composed, files))?;
    Ok(Some(newest))
}

/// The files that this folder would have with the imported changes, and its files before; `None` if the
/// import changed nothing in the project's folder. Manual edits made elsewhere do not count, because no move
/// applies them here.
fn files_around_import(
    writing: &WriteTransaction<'_>,
    additions: &mut Additions<'_, Queries<'_>>,
    (thread, before, newest): (i64, Version, Version),
) -> Result<Option<(ContentId, ContentId)>, StoreError> {
    let (mut steps, mut without) = (Vec::new(), None);
    for last_file_operation in FileOperationWalk::up_to(writing, thread, newest)? {
        let (operation, files) = last_file_operation?;
        if !FolderKind::Project.holds(&files) {
            continue;
        }
        if operation.version <= before {
            without = Some(files.after);
            break;
        }
        if files.before != files.after && !is_hand_edit(&operation) {
            steps.push(FileStep::new(files.before, files.after));
        }
    }
    // If this thread has no earlier files, uses those that its first change found.
    let Some(without) = without.or(steps.last().map(|first| first.from)) else { return Ok(None) };
    steps.reverse();
    let present: Snapshot = load(additions, without)?;
    let way = ReplayPlan::of(steps);
    let replayed = replay(additions, &present, &way, OnConflict::default(), LABELS)?;
    Ok(Some((additions.add(&replayed.snapshot), without)))
}

/// Rejects an import that continues a take with a worktree, because nothing would move the new files there.
fn check_worktrees(writing: &WriteTransaction<'_>, at: &Head, before: Version) -> Result<(), ChangeError> {
    let (log, newest) = (writing.log(at.row.number), at.last.operation.version);
    for folder in writing.folders()? {
        let Some(open) = folder.worktree.filter(|open| open.thread == at.last.operation.thread) else {
            continue;
        };
        let position = |version| history::take_position(&log, version, open.take);
        if position(before)?.position != position(newest)?.position {
            let take = at.state.take(&**writing, open.take)?.map(|take| take.name).unwrap_or_default();
            return Err(FileError::TakeHasWorktree { take, path: path_from_text(folder.path()) }.into());
        }
    }
    Ok(())
}
