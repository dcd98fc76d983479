//! Revisions of files on the command line.

use retake_timeline::MomentError;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// The revisions of a thread's files, relative to the current folder.
pub(crate) type Moments<'context> = retake_timeline::Moments<'context, Failure>;

/// The revisions of the named thread, or of the current one.
pub(crate) fn moments<'context>(
    context: &'context Context,
    thread: Option<&str>,
) -> Result<Moments<'context>, Failure> {
    let timeline = context.timeline()?;
    let row = context.thread(&timeline.look()?, thread)?;
    let (id, here) = (row.summary.id, context.worktree_of(row.summary.id)?);
    let look = move || Ok(context.desk_of(id)?.look(id, context.caller(id, None)?)?.snapshot);
    Ok(Moments::new(timeline, row, here, Box::new(look)))
}

impl From<MomentError> for Failure {
    fn from(error: MomentError) -> Self {
        match error {
            MomentError::Find(error) => error.into(),
            MomentError::Look(error) => error.into(),
            MomentError::Several { .. } => Self::new(Code::Refused, error),
            MomentError::NoMoment(_) => Self::new(Code::NotFound, format!("{error} (put paths after `--`)")),
            other => Self::new(Code::NotFound, other),
        }
    }
}
