//! `retake save`

use clap::Args;
use retake_model::id::ThreadId;
use retake_timeline::SavedVersion;
use serde::Serialize;

use crate::arguments::ThreadTarget;
use crate::context::Context;
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::sanitize::{LineBreaks, sanitize};

/// Name the current version, or list the saved ones.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake save \"before the rewrite\"
  retake jump \"before the rewrite\"
  retake save --list                      saved versions, newest first

A name can be reused; `retake jump` then goes to the newest version with that name. Numbers, `folder`, and names that begin \
with `take:` or `turn:` are refused, because they mean something else where a version is expected.")]
pub(crate) struct Arguments {
    /// Name of the version.
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the saved versions.
    #[arg(long, conflicts_with_all = ["name", "expect"])]
    list: bool,
    #[command(flatten)]
    target: ThreadTarget,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let thread = context.thread(&context.timeline()?.read()?, self.target.thread.as_deref())?;
        let Some(given) = self.name.filter(|_| !self.list) else {
            return list(context, thread.summary.id);
        };
        let name = given.trim().to_owned();
        let (id, expect) = (thread.summary.id, self.target.expect);
        let files = context.file_options();
        let place = (Some(&files), context.worktree_of(id)?);
        let done = context.timeline()?.save(id, given, context.caller(id, expect)?, place)?;
        context.warn_of_budget();
        context.report(&done, |out, styles| {
            let (muted, active) = (styles.muted, &done.summary.active);
            let take = sanitize(&active.name, LineBreaks::Fold);
            let entries = counted(active.entries, "entry", "entries");
            let name = sanitize(&name, LineBreaks::Fold);
            write!(out, "Saved version {} as “{name}”: on {take}, {entries}.", done.version)?;
            writeln!(out, " {muted}`retake jump \"{name}\"` returns to it{muted:#}")
        })
    }
}

#[derive(Serialize)]
struct Saves {
    saved: Vec<SavedVersion>,
}

fn list(context: &Context, thread: ThreadId) -> Result<(), Failure> {
    let saved = context.timeline()?.read()?.history(thread).saves(None, usize::MAX)?;
    let answer = Saves { saved };
    if answer.saved.is_empty() {
        context.note_empty("No saved versions", "`retake save NAME` saves one")?;
    }
    context.answer(&answer, |out, styles| {
        let (id, muted) = (styles.id, styles.muted);
        for saved in &answer.saved {
            let (name, ago) = (sanitize(&saved.name, LineBreaks::Fold), context.ago(saved.time));
            writeln!(out, "{id}{:>6}{id:#}  {name}  {muted}{ago}{muted:#}", saved.version)?;
        }
        Ok(())
    })
}
