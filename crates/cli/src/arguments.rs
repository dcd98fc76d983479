//! The command line: global options and all commands.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, styling};
use clap::{Args, Parser, Subcommand};
use retake_surface::Choice;

use crate::commands;
use crate::ui::style::ColorWhen;

/// Version control for AI conversations and their files: edit, undo, fork and compare.
#[derive(Parser)]
#[command(name = "retake", version = env!("RETAKE_VERSION"), styles = STYLES, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) general: GlobalOptions,
    /// Continue the current thread: in a chat, or with a prompt.
    #[arg(short = 'c', long = "continue")]
    pub(crate) continues: bool,
    /// Pick a thread, or name one, and chat on it. Without a terminal, threads are listed.
    #[arg(long, value_name = "THREAD", num_args = 0..=1, conflicts_with = "continues")]
    #[expect(clippy::option_option, reason = "the option, and its value")]
    pub(crate) resume: Option<Option<String>>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default().bold())
    .placeholder(styling::AnsiColor::Cyan.on_default());

const AFTER_HELP: &str = "\
Examples:
  retake                              where you are, and what to do next
  retake \"Why does the login fail?\"  a prompt with a space needs no command
  retake -c                           continue the current thread in a chat
  retake --resume                     pick a thread

Start with `retake demo`, a one-minute tour in a temporary folder. The glossary is docs/glossary.md, or \"Glossary\" in \
the studio.

Exit codes: 0 done, 1 failed, 2 usage error, 3 not found, 4 version conflict, 5 refused, 6 store damaged, 7 disk error.";

/// Options accepted by every command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GlobalOptions {
    /// Print JSON, as described in docs/json.md.
    #[arg(long, global = true, help_heading = "General")]
    pub(crate) json: bool,
    /// Run as if started in this folder.
    #[arg(short = 'C', long, global = true, value_name = "FOLDER", help_heading = "General")]
    pub(crate) directory: Option<PathBuf>,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "General")]
    pub(crate) color: ColorWhen,
    /// Do not use a pager for long output.
    #[arg(long, global = true, help_heading = "General")]
    pub(crate) no_pager: bool,
    /// Do not report what was done.
    #[arg(short, long, global = true, help_heading = "General")]
    pub(crate) quiet: bool,
    #[arg(skip)]
    pub(crate) effect: Effect,
}

/// Whether a command may write to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Effect {
    #[default]
    Change,
    /// A dry run: shows what would be done.
    Preview,
}

/// The thread and take that a command changes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Target {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// Take: name or id prefix [default: the active take].
    #[arg(short = 'k', long, value_name = "TAKE")]
    pub(crate) take: Option<String>,
    /// Fail unless the thread is at this version.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<u64>,
}

/// The thread and take that a command reads. Has no `--expect`, since nothing is changed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TakeTarget {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// Take: name or id prefix [default: the active take].
    #[arg(short = 'k', long, value_name = "TAKE")]
    pub(crate) take: Option<String>,
}

impl From<&TakeTarget> for Target {
    fn from(target: &TakeTarget) -> Self {
        Self { thread: target.thread.clone(), take: target.take.clone(), expect: None }
    }
}

/// The thread that a command changes as a whole.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ThreadTarget {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// Fail unless the thread is at this version.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<u64>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Search entries in all takes.
    #[command(display_order = 100)]
    Search(commands::search::Arguments),
    /// Export a thread, losslessly or as Markdown or JSON.
    #[command(display_order = 110)]
    Export(commands::export::Arguments),
    /// Import an exported thread.
    #[command(display_order = 111)]
    Import(commands::import::Arguments),
    /// Exchange threads with remotes, or show what waits.
    #[command(display_order = 112)]
    Sync(commands::sync::Arguments),
    /// Manage remotes: folders, buckets and hubs to which threads are synchronized.
    #[command(display_order = 113, visible_alias = "remotes")]
    Remote(commands::remote::Arguments),
    /// Back up the store while other programs use it, or check a backup.
    #[command(display_order = 119)]
    Backup(commands::backup::Arguments),
    /// Check the integrity of the store without changing it.
    #[command(display_order = 120)]
    Verify(commands::verify::Arguments),
    /// Repair the store and report what was lost.
    #[command(display_order = 121)]
    Repair(commands::repair::Arguments),
    /// Show storage use, and model use with its cost.
    #[command(display_order = 122)]
    Usage(commands::usage::Arguments),
    /// Delete content that nothing refers to. History keeps its content referenced.
    #[command(display_order = 123)]
    Gc(commands::gc::Arguments),
    /// Destroy the content of an entry in all takes and all history.
    #[command(display_order = 124)]
    Redact(commands::redact::Arguments),
    /// Destroy threads and their history, after confirmation.
    #[command(display_order = 125)]
    Purge(commands::purge::Arguments),
    /// Take a one-minute tour in a temporary project.
    #[command(display_order = 199)]
    Demo(commands::demo::Arguments),
    /// Manage projects: the folders that Retake works in.
    #[command(display_order = 200, visible_alias = "projects")]
    Project(commands::project::Arguments),
    /// Show and change the configuration.
    #[command(display_order = 201)]
    Config(commands::config::Arguments),
    /// Run a hub: the server that threads of several people and machines sync to.
    #[command(display_order = 126)]
    Hub(commands::hub::Arguments),
    /// Complete a command line.
    #[command(name = "__complete", hide = true)]
    Complete(commands::complete::Arguments),
    /// Print the version.
    #[command(display_order = 204)]
    Version(commands::version::Arguments),
    /// Print shell completions.
    #[command(display_order = 202)]
    Completions(commands::completions::Arguments),
    /// Print the manual page, or write the pages of all commands.
    #[command(display_order = 203)]
    Man(commands::man::Arguments),

    /// Run a turn: send a prompt to the agent and show its work.
    #[command(display_order = 1)]
    Run(commands::run::Arguments),
    /// Chat with the agent, line by line.
    #[command(display_order = 2)]
    Chat(commands::chat::Arguments),
    /// Retry a message in a new take.
    #[command(display_order = 3)]
    Retry(commands::retry::Arguments),
    /// Resume a turn that failed, or whose process exited or was killed.
    #[command(display_order = 4)]
    Resume(commands::resume::Arguments),
    /// Stop the running turn of a take, from any terminal.
    #[command(display_order = 5)]
    Stop(commands::stop::Arguments),
    /// Send a message to the running turn.
    #[command(display_order = 6)]
    Steer(commands::steer::Arguments),
    /// Compare two takes: messages, cost and files.
    #[command(display_order = 7)]
    Compare(commands::compare::Arguments),
    /// Replace old entries with a summary by the model.
    #[command(display_order = 8)]
    Compress(commands::compress::Arguments),
    /// Show the trace: every model request, response and tool call.
    #[command(display_order = 9)]
    Trace(commands::trace::Arguments),
    /// List providers and models, and which are ready to use.
    #[command(display_order = 10)]
    Models(commands::models::Arguments),
    /// Manage stored keys of providers.
    #[command(display_order = 11, visible_alias = "key")]
    Keys(commands::keys::Arguments),

    /// Create a thread and make it current: `thread new`.
    New(commands::thread::new::Arguments),
    /// List threads: `thread list`.
    Ls(commands::thread::list::Arguments),
    /// Show the entries of a thread, or of one turn. Short for `thread show`.
    Show(commands::thread::show::Arguments),
    /// Switch to a take of this thread, or to another thread.
    Switch(commands::switch::Arguments),
    /// Edit the text of an entry: `entry edit`.
    Edit(commands::entry::edit::Arguments),
    /// Create a take that ends before a message, which becomes its draft: `take fork`.
    Fork(commands::take::fork::Arguments),
    /// Manage threads: conversations with their own history.
    #[command(subcommand, visible_alias = "threads")]
    Thread(commands::thread::Command),
    /// Manage entries: the messages of a take.
    #[command(subcommand, visible_alias = "entries")]
    Entry(commands::entry::Command),
    /// Manage takes: the branches of a thread.
    #[command(subcommand, visible_alias = "takes")]
    Take(commands::take::Command),
    /// Keep a take: make it active, and delete its alternatives.
    Keep(commands::keep::Arguments),
    /// Merge another take into the active one: its file changes, and its last answer.
    Merge(commands::merge::Arguments),
    /// Manage worktrees: takes that are checked out in their own folders.
    #[command(subcommand, visible_alias = "worktrees")]
    Worktree(commands::worktree::Command),
    /// Show the project's threads and takes as a tree.
    Tree(commands::tree::Arguments),
    /// Undo the last turn, or the last N turns.
    Undo(commands::undo::Arguments),
    /// Redo turns.
    Redo(commands::redo::Arguments),
    /// Restore files to another version: all of them, or only some.
    Restore(commands::restore::Arguments),
    /// Show your changes since the last snapshot, and excluded files.
    Status(commands::status::Arguments),
    /// Manage snapshots: the recorded files of a thread.
    #[command(subcommand, visible_alias = "snapshots")]
    Snapshot(commands::snapshot::Command),
    /// Run a command and record its file changes as one undoable operation.
    Exec(commands::exec::Arguments),
    /// Serve the studio and the HTTP API.
    #[command(visible_alias = "studio")]
    Serve(commands::serve::Arguments),
    /// Jump to any version of a thread.
    Jump(commands::jump::Arguments),
    /// Show the operations of a thread, newest first.
    History(commands::history::Arguments),
    /// List the turns of a take: prompts and their results.
    Turns(commands::turns::Arguments),
    /// Show differences between two versions of the files.
    Diff(commands::diff::Arguments),
    /// Print a file as it was at a revision.
    Cat(commands::cat::Arguments),
    /// List the captured files at a revision.
    LsFiles(commands::ls_files::Arguments),
    /// Show the changes of a file in all threads of the project, newest first.
    Log(commands::log::Arguments),
    /// Show which operation wrote each line of a file.
    Blame(commands::blame::Arguments),
    /// Name the current version.
    Save(commands::save::Arguments),
    /// Clear all entries, drafts, file lists and settings of a thread. One undo restores them.
    Reset(commands::reset::Arguments),
    /// Keep only the last exchanges of a take.
    Truncate(commands::truncate::Arguments),
    /// Remove all entries from a take.
    Clear(commands::clear::Arguments),
    /// Show and edit the draft: the unsent message of a take.
    Draft(commands::draft::Arguments),
    /// Show and change settings of a thread: prompts, sampling, model.
    #[command(visible_alias = "setting")]
    Settings(commands::settings::Arguments),
    /// Manage the roles offered for new entries.
    #[command(visible_alias = "roles")]
    Role(commands::role::Arguments),
    /// Manage the files that a take gives to the model.
    Context(commands::context::Arguments),
}

/// Parses one of the named values of a type.
pub(crate) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let values = T::CHOICES.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values).try_map(|name| T::named(&name).ok_or("unknown value"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The first line that is not an example indented by two spaces, a heading, or a whole paragraph. Line breaks within
    /// a paragraph give ragged lines on a terminal of another width.
    fn badly_laid_out(after_help: &str) -> Option<&str> {
        let lines: Vec<&str> = after_help.lines().collect();
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        lines.iter().enumerate().find_map(|(at, line)| {
            let indent = line.len() - line.trim_start().len();
            let is_broken = is_prose(line) && lines.get(at + 1).is_some_and(|next| is_prose(next));
            (is_broken || ![0, 2].contains(&indent)).then_some(*line)
        })
    }

    #[test]
    fn bad_layout_of_help_is_found() {
        for (text, expected) in [
            ("Examples:\n  retake undo\n\nOne paragraph.\n\nAnother.", None),
            ("Examples:\n    retake undo", Some("    retake undo")),
            ("A paragraph\nin two lines.", Some("A paragraph")),
        ] {
            assert_eq!(badly_laid_out(text), expected);
        }
    }

    /// The examples of a help text.
    fn examples(after_help: &str) -> impl Iterator<Item = &str> {
        after_help.lines().filter(|line| line.starts_with("  ")).map(str::trim)
    }

    /// The command line of an example, without its comment, pipes and redirections.
    fn words_of(example: &str) -> Option<Vec<std::ffi::OsString>> {
        let command = example.split("  ").next()?;
        let start = if command.starts_with("retake") { 0 } else { command.find("| retake ")? + 2 };
        let words = shell_words::split(&command[start..]).ok()?;
        let is_end = |word: &String| matches!(word.as_str(), "|" | ">" | "&&" | "#" | "<");
        Some(words.into_iter().take_while(|word| !is_end(word)).map(Into::into).collect())
    }

    #[test]
    fn every_command_has_a_description_and_an_example() {
        let mut command = Arguments::command();
        command.build();
        let mut waiting = vec![command.clone()];
        let (mut seen, mut parsed_examples, mut wrong) = (0, 0, Vec::new());
        while let Some(command) = waiting.pop() {
            let name = command.get_bin_name().unwrap_or_default().to_owned();
            let below: Vec<clap::Command> = command
                .get_subcommands()
                .filter(|below| !below.is_hide_set() && below.get_name() != "help")
                .cloned()
                .collect();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 5, "{name} has no description");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if below.is_empty() {
                assert!(after.contains("Example"), "{name} has no example");
            }
            assert_eq!(badly_laid_out(&after), None, "{name}");
            for example in examples(&after) {
                // Another program, such as curl.
                let Some(words) = words_of(example) else { continue };
                if let Err(error) = crate::command_line::parse(&words)
                    && error.use_stderr()
                {
                    wrong.push(format!("{name}: {example}: {error}"));
                }
                parsed_examples += 1;
            }
            seen += 1;
            waiting.extend(below);
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(parsed_examples > 150, "only {parsed_examples} examples were parsed");
        assert!(seen > 30, "only {seen} commands were checked");
        command.debug_assert();
    }
}
