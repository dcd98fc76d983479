//! Access to content for pure code: it reads through [`Objects`] and collects new content in [`Additions`].
//!
//! Nothing is written here. A change reads its inputs and adds new content to `Additions`; the store makes
//! all of it durable together with the operation that refers to it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::content::{Content, ContentId, Kind, decode_canonical, encode};

/// A source of content.
pub trait Objects {
    /// The canonical bytes of a content id, already checked against that id.
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError>;
}

/// Failure to read content that should exist.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ObjectError {
    /// No such content is stored.
    #[error("{kind:?} {} is missing from the store; run `retake verify`", id.short())]
    Missing {
        /// Kind of the requested content.
        kind: Kind,
        /// Its content id.
        id: ContentId,
    },
    /// The stored bytes do not match the content id.
    #[error("{kind:?} {} is damaged in the store; run `retake verify`", id.short())]
    Damaged {
        /// Kind of the requested content.
        kind: Kind,
        /// Its content id.
        id: ContentId,
    },
    /// The store could not be read.
    #[error("the store could not be read: {0}")]
    Unreadable(Arc<dyn std::error::Error + Send + Sync>),
}

/// Loads and decodes one piece of content.
pub fn load<C: Content>(objects: &(impl Objects + ?Sized), id: ContentId) -> Result<C, ObjectError> {
    let bytes = objects.bytes(C::KIND, id)?;
    decode_canonical(&bytes).map_err(|_| ObjectError::Damaged { kind: C::KIND, id })
}

/// New content on top of stored content.
pub struct Additions<'base, O: Objects + ?Sized> {
    base: &'base O,
    new: HashMap<ContentId, (Kind, Arc<[u8]>)>,
    order: Vec<ContentId>,
}

impl<'base, O: Objects + ?Sized> Additions<'base, O> {
    /// Starts without new content.
    pub fn new(base: &'base O) -> Self {
        Self { base, new: HashMap::new(), order: Vec::new() }
    }

    /// Adds content and returns its id.
    pub fn add<C: Content>(&mut self, content: &C) -> ContentId {
        self.add_bytes(C::KIND, encode(content))
    }

    /// Adds canonical bytes and returns their id.
    pub fn add_bytes(&mut self, kind: Kind, bytes: Vec<u8>) -> ContentId {
        let id = ContentId::of(kind, &bytes);
        if self.new.insert(id, (kind, bytes.into())).is_none() {
            self.order.push(id);
        }
        id
    }

    /// The new content, each piece after those it refers to.
    pub fn into_new(self) -> Vec<NewObject> {
        let Self { mut new, order, .. } = self;
        order
            .into_iter()
            .filter_map(|id| new.remove(&id).map(|(kind, bytes)| NewObject { id, kind, bytes }))
            .collect()
    }

    /// Total size of the new content in bytes.
    pub fn new_bytes(&self) -> usize {
        self.new.values().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// A piece of content to be stored.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// Its content id.
    pub id: ContentId,
    /// Its kind.
    pub kind: Kind,
    /// Its canonical bytes.
    pub bytes: Arc<[u8]>,
}

impl<O: Objects + ?Sized> Objects for Additions<'_, O> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        match self.new.get(&id) {
            Some((_, bytes)) => Ok(Arc::clone(bytes)),
            None => self.base.bytes(kind, id),
        }
    }
}

/// Objects in memory, for tests and importers.
#[derive(Clone, Debug, Default)]
pub struct MemoryObjects {
    objects: HashMap<ContentId, (Kind, Arc<[u8]>)>,
}

impl MemoryObjects {
    /// Inserts these objects.
    pub fn insert_all(&mut self, objects: impl IntoIterator<Item = NewObject>) {
        self.objects.extend(objects.into_iter().map(|object| (object.id, (object.kind, object.bytes))));
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Objects for MemoryObjects {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        match self.objects.get(&id) {
            Some((stored, bytes)) if *stored == kind => Ok(Arc::clone(bytes)),
            _ => Err(ObjectError::Missing { kind, id }),
        }
    }
}
