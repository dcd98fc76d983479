//! `retake snapshot take`

use clap::Args;
use retake_model::operation::Actor;
use retake_timeline::Caller;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::describe::files::write_report;
use crate::failure::Failure;

/// Record the current files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake snapshot take                    attribute the changes to you
  retake snapshot take --by agent         attribute them to the agent, so that undo reverts them
  retake snapshot take --by claude-code   attribute them to a named program")]
pub(crate) struct Arguments {
    /// Author of the changes since the last snapshot [default: you].
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?.summary.id;
        let working_copy = context.working_copy_of(thread)?;
        let caller = context.caller(thread, self.target.expect)?;
        let seen = match self.by {
            None => working_copy.record_changes(thread, caller)?,
            Some(name) => {
                working_copy.record_as_caller(thread, Caller { actor: Actor::named(&name), ..caller })?
            }
        };
        context.report(&seen, |out, styles| {
            let (id, muted) = (styles.id, styles.muted);
            write_report(out, context, &seen.files)?;
            let short = seen.snapshot.short();
            writeln!(out, "Snapshot {id}{short}{id:#} {muted}at version {}{muted:#}", seen.version)
        })
    }
}
