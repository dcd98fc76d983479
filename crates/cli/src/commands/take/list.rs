//! `retake take list`

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_model::summary::TakeSummary;
use retake_timeline::Worktree;
use serde::Serialize;

use crate::commands::worktree::list::{worktrees_of, write_worktrees};
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::count;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List the takes of a thread, oldest first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take list
  retake take list -t \"Fix the login\" --json")]
pub(crate) struct Arguments {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    active: TakeId,
    takes: Vec<TakeSummary>,
    worktrees: Vec<Worktree>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let row = context.thread(&reader, self.thread.as_deref())?;
        let takes = reader.queries().takes_of(row.number)?;
        let answer = Answer {
            thread: row.summary.id,
            active: row.summary.active.id,
            takes: takes.into_iter().map(|take| take.summary).collect(),
            worktrees: worktrees_of(&reader, row.summary.id)?,
        };
        context.answer(&answer, |out, styles| {
            let table = draw(context, &answer);
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
            write_worktrees(out, &answer.worktrees, &answer.takes)
        })
    }
}

fn draw(context: &Context, answer: &Answer) -> Table<5> {
    let styles = &context.styles;
    let mut table = Table::new([
        Column::left("  TAKE"),
        Column::left("STARTS WITH").flexible(),
        Column::left("FORKED FROM").flexible(),
        Column::right("ENTRIES"),
        Column::right("LAST ENTRY"),
    ]);
    for take in &answer.takes {
        let here = take.id == answer.active;
        let name = if here { Label::new().with(styles.active, "● ") } else { Label::from("  ") };
        table.row([
            name.with(if here { styles.active } else { anstyle::Style::new() }, &take.name),
            Label::from(take.preview.as_str()),
            Label::new().with(styles.muted, &origin(take, &answer.takes)),
            Label::new().with(styles.count, &count(take.entries)),
            Label::new().with(styles.muted, &context.ago(take.last_entry)),
        ]);
    }
    table
}

/// Abbreviates a commit to seven digits, like git.
fn short(commit: &str) -> String {
    commit.chars().take(7).collect()
}

/// The parent of a take, and the number of the last shared entry.
fn origin(take: &TakeSummary, takes: &[TakeSummary]) -> String {
    let Some(parent) = take.parent else { return String::new() };
    let commit = take.git_commit.as_ref().map_or_else(String::new, |commit| format!(" @{}", short(commit)));
    match takes.iter().find(|other| other.id == parent) {
        Some(parent) => format!("{} #{}{commit}", parent.name, take.shared),
        None => format!("a deleted take #{}{commit}", take.shared),
    }
}
