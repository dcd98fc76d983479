//! `retake chat`

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::{Command, ExitCode};

use clap::Args;
use retake_agent::Beginning;
use retake_model::command::{Prompt, check_prompt};
use retake_model::entry::EntryVersion;
use retake_timeline::ChangeError;

use super::run::TurnTarget;
use crate::agent::AgentFlags;
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::signals::Foreground;
use crate::ui::style::stderr;

/// Talk with the agent, line by line.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake chat
  retake chat --model anthropic/claude-sonnet-4-5 --approve edits

A line is a message; one that ends with a backslash goes on in the next. A line that begins with a slash is any other
command of Retake: /undo, /redo, /retry, /tree, /history, /take switch main, /diff. /quit, or Ctrl-D, leaves; nothing is
lost by it. Ctrl-C ends the turn that runs.")]
pub(crate) struct Arguments {
    /// Refuse messages unless the commit that the thread started from is checked out, and print how to return to it.
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
            return Err(Failure::new(Code::Usage, "chat is for people; `retake run --json` is for programs"));
        }
        let shown = io::stdin().is_terminal();
        if shown {
            context.remark(
                "A line is a message. /undo, /retry, /tree and every other command work too; /quit leaves.",
            )?;
        }
        loop {
            let Some(line) = read(context, shown)? else { return Ok(ExitCode::SUCCESS) };
            let line = line.trim();
            match line.strip_prefix('/').map(str::trim) {
                Some("quit" | "exit" | "q") => return Ok(ExitCode::SUCCESS),
                Some("" | "help") => context.remark(
                    "A line is a message. /undo, /redo, /retry, /tree, /history, /diff, /take …: any command. /quit leaves.",
                )?,
                Some(command) => other(context, command, self.target.thread.as_deref())?,
                None if line.is_empty() => {}
                None => {
                    if let Err(failure) = self.turn(context, line) {
                        // The conversation goes on: what went wrong with one message is no reason to leave.
                        let style = context.styles.error;
                        let text = sanitize(failure.message(), Lines::Keep).into_owned();
                        writeln!(stderr(context.general.color), "{style}error:{style:#} {text}")?;
                    }
                }
            }
        }
    }

    fn turn(&mut self, context: &Context, text: &str) -> Result<(), Failure> {
        let target = TurnTarget::find(context, &self.target, false)?;
        if self.at_start_commit {
            target.check_start_commit(context)?;
        }
        let settings = target.settings(context)?;
        let backend = context.backend(&settings, &self.agent)?;
        let entry = EntryVersion::from_text(&target.role(context)?, text, context.now());
        check_prompt(&entry).map_err(ChangeError::from)?;
        target.check_place(context)?;
        let (meant, _) = target.prepare(context, &self.target, text)?;
        // From now on the same thread, even if another one becomes the current one elsewhere.
        self.target.thread = Some(meant.thread.summary.id.to_string());
        let shop = context.workshop_with(backend, (meant.thread.summary.id, meant.take.id), &self.agent)?;
        let beginning = Beginning {
            prompt: Prompt::Entry(entry.into()),
            settings: self.agent.settings(context, &settings),
            expected: None,
            request: None,
        };
        let (thread, take) = (meant.thread.summary.id, meant.take.id);
        context.watched((thread, Some(take)), |cancel, audience| {
            shop.run(thread, take, beginning, cancel, audience)
        })?;
        Ok(())
    }
}

/// Any other command of this program, on the same thread.
fn other(context: &Context, line: &str, thread: Option<&str>) -> Result<(), Failure> {
    let words = match shell_words::split(line) {
        Ok(words) => words,
        Err(error) => return context.remark(&format!("{error}")),
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
        context.remark("It did not work; the conversation goes on.")?;
    }
    Ok(())
}

/// A message, over as many lines as it has; `None` at the end.
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
