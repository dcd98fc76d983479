//! Reports the status of the folder: changes since they were last recorded. Records nothing and never waits for a lock.

use std::sync::Arc;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{MemoryObjects, NewObject, ObjectError, Objects};
use retake_store::Queries;
use retake_workspace::snapshot::{Observation, observe};
use retake_workspace::watch::FolderWatch;
use serde::Serialize;

use super::record_changes::changed_paths;
use super::{FileError, PathReport, WorkingCopy};
use crate::files::captured::{SnapshotSummary, captured};

/// Status of a folder.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FolderStatus {
    /// The last recorded files; `null` if there are none.
    pub last: Option<ContentId>,
    /// Summary of the current files.
    #[serde(flatten)]
    pub captured: SnapshotSummary,
    /// Number of changed paths.
    pub changed_count: u64,
    /// The first changed paths.
    pub changed: Vec<PathReport>,
    /// Whether there are more.
    pub cut: bool,
}

/// Limit on the excluded paths to list.
const MAX_EXCLUDED: usize = 100;

impl WorkingCopy {
    /// The status of the folder, with at most `most` changed paths.
    pub fn status(&self, most: usize) -> Result<FolderStatus, FileError> {
        self.status_of(&observe(&self.timeline.store, &self.workspace)?, most)
    }

    /// The same with a watch over the folder, which walks only what changed since the last call.
    pub fn watched_status(&self, watch: &mut FolderWatch, most: usize) -> Result<FolderStatus, FileError> {
        self.status_of(&*watch.observe(&self.timeline.store, &self.workspace)?, most)
    }

    fn status_of(&self, taken: &Observation, most: usize) -> Result<FolderStatus, FileError> {
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        if queries.erasure_epoch() != taken.epoch {
            return Err(FileError::Outdated);
        }
        let last = queries.folder(self.folder)?.and_then(|record| record.snapshot);
        let sealed = self.add_sealed(taken.id, &taken.snapshot)?;
        let objects = [taken.objects.as_slice(), &sealed.objects].concat();
        let objects = SnapshotObjects::new(&objects, &queries);
        let captured = captured(&objects, sealed.id, &sealed.snapshot, MAX_EXCLUDED)?;
        let mut changed = match last.filter(|last| *last != sealed.id) {
            Some(last) => changed_paths(&objects, last, sealed.id)?,
            None => Vec::new(),
        };
        let changed_count = changed.len() as u64;
        let cut = changed.len() > most;
        changed.truncate(most);
        Ok(FolderStatus { last, captured, changed_count, changed, cut })
    }
}

/// The objects of a snapshot that is not stored yet, on top of the stored ones.
pub(super) struct SnapshotObjects<'queries> {
    new: MemoryObjects,
    stored: &'queries Queries<'queries>,
}

impl<'queries> SnapshotObjects<'queries> {
    pub(super) fn new(objects: &[NewObject], stored: &'queries Queries<'queries>) -> Self {
        let mut new = MemoryObjects::default();
        new.insert_all(objects.iter().cloned());
        Self { new, stored }
    }
}

impl Objects for SnapshotObjects<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.new.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id))
    }
}
