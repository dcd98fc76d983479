//! Moments of files, as they are named on the command line.

use retake_timeline::MomentError;

use crate::context::Context;
use crate::failure::{Code, Failure};

/// The moments of a thread's files, seen from the folder that the command was started in.
pub(crate) type Moments<'context> = retake_timeline::Moments<'context, Failure>;

/// The moments of the thread that was named, or of the current one.
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
            MomentError::NoMoment(_) => {
                Self::new(Code::NotFound, format!("{error} (a path goes behind `--`)"))
            }
            other => Self::new(Code::NotFound, other),
        }
    }
}
