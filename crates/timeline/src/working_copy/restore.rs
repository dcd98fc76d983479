//! Restores the folder, or some of its paths, exactly as in another version.

use std::collections::{BTreeMap, BTreeSet};

use retake_model::content::ContentId;
use retake_model::history::OperationLog as _;
use retake_model::id::{FolderId, TakeId, ThreadId};
use retake_model::intent::FolderRecord;
use retake_model::object::{Objects, load};
use retake_model::operation::{FileChange, OperationKind, Version};
use retake_model::path::RootPath;
use retake_model::sealed::sealed_of;
use retake_model::time::Timestamp;
use retake_model::tree::{Excluded, ExclusionReason, Snapshot, SnapshotCursor};
use serde::Serialize;

use super::plan::{FileOperationWalk, files_of_take};
use super::report::FileReport;
use super::{FileError, MoveOptions, PlanRequest, WorkingCopy};
use crate::{Caller, ChangeOutcome, ReadError, Reader};

/// Outcome of a restore.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestoreOutcome {
    /// The operation; `null` for a preview, or if nothing changed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub done: Option<ChangeOutcome>,
    /// Outcome of each path.
    pub files: FileReport,
}

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

impl WorkingCopy {
    /// Restores the files of a snapshot of this thread: all, or only some paths.
    pub fn restore(
        &self,
        thread: ThreadId,
        snapshot: ContentId,
        only: &[RootPath],
        caller: Caller,
        move_options: MoveOptions,
    ) -> Result<RestoreOutcome, FileError> {
        let request = PlanRequest::Restore { snapshot, paths: only.to_vec() };
        self.order(thread, request, caller, move_options)?.perform(None)?.into_restored()
    }
}

/// Rejects a path that exists nowhere, since restoring nothing would look like success.
pub(super) fn check_paths(
    objects: &(impl Objects + ?Sized),
    paths: &[RootPath],
    present: &Snapshot,
    target: &Snapshot,
) -> Result<(), FileError> {
    let mut sides = [RestoreSide::new(objects, present)?, RestoreSide::new(objects, target)?];
    // Sorted, so that each folder is read once.
    let paths: BTreeSet<&RootPath> = paths.iter().collect();
    for path in paths {
        let [present, target] = &mut sides;
        if present.holds(objects, path)? || target.holds(objects, path)? {
            continue;
        }
        let reason = present.excluded(path).or_else(|| target.excluded(path));
        match (present.is_sealed(path), target.is_sealed(path), reason) {
            (true, true, _) => {}
            (false, false, Some(reason)) => return Err(FileError::NotHeld(path.clone(), reason.describe())),
            (false, false, None) => return Err(FileError::NoSuchPath(path.clone())),
            _ => return Err(FileError::NotSealedThere(path.clone())),
        }
    }
    Ok(())
}

/// A snapshot for looking up paths.
struct RestoreSide {
    cursor: SnapshotCursor,
    excluded: BTreeMap<String, Excluded>,
    sealed: BTreeSet<RootPath>,
}

impl RestoreSide {
    fn new(objects: &(impl Objects + ?Sized), snapshot: &Snapshot) -> Result<Self, FileError> {
        let (mut excluded, mut sealed) = (BTreeMap::new(), BTreeSet::new());
        for root in &snapshot.roots {
            if let Some(id) = root.excluded {
                excluded.insert(root.name.clone(), load(objects, id)?);
            }
            let paths = sealed_of(objects, Some(root))?.into_keys();
            sealed.extend(paths.map(|path| RootPath { root: root.name.clone(), path }));
        }
        Ok(Self { cursor: SnapshotCursor::new(snapshot), excluded, sealed })
    }

    fn holds(&mut self, objects: &(impl Objects + ?Sized), path: &RootPath) -> Result<bool, FileError> {
        Ok(self.cursor.get(objects, path)?.is_some())
    }

    fn excluded(&self, path: &RootPath) -> Option<ExclusionReason> {
        let excluded = self.excluded.get(&path.root)?;
        excluded.covering(&path.path.bytes()).map(|excluded| excluded.reason)
    }

    /// Returns whether a path is sealed or contains sealed files.
    fn is_sealed(&self, path: &RootPath) -> bool {
        let next = self.sealed.range(path..).next();
        next.is_some_and(|next| next.root == path.root && next.path.starts_with(&path.path))
    }
}

impl Reader<'_> {
    /// Versions of a thread with files, newest first, at most `limit`, before a version.
    pub fn files(
        &self,
        thread: ThreadId,
        before: Option<Version>,
        limit: usize,
    ) -> Result<Vec<FilesAt>, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let from = before.map_or(row.summary.version, |before| before.saturating_sub(1));
        let last_file_operation = FileOperationWalk::up_to(&queries, row.number, from)?;
        let found = last_file_operation.take(limit).map(|found| {
            let (operation, files) = found?;
            let (version, time, kind) = (operation.version, operation.time, operation.kind);
            Ok(FilesAt { version, time, kind, files })
        });
        found.collect()
    }

    /// The files of a thread after an operation: its own, or else those of the project's folder at that time. Changes
    /// in worktrees or outside of any folder are not included.
    pub fn files_at(&self, thread: ThreadId, version: Version) -> Result<Option<FilesAt>, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
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
    pub fn files_of_take(&self, thread: ThreadId, take: TakeId) -> Result<Option<ContentId>, ReadError> {
        let row = self.thread(thread)?;
        let head = self.head(thread)?.operation;
        Ok(files_of_take(&self.queries(), row.number, &head, take)?)
    }

    /// Snapshots of a thread by id prefix, including those from before its promotion.
    pub fn snapshots_beginning(&self, thread: ThreadId, text: &str) -> Result<Vec<ContentId>, ReadError> {
        let queries = self.queries();
        let mut found = std::collections::BTreeSet::new();
        // Shorter texts would match too many, and other texts none.
        if text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            for (last, row) in self.lineage(thread)? {
                for last_file_operation in FileOperationWalk::up_to(&queries, row.number, last)? {
                    let (_, files) = last_file_operation?;
                    let both = [files.before, files.after].into_iter();
                    found.extend(both.filter(|id| id.to_string().starts_with(&text.to_lowercase())));
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Returns whether a snapshot belongs to a thread, or to its history before the promotion.
    pub fn has_snapshot(&self, thread: ThreadId, snapshot: ContentId) -> Result<bool, ReadError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        // A captured state of the folder is in no operation before it changes.
        let own = |folder: &FolderRecord| match folder.worktree {
            Some(worktree) => worktree.thread == thread,
            None => folder.id == FolderId::of_project(row.home),
        };
        if queries.folders()?.iter().any(|folder| own(folder) && folder.snapshot == Some(snapshot)) {
            return Ok(true);
        }
        for (last, row) in self.lineage(thread)? {
            for found in FileOperationWalk::up_to(&queries, row.number, last)? {
                let (_, files) = found?;
                if files.after == snapshot || files.before == snapshot {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
