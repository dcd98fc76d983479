//! The stat cache: what was found the last time, so that what did not change is not read again.
//!
//! One file for each root, in the store's folder. It is only ever a shortcut: one that is missing, damaged or of
//! another folder is passed over.
//!
//! ```text
//!   sign │ checksum │ erasures │ root │ snapshot │ left out │ folders: stamps, rules, tree … │ entries of each
//! ```
//!
//! It names content that was stored when it was written. If the store has destroyed content since, each name is
//! looked up once before the cache is used.

mod form;
mod place;

pub(super) use form::{Folder, Remembered, Written};
pub(super) use place::{Memory, Place};

use std::ffi::CStr;

use retake_model::content::{ContentId, Kind};
use retake_model::object::load;
use retake_model::tree::{PART, Parts};
use retake_store::{Queries, Store, StoreError};

/// What was found the last time.
pub(super) struct Cache {
    body: Vec<u8>,
    folders: Vec<Folder>,
    device: u64,
    /// The snapshot that it belongs to.
    pub(super) snapshot: ContentId,
    /// What that did not hold of this root.
    pub(super) left_out: Option<ContentId>,
}

impl Cache {
    /// The cache of a root, if there is one that can be used.
    pub(super) fn load(place: &Place, epoch: i64, store: &Store) -> Result<Option<Self>, StoreError> {
        let Some((head, body)) = place.read() else { return Ok(None) };
        let Some(folders) = form::folders(&body, head.folders, place.device) else { return Ok(None) };
        let cache =
            Self { body, folders, device: place.device, snapshot: head.snapshot, left_out: head.left_out };
        if head.epoch != epoch && !cache.is_all_known(&store.read()?.queries())? {
            return Ok(None);
        }
        Ok(Some(cache))
    }

    pub(super) fn folder(&self, index: u32) -> Option<&Folder> {
        self.folders.get(index as usize)
    }

    /// What was in a folder, in the order of the names.
    pub(super) fn entries(&self, folder: &Folder) -> Vec<(&CStr, Remembered<'_>)> {
        form::entries(&self.body, folder, self.device).unwrap_or_default()
    }

    /// The cache that was written just now, for the snapshot of that name.
    pub(super) fn of(memory: &Memory, device: u64, snapshot: ContentId) -> Option<Self> {
        let body = memory.body.clone();
        let folders = form::folders(&body, memory.folders, device)?;
        Some(Self { body, folders, device, snapshot, left_out: memory.left_out })
    }

    /// How many folders it has.
    pub(super) fn len(&self) -> usize {
        self.folders.len()
    }

    /// How many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// Puts folders in the place of others, or after them. What was written of those stays behind as waste.
    pub(super) fn replace(&mut self, body: &[u8], indexes: &[u32]) -> Option<()> {
        let base = self.body.len();
        let mut folders = form::folders(body, indexes.len() as u32, self.device)?;
        self.body.extend(body);
        for (folder, index) in folders.drain(..).zip(indexes) {
            let (folder, index) = (folder.moved(base), *index as usize);
            if index == self.folders.len() {
                self.folders.push(folder);
            } else {
                *self.folders.get_mut(index)? = folder;
            }
        }
        Some(())
    }

    /// The same bytes once more.
    pub(super) fn memory(&self) -> Memory {
        Memory { body: self.body.clone(), folders: self.folders.len() as u32, left_out: self.left_out }
    }

    /// Whether the store still has all that is named here.
    fn is_all_known(&self, queries: &Queries<'_>) -> Result<bool, StoreError> {
        let named = [Some((Kind::Snapshot, self.snapshot)), self.left_out.map(|id| (Kind::LeftOut, id))];
        for (kind, id) in named.into_iter().flatten() {
            if !queries.knows(kind, id)? {
                return Ok(false);
            }
        }
        for folder in &self.folders {
            if !queries.knows(Kind::Tree, folder.tree)? {
                return Ok(false);
            }
            for (_, entry) in self.entries(folder) {
                let Remembered::File { stat, content, .. } = entry else { continue };
                let known = if stat.size > PART {
                    match load::<Parts>(queries, content) {
                        Ok(parts) => parts.0.iter().try_fold(true, |all, part| {
                            queries.knows(Kind::Blob, *part).map(|known| all && known)
                        })?,
                        Err(_) => false,
                    }
                } else {
                    queries.knows(Kind::Blob, content)?
                };
                if !known {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
