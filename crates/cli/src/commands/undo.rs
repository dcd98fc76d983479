//! `retake undo`

use clap::Args;
use retake_timeline::Unit;

use super::moving::tell;
use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;

/// Take back the last turn, or the last N.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake undo
  retake undo 3
  retake undo --step                      one operation, not the whole turn
  retake undo --expect 12                 only if nothing happened since version 12

Undo belongs to the thread: another thread's work is not touched. Nothing is lost by it: `retake redo` makes
it again, and `retake jump` reaches every state there ever was.")]
pub(crate) struct Arguments {
    /// How many.
    #[arg(default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Count single operations, not turns.
    #[arg(long)]
    step: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let thread = context.thread(&timeline.look()?, self.target.thread.as_deref())?.summary.id;
        let unit = if self.step { Unit::Operation } else { Unit::Turn };
        let moved = timeline.undo(thread, unit, self.steps, context.caller(self.target.expect)?)?;
        let story = tell(context, moved)?;
        context.report(&story, |out, styles| {
            story.write_changes(out, styles, "Undid")?;
            story.write_also(out, context)?;
            story.write_stand(out, context)
        })
    }
}
