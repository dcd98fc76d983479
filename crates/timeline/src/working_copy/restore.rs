//! Restores the folder, or some of its paths, exactly as in another version.

use std::collections::{BTreeMap, BTreeSet};

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::object::{Objects, load};
use retake_model::path::RootPath;
use retake_model::sealed::sealed_of;
use retake_model::tree::{Excluded, ExclusionReason, Snapshot, SnapshotCursor};
use serde::Serialize;

use super::report::FileReport;
use super::{FileError, MoveOptions, PlanRequest, WorkingCopy};
use crate::{Caller, ChangeOutcome};

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
        self.planned_request(thread, request, caller, move_options)?.perform(None)?.into_restored()
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
            (false, false, Some(reason)) => {
                return Err(FileError::PathExcluded(path.clone(), reason.describe()));
            }
            (false, false, None) => return Err(FileError::NoSuchPath(path.clone())),
            _ => return Err(FileError::NotSealedAtVersion(path.clone())),
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
