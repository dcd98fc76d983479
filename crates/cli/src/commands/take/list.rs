//! `retake take list`

use clap::Args;
use retake_model::id::{TakeId, ThreadId};
use retake_model::summary::TakeSummary;
use retake_timeline::ApartFolder;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::count;
use crate::ui::label::Label;
use crate::ui::sanitize::{Lines, sanitize};
use crate::ui::table::{Column, Table};

/// List the takes of a thread, oldest first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake take list
  retake take list -t \"Fix the login\" --json")]
pub(crate) struct Arguments {
    /// The thread: a title, or the beginning of an id [default: the current one].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    /// The take that is being worked on.
    active: TakeId,
    takes: Vec<TakeSummary>,
    /// The takes that have a folder of their own, and where.
    apart: Vec<ApartFolder>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let looking = context.timeline()?.look()?;
        let row = context.thread(&looking, self.thread.as_deref())?;
        let takes = looking.queries().takes_of(row.number)?;
        let mut apart = looking.apart_folders()?;
        apart.retain(|open| open.thread == row.summary.id);
        let answer = Answer {
            thread: row.summary.id,
            active: row.summary.active.id,
            takes: takes.into_iter().map(|take| take.summary).collect(),
            apart,
        };
        context.answer(&answer, |out, styles| {
            let table = draw(context, &answer);
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
            for open in &answer.apart {
                let name = answer.takes.iter().find(|take| take.id == open.take).map(|take| &take.name);
                let name = name.map_or_else(|| open.take.short(), Clone::clone);
                let path = open.path.display().to_string();
                let gone = if open.is_there() { "" } else { " (which is gone)" };
                let (name, path) = (sanitize(&name, Lines::Fold), sanitize(&path, Lines::Fold));
                writeln!(out, "{name} is open apart in {path}{gone}.")?;
            }
            Ok(())
        })
    }
}

fn draw(context: &Context, answer: &Answer) -> Table<5> {
    let styles = &context.styles;
    let mut table = Table::new([
        Column::left("  TAKE"),
        Column::left("BEGINS WITH").flexible(),
        Column::left("BRANCHED OFF").flexible(),
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

/// As many digits of a commit as git shows.
fn short(commit: &str) -> String {
    commit.chars().take(7).collect()
}

/// Where a take came from: its parent, and the last entry that both share.
fn origin(take: &TakeSummary, takes: &[TakeSummary]) -> String {
    let Some(parent) = take.parent else { return String::new() };
    let commit = take.git_commit.as_ref().map_or_else(String::new, |commit| format!(" @{}", short(commit)));
    match takes.iter().find(|other| other.id == parent) {
        Some(parent) => format!("{} #{}{commit}", parent.name, take.shared),
        None => format!("a deleted take #{}{commit}", take.shared),
    }
}
