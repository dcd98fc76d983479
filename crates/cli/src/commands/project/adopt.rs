//! `retake project adopt`

use clap::Args;
use retake_store::ProjectRow;
use retake_timeline::Looking;
use retake_workspace::folder::{path_from_text, path_to_text};

use super::show::Answer;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;

/// Say that this folder is a project that is known from elsewhere: its threads appear here.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake project list
  retake project adopt 7f3kq2p9")]
pub(crate) struct Arguments {
    /// The project: its id, or the beginning of it.
    project: String,
}

/// How many characters of an id must be given.
const SHORTEST_PREFIX: usize = 4;

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let timeline = context.timeline()?;
        let folder = path_from_text(&context.project()?.path);
        let found = find(&timeline.look()?, &self.project)?;
        let project = timeline.adopt(&folder, found.id)?;
        let answer = Answer::new(&project, &timeline.look()?)?;
        context.report(&answer, |out, styles| {
            let threads = counted(answer.threads(), "thread", "threads");
            writeln!(out, "This folder is project {} now, with {threads}.", project.id.short())?;
            answer.write(out, styles)
        })?;
        let former = path_from_text(&found.path);
        if former != folder && former.is_dir() {
            let former = path_to_text(&former);
            context.remark(&format!("Its former folder still stands, without threads: {former}"))?;
        }
        Ok(())
    }
}

fn find(looking: &Looking<'_>, text: &str) -> Result<ProjectRow, Failure> {
    let found = if text.len() < SHORTEST_PREFIX {
        Vec::new()
    } else {
        looking.queries().projects_with_prefix(&text.to_lowercase())?
    };
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let message =
                format!("no project's id begins with {text:?}; `retake project list` shows them all");
            Err(Failure::new(Code::NotFound, message))
        }
        several => {
            let candidates: Vec<String> = several.iter().map(|row| row.id.to_string()).collect();
            let message = format!("{text:?} could be any of: {}", candidates.join(", "));
            Err(Failure::new(Code::Refused, message).with("candidates", candidates))
        }
    }
}
