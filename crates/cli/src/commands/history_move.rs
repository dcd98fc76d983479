//! Runs undo, redo and jump, and reports which changes they undid or redid and the resulting state.
//!
//! A move is durable before it is reported, and other processes may change the thread in between. The report is
//! therefore read from the log at the versions that the move wrote, never from the newest state.

use std::io::{self, Write};

use clap::Args;
use retake_model::history::RouteStep;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_model::state::ThreadState;
use retake_model::summary::ThreadSummary;
use retake_timeline::{
    Caller, FileReport, Goal, HistoryMove, PlanOutcome, PlanRequest, ReadError, Reader, TurnName, Unit,
};
use serde::Serialize;

use crate::arguments::Target;
use crate::context::Context;
use crate::describe;
use crate::describe::files::write_if_any;
use crate::failure::Failure;
use crate::ui::bytes::{self, counted};
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;
use crate::ui::width::width;
use crate::working_copy::{FileFlags, MoveResult};

/// How many changes a report lists.
const MAX_REPORTED: usize = 100;
/// How many of them the text output shows.
const MAX_SHOWN: usize = 10;

#[derive(Args)]
pub(crate) struct Steps {
    /// Number of turns, or of operations with --step.
    #[arg(default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Count operations instead of turns.
    #[arg(long = "step")]
    single: bool,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes whose author is unknown, or that are in the thread of which this one is a copy.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    target: Target,
}

impl Steps {
    /// Runs the move and reports it with a verb such as "Undid".
    pub(crate) fn run_move(
        self,
        context: &Context,
        verb: &str,
        to: Option<&str>,
        goal: impl Fn(Unit, u64) -> Goal,
    ) -> Result<(), Failure> {
        let undoes = matches!(goal(Unit::Turn, 1), Goal::Undo(..));
        let reader = context.timeline()?.read()?;
        // Deleting a thread made another one current: an undo without a target undoes the deletion.
        let names_none = self.target.thread.is_none() && self.target.take.is_none();
        let deleted = if undoes && names_none { context.just_deleted(&reader)? } else { None };
        let (thread, take) = if let Some(row) = &deleted {
            (row.summary.id, None)
        } else {
            let (row, take) = context.view(&reader, &self.target)?;
            (row.summary.id, take)
        };
        let unit = if self.single { Unit::Operation } else { Unit::Turn };
        let (goal, asked) = match to {
            Some(text) => {
                let version = reader.history(thread).in_take(take).version_named(text)?;
                (Goal::UndoTo(unit, version), 0)
            }
            None => (goal(unit, self.count), self.count),
        };
        drop(reader);
        let caller = context.caller(thread, self.target.expect)?;
        let mut made = asked;
        run_move(
            context,
            (thread, take),
            goal,
            caller,
            self.files.with_shared(self.shared),
            |report, out| {
                made = report.moved.steps;
                report.write_changes(out, &context.styles, verb)
            },
        )?;
        let is_back =
            || Ok::<_, Failure>(context.timeline()?.read()?.thread(thread)?.summary.deleted.is_none());
        if deleted.is_some() && is_back()? {
            context.switch_thread(thread, context.caller(thread, None)?)?;
        }
        if made < asked {
            let (made, asked) = (counted(made, "step", "steps"), bytes::count(asked));
            context.note(&format!("{verb} only {made} of {asked}: no more available."))?;
        }
        Ok(())
    }
}

/// Moves along the log, after a preview and confirmation if the session is interactive, and reports the result.
pub(crate) fn run_move(
    context: &Context,
    (thread, take): (ThreadId, Option<TakeId>),
    goal: Goal,
    caller: Caller,
    flags: FileFlags,
    description: impl FnOnce(&MoveReport, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let request = PlanRequest::Move(goal);
    match context.execute_in((thread, take), request, caller, flags.move_options(), flags.confirm_flags())? {
        MoveResult::Previewed(preview) => context.report_preview(preview),
        MoveResult::Done(PlanOutcome { moved: Some(moved), files, .. }) => {
            report(context, moved, (files, take), description)
        }
        MoveResult::Done(_) => Ok(()),
    }
}

/// The report of a move whose details could not be read. The move itself succeeded.
#[derive(Serialize)]
struct MinimalReport {
    #[serde(flatten)]
    moved: HistoryMove,
    files: Option<FileReport>,
    /// Why the details are missing.
    report_failed: String,
}

fn report(
    context: &Context,
    moved: HistoryMove,
    (files, take): (Option<FileReport>, Option<TakeId>),
    description: impl FnOnce(&MoveReport, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    // The move succeeded: a report that cannot be read must not look like a failure.
    let report = match describe_move(context, moved.clone(), (files.clone(), take)) {
        Ok(report) => report,
        Err(failure) => {
            let report_failed = failure.message;
            let answer = MinimalReport { moved, files, report_failed };
            return context.report(&answer, |out, _| {
                let done = describe::done(&answer.moved.done);
                writeln!(out, "{} version {}", sanitize(&done, LineBreaks::Fold), answer.moved.done.version)?;
                write_if_any(out, context, answer.files.as_ref())?;
                let why = sanitize(&answer.report_failed, LineBreaks::Fold);
                writeln!(out, "Done, but the details cannot be shown: {why}")
            });
        }
    };
    context.report(&report, |out, _| {
        description(&report, out)?;
        write_if_any(out, context, report.files.as_ref())?;
        report.write_affected_threads(out, context)?;
        report.write_status(out, context)
    })?;
    context.note_same_titles(report.moved.done.thread);
    Ok(())
}

/// The result of an undo, a redo or a jump.
#[derive(Serialize)]
pub(crate) struct MoveReport {
    #[serde(flatten)]
    pub(crate) moved: HistoryMove,
    /// The current change before the move.
    pub(crate) from: Version,
    /// How many changes were undone or redone; 0 after a jump, which can do both.
    pub(crate) count: u64,
    /// The undone changes (newest first) or redone changes (oldest first), at most 100.
    pub(crate) changes: Vec<Change>,
    /// The thread before the move.
    pub(crate) before: ThreadStatus,
    /// The thread after the move.
    pub(crate) after: ThreadStatus,
    /// File changes; `None` if no files are recorded or only the conversation moved.
    pub(crate) files: Option<FileReport>,
    /// The turns whose prompts were undone (newest first) or redone (oldest first).
    pub(crate) turns: Vec<TurnName>,
    /// Other threads that the move deleted or restored.
    #[serde(skip)]
    also: Vec<ThreadSummary>,
    /// Whether only files moved.
    #[serde(skip)]
    files_only: bool,
}

#[derive(Serialize)]
pub(crate) struct Change {
    version: Version,
    kind: OperationKind,
    preview: Option<String>,
    #[serde(skip)]
    words: String,
}

/// A summary of a thread's state.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ThreadStatus {
    title: String,
    /// The name of the take that moved: the active one if none was named.
    take: String,
    /// Number of entries in the take.
    entries: u64,
    /// Number of takes in the thread.
    takes: u64,
}

/// Describes a completed move.
pub(crate) fn describe_move(
    context: &Context,
    moved: HistoryMove,
    (files, take): (Option<FileReport>, Option<TakeId>),
) -> Result<MoveReport, Failure> {
    let reader = context.timeline()?.read()?;
    let (thread, version) = (moved.done.thread, moved.done.version);
    let log = ThreadLog { reader: &reader, thread, number: reader.thread(thread)?.number };
    let from = match moved.done.kind {
        Some(
            OperationKind::Undone { from, .. }
            | OperationKind::Redone { from, .. }
            | OperationKind::Jumped { from, .. }
            | OperationKind::FilesMoved { from, .. },
        ) => from,
        _ => moved.position,
    };
    let files_only = matches!(moved.done.kind, Some(OperationKind::FilesMoved { .. }));
    // A jump can both undo and redo; only its target is reported.
    let jumped = matches!(moved.done.kind, Some(OperationKind::Jumped { .. }));
    let route = if jumped { &[] } else { moved.route.as_slice() };
    let mut changes = log.changes(route)?;
    let mut count = route.len() as u64;
    if files_only {
        log.retain_file_changes(&mut changes)?;
        count = changes.len() as u64;
    }
    let mut also = Vec::new();
    for thread in &moved.also {
        also.push(reader.thread(*thread)?.summary);
    }
    // A move is one operation, so the state before it is the previous version.
    let turns = reader.history(thread).in_take(take).turns_moved(&moved)?;
    let before = log.status(if moved.done.changed() { version - 1 } else { version }, take)?;
    let after = log.status(version, take)?;
    Ok(MoveReport { from, count, changes, before, after, files, turns, also, files_only, moved })
}

impl MoveReport {
    /// Writes the changes after a verb such as "Undid".
    pub(crate) fn write_changes(&self, out: &mut dyn Write, styles: &Styles, verb: &str) -> io::Result<()> {
        let verb = if self.files_only { format!("{verb} (files only)") } else { verb.to_owned() };
        let mut verb = verb.as_str();
        if !self.turns.is_empty() {
            let title = styles.title;
            for turn in self.turns.iter().take(MAX_SHOWN) {
                let name = turn.to_string();
                writeln!(out, "{verb} {title}{}{title:#}", sanitize(&name, LineBreaks::Fold))?;
            }
            let more = self.turns.len().saturating_sub(MAX_SHOWN);
            if more > 0 {
                writeln!(out, "… and {}", counted(more as u64, "more turn", "more turns"))?;
            }
            verb = "That was";
        }
        if let [change] = self.changes.as_slice() {
            return writeln!(out, "{verb}: {}", change.label(styles));
        }
        writeln!(out, "{verb} {}:", counted(self.count, "change", "changes"))?;
        for change in self.changes.iter().take(MAX_SHOWN) {
            writeln!(out, "  {}", change.label(styles))?;
        }
        let more = self.count.saturating_sub(MAX_SHOWN as u64);
        if more > 0 {
            let (muted, more) = (styles.muted, bytes::count(more));
            writeln!(out, "  {muted}… and {more} more; `retake history` shows them{muted:#}")?;
        }
        Ok(())
    }

    /// Writes the resulting state and the possible next steps.
    pub(crate) fn write_status(&self, out: &mut dyn Write, context: &Context) -> io::Result<()> {
        let muted = context.styles.muted;
        if self.files_only {
            return writeln!(
                out,
                "The conversation did not move. {muted}`{}` undoes this.{muted:#}",
                context.undo_command(&self.moved.done)
            );
        }
        let next = match (self.moved.can_undo, self.moved.can_redo) {
            (true, true) => "Undo and redo possible.",
            (true, false) => "Undo possible, nothing to redo.",
            (false, true) => "Redo possible, nothing more to undo.",
            (false, false) => "Nothing to undo or redo.",
        };
        let status = format!("Now {}.", self.after.describe_change_from(&self.before));
        let status = sanitize(&status, LineBreaks::Fold);
        let together = width(&status) + 1 + width(next);
        let fits = context.screen.columns().is_none_or(|columns| together <= columns);
        writeln!(out, "{status}{}{muted}{next}{muted:#}", if fits { ' ' } else { '\n' })
    }

    /// Lists other threads that were deleted or restored, because a take had been promoted.
    pub(crate) fn write_affected_threads(&self, out: &mut dyn Write, context: &Context) -> io::Result<()> {
        let id = context.styles.id;
        for thread in &self.also {
            let what = if thread.deleted.is_some() { "was deleted" } else { "was restored" };
            let title = sanitize(&thread.title, LineBreaks::Fold);
            writeln!(out, "Thread {title} {id}{}{id:#} {what} too.", thread.id.short())?;
        }
        Ok(())
    }
}

impl Change {
    fn label(&self, styles: &Styles) -> Label {
        let label = Label::from(self.words.as_str());
        match &self.preview {
            Some(preview) => label.with(styles.muted, &format!("  {preview}")),
            None => label,
        }
    }
}

impl ThreadStatus {
    /// Describes the state, and the previous one where it differs.
    fn describe_change_from(&self, before: &Self) -> String {
        let mut description = format!("on {}, {}", self.take, counted(self.entries, "entry", "entries"));
        let mut was = Vec::new();
        if self.take != before.take {
            was.push(format!("on {}", before.take));
        }
        if self.entries != before.entries {
            was.push(counted(before.entries, "entry", "entries"));
        }
        if self.takes != before.takes {
            was.push(counted(before.takes, "take", "takes"));
            description = format!("{description}, {}", counted(self.takes, "take", "takes"));
        }
        if self.title != before.title {
            description = format!("{description}, titled {:?}", self.title);
        }
        if was.is_empty() { description } else { format!("{description} (before: {})", was.join(", ")) }
    }
}

struct ThreadLog<'looking, 'timeline> {
    reader: &'looking Reader<'timeline>,
    thread: ThreadId,
    number: i64,
}

impl ThreadLog<'_, '_> {
    fn operation(&self, version: Version) -> Result<retake_store::StoredOperation, Failure> {
        let current = self.reader.thread(self.thread)?.summary.version;
        let found = self.reader.queries().operation(self.number, version)?;
        Ok(found.ok_or(ReadError::NoSuchVersion { asked: version, current })?)
    }

    /// Describes the first changes of a route.
    fn changes(&self, route: &[RouteStep]) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        for step in route.iter().take(MAX_REPORTED) {
            let (version, operation) = (step.version(), self.operation(step.version())?.operation);
            let description = describe::describe::describe(self.reader, &operation.kind, operation.after)?;
            changes.push(Change {
                version,
                preview: description.preview,
                words: description.summary,
                kind: operation.kind,
            });
        }
        Ok(changes)
    }

    /// Removes changes that did not change files.
    fn retain_file_changes(&self, changes: &mut Vec<Change>) -> Result<(), Failure> {
        let mut kept = Vec::new();
        for change in changes.drain(..) {
            let files = self.operation(change.version)?.operation.files;
            if files.is_some_and(|files| files.before != files.after) {
                kept.push(change);
            }
        }
        *changes = kept;
        Ok(())
    }

    fn status(&self, version: Version, here: Option<TakeId>) -> Result<ThreadStatus, Failure> {
        let state: ThreadState = self.reader.state_at(self.thread, version)?;
        let queries = self.reader.queries();
        let here = here.map(|take| state.take(&queries, take)).transpose().map_err(ReadError::from)?;
        let take = match here.flatten() {
            Some(take) => take,
            None => state.active_take(&queries).map_err(ReadError::from)?,
        };
        Ok(ThreadStatus {
            entries: take.entries.len(),
            take: take.name,
            takes: state.takes.len(),
            title: state.title,
        })
    }
}
