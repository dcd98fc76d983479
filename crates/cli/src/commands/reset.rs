//! `retake reset`

use clap::Args;
use retake_render::describe_reset;
use retake_timeline::{ChangeOutcome, Command, ResetSummary};
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::confirm::{Answer as Confirmation, Consent, confirm};

/// Clear all entries, drafts, file lists and settings of a thread. One undo restores them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake reset
  retake reset --yes -t \"Fix the login\"
  retake undo                             restores everything

Takes, titles, tags, roles and history are kept, as are the shared prompts `global_system_prompt` and \
`project_system_prompt`.")]
pub(crate) struct Arguments {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    done: ChangeOutcome,
    cleared: ResetSummary,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let thread = context.thread(&reader, self.target.thread.as_deref())?.summary;
        let takes_away = ResetSummary::of(&reader, &reader.state(thread.id)?)?;
        drop(reader);
        let mut expect = self.target.expect;
        if takes_away != ResetSummary::default() {
            let question = format!(
                "This clears {}; one `retake undo` restores everything.\nReset {:?}?",
                describe_reset(&takes_away),
                thread.title
            );
            if confirm(&question, Consent::from_flag(self.yes))? == Confirmation::No {
                return context.note("Nothing was changed.");
            }
            // The user confirmed the state that was shown.
            expect = expect.or((!self.yes).then_some(thread.version));
        }
        let done = context.change(thread.id, Command::Reset, expect)?;
        let answer = Answer { done, cleared: takes_away };
        context.report(&answer, |out, styles| {
            if !answer.done.changed() {
                return writeln!(out, "Nothing to reset.");
            }
            let (muted, undo) = (styles.muted, context.undo_command(&answer.done));
            writeln!(
                out,
                "Reset the thread: cleared {}. {muted}version {}; one `{undo}` restores everything{muted:#}",
                describe_reset(&answer.cleared),
                answer.done.version
            )
        })
    }
}
