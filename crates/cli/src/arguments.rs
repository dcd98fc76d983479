//! What can be typed after `retake`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, builder::styling};

use crate::commands;
use crate::ui::style::ColorWhen;

/// Conversation and files on one timeline: edit any entry, undo anything, fork any moment.
#[derive(Parser)]
#[command(name = "retake", version = env!("RETAKE_VERSION"), styles = STYLES, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) general: General,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default().bold())
    .placeholder(styling::AnsiColor::Cyan.on_default());

const AFTER: &str = "\
Start with `retake demo`: a tour of one minute, in a folder of its own.
The words used here are explained in docs/glossary.md, and in the studio under \"Glossary\".

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 the thread has moved on, 5 refused,
6 the store is damaged, 7 the disk failed.";

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct General {
    /// Answer in JSON, in the shape that docs/json.md describes.
    #[arg(long, global = true, help_heading = "General")]
    pub(crate) json: bool,
    /// Act as if started in that folder.
    #[arg(short = 'C', long, global = true, value_name = "FOLDER", help_heading = "General")]
    pub(crate) directory: Option<PathBuf>,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "General")]
    pub(crate) color: ColorWhen,
    /// Do not page long output.
    #[arg(long, global = true, help_heading = "General")]
    pub(crate) no_pager: bool,
    /// Say nothing about what was done.
    #[arg(short, long, global = true, help_heading = "General")]
    pub(crate) quiet: bool,
    #[arg(skip)]
    pub(crate) effect: Effect,
}

/// Whether a command may change anything on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Effect {
    #[default]
    Change,
    /// A dry run: it only shows what it would do.
    Preview,
}

/// Which thread and take a command means.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Target {
    /// The thread: a title, or the beginning of an id [default: the current one].
    #[arg(short, long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// The take: a name, or the beginning of an id [default: the active one].
    #[arg(short = 'k', long, value_name = "TAKE")]
    pub(crate) take: Option<String>,
    /// Change nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<u64>,
}

/// Which thread and take a command looks at. Nothing is changed, so no version need be expected.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TakeTarget {
    /// The thread: a title, or the beginning of an id [default: the current one].
    #[arg(short, long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// The take: a name, or the beginning of an id [default: the active one].
    #[arg(short = 'k', long, value_name = "TAKE")]
    pub(crate) take: Option<String>,
}

impl From<&TakeTarget> for Target {
    fn from(target: &TakeTarget) -> Self {
        Self { thread: target.thread.clone(), take: target.take.clone(), expect: None }
    }
}

/// Which thread a command means that has nothing to do with a single take.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ThreadTarget {
    /// The thread: a title, or the beginning of an id [default: the current one].
    #[arg(short, long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// Change nothing unless the thread is at that version.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<u64>,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Find entries by their words, in all takes.
    #[command(display_order = 100)]
    Search(commands::search::Arguments),
    /// Write a thread to a file: whole, or as a text to read.
    #[command(display_order = 110)]
    Export(commands::export::Arguments),
    /// Take in a thread that was exported.
    #[command(display_order = 111)]
    Import(commands::import::Arguments),
    /// Check everything that is stored. Nothing is changed.
    #[command(display_order = 120)]
    Verify(commands::verify::Arguments),
    /// Mend what can be mended, and say what is lost.
    #[command(display_order = 121)]
    Repair(commands::repair::Arguments),
    /// Show how much room the store takes, and what models were used, with what that cost.
    #[command(display_order = 122)]
    Usage(commands::usage::Arguments),
    /// Delete content that nothing refers to. History refers to all it ever held, so that stays.
    #[command(display_order = 123)]
    Gc(commands::gc::Arguments),
    /// Destroy the content of an entry, in all takes and all history.
    #[command(display_order = 124)]
    Redact(commands::redact::Arguments),
    /// Destroy threads with all their history. Asks first.
    #[command(display_order = 125)]
    Purge(commands::purge::Arguments),
    /// A guided tour in a temporary project: what Retake is for, in one minute.
    #[command(display_order = 199)]
    Demo(commands::demo::Arguments),
    /// Projects: folders, and what Retake knows them as.
    #[command(display_order = 200, visible_alias = "projects")]
    Project(commands::project::Arguments),
    /// Show and change the configuration.
    #[command(display_order = 201)]
    Config(commands::config::Arguments),
    /// Print the completions of a shell.
    #[command(display_order = 202)]
    Completions(commands::completions::Arguments),
    /// Print the manual page, or write the pages of all commands.
    #[command(display_order = 203)]
    Man(commands::man::Arguments),

    /// Ask the agent to do something, and watch it work.
    #[command(display_order = 1)]
    Run(commands::run::Arguments),
    /// Talk with the agent, line by line.
    #[command(display_order = 2)]
    Chat(commands::chat::Arguments),
    /// Try a message again, in a take of its own.
    #[command(display_order = 3)]
    Retry(commands::retry::Arguments),
    /// Go on with a turn that failed, or whose program was killed.
    #[command(display_order = 4)]
    Resume(commands::resume::Arguments),
    /// End the turn that runs in a take, in whatever terminal.
    #[command(display_order = 5)]
    Stop(commands::stop::Arguments),
    /// Tell the turn that runs something, from another terminal.
    #[command(display_order = 6)]
    Steer(commands::steer::Arguments),
    /// Put two takes side by side: what was said, what it cost, how their files differ.
    #[command(display_order = 7)]
    Compare(commands::compare::Arguments),
    /// Put a summary by the model in the place of old entries.
    #[command(display_order = 8)]
    Compress(commands::compress::Arguments),
    /// Show what was said to models and what they answered.
    #[command(display_order = 9)]
    Comms(commands::comms::Arguments),
    /// Show which providers and models can be asked.
    #[command(display_order = 10)]
    Models(commands::models::Arguments),
    /// Store keys of providers in the keyring of the system, or in a file that only you can read.
    #[command(display_order = 11, visible_alias = "key")]
    Keys(commands::keys::Arguments),

    /// Threads: conversations, each with a history of its own.
    #[command(subcommand, visible_alias = "threads")]
    Thread(commands::thread::Command),
    /// Entries: what was said, each of which can be edited.
    #[command(subcommand, visible_alias = "entries")]
    Entry(commands::entry::Command),
    /// Takes: the branches of a thread.
    #[command(subcommand, visible_alias = "takes")]
    Take(commands::take::Command),
    /// Draw the project's threads and their takes.
    Tree(commands::tree::Arguments),
    /// Take back the last turn, or the last N.
    Undo(commands::undo::Arguments),
    /// Make what was undone again.
    Redo(commands::redo::Arguments),
    /// Make files exactly what they were at another moment: all of them, or only some.
    Restore(commands::restore::Arguments),
    /// Show what was changed by hand since Retake last looked, and what is not held.
    Status(commands::status::Arguments),
    /// Snapshots: the files of a thread at its moments.
    #[command(subcommand, visible_alias = "snapshots")]
    Snapshot(commands::snapshot::Command),
    /// Run a command, and record what it does to files as one change that can be undone.
    Exec(commands::exec::Arguments),
    /// Serve the studio to a browser, and the HTTP API to any program.
    #[command(visible_alias = "studio")]
    Serve(commands::serve::Arguments),
    /// Go to any moment of a thread's history.
    Jump(commands::jump::Arguments),
    /// Show what was done to a thread, newest first.
    History(commands::history::Arguments),
    /// Show how files differ between two moments.
    Diff(commands::diff::Arguments),
    /// Show what happened to a file, newest first, over all threads of the project.
    Log(commands::log::Arguments),
    /// Show who wrote each line of a file.
    Blame(commands::blame::Arguments),
    /// Give the present moment a name to come back to.
    Save(commands::save::Arguments),
    /// Clear entries, drafts, files and settings of a whole thread. One undo brings all back.
    Reset(commands::reset::Arguments),
    /// Keep only the last exchanges of a take.
    Truncate(commands::truncate::Arguments),
    /// Take all entries out of a take.
    Clear(commands::clear::Arguments),
    /// The draft: what is being typed and not yet sent.
    Draft(commands::draft::Arguments),
    /// Settings of a thread: prompts, sampling, model.
    #[command(visible_alias = "setting")]
    Settings(commands::settings::Arguments),
    /// The roles that a thread's entries are given.
    #[command(visible_alias = "roles")]
    Role(commands::role::Arguments),
    /// Files that a take gives to the model.
    Context(commands::context::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_says_what_it_is_for_and_shows_how() {
        let mut command = Arguments::command();
        command.build();
        let mut waiting = vec![command.clone()];
        let mut seen = 0;
        while let Some(command) = waiting.pop() {
            let name = command.get_bin_name().unwrap_or_default().to_owned();
            let below: Vec<clap::Command> = command
                .get_subcommands()
                .filter(|below| !below.is_hide_set() && below.get_name() != "help")
                .cloned()
                .collect();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 5, "{name} says nothing about itself");
            if below.is_empty() {
                let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(after.contains("Example"), "{name} shows no example");
            }
            seen += 1;
            waiting.extend(below);
        }
        assert!(seen > 30, "only {seen} commands were looked at");
        command.debug_assert();
    }
}
