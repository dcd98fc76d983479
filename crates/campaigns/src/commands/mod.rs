//! The command line, one file per campaign.

mod all;
mod api;
mod command_lines;
mod commits;
mod concurrent;
mod edits;
mod errors;
mod exchange;
mod files;
mod flips;
mod hostile;
mod hub;
mod kill;
mod model;
mod power_cuts;
mod processes;
mod projection;
mod sync;
mod turns;
mod worktrees;
mod wrong_order;

use clap::{Parser, Subcommand};
use retake_campaigns::violation::BoxError;

/// Campaigns that test Retake's guarantees under faults.
#[derive(Debug, Parser)]
#[command(name = "campaigns", version, about)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Debug, Subcommand)]
enum Campaign {
    /// Kill the real program at every write-class system call of every command.
    Kill(kill::Kill),
    /// Fail every write-class system call of every command of the real program.
    Errors(errors::Errors),
    /// Kill or fail the real program at every write-class system call while it moves files.
    Files(files::Files),
    /// Cut the power on a separate file system while files move.
    PowerCuts(power_cuts::PowerCuts),
    /// Run random edits in one folder by several authors, compared with a reference model.
    Edits(edits::Edits),
    /// Let two machines exchange a thread while both work on it.
    Exchange(exchange::Exchange),
    /// Let machines with one remote work, exchange, fail, be cloned and go back.
    Sync(sync::Sync),
    /// Run random command lines over several projects and folders, checked against rules for all commands.
    Commands(command_lines::Commands),
    /// Run two processes on one folder, killing some at random.
    ConcurrentProcesses(concurrent::ConcurrentProcesses),
    /// Run two processes in two takes of one thread, one of them in a worktree.
    Worktrees(worktrees::Worktrees),
    /// Record and move files while other writers change the same folder.
    ConcurrentWriters(concurrent::ConcurrentWriters),
    /// Send random requests to the timeline and to a reference model, which must agree.
    Model(model::Model),
    /// Run eight processes on one store, killing some at random.
    Processes(processes::Processes),
    /// Project random histories for every provider, checked against its rules.
    Projection(projection::Projection),
    /// Run turns with tools under failing servers and concurrent changes, or kill them at every point.
    Turns(turns::Turns),
    /// The real program against a model server that attacks it.
    Hostile(hostile::Hostile),
    /// Bytes flipped and cut in the database and its log.
    Flips(flips::Flips),
    /// Send random requests to the API, or kill the server under load.
    Api(api::Api),
    /// Ask every route of the hub with the ids of another account.
    HubTenants(hub::Tenants),
    /// Push concurrently: versions tile, bundles chain, the feed has no gap, heads are linearizable.
    HubHistory(hub::Load),
    /// Kill the hub or its database under load.
    HubKill(hub::Load),
    /// Kill one of three hubs behind a balancer under load.
    HubFailover(hub::Load),
    /// Run all campaigns and their controls at the documented sizes.
    All(all::All),
    /// Commit in a loop and report each result.
    #[command(hide = true)]
    Commits(commits::Commits),
    /// Execute an undo in the wrong order.
    #[command(hide = true)]
    WrongOrder(wrong_order::WrongOrder),
    /// A worker of `processes`.
    #[command(hide = true)]
    Worker(processes::Worker),
    /// A reader of `processes`.
    #[command(hide = true)]
    Reader(processes::Reader),
}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), BoxError> {
        match self.campaign {
            Campaign::Kill(kill) => kill.run(),
            Campaign::Errors(errors) => errors.run(),
            Campaign::PowerCuts(cuts) => cuts.run(),
            Campaign::Edits(edits) => edits.run(),
            Campaign::Exchange(exchange) => exchange.run(),
            Campaign::Sync(sync) => sync.run(),
            Campaign::Commands(commands) => commands.run(),
            Campaign::ConcurrentProcesses(crowd) => crowd.run(),
            Campaign::ConcurrentWriters(restless) => restless.run(),
            Campaign::Worktrees(worktrees) => worktrees.run(),
            Campaign::Files(files) => files.run(),
            Campaign::WrongOrder(mistaken) => mistaken.run(),
            Campaign::Model(model) => model.run(),
            Campaign::Processes(processes) => processes.run(),
            Campaign::Projection(projection) => projection.run(),
            Campaign::Turns(turns) => turns.run(),
            Campaign::Hostile(hostile) => hostile.run(),
            Campaign::Flips(flips) => flips.run(),
            Campaign::Api(api) => api.run(),
            Campaign::HubTenants(tenants) => tenants.run(),
            Campaign::HubHistory(load) => load.history(),
            Campaign::HubKill(load) => load.kill(),
            Campaign::HubFailover(load) => load.failover(),
            Campaign::All(all) => all.run(),
            Campaign::Commits(commits) => commits.run(),
            Campaign::Worker(worker) => worker.run(),
            Campaign::Reader(reader) => reader.run(),
        }
    }
}
