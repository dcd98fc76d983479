//! `retake thread info`

use clap::Args;
use retake_model::summary::ThreadSummary;
use retake_timeline::{PendingMove, ThreadLocations, UndoStatus};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::time::exact;

/// Show all metadata of a thread.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake thread info
  retake thread info \"Fix the login\" --json")]
pub(crate) struct Arguments {
    /// Thread: title or id prefix [default: the current thread].
    thread: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    thread: ThreadSummary,
    last_activity: retake_model::time::Timestamp,
    commits_seen: Vec<String>,
    branches_seen: Vec<String>,
    directories_seen: Vec<String>,
    roles: Vec<String>,
    history: UndoStatus,
    /// File moves that were started and not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let reader = context.timeline()?.read()?;
        let row = context.thread(&reader, self.thread.as_deref())?;
        let seen = ThreadLocations::of(&reader, &row)?;
        let answer = Answer {
            last_activity: row.summary.updated,
            commits_seen: seen.commits,
            branches_seen: seen.branches,
            directories_seen: seen.directories,
            roles: reader.settings(row.summary.id).roles()?,
            history: reader
                .history(row.summary.id)
                .in_take(context.worktree_of(row.summary.id)?)
                .undo_status()?,
            pending_moves: context.pending_moves(|thread| thread == row.summary.id)?,
            thread: row.summary,
        };
        context.answer(&answer, |out, styles| {
            let (bold, muted) = (styles.heading, styles.muted);
            writeln!(out, "{bold}{}{bold:#}", sanitize(&answer.thread.title, LineBreaks::Fold))?;
            for (name, value) in lines(&answer, context) {
                writeln!(out, "{muted}{name:>14}{muted:#}  {}", sanitize(&value, LineBreaks::Fold))?;
            }
            Ok(())
        })
    }
}

fn lines(answer: &Answer, context: &Context) -> Vec<(&'static str, String)> {
    let thread = &answer.thread;
    let some = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut lines = vec![
        ("id", thread.id.to_string()),
        ("version", thread.version.to_string()),
        ("created", exact(thread.created, &context.zone)),
        ("last activity", exact(thread.updated, &context.zone)),
        ("take", format!("{} of {}", thread.active.name, thread.takes)),
        ("entries", thread.active.entries.to_string()),
        ("tags", thread.tags.join(", ")),
        ("roles", answer.roles.join(", ")),
        ("visibility", on_a_hub(thread)),
        ("pinned", yes_no(thread.pinned)),
        ("folder", some(&thread.last_seen.workspace_root)),
        ("directories", answer.directories_seen.join(", ")),
        ("program", some(&thread.last_seen.program_version)),
        ("provider", some(&thread.provider)),
        ("model", some(&thread.model)),
        ("git branch", some(&thread.last_seen.git_branch)),
        ("branches seen", answer.branches_seen.join(", ")),
        ("git remote", some(&thread.last_seen.git_remote)),
        ("first commit", some(&thread.first_seen.git_commit)),
        ("last commit", some(&thread.last_seen.git_commit)),
        ("environment", environment(thread)),
        ("commits seen", answer.commits_seen.len().to_string()),
        ("undo", yes_no(answer.history.can_undo)),
        ("redo", yes_no(answer.history.can_redo)),
    ];
    if let Some(deleted) = thread.deleted {
        lines.push(("deleted", exact(deleted, &context.zone)));
    }
    lines.retain(|(_, value)| !value.is_empty());
    lines
}

/// The thread's visibility on a hub.
fn on_a_hub(thread: &ThreadSummary) -> String {
    if thread.private {
        return "private: never sent to a hub".to_owned();
    }
    let support = if thread.shared_with_support { " and support" } else { "" };
    let visibility = format!("{:?}", thread.visibility).to_lowercase();
    format!("{visibility}{support} (not used yet: on a hub, whoever reads the space reads the thread)")
}

/// The recorded environment of the last operation.
fn environment(thread: &ThreadSummary) -> String {
    let known = thread.last_seen.environment.iter().flatten();
    known.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
