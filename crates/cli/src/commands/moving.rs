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
use retake_timeline::{Caller, Executed, FileReport, Goal, LookError, Looking, Moved, PlanRequest, Unit};
use serde::Serialize;

use crate::arguments::Target;
use crate::context::Context;
use crate::describe;
use crate::describe::files::write_if_any;
use crate::desk::{Carried, FileFlags};
use crate::failure::Failure;
use crate::ui::bytes::{self, counted};
use crate::ui::label::Label;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::style::Styles;
use crate::ui::width::width;

/// How many changes a report lists.
const TOLD: usize = 100;
/// How many of them the text output shows.
const SHOWN: usize = 10;

#[derive(Args)]
pub(crate) struct Steps {
    /// How many.
    #[arg(default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Count operations instead of turns.
    #[arg(long = "step")]
    single: bool,
    #[command(flatten)]
    files: FileFlags,
    /// Also undo changes whose author is unknown, or that the thread shares with the one it is a copy of.
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    target: Target,
}

impl Steps {
    /// Runs the move and reports it with a verb such as "Undid".
    pub(crate) fn go(
        self,
        context: &Context,
        verb: &str,
        goal: impl Fn(Unit, u64) -> Goal,
    ) -> Result<(), Failure> {
        let undoes = matches!(goal(Unit::Turn, 1), Goal::Undo(..));
        let looking = context.timeline()?.look()?;
        // Deleting a thread made another one current: an undo without a target undoes the deletion.
        let names_none = self.target.thread.is_none() && self.target.take.is_none();
        let deleted = if undoes && names_none { context.just_deleted(&looking)? } else { None };
        let (thread, take) = if let Some(row) = &deleted {
            (row.summary.id, None)
        } else {
            let (row, take) = context.view(&looking, &self.target)?;
            (row.summary.id, take)
        };
        drop(looking);
        let unit = if self.single { Unit::Operation } else { Unit::Turn };
        let caller = context.caller(thread, self.target.expect)?;
        let mut made = self.count;
        go(
            context,
            (thread, take),
            goal(unit, self.count),
            caller,
            self.files.with_shared(self.shared),
            |story, out| {
                made = story.moved.steps;
                story.write_changes(out, &context.styles, verb)
            },
        )?;
        let is_back =
            || Ok::<_, Failure>(context.timeline()?.look()?.thread(thread)?.summary.deleted.is_none());
        if deleted.is_some() && is_back()? {
            context.timeline()?.work_on(thread, context.caller(thread, None)?)?;
        }
        if made < self.count {
            let (made, asked) = (counted(made, "step", "steps"), bytes::count(self.count));
            context.remark(&format!("{verb} only {made} of {asked}: no more available."))?;
        }
        Ok(())
    }
}

/// Moves along the log, after a preview and confirmation if the session is interactive, and reports the result.
pub(crate) fn go(
    context: &Context,
    (thread, take): (ThreadId, Option<TakeId>),
    goal: Goal,
    caller: Caller,
    flags: FileFlags,
    told: impl FnOnce(&Story, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let request = PlanRequest::Move(goal);
    match context.carry_out_in((thread, take), request, caller, flags.handling(), flags.careful())? {
        Carried::Previewed(preview) => context.report_preview(preview),
        Carried::Done(Executed { moved: Some(moved), files, .. }) => {
            report(context, moved, (files, take), told)
        }
        Carried::Done(_) => Ok(()),
    }
}

/// The report of a move whose details could not be read. The move itself succeeded.
#[derive(Serialize)]
struct Undetailed {
    #[serde(flatten)]
    moved: Moved,
    files: Option<FileReport>,
    /// Why the details are missing.
    report_failed: String,
}

fn report(
    context: &Context,
    moved: Moved,
    (files, take): (Option<FileReport>, Option<TakeId>),
    told: impl FnOnce(&Story, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    // The move succeeded: a report that cannot be read must not look like a failure.
    let story = match tell(context, moved.clone(), (files.clone(), take)) {
        Ok(story) => story,
        Err(failure) => {
            let report_failed = failure.message().to_owned();
            let answer = Undetailed { moved, files, report_failed };
            return context.report(&answer, |out, _| {
                let done = describe::done(&answer.moved.done);
                writeln!(out, "{} version {}", sanitize(&done, Lines::Fold), answer.moved.done.version)?;
                write_if_any(out, context, answer.files.as_ref())?;
                let why = sanitize(&answer.report_failed, Lines::Fold);
                writeln!(out, "Done, but the details cannot be shown: {why}")
            });
        }
    };
    context.report(&story, |out, _| {
        told(&story, out)?;
        write_if_any(out, context, story.files.as_ref())?;
        story.write_also(out, context)?;
        story.write_stand(out, context)
    })?;
    context.remark_namesakes(story.moved.done.thread);
    Ok(())
}

/// The result of an undo, a redo or a jump.
#[derive(Serialize)]
pub(crate) struct Story {
    #[serde(flatten)]
    pub(crate) moved: Moved,
    /// The current change before the move.
    pub(crate) from: Version,
    /// How many changes were undone or redone; 0 after a jump, which can do both.
    pub(crate) count: u64,
    /// The undone changes (newest first) or redone changes (oldest first), at most 100.
    pub(crate) changes: Vec<Change>,
    /// The thread before the move.
    pub(crate) before: Stand,
    /// The thread after the move.
    pub(crate) after: Stand,
    /// File changes; `None` if no files are recorded or only the conversation moved.
    pub(crate) files: Option<FileReport>,
    /// Other threads that the move archived or restored.
    #[serde(skip)]
    also: Vec<ThreadSummary>,
    /// Whether only files moved.
    #[serde(skip)]
    files_alone: bool,
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
pub(crate) struct Stand {
    title: String,
    /// The name of the take that moved: the active one if none was named.
    take: String,
    /// Number of entries in the take.
    entries: u64,
    /// Number of takes in the thread.
    takes: u64,
}

/// Describes a completed move.
pub(crate) fn tell(
    context: &Context,
    moved: Moved,
    (files, take): (Option<FileReport>, Option<TakeId>),
) -> Result<Story, Failure> {
    let looking = context.timeline()?.look()?;
    let (thread, version) = (moved.done.thread, moved.done.version);
    let log = Log { looking: &looking, thread, number: looking.thread(thread)?.number };
    let from = match moved.done.kind {
        Some(
            OperationKind::Undone { from, .. }
            | OperationKind::Redone { from, .. }
            | OperationKind::Jumped { from, .. }
            | OperationKind::FilesMoved { from, .. },
        ) => from,
        _ => moved.position,
    };
    let files_alone = matches!(moved.done.kind, Some(OperationKind::FilesMoved { .. }));
    // A jump can both undo and redo; only its target is reported.
    let jumped = matches!(moved.done.kind, Some(OperationKind::Jumped { .. }));
    let route = if jumped { &[] } else { moved.route.as_slice() };
    let mut changes = log.changes(route)?;
    let mut count = route.len() as u64;
    if files_alone {
        log.keep_filed(&mut changes)?;
        count = changes.len() as u64;
    }
    let mut also = Vec::new();
    for thread in &moved.also {
        also.push(looking.thread(*thread)?.summary);
    }
    // A move is one operation, so the state before it is the previous version.
    let before = log.stand(if moved.done.changed() { version - 1 } else { version }, take)?;
    let after = log.stand(version, take)?;
    Ok(Story { from, count, changes, before, after, files, also, files_alone, moved })
}

impl Story {
    /// Writes the changes after a verb such as "Undid".
    pub(crate) fn write_changes(&self, out: &mut dyn Write, styles: &Styles, verb: &str) -> io::Result<()> {
        let verb = if self.files_alone { format!("{verb} (files only)") } else { verb.to_owned() };
        if let [change] = self.changes.as_slice() {
            return writeln!(out, "{verb}: {}", change.label(styles));
        }
        writeln!(out, "{verb} {}:", counted(self.count, "change", "changes"))?;
        for change in self.changes.iter().take(SHOWN) {
            writeln!(out, "  {}", change.label(styles))?;
        }
        let more = self.count.saturating_sub(SHOWN as u64);
        if more > 0 {
            let (muted, more) = (styles.muted, bytes::count(more));
            writeln!(out, "  {muted}… and {more} more; `retake history` shows them{muted:#}")?;
        }
        Ok(())
    }

    /// Writes the resulting state and the possible next steps.
    pub(crate) fn write_stand(&self, out: &mut dyn Write, context: &Context) -> io::Result<()> {
        let muted = context.styles.muted;
        if self.files_alone {
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
        let stand = format!("Now {}.", self.after.told_after(&self.before));
        let stand = sanitize(&stand, Lines::Fold);
        let together = width(&stand) + 1 + width(next);
        let fits = context.screen.columns().is_none_or(|columns| together <= columns);
        writeln!(out, "{stand}{}{muted}{next}{muted:#}", if fits { ' ' } else { '\n' })
    }

    /// Lists other threads that were archived or restored, because a take had been promoted.
    pub(crate) fn write_also(&self, out: &mut dyn Write, context: &Context) -> io::Result<()> {
        let id = context.styles.id;
        for thread in &self.also {
            let what = if thread.deleted.is_some() { "was archived" } else { "was restored" };
            let title = sanitize(&thread.title, Lines::Fold);
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

impl Stand {
    /// Describes the state, and the previous one where it differs.
    fn told_after(&self, before: &Self) -> String {
        let mut told = format!("on {}, {}", self.take, counted(self.entries, "entry", "entries"));
        let mut was = Vec::new();
        if self.take != before.take {
            was.push(format!("on {}", before.take));
        }
        if self.entries != before.entries {
            was.push(counted(before.entries, "entry", "entries"));
        }
        if self.takes != before.takes {
            was.push(counted(before.takes, "take", "takes"));
            told = format!("{told}, {}", counted(self.takes, "take", "takes"));
        }
        if self.title != before.title {
            told = format!("{told}, titled {:?}", self.title);
        }
        if was.is_empty() { told } else { format!("{told} (before: {})", was.join(", ")) }
    }
}

struct Log<'looking, 'timeline> {
    looking: &'looking Looking<'timeline>,
    thread: ThreadId,
    number: i64,
}

impl Log<'_, '_> {
    fn operation(&self, version: Version) -> Result<retake_store::StoredOperation, Failure> {
        let current = self.looking.thread(self.thread)?.summary.version;
        let found = self.looking.queries().operation(self.number, version)?;
        Ok(found.ok_or(LookError::NoSuchVersion { asked: version, current })?)
    }

    /// Describes the first changes of a route.
    fn changes(&self, route: &[RouteStep]) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        for step in route.iter().take(TOLD) {
            let (version, operation) = (step.version(), self.operation(step.version())?.operation);
            let told = describe::story::tell(self.looking, &operation.kind, operation.after)?;
            changes.push(Change { version, preview: told.preview, words: told.words, kind: operation.kind });
        }
        Ok(changes)
    }

    /// Removes changes that did not change files.
    fn keep_filed(&self, changes: &mut Vec<Change>) -> Result<(), Failure> {
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

    fn stand(&self, version: Version, here: Option<TakeId>) -> Result<Stand, Failure> {
        let state: ThreadState = self.looking.state_at(self.thread, version)?;
        let queries = self.looking.queries();
        let here = here.map(|take| state.take(&queries, take)).transpose().map_err(LookError::from)?;
        let take = match here.flatten() {
            Some(take) => take,
            None => state.active_take(&queries).map_err(LookError::from)?,
        };
        Ok(Stand {
            entries: take.entries.len(),
            take: take.name,
            takes: state.takes.len(),
            title: state.title,
        })
    }
}
