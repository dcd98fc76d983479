//! Computes which content is reachable from which operations.
//!
//! Marking fails at content that cannot be read: its references are unknown, and treating them as garbage would turn
//! a small loss into a large one. Redacted content, and content that a repair recorded as lost, refers to nothing.

use std::collections::HashSet;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::intent::FolderRecord;
use retake_model::operation::Operation;
use retake_model::reference::{Reference, references};

use crate::StoreError;
use crate::log::queries::Queries;

/// Operations read at once.
const PAGE: usize = 1000;

#[derive(Default)]
pub(crate) struct ReachableContent {
    ids: HashSet<ContentId>,
}

/// How to handle content that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDamage {
    /// Fail: the result would be incomplete.
    Refuse,
    /// Ignore its references.
    Skip,
}

impl ReachableContent {
    /// Marks everything that an operation refers to, transitively.
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

    /// Marks everything that folders and pending file moves refer to.
    pub(crate) fn mark_folders(&mut self, queries: &Queries<'_>) -> Result<(), StoreError> {
        for stored in queries.intents()? {
            self.mark(queries, &stored.intent.operation, OnDamage::Refuse)?;
        }
        let folders = queries.folders()?;
        folders.iter().try_for_each(|folder| self.mark_folder(queries, folder, OnDamage::Refuse))
    }

    /// Marks everything that a folder refers to.
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

    pub(crate) fn contains(&self, id: ContentId) -> bool {
        self.ids.contains(&id)
    }

    /// The name prefixes of all marked content, as used by the object index.
    pub(crate) fn prefixes(&self) -> HashSet<i64> {
        self.ids.iter().map(ContentId::prefix).collect()
    }
}

/// Passes all operations after a sequence number, with their thread's row number, to `visit`; returns the last
/// sequence number.
pub(crate) fn for_each_operation(
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
        // Blobs refer to nothing, and there are too many to read.
        return Ok(Vec::new());
    }
    let found = match queries.stored_object(kind, id)? {
        Some(bytes) => references(kind, &bytes).ok(),
        None => (queries.is_redacted(id)? || queries.is_lost(id)?).then(Vec::new),
    };
    match found {
        Some(found) => Ok(found),
        None if on_damage == OnDamage::Skip => Ok(Vec::new()),
        None => Err(StoreError::Damaged(format!("{kind:?} {} cannot be read", id.short()))),
    }
}
