//! Which content is reached from which operations.
//!
//! Marking stops at content that cannot be read: what lies below it is not known, and to call that garbage
//! would turn a small loss into a large one. Content that was redacted, or that a repair has already written
//! off, holds nothing more to reach.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::intent::FolderRecord;
use retake_model::operation::Operation;
use retake_model::reference::{Reference, references};

use crate::StoreError;
use crate::queries::Queries;

/// Operations that are read at once.
const PAGE: usize = 1000;

/// Content that is reached.
#[derive(Default)]
pub(crate) struct Reached {
    ids: HashSet<ContentId>,
}

/// What is done about content that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDamage {
    /// Nothing is known for certain any more: stop.
    Refuse,
    /// What lies below it is left out.
    PassOver,
}

impl Reached {
    /// Marks what an operation needs, and all that lies below.
    pub(crate) fn mark(
        &mut self,
        queries: &Queries<'_>,
        operation: &Operation,
        on_damage: OnDamage,
    ) -> Result<(), StoreError> {
        let roots = references(Kind::Operation, &encode(operation));
        self.mark_from(
            queries,
            roots.map_err(|malformed| StoreError::Damaged(malformed.to_string()))?,
            on_damage,
        )
    }

    /// Marks what all folders and moves of files under way need.
    pub(crate) fn mark_folders(&mut self, queries: &Queries<'_>) -> Result<(), StoreError> {
        for stored in queries.intents()? {
            self.mark(queries, &stored.intent.operation, OnDamage::Refuse)?;
        }
        let folders = queries.folders()?;
        folders.iter().try_for_each(|folder| self.mark_folder(queries, folder, OnDamage::Refuse))
    }

    /// Marks what one folder needs.
    pub(crate) fn mark_folder(
        &mut self,
        queries: &Queries<'_>,
        folder: &FolderRecord,
        on_damage: OnDamage,
    ) -> Result<(), StoreError> {
        let known = folder.snapshot.map(|id| (Kind::Snapshot, id));
        self.mark_from(queries, known.into_iter().collect(), on_damage)
    }

    fn mark_from(
        &mut self,
        queries: &Queries<'_>,
        mut open: Vec<Reference>,
        on_damage: OnDamage,
    ) -> Result<(), StoreError> {
        while let Some((kind, id)) = open.pop() {
            if self.ids.insert(id) {
                open.extend(below(queries, kind, id, on_damage)?);
            }
        }
        Ok(())
    }

    /// The first bytes of all names, which is what the index of objects knows.
    pub(crate) fn prefixes(&self) -> HashSet<i64> {
        self.ids.iter().map(ContentId::prefix).collect()
    }
}

/// Shows all operations after a place in the sequence with the number of their thread; returns the last place.
pub(crate) fn each_operation(
    queries: &Queries<'_>,
    after: i64,
    visit: &mut dyn FnMut(i64, &Operation) -> Result<(), StoreError>,
) -> Result<i64, StoreError> {
    let mut last = after;
    loop {
        let page = queries.operations_since(last, PAGE)?;
        let Some(&(end, ..)) = page.last() else {
            return Ok(last);
        };
        for (_, thread, stored) in &page {
            if let Some(stored) = stored {
                visit(*thread, &stored.operation)?;
            }
        }
        last = end;
    }
}

fn below(
    queries: &Queries<'_>,
    kind: Kind,
    id: ContentId,
    on_damage: OnDamage,
) -> Result<Vec<Reference>, StoreError> {
    if matches!(kind, Kind::Blob | Kind::Sealed) {
        // Bytes refer to nothing, and there are far too many of them to be read for that.
        return Ok(Vec::new());
    }
    let found = match queries.stored_object(kind, id)? {
        Some(bytes) => references(kind, &bytes).ok(),
        None => (queries.is_redacted(id)? || queries.is_lost(id)?).then(Vec::new),
    };
    match found {
        Some(found) => Ok(found),
        None if on_damage == OnDamage::PassOver => Ok(Vec::new()),
        None => Err(StoreError::Damaged(format!("{kind:?} {} cannot be read", id.short()))),
    }
}
