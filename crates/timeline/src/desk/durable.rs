//! What a tool or a program wrote is durable before the operation that records it is.
//!
//! A program seldom syncs what it writes. Without this, a power cut just after the acknowledgement would leave an empty
//! file beside an operation that names its content.

use retake_model::content::ContentId;
use retake_model::object::NewObject;
use retake_model::path::TreePath;
use retake_workspace::apply::OpenRoot;
use retake_workspace::durable::sync_paths;
use retake_workspace::snapshot::{SnapshotError, Taken};

use super::glance::TakenObjects;
use super::look::changed_paths;
use super::{Desk, FileError};

impl Desk {
    /// Syncs what differs between the folder as it was known and a snapshot of it. What a hand changed is not synced: it is
    /// for the user's own programs to do, unless something runs whose changes they may be.
    ///
    /// `sealed` is the same snapshot with the sealed files of the folder, and the objects that this adds.
    pub(super) fn sync_changes(
        &self,
        taken: &Taken,
        sealed: (ContentId, &[NewObject]),
        by_caller: bool,
    ) -> Result<(), FileError> {
        let (id, added) = sealed;
        let looking = self.timeline.look()?;
        let queries = looking.queries();
        let Some(record) = queries.folder(self.folder)? else { return Ok(()) };
        let Some(before) = record.snapshot.filter(|before| *before != id) else { return Ok(()) };
        // Content was destroyed meanwhile: the write finds that out, and everything is done again.
        if (!by_caller && record.running.is_none()) || queries.erasures() != taken.epoch {
            return Ok(());
        }
        let objects = [&taken.objects[..], added].concat();
        let changed = changed_paths(&TakenObjects::new(&objects, &queries), before, id)?;
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
