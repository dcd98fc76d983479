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
  retake thread show --at 12             as it was just after version 12
  retake thread show --source            Markdown as it was written
  retake thread show --role User --json

On a terminal, texts are shown as rendered Markdown. Into a pipe, and where a text is longer than 256 KiB or nested
deeper than 32 quotes and lists, they are shown as they were written.")]
pub(crate) struct Arguments {
    /// The thread: a title, or the beginning of an id; THREAD/TAKE for a take [default: the current one].
    thread: Option<String>,
    /// The take [default: the active one].
    #[arg(short = 'k', long, value_name = "TAKE")]
    take: Option<String>,
    /// As it was just after that version.
    #[arg(long, value_name = "VERSION")]
    at: Option<u64>,
    /// All entries.
    #[arg(long, conflicts_with_all = ["last", "from"])]
    all: bool,
    /// The last N entries.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "from")]
    last: Option<u64>,
    /// Entries from that number on.
    #[arg(long, value_name = "NUMBER")]
    from: Option<u64>,
    /// Only entries of that role; may be given several times. Nothing is changed.
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Also entries that are collapsed, thinking and tool output in full.
    #[arg(long)]
    full: bool,
    /// The text as it is stored, not as rendered Markdown. `retake entry source` makes that last.
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
    /// Moves of files that have begun and not ended.
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

/// The same thread and take as they were just after a version.
fn at_version(looking: &Looking<'_>, meant: Meant, version: u64) -> Result<Meant, Failure> {
    let state = looking.state_at(meant.thread.summary.id, version)?;
    let queries = looking.queries();
    let take = match state.take(&queries, meant.take.id).map_err(retake_timeline::LookError::from)? {
        Some(take) => take,
        // The take did not exist then; the one that was active did.
        None => state.active_take(&queries).map_err(retake_timeline::LookError::from)?,
    };
    Ok(Meant { thread: meant.thread, state, roles: meant.roles, take })
}

/// What is shown, in two parts: the thread, and where it stands.
struct Heading {
    thread: Label,
    stand: Label,
}

impl Heading {
    /// On one line, or on two where the screen is narrow.
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
