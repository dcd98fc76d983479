//! Revisions of files on the command line.

use retake_timeline::RevisionError;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// The revisions of a thread's files, relative to the current folder.
pub(crate) type Revisions<'context> = retake_timeline::RevisionResolver<'context, Failure>;

/// The revisions of the named thread, or of the current one.
pub(crate) fn moments<'context>(
    context: &'context Context,
    thread: Option<&str>,
) -> Result<Revisions<'context>, Failure> {
    let timeline = context.timeline()?;
    let row = context.thread(&timeline.read()?, thread)?;
    let (id, here) = (row.summary.id, context.worktree_of(row.summary.id)?);
    let look =
        move || Ok(context.working_copy_of(id)?.record_changes(id, context.caller(id, None)?)?.snapshot);
    Ok(Revisions::new(timeline, row, here, Box::new(look)))
}

impl From<RevisionError> for Failure {
    fn from(error: RevisionError) -> Self {
        match error {
            RevisionError::Find(error) => error.into(),
            RevisionError::Read(error) => error.into(),
            RevisionError::Several { .. } => Self::new(Code::Refused, error),
            RevisionError::NoSuchRevision(_) => {
                Self::new(Code::NotFound, format!("{error} (put paths after `--`)"))
            }
            other => Self::new(Code::NotFound, other),
        }
    }
}
