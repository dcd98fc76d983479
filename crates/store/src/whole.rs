//! Whether content is whole: it and all that it refers to can be read.

use std::collections::{HashMap, HashSet};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};

use crate::StoreError;
use crate::queries::Queries;

/// Content, and what it refers to once that is known.
type Opened = (Kind, ContentId, Option<Vec<Reference>>);

/// Remembers which content is whole. States share most of what they are made of, so going through all states
/// of a thread opens each piece once.
pub(crate) struct Wholeness<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    known: HashMap<ContentId, bool>,
}

impl<'queries, 'transaction> Wholeness<'queries, 'transaction> {
    /// Nothing is known yet, but that `forgiven` content counts as whole.
    pub(crate) fn new(queries: &'queries Queries<'transaction>, forgiven: &HashSet<ContentId>) -> Self {
        Self { queries, known: forgiven.iter().map(|&id| (id, true)).collect() }
    }

    /// Whether that content and everything below it can be read.
    pub(crate) fn is_whole(&mut self, kind: Kind, id: ContentId) -> Result<bool, StoreError> {
        // By hand, not by recursion: content from elsewhere may be nested deeper than a stack is.
        let mut open: Vec<Opened> = vec![(kind, id, None)];
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

    /// What that content refers to; `None` if it cannot be read.
    fn below(&self, kind: Kind, id: ContentId) -> Result<Option<Vec<Reference>>, StoreError> {
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
