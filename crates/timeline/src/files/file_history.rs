//! Reads the files of a thread over its versions.
//!
//! `working_copy/take_files.rs` adds the files of all takes, `captured.rs` and `file_changes.rs` lists that include the threads
//! that this one was promoted from, `blame.rs` the origin of lines.

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::history::OperationLog as _;
use retake_model::id::{FolderId, TakeId, ThreadId};
use retake_model::intent::FolderRecord;
use retake_model::operation::{FileChange, OperationKind, Version};
use retake_model::time::Timestamp;
use retake_store::ThreadRow;
use serde::Serialize;

use crate::working_copy::{FileOperationWalk, files_of_take};
use crate::{ReadError, Reader};

/// The files of a thread at one version.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesAt {
    /// The operation.
    pub version: Version,
    /// Its time.
    pub time: Timestamp,
    /// Its kind.
    pub kind: OperationKind,
    /// The files before and after it.
    #[serde(flatten)]
    pub files: FileChange,
}

/// Reads the files of a thread over its versions.
#[derive(Clone, Copy)]
pub struct FileHistoryReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
    pub(crate) thread: ThreadId,
}

impl FileHistoryReader<'_> {
    /// Versions of the thread with files, newest first, at most `limit`, before a version.
    pub fn list(&self, before: Option<Version>, limit: usize) -> Result<Vec<FilesAt>, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let queries = self.reader.queries();
        let from = before.map_or(row.summary.version, |before| before.saturating_sub(1));
        let last_file_operation = FileOperationWalk::up_to(&queries, row.number, from)?;
        let found = last_file_operation.take(limit).map(|found| {
            let (operation, files) = found?;
            let (version, time, kind) = (operation.version, operation.time, operation.kind);
            Ok(FilesAt { version, time, kind, files })
        });
        found.collect()
    }

    /// The files after an operation: its own, or else those of the project's folder at that time. Changes
    /// in worktrees or outside of any folder are not included.
    pub fn at(&self, version: Version) -> Result<Option<FilesAt>, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let queries = self.reader.queries();
        let log = queries.log(row.number);
        for last_file_operation in FileOperationWalk::up_to(&queries, row.number, version)? {
            let (operation, files) = last_file_operation?;
            let is_meant = operation.version == version
                || (!files.worktree && files.take == log.active(operation.version)?);
            if is_meant {
                let (version, time, kind) = (operation.version, operation.time, operation.kind);
                return Ok(Some(FilesAt { version, time, kind, files }));
            }
        }
        Ok(None)
    }

    /// The last known files of a take.
    pub fn of_take(&self, take: TakeId) -> Result<Option<ContentId>, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let head = self.reader.head(self.thread)?.operation;
        Ok(files_of_take(&self.reader.queries(), row.number, &head, take)?)
    }

    /// Snapshots of the thread by id prefix, including those from before its promotion.
    pub fn snapshots_beginning(&self, text: &str) -> Result<Vec<ContentId>, ReadError> {
        let queries = self.reader.queries();
        let mut found = BTreeSet::new();
        // Shorter texts would match too many, and other texts none.
        if text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            for (last, row) in self.lineage()? {
                for last_file_operation in FileOperationWalk::up_to(&queries, row.number, last)? {
                    let (_, files) = last_file_operation?;
                    let both = [files.before, files.after].into_iter();
                    found.extend(both.filter(|id| id.to_string().starts_with(&text.to_lowercase())));
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Returns whether a snapshot belongs to the thread, or to its history before the promotion.
    pub fn has_snapshot(&self, snapshot: ContentId) -> Result<bool, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let queries = self.reader.queries();
        // A captured state of the folder is in no operation before it changes.
        let own = |folder: &FolderRecord| match folder.worktree {
            Some(worktree) => worktree.thread == self.thread,
            None => folder.id == FolderId::of_project(row.home),
        };
        if queries.folders()?.iter().any(|folder| own(folder) && folder.snapshot == Some(snapshot)) {
            return Ok(true);
        }
        for (last, row) in self.lineage()? {
            for found in FileOperationWalk::up_to(&queries, row.number, last)? {
                let (_, files) = found?;
                if files.after == snapshot || files.before == snapshot {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The thread and those that it was a take of.
    pub(crate) fn lineage(&self) -> Result<Vec<(Version, ThreadRow)>, ReadError> {
        self.reader.history(self.thread).lineage()
    }
}
