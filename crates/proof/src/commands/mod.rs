//! The commands, one file for each campaign.

mod all;
mod api;
mod command_lines;
mod commits;
mod crowd;
mod cuts;
mod edits;
mod errors;
mod files;
mod flips;
mod hostile;
mod kill;
mod mistaken;
mod model;
mod processes;
mod projection;
mod turns;
mod worktrees;

use clap::{Parser, Subcommand};
use retake_proof::violation::Trouble;

/// Campaigns that try to break Retake's promises.
#[derive(Debug, Parser)]
#[command(name = "proof", version, about)]
pub(crate) struct Proof {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Debug, Subcommand)]
enum Campaign {
    /// The real program, killed at every write-class system call of every command.
    Kill(kill::Kill),
    /// The real program, with every write-class system call of every command failing.
    Errors(errors::Errors),
    /// The real program, killed or refused at every write-class system call while it moves files.
    Files(files::Files),
    /// Real power cuts on a file system of its own, while files move.
    Cuts(cuts::Cuts),
    /// Random edits in one folder by several hands, against a naive model.
    Edits(edits::Edits),
    /// Random command lines over several projects and folders, with rules that hold for any of them.
    Commands(command_lines::Commands),
    /// Two processes on one folder, some killed at random.
    Crowd(crowd::Crowd),
    /// Two processes in two takes of one thread, one of them in a worktree.
    Worktrees(worktrees::Worktrees),
    /// A folder that never rests while it is recorded and moved.
    Restless(crowd::Restless),
    /// Random questions to the timeline and to a naive model, which must agree.
    Model(model::Model),
    /// Eight processes on one store, some killed at random.
    Processes(processes::Processes),
    /// Random histories, told to every provider by its rules.
    Projection(projection::Projection),
    /// Many turns with tools, while the model's server fails and people interfere; or killed at every point.
    Turns(turns::Turns),
    /// The real program against a model server that attacks it.
    Hostile(hostile::Hostile),
    /// Bytes flipped and cut in the database and its log.
    Flips(flips::Flips),
    /// The API: asked whatever can be asked, or killed while it is asked.
    Api(api::Api),
    /// All campaigns with their controls, at the documented sizes.
    All(all::All),
    /// Commits in a row, each with what was said about it.
    #[command(hide = true)]
    Commits(commits::Commits),
    /// An undo in the wrong order.
    #[command(hide = true)]
    Mistaken(mistaken::Mistaken),
    /// One worker of `processes`.
    #[command(hide = true)]
    Worker(processes::Worker),
    /// One reader of `processes`.
    #[command(hide = true)]
    Reader(processes::Reader),
}

impl Proof {
    pub(crate) fn run(self) -> Result<(), Trouble> {
        match self.campaign {
            Campaign::Kill(kill) => kill.run(),
            Campaign::Errors(errors) => errors.run(),
            Campaign::Cuts(cuts) => cuts.run(),
            Campaign::Edits(edits) => edits.run(),
            Campaign::Commands(commands) => commands.run(),
            Campaign::Crowd(crowd) => crowd.run(),
            Campaign::Restless(restless) => restless.run(),
            Campaign::Worktrees(worktrees) => worktrees.run(),
            Campaign::Files(files) => files.run(),
            Campaign::Mistaken(mistaken) => mistaken.run(),
            Campaign::Model(model) => model.run(),
            Campaign::Processes(processes) => processes.run(),
            Campaign::Projection(projection) => projection.run(),
            Campaign::Turns(turns) => turns.run(),
            Campaign::Hostile(hostile) => hostile.run(),
            Campaign::Flips(flips) => flips.run(),
            Campaign::Api(api) => api.run(),
            Campaign::All(all) => all.run(),
            Campaign::Commits(commits) => commits.run(),
            Campaign::Worker(worker) => worker.run(),
            Campaign::Reader(reader) => reader.run(),
        }
    }
}
