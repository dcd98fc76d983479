//! `retake purge`

use std::io::{self, Write};

use clap::Args;
use retake_model::id::ThreadId;
use retake_store::{DeletedFilter, Facet, PurgeReport, ThreadFilter, ThreadRow, WalState};
use retake_timeline::{FileError, Reader};
use retake_workspace::folder::path_from_text;
use serde::Serialize;

use crate::config::Size;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::{counted, size};
use crate::ui::confirm::{Answer as Confirmation, Consent, confirm};
use crate::ui::label::Label;
use crate::ui::style::{Styles, stderr};

/// Destroy threads and their history, after confirmation. No other command does this.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake purge \"Fix the login\"
  retake purge --deleted --older-than 30 --dry-run
  retake purge --deleted --all --yes
  retake purge --deleted --to-fit \"2 GB\" --dry-run    plan which threads to destroy, oldest first

If the current thread is destroyed, the most recently changed of the others becomes current, or none if it was the last. \
To delete a thread without destroying anything, use `retake thread delete`.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate option")]
pub(crate) struct Arguments {
    /// Threads: titles or id prefixes.
    #[arg(required_unless_present = "deleted", conflicts_with = "deleted")]
    threads: Vec<String>,
    /// All deleted threads of this project.
    #[arg(long)]
    deleted: bool,
    /// Only threads deleted at least this many days ago.
    #[arg(long, value_name = "DAYS", requires = "deleted")]
    older_than: Option<u32>,
    /// Threads of all projects.
    #[arg(short, long, requires = "deleted")]
    all: bool,
    /// Only as many threads, oldest first, as needed for the project to fit into this size [default: `files.budget`].
    #[arg(long, value_name = "SIZE", num_args = 0..=1, requires = "deleted", conflicts_with = "all")]
    #[expect(clippy::option_option, reason = "an option without a value differs from no option")]
    to_fit: Option<Option<Size>>,
    /// Only show what would be destroyed.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    dry_run: bool,
    threads: Vec<ThreadName>,
    purged: PurgeReport,
    /// Threads that were promoted from the destroyed ones and lose the files of inherited entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    promoted: Vec<ThreadName>,
}

#[derive(Serialize)]
struct ThreadName {
    id: ThreadId,
    title: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        // Finishes interrupted file moves first: once the thread is gone, nothing knows their target.
        timeline.recover()?;
        let mut rows = self.resolve(context, &timeline.read()?)?;
        if let Some(room) = self.to_fit {
            fit(context, &mut rows, room)?;
        }
        let ids: Vec<ThreadId> = rows.iter().map(|row| row.summary.id).collect();
        check_no_pending_moves(context, &ids)?;
        if !self.dry_run {
            context.check_no_turn(&ids)?;
        }
        check_no_worktree(context, &rows)?;
        let promoted = promoted_from(&timeline.read()?, &ids)?;
        let mut purged = timeline.store().preview_purge(&ids)?;
        if !self.dry_run && !ids.is_empty() {
            let consent = Consent::from_flag(self.yes);
            if consent == Consent::Ask && !context.general.json {
                // On standard error, so that output can still be piped.
                let mut out = stderr(context.general.color);
                write_what(&mut out, context, &rows, &purged)?;
                write_promoted(&mut out, &context.styles, &promoted)?;
            }
            if confirm("Destroy them? This cannot be undone.", consent)? == Confirmation::No {
                return Err(Failure::new(Code::Refused, "nothing was destroyed"));
            }
            purged = timeline.store().purge_threads(&ids)?;
        }
        let threads =
            rows.iter().map(|row| ThreadName { id: row.summary.id, title: row.summary.title.clone() });
        let answer = Answer { dry_run: self.dry_run, threads: threads.collect(), purged, promoted };
        context.report(&answer, |out, styles| {
            if rows.is_empty() {
                return writeln!(out, "Nothing to destroy.");
            }
            if self.dry_run {
                write_what(out, context, &rows, &answer.purged)?;
                return write_promoted(out, styles, &answer.promoted);
            }
            writeln!(out, "Destroyed {}.", sum(&answer.purged))?;
            write_promoted(out, styles, &answer.promoted)?;
            write_copies(out, styles, answer.purged.log, answer.purged.backups)
        })
    }

    fn resolve(&self, context: &Context, reader: &Reader<'_>) -> Result<Vec<ThreadRow>, Failure> {
        if !self.deleted {
            let mut rows: Vec<ThreadRow> = Vec::new();
            for text in &self.threads {
                let row = context.thread(reader, Some(text))?;
                if rows.iter().all(|known| known.number != row.number) {
                    rows.push(row);
                }
            }
            return Ok(rows);
        }
        let project = if self.all { None } else { Some(context.project()?.id) };
        let filter = ThreadFilter { project, deleted: DeletedFilter::Only, ..ThreadFilter::default() };
        let mut rows = reader.threads(&filter)?;
        if let Some(days) = self.older_than {
            let age = i64::from(days) * 24 * 60 * 60 * 1000;
            let now = context.now();
            rows.retain(|row| row.summary.deleted.is_some_and(|moment| now.millis_since(moment) >= age));
        }
        Ok(rows)
    }
}

/// Keeps only the threads, oldest first, that must go for the project to fit.
fn fit(context: &Context, rows: &mut Vec<ThreadRow>, room: Option<Size>) -> Result<(), Failure> {
    let Some(Size(room)) = room.or(context.config.files.budget) else {
        let message = "--to-fit needs a size: pass one, or set files.budget";
        return Err(Failure::new(Code::Usage, message));
    };
    let store = context.timeline()?.store();
    let project = context.project()?.id;
    let taken = store.usage_by_project()?.into_iter().find(|share| share.project == project);
    let taken = taken.map_or(0, |share| share.bytes);
    rows.sort_by_key(|row| row.summary.deleted);
    let left = |count: usize| -> Result<u64, Failure> {
        let ids: Vec<ThreadId> = rows[..count].iter().map(|row| row.summary.id).collect();
        Ok(taken.saturating_sub(store.preview_purge(&ids)?.bytes))
    };
    // Binary search: the more threads go, the less space remains.
    let (mut few, mut enough) = (0, rows.len());
    while few < enough {
        let middle = usize::midpoint(few, enough);
        if left(middle)? <= room { enough = middle } else { few = middle + 1 }
    }
    let still = left(few)?;
    let (taken, wanted, left) = (size(taken), size(room), size(still));
    let verdict = if still > room { "; delete more threads to free more space" } else { "" };
    rows.truncate(few);
    context.note(&format!("The project uses {taken}; the target is {wanted}; {left} would remain{verdict}."))
}

/// Refuses threads with an unfinished file move in a missing folder.
fn check_no_pending_moves(context: &Context, threads: &[ThreadId]) -> Result<(), Failure> {
    for stored in context.timeline()?.read()?.queries().intents()? {
        let roots = stored.intent.roots.iter().map(|(_, path)| path_from_text(path));
        let gone = roots.into_iter().find(|path| !path.is_dir());
        if let (true, Some(gone)) = (threads.contains(&stored.intent.operation.thread), gone) {
            return Err(FileError::FolderGone(gone).into());
        }
    }
    Ok(())
}

/// Refuses threads with a take in a worktree, whose files would lose their history. Deleted threads have none, unless
/// an older version deleted them.
fn check_no_worktree(context: &Context, rows: &[ThreadRow]) -> Result<(), Failure> {
    let reader = context.timeline()?.read()?;
    for open in reader.worktrees().list()? {
        let Some(row) = rows.iter().find(|row| row.summary.id == open.thread) else { continue };
        if row.summary.deleted.is_none() {
            let state = reader.state(open.thread)?;
            let take = state.take(&reader.queries(), open.take).map_err(FileError::from)?;
            let take = take.map(|take| take.name).unwrap_or_default();
            return Err(FileError::TakeHasWorktree { take, path: open.path }.into());
        }
    }
    Ok(())
}

/// Remaining threads that were promoted, with files, from the destroyed ones.
fn promoted_from(reader: &Reader<'_>, gone: &[ThreadId]) -> Result<Vec<ThreadName>, Failure> {
    let mut promoted = Vec::new();
    for parent in gone {
        let filter = ThreadFilter {
            deleted: DeletedFilter::Shown,
            facets: vec![(Facet::Parent, parent.to_string())],
            ..ThreadFilter::default()
        };
        for row in reader.threads(&filter)? {
            let first = reader.queries().operation(row.number, 1)?;
            let has_files = first.is_some_and(|first| first.operation.files.is_some());
            if has_files && !gone.contains(&row.summary.id) {
                promoted.push(ThreadName { id: row.summary.id, title: row.summary.title });
            }
        }
    }
    Ok(promoted)
}

fn write_promoted(out: &mut dyn Write, styles: &Styles, promoted: &[ThreadName]) -> io::Result<()> {
    let warning = styles.warning;
    for thread in promoted {
        let title = Label::new().plain(&thread.title);
        writeln!(
            out,
            "{warning}note:{warning:#} {title} was promoted from here; a fork, branch or retry at an entry from before \
             the promotion will not know the files of that entry"
        )?;
    }
    Ok(())
}

fn write_what(
    out: &mut dyn Write,
    context: &Context,
    rows: &[ThreadRow],
    purged: &PurgeReport,
) -> io::Result<()> {
    let styles = &context.styles;
    writeln!(out, "This destroys {}:", sum(purged))?;
    for row in rows {
        let thread = &row.summary;
        let entries = counted(thread.active.entries, "entry", "entries");
        let versions = counted(thread.version, "version", "versions");
        let line = Label::new()
            .plain("  ")
            .with(styles.id, &thread.id.short())
            .plain(" ")
            .with(styles.removed, &thread.title)
            .with(styles.muted, &format!("  {entries}, {versions}, {}", context.ago(thread.updated)));
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn sum(purged: &PurgeReport) -> String {
    format!(
        "{} with {} and {} of unshared content ({})",
        counted(purged.threads, "thread", "threads"),
        counted(purged.operations, "operation", "operations"),
        counted(purged.objects, "piece", "pieces"),
        size(purged.bytes),
    )
}

/// Notes where copies of the destroyed content may remain.
pub(crate) fn write_copies(
    out: &mut dyn Write,
    styles: &Styles,
    log: Option<WalState>,
    backups: u64,
) -> io::Result<()> {
    let warning = styles.warning;
    if log == Some(WalState::HeldByReader) {
        let text = "another process is reading; the write-ahead log keeps copies until the next change";
        writeln!(out, "{warning}note:{warning:#} {text}")?;
    }
    if backups > 0 {
        let backups = counted(backups, "backup", "backups");
        writeln!(out, "{warning}note:{warning:#} {backups} of the store may still contain copies")?;
    }
    Ok(())
}
