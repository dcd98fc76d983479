//! Checks completeness: whether content and everything it refers to can be read.

use std::collections::{HashMap, HashSet};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};

use crate::StoreError;
use crate::log::queries::Queries;

/// Content, and its references once it was read.
type PendingContent = (Kind, ContentId, Option<Vec<Reference>>);

/// Caches which content is complete. The states of a thread share most of their content, so a check of all
/// states reads each object once. Blobs that the caller has already hashed are not read again: they refer to
/// nothing, and there are too many to read twice.
pub(crate) struct CompletenessChecker<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    known: HashMap<ContentId, bool>,
    hashed: &'queries HashSet<Reference>,
}

impl<'queries, 'transaction> CompletenessChecker<'queries, 'transaction> {
    /// Treats `tolerated` content as complete, and trusts that the content in `hashed` matches its name.
    pub(crate) fn new(
        queries: &'queries Queries<'transaction>,
        tolerated: &HashSet<ContentId>,
        hashed: &'queries HashSet<Reference>,
    ) -> Self {
        Self { queries, known: tolerated.iter().map(|&id| (id, true)).collect(), hashed }
    }

    /// Whether this content and everything below it can be read.
    pub(crate) fn is_complete(&mut self, kind: Kind, id: ContentId) -> Result<bool, StoreError> {
        // An explicit stack instead of recursion: nesting of foreign content is not limited.
        let mut open: Vec<PendingContent> = vec![(kind, id, None)];
        while let Some((kind, id, below)) = open.pop() {
            if self.known.contains_key(&id) {
                continue;
            }
            match below {
                None => match self.below(kind, id)? {
                    None => {
                        self.known.insert(id, false);
                    }
                    Some(below) => {
                        let unknown: Vec<_> = below
                            .iter()
                            .filter(|(_, id)| !self.known.contains_key(id))
                            .map(|&(kind, id)| (kind, id, None))
                            .collect();
                        open.push((kind, id, Some(below)));
                        open.extend(unknown);
                    }
                },
                Some(below) => {
                    let whole = below.iter().all(|(_, id)| self.known.get(id) == Some(&true));
                    self.known.insert(id, whole);
                }
            }
        }
        Ok(self.known.get(&id) == Some(&true))
    }

    /// References of this content; `None` if it cannot be read.
    fn below(&self, kind: Kind, id: ContentId) -> Result<Option<Vec<Reference>>, StoreError> {
        if kind == Kind::Blob && self.hashed.contains(&(kind, id)) {
            return Ok(Some(Vec::new()));
        }
        let read = || match self.queries.stored_object(kind, id)? {
            Some(bytes) => Ok(references(kind, &bytes).ok()),
            None => Ok(self.queries.is_redacted(id)?.then(Vec::new)),
        };
        match read() {
            Err(error) if StoreError::is_damage(&error) => Ok(None),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn hashed_blobs_are_not_read_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("home")).expect("a store");
        let reading = store.read().expect("a read transaction");
        let queries = reading.queries();
        // This blob does not exist, which only a read detects.
        let blob = ContentId::of(Kind::Blob, b"nowhere");
        let (nothing, hashed) = (HashSet::new(), HashSet::from([(Kind::Blob, blob)]));
        let mut trusting = CompletenessChecker::new(&queries, &HashSet::new(), &hashed);
        assert!(trusting.is_complete(Kind::Blob, blob).expect("run succeeds"));
        let mut reads = CompletenessChecker::new(&queries, &HashSet::new(), &nothing);
        assert!(!reads.is_complete(Kind::Blob, blob).expect("run succeeds"), "the control");
    }
}
