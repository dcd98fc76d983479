//! The tree of a project: its threads and their takes, by parent and child.

use std::collections::HashMap;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_store::{DeletedFilter, StoreError, ThreadFilter, ThreadRow};
use serde::Serialize;

use crate::{ReadError, Reader};

/// Threads with their takes: pinned ones first, then the most recently changed.
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
    /// The thread that it was promoted from, if that one is in the tree; `null` for a root.
    pub below: Option<ThreadId>,
    /// The takes, oldest first.
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

    /// Reads the takes of a thread.
    pub(crate) fn of(
        reader: &Reader<'_>,
        row: ThreadRow,
        parent: Option<ThreadId>,
    ) -> Result<Self, ReadError> {
        let takes = reader.queries().takes_of_row(&row)?;
        Ok(Self::new(row, parent, takes.into_iter().map(|take| take.summary).collect())?)
    }

    /// The parent of a take, if it still exists; `None` for a root.
    pub fn parent_of(&self, take: &TakeSummary) -> Option<TakeId> {
        take.parent
            .filter(|parent| *parent != take.id && self.all_takes.iter().any(|other| other.id == *parent))
    }
}

impl Tree {
    /// The tree of a project, or of all projects.
    pub fn of(
        reader: &Reader<'_>,
        project: Option<ProjectId>,
        deleted: DeletedFilter,
    ) -> Result<Self, ReadError> {
        let queries = reader.queries();
        let filter = ThreadFilter { project, deleted, ..ThreadFilter::default() };
        let rows = queries.threads(&filter)?;
        let mut takes: HashMap<i64, Vec<TakeSummary>> = HashMap::new();
        if let [row] = rows.as_slice() {
            let found = queries.takes_of(row.number)?;
            takes.insert(row.number, found.into_iter().map(|take| take.summary).collect());
        } else {
            for take in queries.takes_in(project, &rows)? {
                takes.entry(take.thread).or_default().push(take.summary);
            }
        }
        let present: std::collections::HashSet<ThreadId> = rows.iter().map(|row| row.summary.id).collect();
        let threads = rows
            .into_iter()
            .map(|row| {
                let all_takes = takes.remove(&row.number).unwrap_or_default();
                let parent = row.summary.parent.map(|parent| parent.thread);
                // A missing parent makes the thread a root.
                TreeThread::new(row, parent.filter(|parent| present.contains(parent)), all_takes)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { threads })
    }
}
