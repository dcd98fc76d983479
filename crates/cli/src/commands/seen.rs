//! Changes computed from the current state, such as a list with one more item.
//!
//! The whole list is written, so it must not overwrite a concurrent change: the change names the version it was
//! computed from, and is computed again after a conflict. If the caller passed `--expect`, the conflict is reported
//! instead.

use retake_timeline::{Command, Done};

use crate::arguments::Target;
use crate::context::{Context, Meant};
use crate::failure::Failure;

const TRIES: usize = 20;

/// Applies a change that depends on the current state.
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
