//! `retake chat`
//!
//! ```text
//!   terminal ──► line editor ──┐
//!                              ├──► Input ──► message ──► turn
//!   pipe ──► lines ────────────┘          ├──► /command ──► here, or `retake COMMAND` as a child process
//!                                         └──► !command ──► `retake exec`, on a terminal only
//! ```

mod attachments;
mod header;
mod input;
mod line_editor;
mod suggestions;

use std::io::{self, IsTerminal, Write};
use std::process::{Command, ExitCode};

use clap::Args;
use retake_agent::approval::ApprovalMode;
use retake_agent::{TurnOutcome, TurnRequest, models_used};
use retake_model::agent::TurnEnd;
use retake_model::command::{Prompt, check_prompt};
use retake_model::entry::{EntryVersion, attachment_media_of};
use retake_model::id::{ProjectId, ThreadId};
use retake_surface::{Approve, Choice};
use retake_timeline::ChangeError;

use super::entry::picture;
use super::run::{TurnTarget, new_thread};
use super::usage;
use crate::agent::{AgentFlags, exit};
use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;
use crate::ui::editor::{EditOutcome, edit};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::signals::Foreground;
use crate::ui::style::stderr;
use attachments::attach;
use input::{Input, read_line};
use line_editor::{LineEditor, Typed};

/// Chat with the agent, line by line.
#[derive(Args, Default)]
#[command(after_help = "\
Examples:
  retake chat
  retake chat --model anthropic/claude-sonnet-4-5 --approve edits

Enter sends the message; Alt-Enter, or a backslash before Enter, starts a new line, and pasted lines are one message. \
A line that starts with a slash runs a command: /undo, /retry, /tree, /diff and all others of Retake, and /help lists \
those of the chat. !COMMAND runs a command of the shell, as `retake exec` does. @FILE attaches a file. Tab completes \
commands, threads, takes, models and files; Up and Ctrl-R recall earlier lines of this project. Ctrl-C clears the line, \
and stops a running turn. /quit or Ctrl-D leaves the chat.

If standard input is not a terminal, each line is a message or a command.")]
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
    pub(crate) fn run(self, context: &Context) -> Result<ExitCode, Failure> {
        if context.general.json {
            return Err(Failure::new(
                Code::Usage,
                "`retake chat` is interactive; use `retake run --json` in scripts",
            ));
        }
        let mut chat = Chat {
            opened: context,
            current: None,
            at_start_commit: self.at_start_commit,
            agent: self.agent,
            target: self.target,
        };
        if io::stdin().is_terminal() && io::stderr().is_terminal() && !is_dumb() {
            chat.on_terminal()
        } else {
            chat.on_pipe()
        }
    }
}

/// Whether the terminal cannot move its cursor.
fn is_dumb() -> bool {
    environment("TERM").is_none_or(|name| matches!(name.as_str(), "" | "dumb" | "cons25" | "emacs"))
}

struct Chat<'context> {
    opened: &'context Context,
    /// The context after the last command, which may have created a project or switched threads.
    current: Option<Context>,
    at_start_commit: bool,
    agent: AgentFlags,
    target: Target,
}

/// Whether the chat goes on.
enum Next {
    Continue,
    Leave(ExitCode),
}

impl Chat<'_> {
    fn context(&self) -> &Context {
        self.current.as_ref().unwrap_or(self.opened)
    }

    fn on_terminal(&mut self) -> Result<ExitCode, Failure> {
        let context = self.context();
        let colours = crate::ui::style::stderr_choice(context.general.color) != anstream::ColorChoice::Never;
        let mut editor = LineEditor::new(context.directory(), self.typed_lines(), colours)?;
        let mut shown = String::new();
        let mut is_first = true;
        loop {
            let context = self.context();
            context.in_chat.set(true);
            let header = header::of(context, &self.target, &self.agent);
            if header != shown && !context.general.quiet {
                writeln!(stderr(context.general.color), "{header}")?;
                shown = header;
            }
            if std::mem::take(&mut is_first) {
                context
                    .note("/help lists commands · @FILE attaches · Alt-Enter adds a line · Ctrl-D leaves")?;
            }
            editor.complete_in(self.thread());
            let text = match editor.read(context.styles.user)? {
                Typed::Text(text) => text,
                Typed::Cleared => {
                    self.context().note("Ctrl-D or /quit leaves the chat.")?;
                    continue;
                }
                Typed::End => return Ok(ExitCode::SUCCESS),
            };
            let next = self.answer(Input::typed(&text));
            // A line that starts with a space is not recorded, as in a shell.
            if !text.starts_with(' ') && !text.trim().is_empty() {
                editor.remember(&text);
                self.record(&text);
            }
            if let Next::Leave(code) = next? {
                return Ok(code);
            }
        }
    }

    fn on_pipe(&mut self) -> Result<ExitCode, Failure> {
        let shown = io::stdin().is_terminal();
        if shown {
            self.context()
                .note("Type a message, or a command such as /undo, /retry or /tree. /quit leaves.")?;
        }
        loop {
            let Some(text) = read_line(self.context(), shown)? else { return Ok(ExitCode::SUCCESS) };
            if let Next::Leave(code) = self.answer(Input::piped(&text))? {
                return Ok(code);
            }
        }
    }

    /// Carries out one input. An error does not end the chat.
    fn answer(&mut self, input: Input) -> Result<Next, Failure> {
        let done = match input {
            Input::Nothing => Ok(()),
            Input::Quit => return Ok(Next::Leave(ExitCode::SUCCESS)),
            Input::Help => self.help(),
            Input::Model(name) => self.choose_model(name),
            Input::Approve(name) => self.choose_approval(name.as_deref()),
            Input::Cost => self.show_cost(),
            Input::Editor => match edit("", &environment) {
                Ok(EditOutcome::Changed(text)) if !text.trim().is_empty() => {
                    self.context().note(text.trim_end())?;
                    return self.send(&text, false);
                }
                Ok(_) => self.context().note("Nothing was written, and nothing sent."),
                Err(error) => Err(Failure::new(Code::Failed, error)),
            },
            Input::Command(words) => self.run_command(&words),
            Input::Unfinished(error) => self.context().note(&error),
            Input::Execute(command) => self.execute(&command),
            Input::Message { text, attach } => return self.send(&text, attach),
        };
        if let Err(failure) = done {
            self.report(&failure)?;
        }
        Ok(Next::Continue)
    }

    fn report(&self, failure: &Failure) -> Result<(), Failure> {
        let context = self.context();
        let style = context.styles.error;
        let text = sanitize(&failure.message, LineBreaks::Keep).into_owned();
        Ok(writeln!(stderr(context.general.color), "{style}error:{style:#} {text}")?)
    }

    fn send(&mut self, text: &str, attach: bool) -> Result<Next, Failure> {
        match self.turn(text, attach) {
            Ok(outcome) if outcome.how == TurnEnd::ShutDown => return Ok(Next::Leave(exit(&outcome))),
            Ok(_) => {}
            Err(failure) => self.report(&failure)?,
        }
        Ok(Next::Continue)
    }

    fn turn(&mut self, text: &str, with_files: bool) -> Result<TurnOutcome, Failure> {
        let context = self.current.as_ref().unwrap_or(self.opened);
        let target = TurnTarget::find(context, &self.target, false)?;
        if self.at_start_commit {
            target.check_start_commit(context)?;
        }
        let settings = target.settings(context)?;
        let backend = context.backend(&settings, &self.agent)?;
        let attached = if with_files { attach(context.directory(), text)? } else { attachments::none(text) };
        let version = EntryVersion::from_text(&target.role(context)?, &attached.text, context.now());
        let entry = picture::attach(version, attached.pictures)?;
        check_prompt(&entry.version).map_err(ChangeError::from)?;
        for bytes in &entry.blobs {
            let media = attachment_media_of(bytes).unwrap_or_default();
            backend
                .check_attachment(media, bytes.len())
                .map_err(|error| Failure::new(Code::Refused, error))?;
        }
        target.check_folder(context)?;
        if !attached.names.is_empty() {
            context.note(&format!("Attached {}.", attached.names.join(", ")))?;
        }
        let (resolved, _) = target.prepare(context, &self.target, text)?;
        // Later messages go to the same thread, even if another process switches threads.
        self.target.thread = Some(resolved.thread.summary.id.to_string());
        let runtime =
            context.runtime_with(backend, (resolved.thread.summary.id, resolved.take.id), &self.agent)?;
        let beginning = TurnRequest {
            prompt: Prompt::Entry(entry),
            settings: self.agent.settings(context, &settings),
            expected: None,
            request: None,
        };
        let (thread, take) = (resolved.thread.summary.id, resolved.take.id);
        context.run_watched((thread, Some(take)), |cancel, observer| {
            runtime.run(thread, take, beginning, cancel, observer)
        })
    }

    fn help(&self) -> Result<(), Failure> {
        let context = self.context();
        let (command, muted) = (context.styles.command, context.styles.muted);
        let mut out = stderr(context.general.color);
        for (name, help) in input::COMMANDS {
            writeln!(out, "  {command}{name:<16}{command:#} {muted}{help}{muted:#}")?;
        }
        Ok(writeln!(
            out,
            "{muted}Every other command of Retake works too, such as /undo, /redo, /retry, /fork 3, /diff or /tree. \
             `/help undo` explains one.{muted:#}"
        )?)
    }

    fn choose_model(&mut self, name: Option<String>) -> Result<(), Failure> {
        let context = self.context();
        let settings = TurnTarget::find(context, &self.target, false)?.settings(context)?;
        let Some(name) = name else {
            let backend = context.backend(&settings, &self.agent)?;
            let (provider, model) = (backend.provider(), backend.model());
            return context.note(&format!(
                "The model is {}. `/model NAME` changes it, Tab completes names, and /models lists all.",
                if provider == model { model.to_owned() } else { format!("{provider}/{model}") }
            ));
        };
        let chosen = AgentFlags { provider: None, model: Some(name), ..self.agent.clone() };
        context.backend(&settings, &chosen)?;
        self.agent = chosen;
        Ok(())
    }

    fn choose_approval(&mut self, name: Option<&str>) -> Result<(), Failure> {
        if let Some(chosen) = name.and_then(Approve::named) {
            self.agent.approve = Some(chosen);
            return Ok(());
        }
        let context = self.context();
        for (_, name, help) in Approve::CHOICES {
            context.note(&format!("  /approve {name:<6} {help}"))?;
        }
        match name {
            Some(name) => Err(Failure::new(Code::Usage, format!("there is no approval {name:?}"))),
            None => Ok(()),
        }
    }

    fn show_cost(&self) -> Result<(), Failure> {
        let context = self.context();
        let TurnTarget::Existing(resolved) = TurnTarget::find(context, &self.target, false)? else {
            return context.note("No model was called in this thread.");
        };
        let used = models_used(context.timeline()?, Some(resolved.thread.summary.id))?;
        if used.is_empty() {
            return context.note("No model was called in this thread.");
        }
        Ok(usage::models::write(&mut stderr(context.general.color), &context.styles, &used)?)
    }

    /// Runs a command of the shell and records its changes.
    fn execute(&mut self, command: &str) -> Result<(), Failure> {
        let context = self.current.as_ref().unwrap_or(self.opened);
        if let TurnTarget::NewThread = TurnTarget::find(context, &self.target, false)? {
            let done = new_thread(context, command)?;
            self.target.thread = Some(done.thread.to_string());
        }
        self.run_command(&["exec", "--", "sh", "-c", command].map(str::to_owned))
    }

    /// Runs another command on the same thread, and follows it to another thread.
    fn run_command(&mut self, words: &[String]) -> Result<(), Failure> {
        let context = self.context();
        let before = context.project()?.current;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).current_dir(context.directory());
        if let Some(thread) = &self.target.thread {
            command.env("RETAKE_THREAD", thread);
        }
        let foreground = Foreground::begin()?;
        let mut child = command.spawn()?;
        foreground.started(child.id());
        let status = child.wait()?;
        foreground.end();
        let renewed = Context::new(context.general.clone())?;
        let after = renewed.project()?.current;
        if after != before && self.target.take.is_none() {
            self.target.thread = after.map(|thread| thread.to_string());
        }
        if words.first().is_some_and(|word| matches!(word.as_str(), "settings" | "setting")) {
            // A setting that was just changed applies, and not the option that the chat started with.
            self.agent = AgentFlags { approve: self.agent.approve, ..AgentFlags::default() };
        }
        self.current = Some(renewed);
        if !status.success() && words.first().is_none_or(|word| word != "exec") {
            self.context().note("Command failed; the chat continues.")?;
        }
        Ok(())
    }

    /// The thread of the next message; `None` if it creates one.
    fn thread(&self) -> Option<ThreadId> {
        self.place().1
    }

    /// The project and the thread of the next message. A thread that cannot be found is reported by the message.
    fn place(&self) -> (Option<ProjectId>, Option<ThreadId>) {
        let context = self.context();
        match TurnTarget::find(context, &self.target, false) {
            Ok(TurnTarget::Existing(resolved)) => {
                (Some(resolved.thread.home), Some(resolved.thread.summary.id))
            }
            _ => (context.project().ok().map(|project| project.id), None),
        }
    }

    /// The lines that were typed in this project. Without them, the chat works as well.
    fn typed_lines(&self) -> Vec<String> {
        let read = || -> Option<Vec<String>> {
            let database = self.context().timeline().ok()?.store().existing_runtime_database().ok()??;
            database.typed_lines(self.place().0?).ok()
        };
        read().unwrap_or_default()
    }

    /// Records a line for later chats in this project. The thread of a message comes first: purging it deletes the line.
    fn record(&self, text: &str) {
        let (Some(project), Some(thread)) = self.place() else { return };
        let Ok(timeline) = self.context().timeline() else { return };
        // The line itself was carried out: failing to record it must not end the chat.
        let _ = timeline
            .store()
            .runtime_database()
            .and_then(|database| database.add_typed_line(project, Some(thread), text));
    }
}

/// The name of an approval mode.
fn approval_name(approve: Approve) -> &'static str {
    let named = |(value, name, _): &(Approve, &'static str, &'static str)| {
        (ApprovalMode::from(*value) == ApprovalMode::from(approve)).then_some(*name)
    };
    Approve::CHOICES.iter().find_map(named).unwrap_or_default()
}
