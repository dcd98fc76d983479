//! `retake take`: the branches of a thread.

mod branch;
mod branch_git;
mod delete;
pub(crate) mod fork;
mod list;
mod promote;
mod rename;
pub(super) mod switch;

use clap::Subcommand;
use retake_model::operation::OperationKind;
use retake_model::summary::TakeSummary;
use retake_timeline::{ChangeOutcome, ChangeReport, FileReport};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a take that ends at an entry, and switch to it.
    Branch(branch::Arguments),
    /// Create a take that ends before a message, which becomes its draft.
    Fork(fork::Arguments),
    /// Write the files of a take as a commit on a new git branch.
    BranchGit(branch_git::Arguments),
    /// Switch to another take.
    Switch(switch::Arguments),
    /// Turn a take into a thread.
    Promote(promote::Arguments),
    /// Rename a take.
    Rename(rename::Arguments),
    /// Delete takes. `retake undo` restores them, one at a time.
    #[command(visible_alias = "rm")]
    Delete(delete::Arguments),
    /// List the takes of a thread.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Branch(arguments) => arguments.run(context),
        Command::Fork(arguments) => arguments.run(context),
        Command::BranchGit(arguments) => arguments.run(context),
        Command::Switch(arguments) => arguments.run(context),
        Command::Promote(arguments) => arguments.run(context),
        Command::Rename(arguments) => arguments.run(context),
        Command::Delete(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
    }
}

/// The result of a command that may change the active take.
#[derive(Serialize)]
pub(super) struct TakeAnswer {
    #[serde(flatten)]
    pub(super) done: ChangeOutcome,
    /// The new take, or the active one.
    pub(super) take: TakeSummary,
    /// File changes; `None` if only the conversation changed.
    pub(super) files: Option<FileReport>,
}

/// The new take, and a sentence about the active take.
fn new_take(context: &Context, done: &ChangeOutcome) -> Result<(TakeSummary, String), Failure> {
    let active = done.summary.active.clone();
    let made = match &done.kind {
        Some(OperationKind::TakeForked { take, .. } | OperationKind::TakeBranched { take, .. }) => *take,
        _ => active.id,
    };
    let reader = context.timeline()?.read()?;
    let takes = reader.queries().takes_of(reader.thread(done.thread)?.number)?;
    match takes.into_iter().find(|take| take.summary.id == made && made != active.id) {
        None => Ok((active, "; it is now the active take".to_owned())),
        Some(take) => {
            let place = format!(
                "; the active take is still {}, and no files moved. `retake worktree add {}` checks out the new take",
                sanitize(&active.name, LineBreaks::Fold),
                sanitize(&take.summary.name, LineBreaks::Fold)
            );
            Ok((take.summary, place))
        }
    }
}

impl TakeAnswer {
    /// Returns `None` for a dry run.
    pub(super) fn of(changed: Option<ChangeReport>) -> Option<Self> {
        let ChangeReport { done, files } = changed?;
        let done = done?;
        Some(Self { take: done.summary.active.clone(), done, files })
    }
}
