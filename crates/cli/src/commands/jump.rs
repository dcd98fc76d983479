//! `retake jump`

use clap::Args;
use retake_model::operation::OperationKind;
use retake_timeline::Goal;

use super::history_move::run_move;
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::working_copy::FileFlags;

/// Jump to any version of a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake jump 12                          go to version 12
  retake jump \"before the rewrite\"        go to a saved version
  retake jump turn:3                      go to the end of turn 3

`retake history` lists the versions. A jump is an operation too, so nothing is lost.")]
pub(crate) struct Arguments {
    /// Version number, the name of a saved version, or `turn:NUMBER`.
    #[arg(value_name = "VERSION|NAME")]
    to: String,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes whose author is unknown, or that are in the thread of which this one is a copy.
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
        let history = reader.history(thread).in_take(take);
        let version = match self.to.parse() {
            // The move reports a version that does not exist.
            Ok(version) => version,
            Err(_) => history.version_named(&self.to)?,
        };
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
}
