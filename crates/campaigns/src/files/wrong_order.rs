//! The control: files move before the intent is durable.
//!
//! ```text
//!   correct            intent ──► files ──► conversation
//!   here                          files ──► conversation        a kill at the arrow separates them
//! ```

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use retake_model::object::Objects;
use retake_model::tree::{Node, read};
use retake_timeline::{Caller, Goal, MoveOptions, PlanRequest, Rules, Scope, Timeline, Unit, WorkingCopy};
use retake_workspace::snapshot::{Options, Workspace};

use crate::violation::BoxError;

/// Undoes the last turn of the store's only thread in the wrong order.
pub fn undo(store: &Path, folder: &Path) -> Result<(), BoxError> {
    let timeline = Timeline::open(store, Rules::default())?;
    let project = timeline.project_if_known(folder)?;
    let thread = project.current.ok_or("there is no thread")?;
    let goal = Goal::Undo(Unit::Turn, 1);
    let working_copy =
        WorkingCopy::at(timeline.clone(), project.id, Workspace::open(folder, &[], Options::default())?);
    let plan = working_copy.plan(thread, PlanRequest::Move(goal), Caller::human(), MoveOptions::default())?;
    let plan = plan.into_preview().files.ok_or("there are no files")?;
    let reader = timeline.read()?;
    for path in plan.paths {
        let place = folder.join(path.path.path.to_string());
        put(&reader.queries(), &place, path.before.as_ref(), path.after.as_ref())?;
    }
    drop(reader);
    working_copy.go(
        thread,
        goal,
        Caller::human(),
        MoveOptions { scope: Scope::Conversation, ..MoveOptions::default() },
    )?;
    // Recording updates the store's view of the folder.
    working_copy.record_changes(thread, Caller::human())?;
    Ok(())
}

/// Removes the only worktree after the store has forgotten it.
pub fn remove(store: &Path) -> Result<(), BoxError> {
    let timeline = Timeline::open(store, Rules::default())?;
    let folder = timeline.read()?.worktrees().list()?.pop().ok_or("no take has a folder")?;
    timeline.forget_worktree(&folder)?;
    Ok(fs::remove_dir_all(&folder.path)?)
}

fn put(objects: &dyn Objects, place: &Path, old: Option<&Node>, new: Option<&Node>) -> Result<(), BoxError> {
    match old {
        Some(Node::Folder { .. }) if !new.is_some_and(Node::is_folder) => fs::remove_dir(place)?,
        Some(Node::File { .. } | Node::Link { .. }) => fs::remove_file(place)?,
        _ => {}
    }
    match new {
        None => {}
        Some(Node::Folder { .. }) => fs::create_dir_all(place)?,
        Some(Node::Link { target }) => symlink(OsStr::from_bytes(target), place)?,
        Some(file @ Node::File { mode, .. }) => {
            fs::write(place, read(objects, file)?)?;
            fs::set_permissions(place, fs::Permissions::from_mode((*mode).into()))?;
        }
    }
    Ok(())
}
