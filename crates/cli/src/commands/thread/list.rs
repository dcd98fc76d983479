//! `retake thread list`

use clap::Args;
use retake_store::{Deleted, Facet, ThreadFilter, ThreadRow};
use retake_timeline::PendingMove;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List threads, pinned ones first, then the most lately changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread list
  retake thread list --all --branch main
  retake thread list --tag bug --json")]
pub(crate) struct Arguments {
    /// Those of all projects.
    #[arg(short, long)]
    all: bool,
    /// Those that were put away.
    #[arg(long)]
    deleted: bool,
    #[command(flatten)]
    facets: Facets,
    /// At most that many.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// What threads can be found by.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Facets {
    /// Whose title contains that.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// That have this tag; may be given several times.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Worked on while that git branch was checked out.
    #[arg(long, value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// Worked on while that commit was checked out (its beginning is enough).
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
    /// Worked on in that folder or below it.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<std::path::PathBuf>,
}

#[derive(Serialize)]
struct Answer<'rows> {
    threads: Vec<&'rows retake_model::summary::ThreadSummary>,
    current: Option<retake_model::id::ThreadId>,
    /// Moves of files that have begun and not ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        let filter = ThreadFilter {
            project: (!self.all).then_some(project.id),
            deleted: if self.deleted { Deleted::Only } else { Deleted::Hidden },
            ..self.facets.filter()
        };
        let mut rows = context.timeline()?.look()?.threads(&filter)?;
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        let answer = Answer {
            threads: rows.iter().map(|row| &row.summary).collect(),
            current: project.current,
            pending_moves: context.pending_moves(|thread| rows.iter().any(|row| row.summary.id == thread))?,
        };
        context.answer(&answer, |out, styles| {
            if rows.is_empty() {
                return writeln!(out, "No threads here. `retake thread new` makes one.");
            }
            let table = draw(context, &rows, project.current);
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))
        })
    }
}

impl Facets {
    /// The part of a filter that these options say.
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
