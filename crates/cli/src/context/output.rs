//! Answers, reports, notes and warnings.

use std::io::{self, Write};

use retake_model::id::ThreadId;
use retake_store::ThreadRow;
use retake_timeline::ProjectChange;
use serde::Serialize;

use super::Context;
use crate::arguments::Effect;
use crate::failure::{Code, Failure};
use crate::ui::command::environment;
use crate::ui::json;
use crate::ui::pager::{Pager, Paging, ignore_closed_pipe};
use crate::ui::progress::ProgressMode;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::{StreamEnvironment as Streams, Styles, decide, stderr};

impl Context {
    /// Prints a warning, in text and JSON mode.
    pub(super) fn warn(&self, text: &str) -> Result<(), Failure> {
        if self.general.quiet {
            return Ok(());
        }
        let style = self.styles.warning;
        Ok(writeln!(stderr(self.general.color), "{style}warning:{style:#} {text}")?)
    }

    /// Prints the answer: JSON with `--json`, otherwise text.
    pub(crate) fn answer(
        &self,
        value: &impl Serialize,
        text: impl FnOnce(&mut dyn Write, &Styles) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let paging = if self.general.no_pager || self.general.json || !self.config.output.pager {
            Paging::Off
        } else {
            Paging::Allowed
        };
        let mut out = Pager::new(self.screen, paging, self.colours(), &environment);
        let written = if self.general.json {
            json::write(&mut out, value).and_then(|()| writeln!(out))
        } else {
            text(&mut out, &self.styles)
        };
        Ok(out.finish(written)?)
    }

    pub(crate) fn colours(&self) -> anstream::ColorChoice {
        decide(self.general.color, Streams::of_stdout())
    }

    /// Prints text byte for byte, without pager or colours.
    pub(crate) fn answer_verbatim(&self, value: &impl Serialize, text: &str) -> Result<(), Failure> {
        if self.general.json {
            return self.answer(value, |_, _| Ok(()));
        }
        Ok(ignore_closed_pipe(io::stdout().write_all(text.as_bytes()))?)
    }

    /// Prints the result of a change, unless `--quiet` is set.
    pub(crate) fn report(
        &self,
        value: &impl Serialize,
        text: impl FnOnce(&mut dyn Write, &Styles) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.general.quiet && !self.general.json {
            return Ok(());
        }
        self.answer(value, text).map_err(|failure| self.not_written(failure, value))
    }

    /// The failure to write the answer of a command that was carried out. Repeating the command would execute it twice.
    fn not_written(&self, failure: Failure, answer: &impl Serialize) -> Failure {
        if self.general.effect == Effect::Preview {
            return failure;
        }
        let message =
            format!("the command was carried out, but its answer could not be written: {}", failure.message);
        let mut failure = Failure::new(Code::AnswerNotWritten, message);
        let answer = serde_json::to_value(answer).unwrap_or_default();
        for name in ["thread", "version", "operation"] {
            if let Some(value) = answer.get(name).filter(|value| !value.is_null()) {
                failure = failure.with(name, value.clone());
            }
        }
        failure
    }

    /// Prints a note on standard error, in text mode.
    pub(crate) fn note(&self, text: &str) -> Result<(), Failure> {
        if self.general.quiet || self.general.json {
            return Ok(());
        }
        let style = self.styles.muted;
        let text = sanitize(text, LineBreaks::Keep);
        Ok(writeln!(stderr(self.general.color), "{style}{text}{style:#}")?)
    }

    /// Notes that a list is empty, with the command that adds to it. Standard output stays empty, so that scripts read no line.
    pub(crate) fn note_empty(&self, what: &str, next: &str) -> Result<(), Failure> {
        self.note(&format!("{what}; {next}."))
    }

    /// Notes that another thread of the project has the same title. Titles are unique when set, but an undo, a jump or
    /// a restore can bring back a duplicate.
    pub(crate) fn note_same_titles(&self, thread: ThreadId) {
        if !self.general.quiet && !self.general.json {
            // The change succeeded: a failing note is ignored.
            let _ = self.try_to_note_same_titles(thread);
        }
    }

    fn try_to_note_same_titles(&self, thread: ThreadId) -> Result<(), Failure> {
        let reader = self.timeline()?.read()?;
        let row = reader.thread(thread)?;
        let title = &row.summary.title;
        let same = |other: &&ThreadRow| {
            other.number != row.number && other.home == row.home && other.summary.deleted.is_none()
        };
        let others = reader.queries().threads_with_title(title)?;
        match others.iter().find(same).filter(|_| row.summary.deleted.is_none()) {
            None => Ok(()),
            Some(other) => self.note(&format!(
                "Thread {} has the same title {title:?}; refer to this one as {}, or rename it.",
                other.summary.id.short(),
                row.summary.id.short(),
            )),
        }
    }

    /// Whether to show a progress bar.
    pub(crate) fn observer(&self) -> ProgressMode {
        if self.general.quiet || self.general.json { ProgressMode::Nobody } else { ProgressMode::detect() }
    }

    pub(crate) fn report_noticed(&self, folder_change: &ProjectChange) -> Result<(), Failure> {
        match folder_change {
            ProjectChange::Nothing | ProjectChange::New => Ok(()),
            ProjectChange::Moved { from } => {
                self.note(&format!("This project moved here from {from}, with its threads."))
            }
            ProjectChange::Copied { of } => self.note(&format!(
                "This folder is a copy of another project and starts without threads; `retake project adopt {}` moves its threads here.",
                of.short()
            )),
            ProjectChange::Replaced { formerly } => self.note(&format!(
                "Another folder was here before. If this is the same project, run `retake project adopt {}` to use its threads.",
                formerly.short()
            )),
        }
    }
}
