//! `retake project list`

use clap::Args;
use retake_model::id::{ProjectId, ThreadId};
use retake_model::time::Timestamp;
use retake_timeline::KnownProject;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::count;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// List all known projects.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project list
  retake project list --json")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Answer {
    projects: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    id: ProjectId,
    path: String,
    exists: bool,
    /// Whether the command was started in this project.
    is_current: bool,
    threads: u64,
    current: Option<ThreadId>,
    remote: Option<String>,
    last_seen: Timestamp,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let here = context.project()?.id;
        let reader = timeline.read()?;
        let mut projects = Vec::new();
        for row in reader.queries().projects()? {
            let KnownProject { id, path, exists, threads, current, remote, last_seen } =
                KnownProject::of(&reader, row)?;
            projects.push(Line {
                is_current: id == here,
                exists,
                threads,
                id,
                path,
                current,
                remote,
                last_seen,
            });
        }
        let answer = Answer { projects };
        if answer.projects.is_empty() {
            context.note_empty("No projects yet", "`retake project init` creates one")?;
        }
        context.answer(&answer, |out, styles| {
            if answer.projects.is_empty() {
                return Ok(());
            }
            let mut table = Table::new([
                Column::left("ID"),
                Column::left("FOLDER").flexible(),
                Column::right("THREADS"),
                Column::right("SEEN"),
            ]);
            for line in &answer.projects {
                let mark = if line.is_current { "● " } else { "  " };
                let mut folder = Label::new().plain(&line.path);
                if line.path.is_empty() {
                    folder = folder.with(styles.warning, "(forgotten)");
                } else if !line.exists {
                    folder = folder.with(styles.warning, " (gone)");
                }
                table.row([
                    Label::new().with(styles.active, mark).with(styles.id, &line.id.short()),
                    folder,
                    Label::new().with(styles.count, &count(line.threads)),
                    Label::new().with(styles.muted, &context.ago(line.last_seen)),
                ]);
            }
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))
        })
    }
}
