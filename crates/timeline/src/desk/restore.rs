//! Restores the folder, or some of its paths, exactly as in another version.

use std::collections::{BTreeMap, BTreeSet};

use retake_model::content::ContentId;
use retake_model::history::Log as _;
use retake_model::id::{FolderId, TakeId, ThreadId};
use retake_model::intent::FolderRecord;
use retake_model::object::{Objects, load};
use retake_model::operation::{FileChange, OperationKind, Version};
use retake_model::path::RootPath;
use retake_model::sealed::sealed_of;
use retake_model::time::Timestamp;
use retake_model::tree::{LeftOut, Reason, Snapshot, SnapshotCursor};
use serde::Serialize;

use super::plan::{Filed, files_of_take};
use super::report::FileReport;
use super::{Desk, FileError, Handling, PlanRequest};
use crate::{Caller, Done, LookError, Looking};

/// Outcome of a restore.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    /// The operation; `null` for a preview, or if nothing changed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
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

impl Desk {
    /// Restores the files of a snapshot of this thread: all, or only some paths.
    pub fn restore(
        &self,
        thread: ThreadId,
        snapshot: ContentId,
        only: &[RootPath],
        caller: Caller,
        handling: Handling,
    ) -> Result<Restored, FileError> {
        let request = PlanRequest::Restore { snapshot, paths: only.to_vec() };
        self.order(thread, request, caller, handling)?.perform(None)?.into_restored()
    }
}

/// Rejects a path that exists nowhere, since restoring nothing would look like success.
pub(super) fn check_paths(
    objects: &(impl Objects + ?Sized),
    paths: &[RootPath],
    present: &Snapshot,
    target: &Snapshot,
) -> Result<(), FileError> {
    let mut sides = [Side::new(objects, present)?, Side::new(objects, target)?];
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
            (false, false, Some(reason)) => return Err(FileError::NotHeld(path.clone(), reason.words())),
            (false, false, None) => return Err(FileError::NoSuchPath(path.clone())),
            _ => return Err(FileError::NotSealedThere(path.clone())),
        }
    }
    Ok(())
}

/// A snapshot for looking up paths.
struct Side {
    cursor: SnapshotCursor,
    excluded: BTreeMap<String, LeftOut>,
    sealed: BTreeSet<RootPath>,
}

impl Side {
    fn new(objects: &(impl Objects + ?Sized), snapshot: &Snapshot) -> Result<Self, FileError> {
        let (mut excluded, mut sealed) = (BTreeMap::new(), BTreeSet::new());
        for root in &snapshot.roots {
            if let Some(id) = root.left_out {
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

    fn excluded(&self, path: &RootPath) -> Option<Reason> {
        let excluded = self.excluded.get(&path.root)?;
        excluded.covering(&path.path.bytes()).map(|excluded| excluded.reason)
    }

    /// Returns whether a path is sealed or contains sealed files.
    fn is_sealed(&self, path: &RootPath) -> bool {
        let next = self.sealed.range(path..).next();
        next.is_some_and(|next| next.root == path.root && next.path.starts_with(&path.path))
    }
}

impl Looking<'_> {
    /// Versions of a thread with files, newest first, at most `limit`, before a version.
    pub fn files(
        &self,
        thread: ThreadId,
        before: Option<Version>,
        limit: usize,
    ) -> Result<Vec<FilesAt>, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let from = before.map_or(row.summary.version, |before| before.saturating_sub(1));
        let filed = Filed::up_to(&queries, row.number, from)?;
        let found = filed.take(limit).map(|found| {
            let (operation, files) = found?;
            let (version, time, kind) = (operation.version, operation.time, operation.kind);
            Ok(FilesAt { version, time, kind, files })
        });
        found.collect()
    }

    /// The files of a thread after an operation: its own, or else those of the project's folder at that time. Changes
    /// in worktrees or outside of any folder are not included.
    pub fn files_at(&self, thread: ThreadId, version: Version) -> Result<Option<FilesAt>, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let log = queries.log(row.number);
        for filed in Filed::up_to(&queries, row.number, version)? {
            let (operation, files) = filed?;
            let is_meant = operation.version == version
                || (!files.apart && files.take == log.active(operation.version)?);
            if is_meant {
                let (version, time, kind) = (operation.version, operation.time, operation.kind);
                return Ok(Some(FilesAt { version, time, kind, files }));
            }
        }
        Ok(None)
    }

    /// The last known files of a take.
    pub fn files_of_take(&self, thread: ThreadId, take: TakeId) -> Result<Option<ContentId>, LookError> {
        let row = self.thread(thread)?;
        let head = self.head(thread)?.operation;
        Ok(files_of_take(&self.queries(), row.number, &head, take)?)
    }

    /// Snapshots of a thread by id prefix, including those from before its promotion.
    pub fn snapshots_beginning(&self, thread: ThreadId, text: &str) -> Result<Vec<ContentId>, LookError> {
        let queries = self.queries();
        let mut found = std::collections::BTreeSet::new();
        // Shorter texts would match too many, and other texts none.
        if text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            for (last, row) in self.lineage(thread)? {
                for filed in Filed::up_to(&queries, row.number, last)? {
                    let (_, files) = filed?;
                    let both = [files.before, files.after].into_iter();
                    found.extend(both.filter(|id| id.to_string().starts_with(&text.to_lowercase())));
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Returns whether a snapshot belongs to a thread, or to its history before the promotion.
    pub fn has_snapshot(&self, thread: ThreadId, snapshot: ContentId) -> Result<bool, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        // A captured state of the folder is in no operation before it changes.
        let own = |folder: &FolderRecord| match folder.apart {
            Some(apart) => apart.thread == thread,
            None => folder.id == FolderId::of_project(row.home),
        };
        if queries.folders()?.iter().any(|folder| own(folder) && folder.snapshot == Some(snapshot)) {
            return Ok(true);
        }
        for (last, row) in self.lineage(thread)? {
            for found in Filed::up_to(&queries, row.number, last)? {
                let (_, files) = found?;
                if files.after == snapshot || files.before == snapshot {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
