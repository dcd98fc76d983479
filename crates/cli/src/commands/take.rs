//! `retake take`: the branches of a thread.

mod branch;
mod close;
mod delete;
mod fork;
mod list;
mod open;
mod promote;
mod rename;
mod switch;

use clap::Subcommand;
use retake_model::operation::OperationKind;
use retake_model::summary::TakeSummary;
use retake_timeline::{Changed, Done, FileReport};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{Lines, sanitize};

/// Commands on takes.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Branch off at an entry, keeping everything up to it, and go there.
    Branch(branch::Arguments),
    /// Go back to a user message: everything before it, the message itself as the draft.
    Fork(fork::Arguments),
    /// Work on another take.
    Switch(switch::Arguments),
    /// Make a take a thread of its own.
    Promote(promote::Arguments),
    /// Give a take another name.
    Rename(rename::Arguments),
    /// Delete a take. `undo` brings it back.
    #[command(visible_alias = "rm")]
    Delete(delete::Arguments),
    /// Give a take a folder of its own, so that several takes are alive at once.
    Open(open::Arguments),
    /// End a take's own folder, recording its last state.
    Close(close::Arguments),
    /// List the takes of a thread.
    #[command(visible_alias = "ls")]
    List(list::Arguments),
}

pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Branch(arguments) => arguments.run(context),
        Command::Fork(arguments) => arguments.run(context),
        Command::Switch(arguments) => arguments.run(context),
        Command::Promote(arguments) => arguments.run(context),
        Command::Rename(arguments) => arguments.run(context),
        Command::Delete(arguments) => arguments.run(context),
        Command::Open(arguments) => arguments.run(context),
        Command::Close(arguments) => arguments.run(context),
        Command::List(arguments) => arguments.run(context),
    }
}

/// What came of a change after which another take may be the active one.
#[derive(Serialize)]
struct NowOn {
    #[serde(flatten)]
    done: Done,
    /// The take that was made, or that is active now.
    take: TakeSummary,
    /// What became of files; none where only the conversation changed.
    files: Option<FileReport>,
}

/// The take that a command made, and where that leaves the user, in words.
fn new_take(context: &Context, done: &Done) -> Result<(TakeSummary, String), Failure> {
    let active = done.summary.active.clone();
    let made = match &done.kind {
        Some(OperationKind::TakeForked { take, .. } | OperationKind::TakeBranched { take, .. }) => *take,
        _ => active.id,
    };
    let looking = context.timeline()?.look()?;
    let takes = looking.queries().takes_of(looking.thread(done.thread)?.number)?;
    match takes.into_iter().find(|take| take.summary.id == made && made != active.id) {
        None => Ok((active, "; you are on it now".to_owned())),
        Some(take) => {
            let place = format!(
                "; the active take stays {}, and no file moved. `retake take open {} --apart` gives the new one a folder",
                sanitize(&active.name, Lines::Fold),
                sanitize(&take.summary.name, Lines::Fold)
            );
            Ok((take.summary, place))
        }
    }
}

impl NowOn {
    /// `None` if it was only a look ahead.
    fn of(changed: Option<Changed>) -> Option<Self> {
        let Changed { done, files } = changed?;
        let done = done?;
        Some(Self { take: done.summary.active.clone(), done, files })
    }
}
