//! Reports the status of the folder: changes since they were last recorded. Records nothing and never blocks.

use std::sync::Arc;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{Memory, NewObject, Objects, Unavailable};
use retake_store::Queries;
use retake_workspace::snapshot;
use serde::Serialize;

use super::look::changed_paths;
use super::{Desk, FileError, PathReport};
use crate::held::{Held, held};

/// Status of a folder.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Glance {
    /// The last recorded files; `null` if there are none.
    pub last: Option<ContentId>,
    /// Summary of the current files.
    #[serde(flatten)]
    pub held: Held,
    /// Number of changed paths.
    pub changed_count: u64,
    /// The first changed paths.
    pub changed: Vec<PathReport>,
    /// Whether there are more.
    pub cut: bool,
}

/// Limit on the excluded paths to list.
const LEFT_OUT: usize = 100;

impl Desk {
    /// The status of the folder, with at most `most` changed paths.
    pub fn glance(&self, most: usize) -> Result<Glance, FileError> {
        let taken = snapshot::observe(&self.timeline.store, &self.workspace)?;
        let looking = self.timeline.look()?;
        let queries = looking.queries();
        if queries.erasures() != taken.epoch {
            return Err(FileError::Outdated);
        }
        let last = queries.folder(self.folder)?.and_then(|record| record.snapshot);
        let sealed = self.with_sealed(taken.id, &taken.snapshot, &taken.objects)?;
        let objects = [taken.objects, sealed.objects].concat();
        let objects = TakenObjects::new(&objects, &queries);
        let held = held(&objects, sealed.id, &sealed.snapshot, LEFT_OUT)?;
        let mut changed = match last.filter(|last| *last != sealed.id) {
            Some(last) => changed_paths(&objects, last, sealed.id)?,
            None => Vec::new(),
        };
        let changed_count = changed.len() as u64;
        let cut = changed.len() > most;
        changed.truncate(most);
        Ok(Glance { last, held, changed_count, changed, cut })
    }
}

/// The objects of a snapshot that is not stored yet, on top of the stored ones.
pub(super) struct TakenObjects<'queries> {
    new: Memory,
    stored: &'queries Queries<'queries>,
}

impl<'queries> TakenObjects<'queries> {
    pub(super) fn new(objects: &[NewObject], stored: &'queries Queries<'queries>) -> Self {
        let mut new = Memory::default();
        new.keep(objects.iter().cloned());
        Self { new, stored }
    }
}

impl Objects for TakenObjects<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, Unavailable> {
        self.new.bytes(kind, id).or_else(|_| self.stored.bytes(kind, id))
    }
}
