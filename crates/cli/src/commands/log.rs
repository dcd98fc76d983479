//! `retake log`

use std::path::PathBuf;

use clap::Args;
use retake_model::path::RootPath;
use retake_timeline::{FileLog, FileLogItem};
use serde::Serialize;

use super::diff::change_label;
use crate::context::Context;
use crate::describe;
use crate::failure::{Code, Failure};
use crate::revisions::revisions;
use crate::ui::label::Label;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::table::{Column, Table};

/// Show the changes of a file in all threads of the project, newest first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake log src/main.rs
  retake log docs                         changes below a folder
  retake log old-name.rs                  works for deleted files too
  retake diff --of 12                     changes made by version 12 of this thread

The file is followed through renames. Your own changes are recorded first, as yours. For the history of a thread, use \
`retake history`.")]
pub(crate) struct Arguments {
    /// The file or folder.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Maximum number of results.
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Continue after an earlier answer, with its `next` value.
    #[arg(long, value_name = "NEXT")]
    before: Option<i64>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    path: RootPath,
    #[serde(flatten)]
    log: FileLog,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let path = context.root_path(&self.path)?;
        // Without a current thread, hand edits cannot be recorded, but the log still works.
        if let Ok(revisions) = revisions(context, None) {
            revisions.folder()?;
        }
        let project = context.project()?.id;
        let reader = context.timeline()?.read()?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let log = reader.project(project).file_log(&path, self.before, limit)?;
        if log.operations.is_empty() {
            if context.directory().join(&self.path).symlink_metadata().is_err() {
                let message = format!("{path} does not exist and was never recorded");
                return Err(Failure::new(Code::NotFound, message));
            }
            context.note(&format!("No recorded operation changed {path}."))?;
        }
        let answer = Answer { path, log };
        context.answer(&answer, |out, styles| {
            if answer.log.operations.is_empty() {
                return Ok(());
            }
            let mut table = Table::new([
                Column::right("version"),
                Column::left("what").flexible(),
                Column::left("lines"),
                Column::left("who"),
                Column::left("how").flexible(),
                Column::left("thread").flexible(),
                Column::left("when"),
            ]);
            for item in &answer.log.operations {
                table.row([
                    Label::new().with(styles.id, &item.by.version.to_string()),
                    Label::from(what(item, &answer.path).as_str()),
                    lines(context, item),
                    Label::from(describe::actor(&item.by.actor).as_str()),
                    Label::new().with(styles.muted, &describe::operation(&item.by.kind)),
                    Label::from(item.by.title.as_str()),
                    Label::new().with(styles.muted, &context.ago(item.by.time)),
                ]);
            }
            write!(out, "{}", table.render(context.screen.columns(), styles.heading))?;
            if let Some(next) = answer.log.next {
                let muted = styles.muted;
                let name = self.path.display().to_string();
                let name = sanitize(&name, LineBreaks::Fold);
                writeln!(out, "{muted}… older: `retake log {name} --before {next}`{muted:#}")?;
            }
            Ok(())
        })
    }
}

fn what(item: &FileLogItem, asked: &RootPath) -> String {
    match (&item.from, &item.to) {
        (Some(from), _) => format!("renamed from {from}"),
        (_, Some(to)) => format!("renamed to {to}"),
        _ if item.path != *asked => format!("{} {}", change_label(item.change), item.path),
        _ => change_label(item.change).to_owned(),
    }
}

fn lines(context: &Context, item: &FileLogItem) -> Label {
    let Some(lines) = item.lines else { return Label::new() };
    let (added, removed) = (context.styles.added, context.styles.removed);
    let mut label = Label::new();
    if lines.added > 0 {
        label = label.with(added, &format!("+{}", lines.added));
    }
    if lines.removed > 0 {
        let gap = if lines.added > 0 { " " } else { "" };
        label = label.with(removed, &format!("{gap}-{}", lines.removed));
    }
    label
}
