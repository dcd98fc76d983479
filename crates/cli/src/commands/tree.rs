//! `retake tree`
//!
//! ```text
//!   ├─ Fix the login  7f3kq2p9  #bug
//!   │  main  Why does the login fail?                   4 entries   2 h ago
//!   │  ├─ ● main_take_2  Only the dates      from #2    3 entries  just now
//!   │  └─ main_take_1  Ask the vendor        from #4    5 entries   1 h ago
//!   └─ Notes  x81mwq0d
//!      ○ main  Buy milk                                 1 entry    12 Mar
//! ```

mod draw;
mod shape;

use std::collections::HashMap;

use clap::Args;
use retake_model::id::ThreadId;
use retake_store::DeletedFilter;
use retake_timeline::{PendingMove, Tree, TreeThread};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;

/// Show the project's threads and takes as a tree.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake tree
  retake tree --all
  retake tree -t \"Fix the login\"
  retake tree --entries                   where takes diverge, message by message

● is the active take of the current thread, ○ of other threads. \"from #4\" means that a take shares its first four entries \
with the take above it. Each take shows the start of its first own message.")]
pub(crate) struct Arguments {
    /// Show the threads of all projects.
    #[arg(short, long)]
    all: bool,
    /// Include deleted threads.
    #[arg(long)]
    deleted: bool,
    /// Show one thread, and those promoted from it.
    #[arg(short, long, value_name = "THREAD")]
    thread: Option<String>,
    /// Show the messages of one thread [default: the current thread], and where takes end.
    #[arg(short, long, conflicts_with = "all")]
    entries: bool,
}

#[derive(Serialize)]
struct Answer<'tree> {
    threads: &'tree [TreeThread],
    current: Option<ThreadId>,
    /// With `--entries`: the tree of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'tree shape::MessageTree>,
    /// File moves that were started and not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_moves: Vec<PendingMove>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        let reader = context.timeline()?.read()?;
        let one = match &self.thread {
            Some(text) => Some(context.thread(&reader, Some(text))?.summary),
            None if self.entries => Some(context.thread(&reader, None)?.summary),
            None => None,
        };
        let deleted = self.deleted || one.as_ref().is_some_and(|thread| thread.deleted.is_some());
        // A named thread may belong to another project.
        let within = (!self.all && one.is_none()).then_some(project.id);
        let deleted = if deleted { DeletedFilter::Shown } else { DeletedFilter::Hidden };
        let mut tree = Tree::of(&reader, within, deleted)?;
        if let Some(one) = &one {
            retain_subtree(&mut tree, one.id);
        }
        let shape = match (self.entries, tree.threads.first()) {
            (true, Some(thread)) => Some(shape::MessageTree::of(&reader, thread)?),
            _ => None,
        };
        let shown = |id| tree.threads.iter().any(|thread| thread.summary.id == id);
        let answer = Answer {
            threads: &tree.threads,
            current: project.current,
            shape: shape.as_ref(),
            pending_moves: context.pending_moves(shown)?,
        };
        if tree.threads.is_empty() {
            context.note_empty("No threads", "`retake thread new` creates one")?;
        }
        context.answer(&answer, |out, styles| {
            let forest = match (&shape, tree.threads.first()) {
                (Some(shape), Some(thread)) => draw::messages(context, thread, shape),
                (None, Some(_)) => draw::threads(context, &tree, project),
                _ => return Ok(()),
            };
            write!(out, "{}", forest.draw(context.screen.columns(), styles.muted))
        })
    }
}

/// Keeps only this thread, moved to the root, and its descendants.
fn retain_subtree(tree: &mut Tree, thread: ThreadId) {
    let below: HashMap<ThreadId, Option<ThreadId>> =
        tree.threads.iter().map(|thread| (thread.summary.id, thread.below)).collect();
    let belongs = |id: ThreadId| draw::ancestors(&below, id).any(|ancestor| ancestor == thread);
    tree.threads.retain(|other| belongs(other.summary.id));
    tree.threads.sort_by_key(|other| other.summary.id != thread);
    if let Some(first) = tree.threads.first_mut() {
        first.below = None;
    }
}
