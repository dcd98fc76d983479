//! `retake thread list --remote`

use retake_model::id::ThreadId;
use retake_model::operation::Version;
use retake_model::time::Timestamp;
use retake_sync::remote::ProjectKey;
use retake_sync::session::RoundError;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::label::Label;
use crate::ui::table::{Column, Table};

/// A thread on a remote.
#[derive(Serialize)]
struct Listed {
    remote: String,
    thread: ThreadId,
    title: String,
    project: ProjectKey,
    version: Version,
    /// Time of the last operation, in milliseconds since 1970.
    updated: i64,
    /// Whether this machine has the thread.
    here: bool,
}

pub(super) fn list(context: &Context, limit: Option<usize>) -> Result<(), Failure> {
    let mut listed = Vec::new();
    let reader = context.timeline()?.read()?;
    for config in context.chosen_remotes(None)? {
        let open = context.open_remote(config)?;
        for found in open.remote().threads().map_err(RoundError::from)? {
            // What is private here is not listed as something to bring here.
            let row = reader.thread(found.thread).ok();
            listed.push(Listed {
                remote: open.config.name.clone(),
                thread: found.thread,
                title: found.head.summary.title,
                project: found.head.summary.project,
                version: found.head.last,
                updated: found.head.summary.updated,
                here: row.is_some(),
            });
        }
    }
    listed.sort_by_key(|thread| std::cmp::Reverse(thread.updated));
    listed.truncate(limit.unwrap_or(usize::MAX));
    context.answer(&serde_json::json!({ "threads": listed }), |out, styles| {
        if listed.is_empty() {
            return writeln!(out, "No threads on remotes; `retake sync` sends those of this machine.");
        }
        let mut table = Table::new([
            Column::left("ID"),
            Column::left("TITLE").flexible(),
            Column::left("PROJECT").dispensable(),
            Column::left("REMOTE").dispensable(),
            Column::right("CHANGED"),
        ]);
        for thread in &listed {
            let title = Label::new().plain(&thread.title);
            let project =
                thread.project.git_remote.as_deref().or(thread.project.id.as_deref()).unwrap_or_default();
            table.row([
                Label::new().with(styles.id, &thread.thread.short()),
                if thread.here { title.with(styles.muted, " here") } else { title },
                Label::new().with(styles.muted, project),
                Label::new().with(styles.muted, &thread.remote),
                Label::new().with(styles.muted, &context.ago(Timestamp::from_millis(thread.updated))),
            ]);
        }
        write!(out, "{}", table.render(context.screen.columns(), styles.heading))
    })
}
