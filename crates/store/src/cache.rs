//! Content that was read lately. Content never changes, so what is cached is never stale.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::content::ContentId;

/// Bytes in one generation.
const GENERATION: usize = 16 * 1024 * 1024;
/// Larger content is not worth pushing everything else out for.
const LARGEST: usize = 256 * 1024;

/// Two generations: what is used moves to the young one, what is not is dropped with the old one.
#[derive(Default)]
pub(crate) struct Cache {
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<ContentId, Arc<[u8]>>,
    old: HashMap<ContentId, Arc<[u8]>>,
    young_bytes: usize,
}

impl Cache {
    pub(crate) fn get(&self, id: ContentId) -> Option<Arc<[u8]>> {
        let mut generations = self.lock();
        if let Some(bytes) = generations.young.get(&id) {
            return Some(Arc::clone(bytes));
        }
        let bytes = generations.old.remove(&id)?;
        generations.put(id, Arc::clone(&bytes));
        Some(bytes)
    }

    pub(crate) fn put(&self, id: ContentId, bytes: &Arc<[u8]>) {
        if bytes.len() <= LARGEST {
            self.lock().put(id, Arc::clone(bytes));
        }
    }

    /// Forgets everything: after a purge, nothing purged may be served from memory.
    pub(crate) fn clear(&self) {
        *self.lock() = Generations::default();
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
