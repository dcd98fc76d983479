//! Syncs files of a tool or program before the operation that records them becomes durable.
//!
//! Programs rarely sync their files. Without this, a power cut right after the acknowledgement would leave an empty
//! file and an operation that names its content.

use retake_model::content::ContentId;
use retake_model::object::NewObject;
use retake_model::path::TreePath;
use retake_workspace::apply::OpenRoot;
use retake_workspace::durable::sync_paths;
use retake_workspace::snapshot::{CapturedSnapshot, SnapshotError};

use super::record_changes::changed_paths;
use super::status::SnapshotObjects;
use super::{FileError, WorkingCopy};

impl WorkingCopy {
    /// Syncs the paths that differ between the last known files and a snapshot. Manual edits are not synced, which is
    /// up to the user's programs, unless a running tool may have made them.
    ///
    /// `sealed` is the same snapshot including the sealed files, with the additional objects.
    pub(super) fn sync_changes(
        &self,
        taken: &CapturedSnapshot,
        sealed: (ContentId, &[NewObject]),
        by_caller: bool,
    ) -> Result<(), FileError> {
        let (id, added) = sealed;
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        let Some(record) = queries.folder(self.folder)? else { return Ok(()) };
        let Some(before) = record.snapshot.filter(|before| *before != id) else { return Ok(()) };
        // Content was erased in the meantime: the write detects that, and everything is repeated.
        if (!by_caller && record.running.is_none()) || queries.erasure_epoch() != taken.epoch {
            return Ok(());
        }
        let objects = [&taken.objects[..], added].concat();
        let changed = changed_paths(&SnapshotObjects::new(&objects, &queries), before, id)?;
        for root in self.workspace.roots() {
            let here = changed.iter().filter(|path| path.path.root == root.name);
            let paths: Vec<TreePath> = here.map(|path| path.path.path.clone()).collect();
            if paths.is_empty() {
                continue;
            }
            OpenRoot::open(&root.path)
                .and_then(|opened| sync_paths(&opened, &paths))
                .map_err(|error| SnapshotError::Root { path: root.path.clone(), error })?;
        }
        Ok(())
    }
}
