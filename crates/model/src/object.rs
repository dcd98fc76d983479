//! How pure code reaches content: it reads through [`Objects`] and collects what is new in [`Additions`].
//!
//! Nothing is written here. A change reads what it needs, leaves its new content in `Additions`, and the
//! store makes all of it durable together with the operation that needs it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::content::{Content, ContentId, Kind, decode_canonical, encode};

/// A place that content can be read from.
pub trait Objects {
    /// The canonical bytes of that content, already checked against its name.
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, Unavailable>;
}

/// Content that should be there could not be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unavailable {
    /// No such content is stored.
    #[error("{kind:?} {} is missing from the store; run `retake verify`", id.short())]
    Missing {
        /// What was asked for.
        kind: Kind,
        /// Its name.
        id: ContentId,
    },
    /// What is stored is not what its name says.
    #[error("{kind:?} {} is damaged in the store; run `retake verify`", id.short())]
    Damaged {
        /// What was asked for.
        kind: Kind,
        /// Its name.
        id: ContentId,
    },
    /// The store could not be read.
    #[error("the store could not be read: {0}")]
    Unreadable(Arc<dyn std::error::Error + Send + Sync>),
}

/// Reads one piece of content.
pub fn load<C: Content>(objects: &(impl Objects + ?Sized), id: ContentId) -> Result<C, Unavailable> {
    let bytes = objects.bytes(C::KIND, id)?;
    decode_canonical(&bytes).map_err(|_| Unavailable::Damaged { kind: C::KIND, id })
}

/// New content on top of what is already stored.
pub struct Additions<'base, O: Objects + ?Sized> {
    base: &'base O,
    new: HashMap<ContentId, (Kind, Arc<[u8]>)>,
    order: Vec<ContentId>,
}

impl<'base, O: Objects + ?Sized> Additions<'base, O> {
    /// No new content yet.
    pub fn new(base: &'base O) -> Self {
        Self { base, new: HashMap::new(), order: Vec::new() }
    }

    /// Adds content and names it.
    pub fn add<C: Content>(&mut self, content: &C) -> ContentId {
        self.add_bytes(C::KIND, encode(content))
    }

    /// Adds canonical bytes and names them.
    pub fn add_bytes(&mut self, kind: Kind, bytes: Vec<u8>) -> ContentId {
        let id = ContentId::of(kind, &bytes);
        if self.new.insert(id, (kind, bytes.into())).is_none() {
            self.order.push(id);
        }
        id
    }

    /// The new content, each piece after those that it refers to.
    pub fn into_new(self) -> Vec<NewObject> {
        let Self { mut new, order, .. } = self;
        order
            .into_iter()
            .filter_map(|id| new.remove(&id).map(|(kind, bytes)| NewObject { id, kind, bytes }))
            .collect()
    }

    /// How many bytes of new content there are.
    pub fn new_bytes(&self) -> usize {
        self.new.values().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// One piece of content that is to be stored.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// Its name.
    pub id: ContentId,
    /// What it is.
    pub kind: Kind,
    /// Its canonical bytes.
    pub bytes: Arc<[u8]>,
}

impl<O: Objects + ?Sized> Objects for Additions<'_, O> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, Unavailable> {
        match self.new.get(&id) {
            Some((_, bytes)) => Ok(Arc::clone(bytes)),
            None => self.base.bytes(kind, id),
        }
    }
}

/// Objects in memory: what tests and importers read from.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    held: HashMap<ContentId, (Kind, Arc<[u8]>)>,
}

impl Memory {
    /// Keeps these objects too.
    pub fn keep(&mut self, objects: impl IntoIterator<Item = NewObject>) {
        self.held.extend(objects.into_iter().map(|object| (object.id, (object.kind, object.bytes))));
    }

    /// How many objects are held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

impl Objects for Memory {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, Unavailable> {
        match self.held.get(&id) {
            Some((held, bytes)) if *held == kind => Ok(Arc::clone(bytes)),
            _ => Err(Unavailable::Missing { kind, id }),
        }
    }
}
