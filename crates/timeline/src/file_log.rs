//! What happened to one path, over all threads of a project, newest first.

use retake_model::content::ContentId;
use retake_model::diff::Counts;
use retake_model::id::{ProjectId, ThreadId, TurnId};
use retake_model::operation::{Actor, OperationKind, Version};
use retake_model::path::{RootPath, TreePath};
use retake_model::time::Timestamp;
use retake_model::tree::Happened;
use retake_store::StoredOperation;
use serde::Serialize;

use crate::changes::{Compared, Detail, compare_content};
use crate::touches::Touch;
use crate::{LookError, Looking};

/// What happened to a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLog {
    /// The operations that touched it, newest first.
    pub operations: Vec<FileLogItem>,
    /// What to ask for to go on; none if there is no more.
    pub next: Option<i64>,
}

/// An operation that touched a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLogItem {
    /// The operation.
    #[serde(flatten)]
    pub by: Wrote,
    /// The path as it was called after the operation; before it, if it is gone.
    #[serde(flatten)]
    pub path: RootPath,
    /// The path that it had before, if it was renamed.
    pub from: Option<TreePath>,
    /// The path under which it went on, if it went from this one.
    pub to: Option<TreePath>,
    /// What happened to it.
    pub happened: Happened,
    /// How the content was compared.
    pub content: Compared,
    /// Lines that came and went; none where they were not compared.
    pub lines: Option<Counts>,
}

/// The operation that did something to a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wrote {
    /// Its thread.
    pub thread: ThreadId,
    /// What that thread is called.
    pub title: String,
    /// Its place in the log of the thread.
    pub version: Version,
    /// Its place among all operations of the store.
    pub sequence: i64,
    /// Its name.
    pub operation: ContentId,
    /// What it was.
    pub kind: OperationKind,
    /// What it is undone with.
    pub turn: TurnId,
    /// Who did it.
    pub actor: Actor,
    /// When.
    pub time: Timestamp,
}

impl Looking<'_> {
    /// The operations of a project that touched a path, newest first, at most `limit`, following it back through
    /// its former names. `before` is the `next` of an earlier answer.
    pub fn file_log(
        &self,
        project: ProjectId,
        path: &RootPath,
        before: Option<i64>,
        limit: usize,
    ) -> Result<FileLog, LookError> {
        let queries = self.queries();
        // The names of a path are known only from the present back, so an older page walks there again.
        let mut touches = Self::touches(&queries, project, path, i64::MAX)?;
        let mut operations: Vec<FileLogItem> = Vec::new();
        while let Some(touch) = touches.next().transpose()? {
            let sequence = touch.stored.sequence;
            if before.is_some_and(|before| sequence >= before) {
                continue;
            }
            // One operation is never torn apart by the end of a page.
            let last = operations.last().map(|last| last.by.sequence);
            if operations.len() >= limit && last != Some(sequence) {
                return Ok(FileLog { next: last, operations });
            }
            let change = &touch.change;
            let text =
                compare_content(&queries, change.before.as_ref(), change.after.as_ref(), Detail::Counts)?;
            let title = &touches.threads()[touch.thread].summary.title;
            operations.push(FileLogItem {
                happened: touch.happened(),
                path: RootPath { root: path.root.clone(), path: change.path.clone() },
                from: change.from.clone(),
                to: touch.to.clone(),
                content: text.compared,
                lines: text.lines,
                by: Wrote::of(&touch, title),
            });
        }
        Ok(FileLog { operations, next: None })
    }
}

impl Wrote {
    pub(crate) fn of(touch: &Touch, title: &str) -> Self {
        Self::by(&touch.stored, title)
    }

    /// An operation of a thread with that title.
    pub(crate) fn by(stored: &StoredOperation, title: &str) -> Self {
        let operation = &stored.operation;
        Self {
            thread: operation.thread,
            title: title.to_owned(),
            version: operation.version,
            sequence: stored.sequence,
            operation: stored.id,
            kind: operation.kind.clone(),
            turn: operation.turn,
            actor: operation.actor.clone(),
            time: operation.time,
        }
    }
}
