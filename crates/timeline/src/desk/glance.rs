//! A glance at the folder: what differs from when it was last looked at. Nothing is recorded, and nobody waits.

use std::sync::Arc;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{Memory, NewObject, Objects, Unavailable};
use retake_store::Queries;
use retake_workspace::snapshot;
use serde::Serialize;

use super::look::changed_paths;
use super::{Desk, FileError, PathReport};
use crate::held::{Held, held};

/// What a glance at a folder shows.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Glance {
    /// The files as they were when they were last looked at; none if they never were.
    pub last: Option<ContentId>,
    /// What is there now.
    #[serde(flatten)]
    pub held: Held,
    /// How many paths differ from then.
    pub changed_count: u64,
    /// The first of them.
    pub changed: Vec<PathReport>,
    /// Whether there are more than are named.
    pub cut: bool,
}

/// How many paths that are not held are named.
const LEFT_OUT: usize = 100;

impl Desk {
    /// What is in the folder, and what was changed in it since it was last looked at, at most so many paths.
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

/// The objects of a snapshot that is not stored yet, on top of those that are.
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
