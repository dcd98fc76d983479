//! Prints a turn to a terminal or a pipe, or as JSON lines.
//!
//! The model's text goes to standard output as it arrives, rendered on a terminal with colours; everything else goes to
//! standard error, so that a pipe gets only the answer. With `--json`, standard output has one event per line.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use retake_agent::approval::ApprovalQuestion;
use retake_agent::{Cancel, Reply, TurnEvent, TurnObserver};
use retake_model::agent::{ToolOutcome, TurnEnd};
use retake_model::entry::Usage;
use retake_model::id::{TakeId, ThreadId};

use super::approval_prompt;
use crate::context::Context;
use crate::ui::bytes::{count, counted};
use crate::ui::cancellable_output::CancellableOutput;
use crate::ui::json;
use crate::ui::markdown::{MarkdownStream, MarkerStyle, RenderOptions};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::screen::Screen;
use crate::ui::style::stderr_choice;

/// How many lines of a tool's result are shown.
const RESULT_LINES: usize = 4;

pub(crate) struct TurnOutput<'context> {
    context: &'context Context,
    /// The thread, and the take of the turn if it is known beforehand.
    location: (ThreadId, Option<TakeId>),
    cancel: Cancel,
    /// The unfinished line on the screen, if any, so that the next output starts on a new line.
    open_line: OpenLine,
    /// The answer on a terminal; `None` where its source is printed.
    markdown: Option<MarkdownStream>,
    /// Whether standard error is a terminal.
    seen: bool,
    /// Whether a call was denied because the session is not interactive.
    refused: bool,
    broken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenLine {
    LineStart,
    Text,
    Thinking,
    Progress,
    /// A progress line, which the next one overwrites.
    Status,
}

/// Moves to the start of the line and clears it.
const CLEAR_LINE: &str = "\r\u{1b}[K";

impl<'context> TurnOutput<'context> {
    pub(crate) fn new(
        context: &'context Context,
        location: (ThreadId, Option<TakeId>),
        cancel: &Cancel,
    ) -> Self {
        let seen = io::stderr().is_terminal() && !context.general.quiet;
        Self {
            context,
            location,
            cancel: cancel.clone(),
            open_line: OpenLine::LineStart,
            markdown: is_rendered(context).then(MarkdownStream::default),
            seen,
            refused: false,
            broken: false,
        }
    }

    /// A hint for the end of the turn, if calls were denied.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.refused.then_some(
            "Some calls were denied, because the session is not interactive; pass `--approve edits` or `--approve all`.",
        )
    }

    /// Ends the current line, if one is open.
    pub(crate) fn finish_line(&mut self) {
        let _ = self.fresh_line();
    }

    fn show(&mut self, event: &TurnEvent) -> io::Result<()> {
        if self.context.general.json {
            let mut line = Vec::new();
            json::write(&mut line, event)?;
            line.push(b'\n');
            return CancellableOutput::stdout(&self.cancel).write_all(&line);
        }
        match event {
            TurnEvent::Text { text } => self.text(text),
            TurnEvent::Thinking { text } => self.secondary(OpenLine::Thinking, text),
            TurnEvent::ToolProgress {
                fraction, message, units_processed, unit, text, omitted_bytes, ..
            } => {
                self.secondary(OpenLine::Progress, text)?;
                if *omitted_bytes > 0 {
                    let omitted = format!("[… {} bytes not shown …]", count(*omitted_bytes));
                    self.fresh_line()?;
                    self.secondary(OpenLine::Progress, &format!("{omitted}\n"))?;
                }
                let units = units_processed.zip(unit.as_deref());
                if text.is_empty() { self.status(*fraction, message, units) } else { Ok(()) }
            }
            TurnEvent::HookProgress { text, .. } => self.secondary(OpenLine::Progress, text),
            _ if self.context.general.quiet => Ok(()),
            TurnEvent::HookStarted { command } => {
                let style = self.context.styles.tool;
                self.line(&format!("{style}● hook{style:#} {}", fold(command)))
            }
            TurnEvent::ToolStarted { tool, what, .. } => {
                let style = self.context.styles.tool;
                self.line(&format!("{style}● {}{style:#} {}", fold(tool), fold(what)))
            }
            TurnEvent::ToolEnded { outcome, text, files, .. }
            | TurnEvent::HookEnded { outcome, text, files } => self.tool_ended(*outcome, text, *files),
            TurnEvent::Notice { message } => {
                let style = self.context.styles.warning;
                self.line(&format!("{style}note:{style:#} {}", fold(message)))
            }
            TurnEvent::Retrying { message, millis, attempt } => {
                let style = self.context.styles.warning;
                let seconds = millis.div_ceil(1000);
                let message = fold(message);
                self.line(&format!(
                    "{style}attempt {attempt} failed:{style:#} {message}; retrying in {seconds} s"
                ))
            }
            TurnEvent::Compressed { removed } => {
                let what = counted(*removed, "entry", "entries");
                self.muted(&format!("The conversation was too long; a summary replaces {what}."))
            }
            TurnEvent::Answered { stop: Some(stop), stop_detail: Some(detail), .. } => {
                self.muted(&format!("The model stopped: {} ({})", fold(stop), fold(detail)))
            }
            TurnEvent::Answered { stop: Some(words), .. }
            | TurnEvent::Answered { stop_detail: Some(words), .. } => {
                self.muted(&format!("The model stopped: {}", fold(words)))
            }
            TurnEvent::Ended { how, message, version, micro_dollars, usage } => {
                self.ended(*how, message.as_deref(), *version, *micro_dollars, usage)
            }
            TurnEvent::Started { .. }
            | TurnEvent::Calling { .. }
            | TurnEvent::CallStarted { .. }
            | TurnEvent::Answered { .. }
            | TurnEvent::ApprovalRequested { .. }
            | TurnEvent::State { .. }
            | TurnEvent::Steered { .. } => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if self.open_line != OpenLine::Text {
            self.fresh_line()?;
        }
        let screen = Screen::detect();
        if let (Some(markdown), Screen::Terminal { columns, rows }) = (&mut self.markdown, screen) {
            let columns = screen.text_columns().min(columns.saturating_sub(1)).max(1);
            let styles = &self.context.styles;
            let options = RenderOptions { columns, styles, marks: MarkerStyle::Styled };
            let written = markdown.push(text, rows, options);
            if !written.is_empty() {
                CancellableOutput::stdout(&self.cancel).write_all(written.as_bytes())?;
                self.open_line = OpenLine::Text;
            }
            return Ok(());
        }
        // Each piece is safe on its own: a control sequence is always neutralised at its first character.
        CancellableOutput::stdout(&self.cancel).write_all(sanitize(text, LineBreaks::Keep).as_bytes())?;
        self.open_line = if text.ends_with('\n') { OpenLine::LineStart } else { OpenLine::Text };
        Ok(())
    }

    fn secondary(&mut self, what: OpenLine, text: &str) -> io::Result<()> {
        if !self.seen || text.is_empty() {
            return Ok(());
        }
        if self.open_line != what {
            self.fresh_line()?;
        }
        let style = self.context.styles.muted;
        self.report(format_args!("{style}{}{style:#}", sanitize(text, LineBreaks::Keep)))?;
        self.open_line = if text.ends_with('\n') { OpenLine::LineStart } else { what };
        Ok(())
    }

    /// Overwrites the progress line of a tool.
    fn status(&mut self, fraction: Option<f64>, message: &str, units: Option<(u64, &str)>) -> io::Result<()> {
        let line = progress_line(fraction, message, units);
        if !self.seen || line.is_empty() {
            return Ok(());
        }
        if self.open_line != OpenLine::Status {
            self.fresh_line()?;
        }
        let style = self.context.styles.muted;
        self.report(format_args!("{CLEAR_LINE}{style}  {line}{style:#}"))?;
        self.open_line = OpenLine::Status;
        Ok(())
    }

    fn tool_ended(&mut self, outcome: ToolOutcome, text: &str, files: u64) -> io::Result<()> {
        let (success, error, muted) =
            (self.context.styles.success, self.context.styles.error, self.context.styles.muted);
        let head = match outcome {
            ToolOutcome::Succeeded if files > 0 => {
                format!("{success}  ✓{success:#} {} changed", counted(files, "file", "files"))
            }
            ToolOutcome::Succeeded => return self.fresh_line(),
            ToolOutcome::Failed => format!("{error}  ✗ failed{error:#}"),
            ToolOutcome::Denied => format!("{error}  ✗ denied{error:#}"),
            ToolOutcome::Interrupted => format!("{error}  ✗ interrupted{error:#}"),
        };
        self.line(&head)?;
        if outcome != ToolOutcome::Succeeded {
            for line in text.lines().take(RESULT_LINES) {
                self.line(&format!("    {muted}{}{muted:#}", fold(line)))?;
            }
        }
        Ok(())
    }

    fn ended(
        &mut self,
        how: TurnEnd,
        message: Option<&str>,
        version: u64,
        micro_dollars: Option<u64>,
        usage: &Usage,
    ) -> io::Result<()> {
        self.fresh_line()?;
        let error = self.context.styles.error;
        match how {
            TurnEnd::Completed => {}
            TurnEnd::Interrupted => {
                self.line(&format!("{error}Interrupted.{error:#} The partial answer is saved."))?;
            }
            TurnEnd::ShutDown => {
                self.line(&format!(
                    "{error}Stopped before the turn ended.{error:#} The partial answer is saved."
                ))?;
                self.muted(&format!("`{}` continues this turn.", self.suggested("retake resume")))?;
            }
            TurnEnd::Failed => {
                let message =
                    sanitize(message.unwrap_or("something went wrong"), LineBreaks::Keep).into_owned();
                self.line(&format!("{error}error:{error:#} {message}"))?;
                self.muted(&format!("`{}` continues this turn.", self.suggested("retake resume")))?;
            }
        }
        if !self.seen {
            return Ok(());
        }
        let mut facts = Vec::new();
        if usage.input_tokens + usage.output_tokens > 0 {
            let read = usage.total_input();
            facts.push(format!("{} tokens read, {} written", count(read), count(usage.output_tokens)));
        }
        if let Some(cost) = micro_dollars {
            facts.push(dollars(cost));
        }
        let undo = self.context.undo_command_of(self.location.0, self.location.1, version);
        facts.push(format!("version {version}; `{}` undoes the turn", self.suggested(&undo)));
        self.muted(&facts.join(" · "))
    }

    /// A command as the user would type it here.
    fn suggested(&self, command: &str) -> String {
        if self.context.in_chat.get() { command.replacen("retake ", "/", 1) } else { command.to_owned() }
    }

    fn muted(&mut self, text: &str) -> io::Result<()> {
        let style = self.context.styles.muted;
        self.line(&format!("{style}{text}{style:#}"))
    }

    /// Writes a separate line to standard error.
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        self.report(format_args!("{text}\n"))
    }

    fn report(&self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let mut coloured = AutoStream::new(Vec::new(), stderr_choice(self.context.general.color));
        coloured.write_fmt(text)?;
        CancellableOutput::stderr(&self.cancel).write_all(&coloured.into_inner())
    }

    /// Ends the open line on its own stream.
    fn fresh_line(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.open_line, OpenLine::LineStart) {
            OpenLine::LineStart => Ok(()),
            OpenLine::Text => {
                let in_line = self.markdown.as_mut().is_none_or(MarkdownStream::finish);
                let end: &[u8] = if in_line { b"\n" } else { b"" };
                CancellableOutput::stdout(&self.cancel).write_all(end)
            }
            OpenLine::Status => self.report(format_args!("{CLEAR_LINE}")),
            OpenLine::Thinking | OpenLine::Progress => self.report(format_args!("\n")),
        }
    }
}

impl TurnObserver for TurnOutput<'_> {
    fn on_event(&mut self, event: &TurnEvent) {
        // A closed pipe does not stop the turn: its events are recorded in the thread.
        if !self.broken && self.show(event).is_err() {
            self.broken = true;
        }
    }

    fn ask(&mut self, question: &ApprovalQuestion, settled: &Cancel) -> Option<Reply> {
        if self.context.general.json || !approval_prompt::is_interactive() {
            self.refused = true;
            let reason = "Denied: not interactive; use --approve. Continue without this call.";
            return Some(Reply { allowed: false, remember: false, reason: Some(reason.to_owned()) });
        }
        let _ = self.fresh_line();
        let decision = approval_prompt::prompt_for_approval(self.context, question, settled).ok().flatten();
        // End of input. A call that was decided elsewhere does not end the turn.
        if decision.is_none() && !settled.is_set() {
            self.cancel.set();
        }
        decision
    }
}

/// Code is not broken into lines that are shorter than this.
const MIN_RENDERED_COLUMNS: usize = 20;

/// Whether answers are rendered: on a terminal that shows styles and takes everything that is printed.
fn is_rendered(context: &Context) -> bool {
    context.screen.columns().is_some_and(|columns| columns >= MIN_RENDERED_COLUMNS)
        && io::stderr().is_terminal()
        && !context.general.json
        && context.colours() != anstream::ColorChoice::Never
}

/// Progress of a tool, such as `Searching: 42 %, 33,600 files`.
fn progress_line(fraction: Option<f64>, message: &str, units: Option<(u64, &str)>) -> String {
    let percent = fraction.map(|fraction| format!("{:.0} %", fraction.clamp(0.0, 1.0) * 100.0));
    let units = units.map(|(processed, unit)| format!("{} {}", count(processed), fold(unit)));
    let facts = percent.into_iter().chain(units).collect::<Vec<_>>().join(", ");
    match (message.is_empty(), facts.is_empty()) {
        (true, _) => facts,
        (false, true) => fold(message),
        (false, false) => format!("{}: {facts}", fold(message)),
    }
}

pub(crate) fn dollars(micro: u64) -> String {
    match micro {
        0..10_000 => format!("${:.4}", micro as f64 / 1e6),
        _ => format!("${:.2}", micro as f64 / 1e6),
    }
}

fn fold(text: &str) -> String {
    sanitize(text, LineBreaks::Fold).into_owned()
}
