//! `retake jump`

use clap::Args;
use retake_model::operation::{OperationKind, Version};
use retake_timeline::{Goal, Looking};

use super::moving::go;
use crate::arguments::Target;
use crate::context::Context;
use crate::desk::FileFlags;
use crate::failure::{Code, Failure};

/// Go to any moment of a thread's history.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake jump 12                          as it was just after version 12
  retake jump \"before the rewrite\"        a moment that was saved under that name

`retake history` shows the versions. A jump is one step of history itself: nothing is lost by it.")]
pub(crate) struct Arguments {
    /// A version, or the name of a saved moment. A number always means a version.
    #[arg(value_name = "VERSION|NAME")]
    to: String,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes that may be another command's, or that the thread has in common with the one it is a copy of.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let (row, take) = context.view(&looking, &self.target)?;
        let thread = row.summary.id;
        let version = self.version(&looking, thread)?;
        drop(looking);
        let caller = context.caller(thread, self.target.expect)?;
        go(
            context,
            (thread, take),
            Goal::Jump(version),
            caller,
            self.files.with_shared(self.shared),
            |story, out| {
                let position = story.moved.position;
                if let Some(OperationKind::FilesMoved { to, .. }) = &story.moved.done.kind {
                    writeln!(out, "The files are those of version {to} now.")
                } else if story.moved.steps == 0 {
                    writeln!(out, "The thread is there already, at version {position}.")
                } else {
                    writeln!(out, "Jumped from version {} to {position}.", story.from)
                }
            },
        )
    }

    fn version(&self, looking: &Looking<'_>, thread: retake_model::id::ThreadId) -> Result<Version, Failure> {
        if let Ok(version) = self.to.parse() {
            return Ok(version);
        }
        // Names are stored without white space around them.
        looking.saved(thread, self.to.trim())?.ok_or_else(|| {
            let message = format!(
                "no moment was saved as {:?}; `retake save` names one, `retake history` shows them",
                self.to
            );
            Failure::new(Code::NotFound, message)
        })
    }
}
