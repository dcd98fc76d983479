//! Recently read content. Content is immutable, so a cached object is never stale, but this or another process may
//! destroy it. The table `erasure` counts these events, and the cache drops everything from before the last one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::content::ContentId;

use crate::objects::index::RecentNames;
use crate::objects::packs::PackFiles;
use crate::tables::presentation::PresentationCache;

/// Bytes in one generation.
const GENERATION_BYTES: usize = 16 * 1024 * 1024;
/// Larger content would evict too much.
const MAX_CACHED: usize = 256 * 1024;

/// Two generations: content that is read again moves to the young one; the old one is dropped as a whole.
#[derive(Default)]
pub(crate) struct Cache {
    generations: Mutex<Generations>,
    /// Unpacked frames of packs.
    pub(crate) packs: PackFiles,
    /// Names of recently added objects.
    pub(crate) recent: RecentNames,
    /// How the entries of recently viewed threads are displayed.
    pub(crate) shown: PresentationCache,
}

#[derive(Default)]
struct Generations {
    /// The number of erasures when these objects were read.
    epoch: i64,
    young: HashMap<ContentId, Arc<[u8]>>,
    old: HashMap<ContentId, Arc<[u8]>>,
    young_bytes: usize,
}

impl Cache {
    pub(crate) fn of(store: &std::path::Path) -> Self {
        Self { packs: PackFiles::of(store), ..Self::default() }
    }

    /// Drops everything that was cached before the given number of erasures.
    pub(crate) fn set_epoch(&self, epoch: i64) {
        let mut generations = self.lock();
        if generations.epoch < epoch {
            *generations = Generations { epoch, ..Generations::default() };
            self.packs.clear();
            // A repair may have given the sequence numbers of lost operations to others.
            self.recent.clear();
        }
    }

    pub(crate) fn get(&self, id: ContentId, epoch: i64) -> Option<Arc<[u8]>> {
        let mut generations = self.lock();
        if generations.epoch != epoch {
            return None;
        }
        if let Some(bytes) = generations.young.get(&id) {
            return Some(Arc::clone(bytes));
        }
        let bytes = generations.old.remove(&id)?;
        generations.put(id, Arc::clone(&bytes));
        Some(bytes)
    }

    /// Caches an object, unless an erasure happened after the transaction began: the object may have been
    /// erased.
    pub(crate) fn put(&self, id: ContentId, bytes: &Arc<[u8]>, epoch: i64) {
        let mut generations = self.lock();
        if bytes.len() <= MAX_CACHED && generations.epoch == epoch {
            generations.put(id, Arc::clone(bytes));
        }
    }

    /// Drops everything, so that purged content is not served from memory.
    pub(crate) fn clear(&self) {
        let mut generations = self.lock();
        *generations = Generations { epoch: generations.epoch, ..Generations::default() };
        self.packs.clear();
        self.recent.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        // A panic elsewhere cannot leave half an entry: every change is one call on a map.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn put(&mut self, id: ContentId, bytes: Arc<[u8]>) {
        self.young_bytes += bytes.len();
        self.young.insert(id, bytes);
        if self.young_bytes > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}
