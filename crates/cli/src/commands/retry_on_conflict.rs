//! Changes computed from the current state, such as a list with one more item.
//!
//! The whole list is written, so it must not overwrite a concurrent change: the change names the version it was
//! computed from, and is computed again after a conflict. If the caller passed `--expect`, the conflict is reported
//! instead.

use retake_timeline::{ChangeOutcome, Command};

use crate::arguments::Target;
use crate::context::{Context, ResolvedTarget};
use crate::failure::{Code, Failure};

const MAX_ATTEMPTS: usize = 20;

/// Applies a change that depends on the current state.
pub(super) fn change_with_retry(
    context: &Context,
    target: &Target,
    command: impl Fn(&ResolvedTarget) -> Result<Command, Failure>,
) -> Result<ChangeOutcome, Failure> {
    for _ in 1..MAX_ATTEMPTS {
        match attempt(context, target, &command) {
            Err(failure) if failure.code == Code::VersionConflict && target.expect.is_none() => {}
            other => return other,
        }
    }
    attempt(context, target, &command)
}

fn attempt(
    context: &Context,
    target: &Target,
    command: &impl Fn(&ResolvedTarget) -> Result<Command, Failure>,
) -> Result<ChangeOutcome, Failure> {
    let resolved = context.resolve(&context.timeline()?.read()?, target)?;
    let seen = Some(target.expect.unwrap_or(resolved.thread.summary.version));
    context.change(resolved.thread.summary.id, command(&resolved)?, seen)
}
