//! `retake chat`

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::{Command, ExitCode};

use clap::Args;
use retake_agent::{TurnOutcome, TurnRequest};
use retake_model::agent::TurnEnd;
use retake_model::command::{Prompt, check_prompt};
use retake_model::entry::EntryVersion;
use retake_timeline::ChangeError;

use super::run::TurnTarget;
use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::signals::Foreground;
use crate::ui::style::stderr;

/// Chat with the agent, line by line.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake chat
  retake chat --model anthropic/claude-sonnet-4-5 --approve edits

Each line is a message; end it with a backslash to continue on the next line. A line that starts with a slash runs any \
other command: /undo, /redo, /retry, /tree, /history, /take switch main, /diff. /quit or Ctrl-D leaves the chat. \
Ctrl-C stops the running turn.")]
pub(crate) struct Arguments {
    /// Refuse messages unless the thread's start commit is checked out, and print how to return to it.
    #[arg(long)]
    at_start_commit: bool,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(mut self, context: &Context) -> Result<ExitCode, Failure> {
        if context.general.json {
            return Err(Failure::new(
                Code::Usage,
                "`retake chat` is interactive; use `retake run --json` in scripts",
            ));
        }
        let shown = io::stdin().is_terminal();
        if shown {
            context.note("Type a message, or a command such as /undo, /retry or /tree. /quit leaves.")?;
        }
        loop {
            let Some(line) = read(context, shown)? else { return Ok(ExitCode::SUCCESS) };
            let line = line.trim();
            match line.strip_prefix('/').map(str::trim) {
                Some("quit" | "exit" | "q") => return Ok(ExitCode::SUCCESS),
                Some("" | "help") => context.note(
                    "Type a message, or any command: /undo, /redo, /retry, /tree, /history, /diff, /take …. /quit leaves.",
                )?,
                Some(command) => other(context, command, self.target.thread.as_deref())?,
                None if line.is_empty() => {}
                None => match self.turn(context, line) {
                    Ok(outcome) if outcome.how == TurnEnd::ShutDown => return Ok(exit(&outcome)),
                    Ok(_) => {}
                    Err(failure) => {
                        // An error with one message does not end the chat.
                        let style = context.styles.error;
                        let text = sanitize(&failure.message, LineBreaks::Keep).into_owned();
                        writeln!(stderr(context.general.color), "{style}error:{style:#} {text}")?;
                    }
                },
            }
        }
    }

    fn turn(&mut self, context: &Context, text: &str) -> Result<TurnOutcome, Failure> {
        let target = TurnTarget::find(context, &self.target, false)?;
        if self.at_start_commit {
            target.check_start_commit(context)?;
        }
        let settings = target.settings(context)?;
        let backend = context.backend(&settings, &self.agent)?;
        let entry = EntryVersion::from_text(&target.role(context)?, text, context.now());
        check_prompt(&entry).map_err(ChangeError::from)?;
        target.check_folder(context)?;
        let (resolved, _) = target.prepare(context, &self.target, text)?;
        // Later messages go to the same thread, even if another process switches threads.
        self.target.thread = Some(resolved.thread.summary.id.to_string());
        let runtime =
            context.runtime_with(backend, (resolved.thread.summary.id, resolved.take.id), &self.agent)?;
        let beginning = TurnRequest {
            prompt: Prompt::Entry(entry.into()),
            settings: self.agent.settings(context, &settings),
            expected: None,
            request: None,
        };
        let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
        context.run_watched((thread, Some(take)), |cancel, observer| {
            runtime.run(thread, take, beginning, cancel, observer)
        })
    }
}

/// Runs another command on the same thread.
fn other(context: &Context, line: &str, thread: Option<&str>) -> Result<(), Failure> {
    let words = match shell_words::split(line) {
        Ok(words) => words,
        Err(error) => return context.note(&format!("{error}")),
    };
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(words).current_dir(context.directory());
    if let Some(thread) = thread {
        command.env("RETAKE_THREAD", thread);
    }
    let foreground = Foreground::begin()?;
    let mut child = command.spawn()?;
    foreground.started(child.id());
    let status = child.wait()?;
    foreground.end();
    if !status.success() {
        context.note("Command failed; the chat continues.")?;
    }
    Ok(())
}

/// Reads a message, including continuation lines; `None` at the end of input.
fn read(context: &Context, shown: bool) -> Result<Option<String>, Failure> {
    let mut message = String::new();
    loop {
        if shown {
            let style = context.styles.user;
            let sign = if message.is_empty() { "›" } else { "…" };
            let mut out = stderr(context.general.color);
            write!(out, "{style}{sign}{style:#} ")?;
            out.flush()?;
        }
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok((!message.trim().is_empty()).then_some(message));
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let Some(part) = line.strip_suffix('\\') else {
            message.push_str(line);
            return Ok(Some(message));
        };
        message.push_str(part);
        message.push('\n');
    }
}
