//! A snapshot that was taken and is not stored yet.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use retake_model::content::ContentId;
use retake_model::object::NewObject;
use retake_model::time::Timestamp;
use retake_model::tree::Snapshot;
use retake_store::{PackedBatch, StoreError, Writing};

use super::cache::{Memory, Place};

/// A snapshot, and all that the store does not have of it yet.
///
/// [`store`](Self::store) it inside the transaction of the operation that needs it; after the commit, let it be
/// [`remember`](Self::remember)ed. If it is dropped instead, nothing happened.
#[must_use = "a snapshot that is not stored is lost"]
#[derive(Debug)]
pub struct Taken {
    /// Its name.
    pub id: ContentId,
    /// What it holds.
    pub snapshot: Snapshot,
    /// New content, each piece after those that it refers to; none if nothing changed.
    pub objects: Vec<NewObject>,
    /// New bytes of files, if there were many.
    pub packed: Option<PackedBatch>,
    /// How often the store had destroyed content when it was taken.
    pub epoch: i64,
    memories: Vec<(Place, Option<Memory>)>,
    /// Whether it is said to be stored: only then may a watcher go by what it found.
    kept: Arc<AtomicBool>,
}

/// Why a snapshot was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreTakenError {
    /// Content was destroyed since, perhaps some that it relies on.
    #[error("content was removed from the store while the snapshot was taken; take it again")]
    Stale,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Taken {
    pub(super) fn new(
        id: ContentId,
        snapshot: Snapshot,
        objects: Vec<NewObject>,
        packed: Option<PackedBatch>,
        epoch: i64,
        memories: Vec<(Place, Option<Memory>)>,
    ) -> Self {
        Self { id, snapshot, objects, packed, epoch, memories, kept: Arc::default() }
    }

    /// Says later on whether it was remembered.
    pub(super) fn kept(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.kept)
    }

    /// Whether the store has all of it already.
    pub fn is_stored(&self) -> bool {
        self.objects.is_empty() && self.packed.is_none()
    }

    /// Stores what is new, with this transaction. Returns how many bytes were added.
    pub fn store(&self, writing: &Writing<'_>, now: Timestamp) -> Result<u64, StoreTakenError> {
        if writing.erasures() != self.epoch {
            return Err(StoreTakenError::Stale);
        }
        let packed = match &self.packed {
            Some(batch) => writing.put_packed(batch, now)?,
            None => 0,
        };
        Ok(packed + writing.put_contents(&self.objects, now)?)
    }

    /// Lets the next snapshot of the same folders pass over what did not change since. Only for what was
    /// stored and committed; that it fails costs time and nothing else.
    pub fn remember(&self) -> io::Result<()> {
        self.kept.store(true, Ordering::Release);
        for (place, memory) in &self.memories {
            if let Some(memory) = memory {
                memory.save(place, self.epoch, self.id)?;
            }
        }
        Ok(())
    }
}
