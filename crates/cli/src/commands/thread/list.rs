//! `retake thread list`

use clap::Args;
use retake_store::{DeletedFilter, Facet, ThreadFilter, ThreadRow};
use retake_timeline::PendingMove;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List threads: pinned ones first, then by last change.
#[derive(Args, Default)]
#[command(after_help = "\
Examples:
  retake thread list
  retake thread list --all --branch main
  retake thread list --tag bug --json
  retake thread list --remote                also what is only on remotes")]
pub(crate) struct Arguments {
    /// List threads of all projects.
    #[arg(short, long)]
    all: bool,
    /// List deleted threads.
    #[arg(long)]
    deleted: bool,
    /// List the threads on remotes; `retake thread pull` brings one here.
    #[arg(long, conflicts_with_all = ["deleted", "title", "tag", "branch", "commit", "dir"])]
    remote: bool,
    #[command(flatten)]
    facets: Facets,
    /// Maximum number of results.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Filters for threads.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Facets {
    /// Title contains this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Has this tag; can be repeated.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Changed while this git branch was checked out.
    #[arg(long, value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// Changed while this commit was checked out (prefix allowed).
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
    /// Changed in this folder or below it.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<std::path::PathBuf>,
}

#[derive(Serialize)]
struct Answer<'rows> {
    threads: Vec<&'rows retake_model::summary::ThreadSummary>,
    current: Option<retake_model::id::ThreadId>,
    /// File moves that were started and not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.remote {
            return super::remote_list::list(context, self.limit);
        }
        let project = context.project()?;
        let filter = ThreadFilter {
            project: (!self.all).then_some(project.id),
            deleted: if self.deleted { DeletedFilter::Only } else { DeletedFilter::Hidden },
            ..self.facets.filter()
        };
        let mut rows = context.timeline()?.read()?.threads(&filter)?;
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        let answer = Answer {
            threads: rows.iter().map(|row| &row.summary).collect(),
            current: project.current,
            pending_moves: context.pending_moves(|thread| rows.iter().any(|row| row.summary.id == thread))?,
        };
        if rows.is_empty() {
            if !self.deleted && filter.facets.is_empty() && filter.title.is_none() {
                context.note_empty("No threads", "`retake thread new` creates one")?;
            } else {
                context.note_empty(
                    "No such threads",
                    "`retake thread list` shows all, except for deleted ones",
                )?;
            }
        }
        context.answer(&answer, |out, styles| {
            if rows.is_empty() {
                return Ok(());
            }
            let table = draw(context, &rows, project.current);
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))
        })
    }
}

impl Facets {
    /// The part of the filter that these options set.
    pub(crate) fn filter(&self) -> ThreadFilter {
        let mut facets: Vec<(Facet, String)> = self.tag.iter().map(|tag| (Facet::Tag, tag.clone())).collect();
        facets.extend(self.branch.iter().map(|branch| (Facet::Branch, branch.clone())));
        facets.extend(self.commit.iter().map(|commit| (Facet::Commit, commit.clone())));
        facets.extend(self.dir.iter().map(|dir| {
            let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
            (Facet::Directory, retake_workspace::folder::path_to_text(&dir))
        }));
        ThreadFilter { facets, title: self.title.clone(), ..ThreadFilter::default() }
    }
}

fn draw(context: &Context, rows: &[ThreadRow], current: Option<retake_model::id::ThreadId>) -> Table<5> {
    let styles = &context.styles;
    let mut table = Table::new([
        Column::left("ID"),
        Column::left("TITLE").flexible(),
        Column::left("TAKE").dispensable(),
        Column::right("ENTRIES").dispensable(),
        Column::right("CHANGED"),
    ]);
    for row in rows {
        let thread = &row.summary;
        let mark = if Some(thread.id) == current { "● " } else { "  " };
        let mut title = Label::new();
        title = if Some(thread.id) == current {
            title.with(styles.active, &thread.title)
        } else {
            title.plain(&thread.title)
        };
        if thread.pinned {
            title = title.with(styles.warning, " ⚑");
        }
        if thread.private {
            title = title.with(styles.muted, " private");
        }
        for tag in &thread.tags {
            title = title.with(styles.muted, &format!(" #{tag}"));
        }
        if !thread.active.preview.is_empty() {
            title = title.with(styles.muted, &format!("  {}", thread.active.preview));
        }
        let takes = match thread.takes {
            1 => thread.active.name.clone(),
            count => format!("{} of {count}", thread.active.name),
        };
        table.row([
            Label::new().with(styles.active, mark).with(styles.id, &thread.id.short()),
            title,
            Label::new().plain(&takes),
            Label::new().with(styles.count, &counted_number(thread.active.entries)),
            Label::new().with(styles.muted, &context.ago(thread.updated)),
        ]);
    }
    table
}

fn counted_number(count: u64) -> String {
    counted(count, "", "").trim_end().to_owned()
}
