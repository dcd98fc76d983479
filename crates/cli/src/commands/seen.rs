//! Changes that are worked out from what the thread was seen to be, such as a list with one more item.
//!
//! The list goes to the timeline as a whole, so it must not be published on top of somebody else's: it says
//! which version it was made for, and is made anew where the thread has moved on. A caller who named a version
//! is told instead.

use retake_timeline::{Command, Done};

use crate::arguments::Target;
use crate::context::{Context, Meant};
use crate::failure::Failure;

/// How often a change is made anew before the conflict is told.
const TRIES: usize = 20;

/// Makes a change that depends on what was seen.
pub(super) fn change_seen(
    context: &Context,
    target: &Target,
    command: impl Fn(&Meant) -> Result<Command, Failure>,
) -> Result<Done, Failure> {
    for _ in 1..TRIES {
        match try_once(context, target, &command) {
            Err(failure) if failure.is_conflict() && target.expect.is_none() => {}
            other => return other,
        }
    }
    try_once(context, target, &command)
}

fn try_once(
    context: &Context,
    target: &Target,
    command: &impl Fn(&Meant) -> Result<Command, Failure>,
) -> Result<Done, Failure> {
    let meant = context.meant(&context.timeline()?.look()?, target)?;
    let seen = Some(target.expect.unwrap_or(meant.thread.summary.version));
    context.change(meant.thread.summary.id, command(&meant)?, seen)
}
