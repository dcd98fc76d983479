//! Revisions of files on the command line.

use crate::arguments::{TakeTarget, Target};
use crate::context::Context;
use crate::failure::Failure;

/// The revisions of a thread's files, relative to the current folder.
pub(crate) type Revisions<'context> = retake_timeline::RevisionResolver<'context, Failure>;

/// The revisions of the named thread, or of the current one.
pub(crate) fn revisions<'context>(
    context: &'context Context,
    thread: Option<&str>,
) -> Result<Revisions<'context>, Failure> {
    let timeline = context.timeline()?;
    let row = context.thread(&timeline.read()?, thread)?;
    let (id, here) = (row.summary.id, context.worktree_of(row.summary.id)?);
    let snapshot_folder =
        move || Ok(context.working_copy_of(id)?.record_changes(id, context.caller(id, None)?)?.snapshot);
    Ok(Revisions::new(timeline, row, here, Box::new(snapshot_folder)))
}

/// The revisions of the thread and take that a command reads.
pub(crate) fn revisions_of<'context>(
    context: &'context Context,
    target: &TakeTarget,
) -> Result<Revisions<'context>, Failure> {
    let reader = context.timeline()?.read()?;
    let (row, take) = context.view(&reader, &Target::from(target))?;
    let found = revisions(context, Some(&row.summary.id.to_string()))?;
    Ok(match take {
        Some(take) => found.in_take(take),
        None => found,
    })
}

/// Explains how to name paths, if a text that is not a revision may be one.
pub(crate) fn suggest_paths(mut failure: Failure) -> Failure {
    if failure.details.contains_key("revision") {
        failure.message.push_str(" (put paths after `--`)");
    }
    failure
}
