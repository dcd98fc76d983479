//! A snapshot that is captured and not stored yet.

use std::io;

use retake_model::content::ContentId;
use retake_model::object::NewObject;
use retake_model::time::Timestamp;
use retake_model::tree::Snapshot;
use retake_store::{PackedBatch, StoreError, WriteTransaction};

use super::cache::{CacheData, CacheFile};

/// A snapshot with all objects that the store lacks.
///
/// [`store`](Self::store) it inside the transaction of the operation that needs it, and [`save_cache`](Self::save_cache) it
/// after the commit. Dropping it instead has no effect.
#[must_use = "a snapshot that is not stored is lost"]
#[derive(Debug)]
pub struct CapturedSnapshot {
    /// Id of the snapshot.
    pub id: ContentId,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// New objects, each after those that it refers to; empty if nothing changed.
    pub objects: Vec<NewObject>,
    /// New file content, if there is a lot.
    pub packed: Option<PackedBatch>,
    /// Erasure counter of the store when it was taken.
    pub epoch: i64,
    cache_updates: Vec<(CacheFile, Option<CacheData>)>,
}

/// Why a snapshot was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreSnapshotError {
    /// The store has erased content since, perhaps some that the snapshot refers to.
    #[error("content was removed from the store while the snapshot was taken; take it again")]
    Stale,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CapturedSnapshot {
    pub(super) fn new(
        id: ContentId,
        snapshot: Snapshot,
        objects: Vec<NewObject>,
        packed: Option<PackedBatch>,
        epoch: i64,
        cache_updates: Vec<(CacheFile, Option<CacheData>)>,
    ) -> Self {
        Self { id, snapshot, objects, packed, epoch, cache_updates }
    }

    /// Returns whether the store already has all of it.
    pub fn is_stored(&self) -> bool {
        self.objects.is_empty() && self.packed.is_none()
    }

    /// Stores new objects in this transaction. Returns the number of bytes added.
    pub fn store(&self, writing: &WriteTransaction<'_>, now: Timestamp) -> Result<u64, StoreSnapshotError> {
        if writing.erasure_epoch() != self.epoch {
            return Err(StoreSnapshotError::Stale);
        }
        let packed = match &self.packed {
            Some(batch) => writing.put_packed(batch, now)?,
            None => 0,
        };
        Ok(packed + writing.put_contents(&self.objects, now)?)
    }

    /// Saves the stat cache, so that the next snapshot skips unchanged files. Call this only after the commit. A
    /// failure only costs time.
    pub fn save_cache(&self) -> io::Result<()> {
        for (cache_file, cache_data) in &self.cache_updates {
            if let Some(cache_data) = cache_data {
                cache_data.save(cache_file, self.epoch, self.id)?;
            }
        }
        Ok(())
    }
}
