//! `retake jump`

use clap::Args;
use retake_model::operation::{OperationKind, Version};
use retake_timeline::{Goal, Reader};

use super::history_move::run_move;
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::working_copy::FileFlags;

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
        let reader = context.timeline()?.read()?;
        let (row, take) = context.view(&reader, &self.target)?;
        let thread = row.summary.id;
        let version = self.version(&reader, thread)?;
        drop(reader);
        let caller = context.caller(thread, self.target.expect)?;
        run_move(
            context,
            (thread, take),
            Goal::Jump(version),
            caller,
            self.files.with_shared(self.shared),
            |report, out| {
                let position = report.moved.position;
                if let Some(OperationKind::FilesMoved { to, .. }) = &report.moved.done.kind {
                    writeln!(out, "Restored the files of version {to}.")
                } else if report.moved.steps == 0 {
                    writeln!(out, "Already at version {position}.")
                } else {
                    writeln!(out, "Jumped from version {} to {position}.", report.from)
                }
            },
        )
    }

    fn version(&self, reader: &Reader<'_>, thread: retake_model::id::ThreadId) -> Result<Version, Failure> {
        if let Ok(version) = self.to.parse() {
            return Ok(version);
        }
        // Names are stored without surrounding white space.
        reader.history(thread).saved(self.to.trim())?.ok_or_else(|| {
            let message = format!(
                "no version was saved as {:?}; `retake save --list` lists the saved versions",
                self.to
            );
            Failure::new(Code::NotFound, message)
        })
    }
}
