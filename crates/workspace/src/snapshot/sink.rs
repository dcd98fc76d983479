//! Where new content goes: a little travels with the transaction, a lot goes into a pack.
//!
//! A pack has to be synced on its own before the database is. For a few files that would double the time it
//! takes; for many it is far less than writing them through the database's log. Who only observes keeps the little in
//! memory, and of the rest nothing but its names: no file of the store is written.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use retake_model::content::{ContentId, Kind};
use retake_model::object::NewObject;
use retake_store::{PackWriter, PackedBatch, Reading, Store, StoreError};

use super::others::OtherFolders;

/// New content up to this size goes into the database itself.
const FEW: usize = 1024 * 1024;

pub(super) struct Sink<'store> {
    store: &'store Store,
    redacted: HashSet<ContentId>,
    others: OtherFolders,
    purpose: Purpose,
    few: Mutex<Few>,
    packs: OnceLock<PackWriter>,
}

/// What the content is gathered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is stored.
    Store,
    /// It is looked at, and forgotten.
    Observe,
}

#[derive(Default)]
struct Few {
    objects: Vec<NewObject>,
    bytes: usize,
}

/// A sink as one thread uses it.
pub(super) struct Feed<'sink> {
    sink: &'sink Sink<'sink>,
    /// Begun with the first content that may be new.
    reading: Option<Reading<'sink>>,
}

/// Whether content may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// It will be stored, or is.
    Taken,
    /// It was destroyed on purpose, and is not to come back by itself.
    Redacted,
}

impl<'store> Sink<'store> {
    pub(super) fn new(
        store: &'store Store,
        redacted: HashSet<ContentId>,
        others: OtherFolders,
        purpose: Purpose,
    ) -> Self {
        Self { store, redacted, others, purpose, few: Mutex::default(), packs: OnceLock::new() }
    }

    /// The folders of other projects and of takes.
    pub(super) fn others(&self) -> &OtherFolders {
        &self.others
    }

    pub(super) fn store(&self) -> &'store Store {
        self.store
    }

    pub(super) fn feed(&self) -> Feed<'_> {
        Feed { sink: self, reading: None }
    }

    /// What is to be stored.
    pub(super) fn finish(self) -> Result<(Vec<NewObject>, Option<PackedBatch>), StoreError> {
        let packed = self.packs.into_inner().map(PackWriter::finish).transpose()?;
        let few = self.few.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((few.objects, packed))
    }

    fn put(&self, id: ContentId, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(packs) = self.packs.get() {
            return packs.add(id, bytes);
        }
        let mut few = self.few();
        // Another thread may have begun the pack meanwhile.
        if let Some(packs) = self.packs.get() {
            drop(few);
            return packs.add(id, bytes);
        }
        few.bytes += bytes.len();
        if few.bytes <= FEW {
            few.objects.push(NewObject { id, kind: Kind::Blob, bytes: bytes.into() });
            return Ok(());
        }
        if self.purpose == Purpose::Observe {
            return Ok(());
        }
        let packs = self.store.pack_writer()?;
        let (blobs, others): (Vec<_>, Vec<_>) =
            few.objects.drain(..).partition(|object| object.kind == Kind::Blob);
        few.objects = others;
        for blob in &blobs {
            packs.add(blob.id, &blob.bytes)?;
        }
        packs.add(id, bytes)?;
        // Set under the lock, so there was none before.
        let _ = self.packs.set(packs);
        Ok(())
    }

    fn few(&self) -> MutexGuard<'_, Few> {
        self.few.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed<'_> {
    /// Offers the bytes of a file, or of a part of one.
    pub(super) fn blob(&mut self, bytes: &[u8]) -> Result<(ContentId, Offered), StoreError> {
        let id = ContentId::of(Kind::Blob, bytes);
        if self.sink.redacted.contains(&id) {
            return Ok((id, Offered::Redacted));
        }
        if !self.is_known(Kind::Blob, id)? {
            self.sink.put(id, bytes)?;
        }
        Ok((id, Offered::Taken))
    }

    /// Offers the list of a long file's parts.
    pub(super) fn parts(&mut self, bytes: Vec<u8>) -> Result<ContentId, StoreError> {
        let id = ContentId::of(Kind::Parts, &bytes);
        if !self.is_known(Kind::Parts, id)? {
            let object = NewObject { id, kind: Kind::Parts, bytes: bytes.into() };
            self.sink.few().objects.push(object);
        }
        Ok(id)
    }

    fn is_known(&mut self, kind: Kind, id: ContentId) -> Result<bool, StoreError> {
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => none.insert(self.sink.store.read()?),
        };
        // Asked to the last byte of the name: two files could be made whose names begin alike.
        reading.queries().holds(kind, id)
    }
}
