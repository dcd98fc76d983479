//! Destination of new content: small amounts go into the transaction, large ones into a pack.
//!
//! A pack needs its own sync before the database. For a few files that would double the time; for many it is far
//! cheaper than writing them through the database's log. An observation keeps small amounts in memory and only the ids
//! of the rest: it writes no file of the store.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use retake_model::content::{ContentId, Kind};
use retake_model::object::NewObject;
use retake_store::{PackWriter, PackedBatch, ReadTransaction, Store, StoreError};

use super::other_folders::OtherFolders;

/// New content up to this size goes into the database.
const SMALL_BATCH_BYTES: usize = 1024 * 1024;

pub(super) struct Sink<'store> {
    store: &'store Store,
    redacted: HashSet<ContentId>,
    others: OtherFolders,
    purpose: Purpose,
    small_batch: Mutex<SmallBatch>,
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
struct SmallBatch {
    objects: Vec<NewObject>,
    bytes: usize,
}

/// A thread's handle to the sink.
pub(super) struct SinkWriter<'sink> {
    sink: &'sink Sink<'sink>,
    /// Opened for the first content that may be new.
    reading: Option<ReadTransaction<'sink>>,
}

/// Whether content may be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobOutcome {
    /// Stored, or to be stored.
    Stored,
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
        Self { store, redacted, others, purpose, small_batch: Mutex::default(), packs: OnceLock::new() }
    }

    /// Folders of other projects and worktrees.
    pub(super) fn others(&self) -> &OtherFolders {
        &self.others
    }

    pub(super) fn store(&self) -> &'store Store {
        self.store
    }

    pub(super) fn writer(&self) -> SinkWriter<'_> {
        SinkWriter { sink: self, reading: None }
    }

    /// The content to store.
    pub(super) fn finish(self) -> Result<(Vec<NewObject>, Option<PackedBatch>), StoreError> {
        let packed = self.packs.into_inner().map(PackWriter::finish).transpose()?;
        let small_batch = self.small_batch.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((small_batch.objects, packed))
    }

    fn put(&self, id: ContentId, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(packs) = self.packs.get() {
            return packs.add(id, bytes);
        }
        let mut small_batch = self.small_batch();
        // Another thread may have created the pack.
        if let Some(packs) = self.packs.get() {
            drop(small_batch);
            return packs.add(id, bytes);
        }
        small_batch.bytes += bytes.len();
        if small_batch.bytes <= SMALL_BATCH_BYTES {
            small_batch.objects.push(NewObject { id, kind: Kind::Blob, bytes: bytes.into() });
            return Ok(());
        }
        if self.purpose == Purpose::Observe {
            return Ok(());
        }
        let packs = self.store.pack_writer()?;
        let (blobs, others): (Vec<_>, Vec<_>) =
            small_batch.objects.drain(..).partition(|object| object.kind == Kind::Blob);
        small_batch.objects = others;
        for blob in &blobs {
            packs.add(blob.id, &blob.bytes)?;
        }
        packs.add(id, bytes)?;
        // Set under the lock, so there was none before.
        let _ = self.packs.set(packs);
        Ok(())
    }

    fn small_batch(&self) -> MutexGuard<'_, SmallBatch> {
        self.small_batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SinkWriter<'_> {
    /// Whether this content was erased on purpose.
    pub(super) fn is_redacted(&self, id: ContentId) -> bool {
        self.sink.redacted.contains(&id)
    }

    /// Offers the bytes of a file or of a chunk.
    pub(super) fn blob(&mut self, bytes: &[u8]) -> Result<(ContentId, BlobOutcome), StoreError> {
        let id = ContentId::of(Kind::Blob, bytes);
        if self.is_redacted(id) {
            return Ok((id, BlobOutcome::Redacted));
        }
        if !self.is_known(Kind::Blob, id)? {
            self.sink.put(id, bytes)?;
        }
        Ok((id, BlobOutcome::Stored))
    }

    /// Offers a node of the list of chunks of a large file.
    pub(super) fn chunks(&mut self, bytes: Vec<u8>) -> Result<ContentId, StoreError> {
        let id = ContentId::of(Kind::Chunks, &bytes);
        if !self.is_known(Kind::Chunks, id)? {
            let object = NewObject { id, kind: Kind::Chunks, bytes: bytes.into() };
            self.sink.small_batch().objects.push(object);
        }
        Ok(id)
    }

    fn is_known(&mut self, kind: Kind, id: ContentId) -> Result<bool, StoreError> {
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => none.insert(self.sink.store.read()?),
        };
        // Compares the full id: an attacker could craft two files whose ids begin alike.
        reading.queries().contains(kind, id)
    }
}
