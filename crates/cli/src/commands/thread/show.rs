//! `retake thread show`

use std::io::{self, Write};

use clap::Args;
use retake_model::take::{Attachments, Take};
use retake_timeline::{EntryView, Looking, PendingMove, Standing};
use serde::Serialize;

use super::entry::{Manner, write_entry};
use crate::arguments::Target;
use crate::context::{Context, Meant};
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::style::Styles;

/// Show the entries of a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread show                     the last entries of the current thread
  retake thread show \"Fix the login\" --all
    retake thread show --at 12             as of version 12
    retake thread show --source            Markdown source
  retake thread show --role User --json

On a terminal, entries are shown as rendered Markdown. In a pipe, or if a text exceeds 256 KiB or 32 levels of nesting,
the source is shown.")]
pub(crate) struct Arguments {
    /// Thread (title or id prefix), or THREAD/TAKE [default: the current thread].
    thread: Option<String>,
    /// Take [default: the active take].
    #[arg(short = 'k', long, value_name = "TAKE")]
    take: Option<String>,
    /// Show the thread as of this version.
    #[arg(long, value_name = "VERSION")]
    at: Option<u64>,
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
    history: Standing,
    draft: &'show str,
    draft_pictures: &'show Attachments,
    entries: &'show [EntryView],
    /// File moves that were started and not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let target = Target { thread: self.thread.clone(), take: self.take.clone(), expect: None };
        let mut meant = context.meant(&looking, &target)?;
        if let Some(version) = self.at {
            meant = at_version(&looking, meant, version)?;
        }
        let Meant { thread, take, .. } = &meant;
        let range = self.range(take.entries.len(), context.config.output.entries);
        let mut entries = looking.page(thread.summary.id, take, range.clone())?;
        if !self.role.is_empty() {
            entries.retain(|view| self.role.iter().any(|role| role.eq_ignore_ascii_case(&view.entry.role)));
        }
        let summary = retake_model::summary::summarize(take, &looking.queries())
            .map_err(retake_timeline::LookError::from)?;
        let standing = looking.standing_in(thread.summary.id, Some(take.id))?;
        let answer = Answer {
            thread: &thread.summary,
            take: &summary,
            history: standing,
            draft: &take.draft,
            draft_pictures: &take.attached,
            entries: &entries,
            pending_moves: context.pending_moves(|pending| pending == thread.summary.id)?,
        };
        context.answer(&answer, |out, styles| {
            let line = heading(styles, &meant, self.at, standing);
            writeln!(out, "{}\n", line.in_lines(context.screen.columns()))?;
            if range.start > 0 {
                let muted = styles.muted;
                let earlier = counted(range.start, "earlier entry", "earlier entries");
                writeln!(out, "{muted}… {earlier} (--all shows them){muted:#}\n")?;
            }
            let manner = Manner { full: self.full, source: self.source };
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
fn at_version(looking: &Looking<'_>, meant: Meant, version: u64) -> Result<Meant, Failure> {
    let state = looking.state_at(meant.thread.summary.id, version)?;
    let queries = looking.queries();
    let take = match state.take(&queries, meant.take.id).map_err(retake_timeline::LookError::from)? {
        Some(take) => take,
        // The take did not exist then; use the one that was active.
        None => state.active_take(&queries).map_err(retake_timeline::LookError::from)?,
    };
    Ok(Meant { thread: meant.thread, state, roles: meant.roles, take })
}

/// The thread's title and its status.
struct Heading {
    thread: Label,
    stand: Label,
}

impl Heading {
    /// On one line, or on two if the screen is narrow.
    fn in_lines(&self, columns: Option<usize>) -> String {
        let Self { thread, stand } = self;
        let fits = columns.is_none_or(|columns| thread.width() + 2 + stand.width() <= columns);
        if fits { format!("{thread}  {stand}") } else { format!("{thread}\n{stand}") }
    }
}

fn heading(styles: &Styles, meant: &Meant, at: Option<u64>, standing: Standing) -> Heading {
    let thread = Label::new()
        .with(styles.heading, &meant.state.title)
        .plain(" ")
        .with(styles.id, &meant.thread.summary.id.short());
    let entries = counted(meant.take.entries.len(), "entry", "entries");
    let mut stand = format!("{}, {entries}, version {}", meant.take.name, at.unwrap_or(standing.version));
    if standing.can_redo && at.is_none() {
        stand.push_str(", redo possible");
    }
    Heading { thread, stand: Label::new().with(styles.muted, &stand) }
}

fn write_draft(out: &mut dyn Write, styles: &Styles, take: &Take) -> io::Result<()> {
    let preview = retake_words::story::draft(take);
    if preview.is_empty() {
        return Ok(());
    }
    let muted = styles.muted;
    writeln!(out, "{muted}draft:{muted:#} {}", sanitize(&preview, Lines::Fold))
}
