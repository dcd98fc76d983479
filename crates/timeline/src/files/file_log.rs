//! Lists the changes of one path over all threads of a project, newest first.

use retake_model::content::ContentId;
use retake_model::diff::LineCounts;
use retake_model::id::{ThreadId, TurnId};
use retake_model::operation::{Actor, OperationKind, Version};
use retake_model::path::{RootPath, TreePath};
use retake_model::time::Timestamp;
use retake_model::tree::PathChangeKind;
use retake_store::StoredOperation;
use serde::Serialize;

use crate::ReadError;
use crate::files::changes::{ContentComparison, Detail, compare_content};
use crate::files::touches::{Touch, Touches};
use crate::read::project::ProjectReader;

/// Changes of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLog {
    /// The operations that changed it, newest first.
    pub operations: Vec<FileLogItem>,
    /// Cursor for the next page; `null` on the last page.
    pub next: Option<i64>,
}

/// An operation that changed a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLogItem {
    /// The operation.
    #[serde(flatten)]
    pub by: OperationInfo,
    /// The path after the operation; of a removed file, before it.
    #[serde(flatten)]
    pub path: RootPath,
    /// The former path, if it was renamed.
    pub from: Option<TreePath>,
    /// The new path, if it was renamed away from this one.
    pub to: Option<TreePath>,
    /// The kind of change.
    pub change: PathChangeKind,
    /// How the content was compared.
    pub content: ContentComparison,
    /// Added and removed lines; `null` if not compared.
    pub lines: Option<LineCounts>,
}

/// An operation that changed files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationInfo {
    /// Its thread.
    pub thread: ThreadId,
    /// Title of the thread.
    pub title: String,
    /// Its version in the thread.
    pub version: Version,
    /// Its sequence number in the store.
    pub sequence: i64,
    /// Its id.
    pub operation: ContentId,
    /// Its kind.
    pub kind: OperationKind,
    /// The turn with which it is undone.
    pub turn: TurnId,
    /// Its actor.
    pub actor: Actor,
    /// Its time.
    pub time: Timestamp,
}

impl ProjectReader<'_> {
    /// Operations of the project that changed a path, newest first, at most `limit`, followed through its former names.
    /// `before` is the `next` of an earlier page.
    pub fn file_log(&self, path: &RootPath, before: Option<i64>, limit: usize) -> Result<FileLog, ReadError> {
        let queries = self.reader.queries();
        // Former names are known only from the newest operation backwards, so an older page repeats the walk.
        let mut touches = Touches::of(&queries, self.project, path, i64::MAX)?;
        let mut operations: Vec<FileLogItem> = Vec::new();
        while let Some(touch) = touches.next().transpose()? {
            let sequence = touch.stored.sequence;
            if before.is_some_and(|before| sequence >= before) {
                continue;
            }
            // A page never splits the paths of one operation.
            let last = operations.last().map(|last| last.by.sequence);
            if operations.len() >= limit && last != Some(sequence) {
                return Ok(FileLog { next: last, operations });
            }
            let change = &touch.change;
            let text =
                compare_content(&queries, change.before.as_ref(), change.after.as_ref(), Detail::Counts)?;
            let title = &touches.threads()[touch.thread].summary.title;
            operations.push(FileLogItem {
                change: touch.kind(),
                path: RootPath { root: path.root.clone(), path: change.path.clone() },
                from: change.from.clone(),
                to: touch.to.clone(),
                content: text.compared,
                lines: text.lines,
                by: OperationInfo::of(&touch, title),
            });
        }
        Ok(FileLog { operations, next: None })
    }
}

impl OperationInfo {
    pub(crate) fn of(touch: &Touch, title: &str) -> Self {
        Self::by(&touch.stored, title)
    }

    /// Information about an operation of a thread with that title.
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
