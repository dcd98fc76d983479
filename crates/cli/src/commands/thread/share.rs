//! `retake thread share`

use clap::{Args, ValueEnum};
use retake_model::state::Visibility;
use retake_timeline::Command;

use crate::arguments::{ThreadTarget, choice};
use crate::context::Context;
use crate::failure::Failure;

/// Set who may see a thread on a hub.
///
/// There is no hub yet; the setting applies once there is one. It does not concern the provider of the model, which gets
/// the thread with every turn. It is not part of the thread's history: undo, redo, jump and reset do not change it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread share --visibility public
  retake thread share --private yes        never sent to a hub
  retake thread share --support yes

There is no hub yet; the setting applies once there is one. It is not part of the history: undo does not change it.")]
pub(crate) struct Arguments {
    /// Visibility on a hub.
    #[arg(long, value_parser = choice::<Visibility>(), required_unless_present_any = ["private", "support"])]
    visibility: Option<Visibility>,
    /// Never send the thread to a hub; turns still send it to the provider of the model.
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
        context.change_and_report(thread.summary.id, share, self.target.expect)
    }
}
