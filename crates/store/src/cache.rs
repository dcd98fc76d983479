//! Content that was read lately. Content never changes, so what is cached is never stale; it can only be
//! destroyed, by this process or another, and then nothing from before is served (see the table `erasure`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::content::ContentId;

use crate::index::Recent;
use crate::packs::PackFiles;
use crate::presentation::ShownLately;

/// Bytes in one generation.
const GENERATION: usize = 16 * 1024 * 1024;
/// Larger content is not worth pushing everything else out for.
const LARGEST: usize = 256 * 1024;

/// Two generations: what is used moves to the young one, what is not is dropped with the old one.
#[derive(Default)]
pub(crate) struct Cache {
    generations: Mutex<Generations>,
    /// Content in packs, kept by the frame.
    pub(crate) packs: PackFiles,
    /// Names of objects that came lately.
    pub(crate) recent: Recent,
    /// How entries are shown that were looked at lately.
    pub(crate) shown: ShownLately,
}

#[derive(Default)]
struct Generations {
    /// How often content had been destroyed when this was read.
    epoch: i64,
    young: HashMap<ContentId, Arc<[u8]>>,
    old: HashMap<ContentId, Arc<[u8]>>,
    young_bytes: usize,
}

impl Cache {
    /// Nothing yet, of the store in that folder.
    pub(crate) fn of(store: &std::path::Path) -> Self {
        Self { packs: PackFiles::of(store), ..Self::default() }
    }

    /// Begins a look at the store after that many erasures: what was kept from before an erasure is dropped.
    pub(crate) fn enter(&self, epoch: i64) {
        let mut generations = self.lock();
        if generations.epoch < epoch {
            *generations = Generations { epoch, ..Generations::default() };
            self.packs.forget();
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

    /// Keeps what was read, unless something was destroyed since that look began: it may be that.
    pub(crate) fn put(&self, id: ContentId, bytes: &Arc<[u8]>, epoch: i64) {
        let mut generations = self.lock();
        if bytes.len() <= LARGEST && generations.epoch == epoch {
            generations.put(id, Arc::clone(bytes));
        }
    }

    /// Forgets everything: after a purge, nothing purged may be served from memory.
    pub(crate) fn clear(&self) {
        let mut generations = self.lock();
        *generations = Generations { epoch: generations.epoch, ..Generations::default() };
        self.packs.forget();
        self.recent.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        // A panic elsewhere cannot have left half an entry: every change is one call on a map.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn put(&mut self, id: ContentId, bytes: Arc<[u8]>) {
        self.young_bytes += bytes.len();
        self.young.insert(id, bytes);
        if self.young_bytes > GENERATION {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}
