//! `retake worktree list`

use std::io::{self, Write};

use clap::Args;
use retake_model::id::ThreadId;
use retake_model::summary::TakeSummary;
use retake_timeline::{Reader, Worktree};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// List the worktrees of a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake worktree list
  retake worktree list -t \"Fix the login\" --json")]
pub(crate) struct Arguments {
    /// Thread: title or id prefix [default: the current thread].
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    thread: ThreadId,
    worktrees: Vec<Worktree>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let row = context.thread(&reader, self.thread.as_deref())?;
        let thread = row.summary.id;
        let answer = Answer { thread, worktrees: worktrees_of(&reader, thread)? };
        let takes = reader.queries().takes_of(row.number)?;
        let takes: Vec<TakeSummary> = takes.into_iter().map(|take| take.summary).collect();
        if answer.worktrees.is_empty() {
            context.note_empty("No worktrees", "`retake worktree add TAKE` creates one")?;
        }
        context.answer(&answer, |out, _| write_worktrees(out, &answer.worktrees, &takes))
    }
}

/// The worktrees of a thread's takes.
pub(in crate::commands) fn worktrees_of(
    reader: &Reader<'_>,
    thread: ThreadId,
) -> Result<Vec<Worktree>, Failure> {
    let mut worktrees = reader.worktrees().list()?;
    worktrees.retain(|worktree| worktree.thread == thread);
    Ok(worktrees)
}

/// Writes a line for each worktree.
pub(in crate::commands) fn write_worktrees(
    out: &mut dyn Write,
    worktrees: &[Worktree],
    takes: &[TakeSummary],
) -> io::Result<()> {
    for worktree in worktrees {
        let name = takes.iter().find(|take| take.id == worktree.take).map(|take| take.name.clone());
        let name = name.unwrap_or_else(|| worktree.take.short());
        let path = worktree.path.display().to_string();
        let missing = if worktree.exists() { "" } else { " (missing)" };
        let (name, path) = (sanitize(&name, LineBreaks::Fold), sanitize(&path, LineBreaks::Fold));
        writeln!(out, "{name} is checked out in {path}{missing}.")?;
    }
    Ok(())
}
