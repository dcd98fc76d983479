//! `retake jump`

use clap::Args;
use retake_model::operation::{OperationKind, Version};
use retake_timeline::{Goal, Looking};

use super::moving::go;
use crate::arguments::Target;
use crate::context::Context;
use crate::desk::FileFlags;
use crate::failure::{Code, Failure};

/// Jump to any version of a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
    retake jump 12                          go to version 12
    retake jump \"before the rewrite\"        go to a saved version

`retake history` lists the versions. A jump is an operation too, so nothing is lost.")]
pub(crate) struct Arguments {
    /// Version number, or the name of a saved version.
    #[arg(value_name = "VERSION|NAME")]
    to: String,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes whose author is unknown, or that the thread shares with the one it is a copy of.
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
                    writeln!(out, "Restored the files of version {to}.")
                } else if story.moved.steps == 0 {
                    writeln!(out, "Already at version {position}.")
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
        // Names are stored without surrounding white space.
        looking.saved(thread, self.to.trim())?.ok_or_else(|| {
            let message = format!(
                "no version was saved as {:?}; `retake save --list` lists the saved versions",
                self.to
            );
            Failure::new(Code::NotFound, message)
        })
    }
}
