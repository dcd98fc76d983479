//! Destination of new content: small amounts go into the transaction, large ones into a pack.
//!
//! A pack needs its own sync before the database. For a few files that would double the time; for many it is far
//! cheaper than writing them through the database's log. An observation keeps small amounts in memory and only the ids
//! of the rest: it writes no file of the store.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use retake_model::content::{ContentId, Kind};
use retake_model::object::NewObject;
use retake_store::{PackWriter, PackedBatch, Reading, Store, StoreError};

use super::others::OtherFolders;

/// New content up to this size goes into the database.
const FEW: usize = 1024 * 1024;

pub(super) struct Sink<'store> {
    store: &'store Store,
    redacted: HashSet<ContentId>,
    others: OtherFolders,
    purpose: Purpose,
    few: Mutex<Few>,
    packs: OnceLock<PackWriter>,
}

/// Purpose of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Store it.
    Store,
    /// Observe it without storing.
    Observe,
}

#[derive(Default)]
struct Few {
    objects: Vec<NewObject>,
    bytes: usize,
}

/// A thread's handle to the sink.
pub(super) struct Feed<'sink> {
    sink: &'sink Sink<'sink>,
    /// Opened for the first content that may be new.
    reading: Option<Reading<'sink>>,
}

/// Whether content may be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// Stored, or to be stored.
    Taken,
    /// Erased on purpose; must not be stored again.
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

    /// Folders of other projects and worktrees.
    pub(super) fn others(&self) -> &OtherFolders {
        &self.others
    }

    pub(super) fn store(&self) -> &'store Store {
        self.store
    }

    pub(super) fn feed(&self) -> Feed<'_> {
        Feed { sink: self, reading: None }
    }

    /// The content to store.
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
        // Another thread may have created the pack.
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
    /// Offers the bytes of a file or of a part.
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

    /// Offers the part list of a long file.
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
        // Compares the full id: an attacker could craft two files whose ids begin alike.
        reading.queries().holds(kind, id)
    }
}
