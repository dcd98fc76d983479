//! `retake project show`

use std::io::{self, Write};

use clap::Args;
use retake_store::ThreadFilter;
use retake_timeline::{Project, Reader};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

/// Show the project of this folder.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project show
  retake -C ../elsewhere project show --json")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
pub(super) struct Answer<'project> {
    #[serde(flatten)]
    project: &'project Project,
    /// Whether the project is recorded; otherwise its id is provisional.
    known: bool,
    title: Option<String>,
    threads: u64,
}

impl Arguments {
    #[expect(clippy::unused_self, reason = "all commands have the same interface")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let project = context.project()?;
        let answer = Answer::new(project, &timeline.read()?)?;
        context.answer(&answer, |out, styles| answer.write(out, styles))
    }
}

impl<'project> Answer<'project> {
    pub(super) fn new(project: &'project Project, reader: &Reader<'_>) -> Result<Self, Failure> {
        let filter = ThreadFilter { project: Some(project.id), ..ThreadFilter::default() };
        let threads = reader.threads(&filter)?.len() as u64;
        let title = project.current.and_then(|id| reader.thread(id).ok()).map(|row| row.summary.title);
        let known = reader.queries().project(project.id)?.is_some();
        Ok(Self { project, known, title, threads })
    }

    pub(super) fn threads(&self) -> u64 {
        self.threads
    }

    pub(super) fn write(&self, out: &mut dyn Write, styles: &Styles) -> io::Result<()> {
        let muted = styles.muted;
        if !self.known {
            let folder = sanitize(&self.project.path, LineBreaks::Fold);
            return writeln!(
                out,
                "{folder} is not a project yet; `retake project init` or `retake thread new` makes it one."
            );
        }
        for (name, value) in [
            ("project", self.project.id.to_string()),
            ("folder", self.project.path.clone()),
            ("threads", self.threads.to_string()),
            ("current", self.title.clone().unwrap_or_else(|| "none".to_owned())),
        ] {
            writeln!(out, "{muted}{name:>9}{muted:#}  {}", sanitize(&value, LineBreaks::Fold))?;
        }
        Ok(())
    }
}
