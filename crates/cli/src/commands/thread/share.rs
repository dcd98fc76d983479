//! `retake thread share`

use clap::{Args, ValueEnum};
use retake_model::state::Visibility;
use retake_timeline::Command;

use crate::arguments::{ThreadTarget, choice};
use crate::context::Context;
use crate::failure::Failure;

/// Set who may see a thread on a hub.
///
/// A private thread is never sent to a remote. It does not concern the provider of the model, which gets the thread with
/// every turn. It is not part of the thread's history: undo, redo, jump and reset do not change it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread share --visibility public
  retake thread share --private yes        never sent to a remote
  retake thread share --support yes

What was sent before stays on the remote until `retake remote purge` destroys it. The setting is not part of the history: \
undo does not change it.")]
pub(crate) struct Arguments {
    /// Visibility on a hub.
    #[arg(long, value_parser = choice::<Visibility>(), required_unless_present_any = ["private", "support"])]
    visibility: Option<Visibility>,
    /// Never send the thread to a remote; turns still send it to the provider of the model.
    #[arg(long, value_enum, value_name = "YES|NO", hide_possible_values = true)]
    private: Option<YesNo>,
    /// Whether support may see the thread on a hub.
    #[arg(long, value_enum, value_name = "YES|NO", hide_possible_values = true)]
    support: Option<YesNo>,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?;
        let share = Command::Share {
            visibility: self.visibility,
            private: self.private.map(|flag| flag == YesNo::Yes),
            shared_with_support: self.support.map(|flag| flag == YesNo::Yes),
        };
        let becomes_private = self.private == Some(YesNo::Yes);
        context.change_and_report(thread.summary.id, share, self.target.expect)?;
        if becomes_private {
            let remotes = context.remotes()?;
            for remote in remotes.list()? {
                if let Some(base) = remotes.links(&remote.name).get(thread.summary.id).base {
                    context.note(&format!(
                        "Nothing more is sent to {}, which has the thread up to version {}; `retake remote purge {}` destroys it there.",
                        remote.name,
                        base.version,
                        thread.summary.id.short()
                    ))?;
                }
            }
        }
        Ok(())
    }
}
