//! The `retake` command.
//!
//! `main` only dispatches: each command is one file in [`commands`]; shared state is in [`context`], terminal output in
//! [`ui`].

mod agent;
mod arguments;
mod cache_cost;
mod command_line;
mod commands;
mod completion;
mod config;
mod context;
mod describe;
mod failure;
mod files;
mod remotes;
mod revisions;
mod ui;
mod undo_hint;
mod working_copy;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use arguments::{Arguments, Command, Effect};
use context::Context;
use failure::{Code, Failure};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let parsed = command_line::parse(&words).and_then(|matches| {
        let mut arguments = Arguments::from_arg_matches(&matches)?;
        if is_dry_run(&matches) {
            arguments.general.effect = Effect::Preview;
        }
        Ok(arguments)
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return failed(is_exec(), failure::usage(&error)),
    };
    let general = arguments.general.clone();
    let exec = matches!(arguments.command, Some(Command::Exec(_)));
    match run(arguments) {
        Ok(code) => code,
        Err(failure) => failed(exec, failure::report(failure, &general)),
    }
}

/// The exit code of a failure. With `exec`, the codes of a failure could be those of the command.
fn failed(exec: bool, code: ExitCode) -> ExitCode {
    if exec { ExitCode::from(commands::exec::OWN_FAILURE) } else { code }
}

/// Whether a command line that is invalid is one of `exec`.
fn is_exec() -> bool {
    let matches = Arguments::command().ignore_errors(true).try_get_matches();
    matches.is_ok_and(|matches| matches.subcommand_name() == Some("exec"))
}

fn is_dry_run(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, matches)) => is_dry_run(matches),
        None => matches.try_get_one("dry_run").ok().flatten().copied().unwrap_or(false),
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { general, continues, resume, command } = arguments;
    let Some(command) = command else {
        let context = Context::new(general)?;
        let done = match resume {
            Some(named) => commands::pick::resume(&context, named),
            None if continues => commands::pick::continue_current(&context),
            None => commands::overview::run(&context).map(|()| ExitCode::SUCCESS),
        };
        context.report_recovered();
        return done;
    };
    if resume.is_some() || (continues && !matches!(command, Command::Run(_))) {
        let message = "--continue and --resume start a chat; they take a prompt or a thread, and no command";
        return Err(Failure::new(Code::Usage, message));
    }
    let context = match command {
        // These commands must work with a broken configuration.
        Command::Config(_)
        | Command::Hub(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Demo(_)
        | Command::Version(_) => Context::unconfigured(general)?,
        _ => Context::new(general)?,
    };
    let is_exchange = matches!(command, Command::Sync(_) | Command::Remote(_) | Command::Complete(_));
    let done = dispatch(command, &context);
    if !is_exchange {
        commands::sync::start_in_background(&context);
    }
    // Reports recovered files even if the command failed.
    context.report_recovered();
    done
}

fn dispatch(command: Command, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        Command::Search(arguments) => arguments.run(context)?,
        Command::Export(arguments) => arguments.run(context)?,
        Command::Import(arguments) => arguments.run(context)?,
        Command::Sync(arguments) => arguments.run(context)?,
        Command::Remote(arguments) => arguments.run(context)?,
        Command::Backup(arguments) => return arguments.run(context),
        Command::Verify(arguments) => return arguments.run(context),
        Command::Repair(arguments) => return arguments.run(context),
        Command::Gc(arguments) => arguments.run(context)?,
        Command::Purge(arguments) => arguments.run(context)?,
        Command::Redact(arguments) => arguments.run(context)?,
        Command::Usage(arguments) => arguments.run(context)?,
        Command::Demo(arguments) => arguments.run(context)?,
        Command::Project(arguments) => arguments.run(context)?,
        Command::Config(arguments) => arguments.run(context)?,
        Command::Completions(arguments) => arguments.run(context)?,
        Command::Man(arguments) => arguments.run(context)?,
        Command::New(arguments) => arguments.run(context)?,
        Command::Ls(arguments) => arguments.run(context)?,
        Command::Show(arguments) => arguments.run(context)?,
        Command::Switch(arguments) => arguments.run(context)?,
        Command::Edit(arguments) => arguments.run(context)?,
        Command::Fork(arguments) => arguments.run(context)?,
        Command::Version(_) => commands::version::run(context)?,
        Command::Complete(arguments) => arguments.run(context)?,
        Command::Thread(command) => commands::thread::run(command, context)?,
        Command::Entry(command) => commands::entry::run(command, context)?,
        Command::Take(command) => commands::take::run(command, context)?,
        Command::Keep(arguments) => arguments.run(context)?,
        Command::Merge(arguments) => arguments.run(context)?,
        Command::Worktree(command) => commands::worktree::run(command, context)?,
        Command::Tree(arguments) => arguments.run(context)?,
        Command::Undo(arguments) => arguments.run(context)?,
        Command::Redo(arguments) => arguments.run(context)?,
        Command::Restore(arguments) => arguments.run(context)?,
        Command::Status(arguments) => arguments.run(context)?,
        Command::Snapshot(command) => commands::snapshot::run(command, context)?,
        Command::Exec(arguments) => return arguments.run(context),
        Command::Run(arguments) => return arguments.run(context),
        Command::Chat(arguments) => return arguments.run(context),
        Command::Retry(arguments) => return arguments.run(context),
        Command::Resume(arguments) => return arguments.run(context),
        Command::Stop(arguments) => arguments.run(context)?,
        Command::Steer(arguments) => arguments.run(context)?,
        Command::Compare(arguments) => arguments.run(context)?,
        Command::Compress(arguments) => arguments.run(context)?,
        Command::Trace(arguments) => arguments.run(context)?,
        Command::Models(arguments) => arguments.run(context)?,
        Command::Keys(arguments) => arguments.run(context)?,
        Command::Serve(arguments) => arguments.run(context)?,
        Command::Hub(arguments) => arguments.run(context)?,
        Command::Jump(arguments) => arguments.run(context)?,
        Command::History(arguments) => arguments.run(context)?,
        Command::Turns(arguments) => arguments.run(context)?,
        Command::Diff(arguments) => arguments.run(context)?,
        Command::Cat(arguments) => arguments.run(context)?,
        Command::LsFiles(arguments) => arguments.run(context)?,
        Command::Log(arguments) => arguments.run(context)?,
        Command::Blame(arguments) => arguments.run(context)?,
        Command::Save(arguments) => arguments.run(context)?,
        Command::Reset(arguments) => arguments.run(context)?,
        Command::Truncate(arguments) => arguments.run(context)?,
        Command::Clear(arguments) => arguments.run(context)?,
        Command::Draft(arguments) => arguments.run(context)?,
        Command::Settings(arguments) => arguments.run(context)?,
        Command::Role(arguments) => arguments.run(context)?,
        Command::Context(arguments) => arguments.run(context)?,
    }
    Ok(ExitCode::SUCCESS)
}
