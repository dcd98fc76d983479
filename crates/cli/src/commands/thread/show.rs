//! `retake thread show`

mod turn;

use std::io::{self, Write};

use clap::Args;
use retake_model::take::{Attachments, Take};
use retake_timeline::{EntryView, PendingMove, Reader, TURN, UndoStatus};
use serde::Serialize;

use super::entry::{EntryFormat, write_entry};
use crate::arguments::Target;
use crate::context::{Context, ResolvedTarget};
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// Show the entries of a thread, or what a turn said and changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread show                     the last entries of the current thread
  retake thread show \"Fix the login\" --all
  retake thread show --at 12             as of version 12
  retake thread show --at turn:3         as of the end of turn 3
  retake show turn:3                     what turn 3 said, and which files it changed
  retake thread show --source            Markdown source
  retake thread show --role User --json

On a terminal, entries are shown as rendered Markdown. In a pipe, or if a text exceeds 256 KiB or 32 levels of nesting, \
the source is shown.")]
pub(crate) struct Arguments {
    /// Thread (title or id prefix), or THREAD/TAKE [default: the current thread]; or `turn:NUMBER` of the current one.
    #[arg(value_name = "THREAD|TURN")]
    thread: Option<String>,
    /// Take [default: the active take].
    #[arg(short = 'k', long, value_name = "TAKE")]
    take: Option<String>,
    /// Show the thread as of this version: a number, a saved name or `turn:NUMBER`.
    #[arg(long, value_name = "VERSION")]
    at: Option<String>,
    /// Show all entries.
    #[arg(long, conflicts_with_all = ["last", "from"])]
    all: bool,
    /// Show the last N entries.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "from")]
    last: Option<u64>,
    /// Show entries from this number on.
    #[arg(long, value_name = "NUMBER")]
    from: Option<u64>,
    /// Show only entries of this role; can be repeated.
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Show collapsed entries, thinking and tool output in full.
    #[arg(long)]
    full: bool,
    /// Show the Markdown source. `retake entry source` makes this permanent.
    #[arg(long)]
    source: bool,
}

#[derive(Serialize)]
struct Answer<'show> {
    thread: &'show retake_model::summary::ThreadSummary,
    take: &'show retake_model::summary::TakeSummary,
    history: UndoStatus,
    draft: &'show str,
    draft_pictures: &'show Attachments,
    entries: &'show [EntryView],
    /// File moves that were started and not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(text) = self.thread.as_deref().filter(|text| text.starts_with(TURN)) {
            return turn::show(
                context,
                text,
                self.take.as_deref(),
                EntryFormat { full: self.full, source: self.source },
            );
        }
        let reader = context.timeline()?.read()?;
        let target = Target { thread: self.thread.clone(), take: self.take.clone(), expect: None };
        let mut resolved = context.resolve(&reader, &target)?;
        let mut at = None;
        if let Some(text) = &self.at {
            let history = reader.history(resolved.thread.summary.id).in_take(Some(resolved.take.id));
            let version = history.version_named(text)?;
            resolved = at_version(&reader, resolved, version)?;
            at = Some(version);
        }
        let ResolvedTarget { thread, take, .. } = &resolved;
        let range = self.range(take.entries.len(), context.config.output.entries);
        let mut entries = reader.entries(thread.summary.id, take).page(range.clone())?;
        if !self.role.is_empty() {
            entries.retain(|view| self.role.iter().any(|role| role.eq_ignore_ascii_case(&view.entry.role)));
        }
        let summary = retake_model::summary::summarize(take, &reader.queries())
            .map_err(retake_timeline::ReadError::from)?;
        let undo_status = reader.history(thread.summary.id).in_take(Some(take.id)).undo_status()?;
        let answer = Answer {
            thread: &thread.summary,
            take: &summary,
            history: undo_status,
            draft: &take.draft,
            draft_pictures: &take.attached,
            entries: &entries,
            pending_moves: context.pending_moves(|pending| pending == thread.summary.id)?,
        };
        context.answer(&answer, |out, styles| {
            let line = heading(styles, &resolved, at, undo_status);
            writeln!(out, "{}\n", line.in_lines(context.screen.columns()))?;
            if range.start > 0 {
                let muted = styles.muted;
                let earlier = counted(range.start, "earlier entry", "earlier entries");
                writeln!(out, "{muted}… {earlier} (--all shows them){muted:#}\n")?;
            }
            let manner = EntryFormat { full: self.full, source: self.source };
            for view in &entries {
                write_entry(out, context, view, manner)?;
            }
            write_draft(out, styles, take)
        })
    }

    fn range(&self, length: u64, usual: u64) -> std::ops::Range<u64> {
        if self.all {
            return 0..length;
        }
        match self.from {
            Some(number) => {
                let start = number.saturating_sub(1).min(length);
                start..start.saturating_add(self.last.unwrap_or(usual)).min(length)
            }
            None => length.saturating_sub(self.last.unwrap_or(usual))..length,
        }
    }
}

/// The same thread and take as of a version.
fn at_version(
    reader: &Reader<'_>,
    resolved: ResolvedTarget,
    version: u64,
) -> Result<ResolvedTarget, Failure> {
    let state = reader.state_at(resolved.thread.summary.id, version)?;
    let queries = reader.queries();
    let take = match state.take(&queries, resolved.take.id).map_err(retake_timeline::ReadError::from)? {
        Some(take) => take,
        // The take did not exist then; use the one that was active.
        None => state.active_take(&queries).map_err(retake_timeline::ReadError::from)?,
    };
    Ok(ResolvedTarget { thread: resolved.thread, state, roles: resolved.roles, take })
}

/// The thread's title and its status.
struct Heading {
    thread: Label,
    status: Label,
}

impl Heading {
    /// On one line, or on two if the screen is narrow.
    fn in_lines(&self, columns: Option<usize>) -> String {
        let Self { thread, status } = self;
        let fits = columns.is_none_or(|columns| thread.width() + 2 + status.width() <= columns);
        if fits { format!("{thread}  {status}") } else { format!("{thread}\n{status}") }
    }
}

fn heading(styles: &Styles, resolved: &ResolvedTarget, at: Option<u64>, undo_status: UndoStatus) -> Heading {
    let thread = Label::new()
        .with(styles.heading, &resolved.state.title)
        .plain(" ")
        .with(styles.id, &resolved.thread.summary.id.short());
    let entries = counted(resolved.take.entries.len(), "entry", "entries");
    let mut status =
        format!("{}, {entries}, version {}", resolved.take.name, at.unwrap_or(undo_status.version));
    if undo_status.can_redo && at.is_none() {
        status.push_str(", redo possible");
    }
    Heading { thread, status: Label::new().with(styles.muted, &status) }
}

fn write_draft(out: &mut dyn Write, styles: &Styles, take: &Take) -> io::Result<()> {
    let preview = retake_render::describe::draft(take);
    if preview.is_empty() {
        return Ok(());
    }
    let muted = styles.muted;
    writeln!(out, "{muted}draft:{muted:#} {}", sanitize(&preview, LineBreaks::Fold))
}
