//! The tree of a project: its threads, and the takes of each, by parent and child.

use std::collections::HashMap;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_store::{Deleted, StoreError, ThreadFilter, ThreadRow};
use serde::Serialize;

use crate::{LookError, Looking};

/// Threads with their takes. Pinned ones come first, then the most lately changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tree {
    /// The threads.
    pub threads: Vec<TreeThread>,
}

/// A thread with its takes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeThread {
    /// The thread.
    #[serde(flatten)]
    pub summary: ThreadSummary,
    /// The thread that it was once a take of, if that one is in the tree; a root otherwise.
    pub below: Option<ThreadId>,
    /// Its takes, oldest first.
    pub all_takes: Vec<TakeSummary>,
}

impl TreeThread {
    fn new(
        row: ThreadRow,
        parent: Option<ThreadId>,
        mut all_takes: Vec<TakeSummary>,
    ) -> Result<Self, StoreError> {
        if all_takes.len() as u64 != row.summary.takes {
            return Err(StoreError::Damaged("a take is missing from the index".to_owned()));
        }
        all_takes.sort_by_key(|take| take.id);
        let below = parent.filter(|parent| *parent != row.summary.id);
        Ok(Self { below, summary: row.summary, all_takes })
    }

    /// The take that another was branched from, if it is still there; a root otherwise.
    pub fn parent_of(&self, take: &TakeSummary) -> Option<TakeId> {
        take.parent
            .filter(|parent| *parent != take.id && self.all_takes.iter().any(|other| other.id == *parent))
    }
}

impl Looking<'_> {
    /// The tree of a project, or of all of them.
    pub fn tree(&self, project: Option<ProjectId>, deleted: Deleted) -> Result<Tree, LookError> {
        let filter = ThreadFilter { project, deleted, ..ThreadFilter::default() };
        let rows = self.queries().threads(&filter)?;
        let mut takes: HashMap<i64, Vec<TakeSummary>> = HashMap::new();
        if let [row] = rows.as_slice() {
            let found = self.queries().takes_of(row.number)?;
            takes.insert(row.number, found.into_iter().map(|take| take.summary).collect());
        } else {
            for take in self.queries().takes_in(project)? {
                takes.entry(take.thread).or_default().push(take.summary);
            }
        }
        let present: std::collections::HashSet<ThreadId> = rows.iter().map(|row| row.summary.id).collect();
        let threads = rows
            .into_iter()
            .map(|row| {
                let all_takes = takes.remove(&row.number).unwrap_or_default();
                let parent = row.summary.parent.map(|parent| parent.thread);
                // A parent that is gone makes a root, never a loss.
                TreeThread::new(row, parent.filter(|parent| present.contains(parent)), all_takes)
            })
            .collect::<Result<_, _>>()?;
        Ok(Tree { threads })
    }

    /// A thread with its takes, below another if that one is in the tree.
    pub(crate) fn tree_thread(
        &self,
        row: ThreadRow,
        parent: Option<ThreadId>,
    ) -> Result<TreeThread, LookError> {
        let takes = self.queries().takes_of_row(&row)?;
        Ok(TreeThread::new(row, parent, takes.into_iter().map(|take| take.summary).collect())?)
    }
}
