//! The stat cache: results of the last snapshot, so that unchanged files are not read again.
//!
//! One file per root, in the store's folder. It is only a shortcut: a missing or damaged cache, or one of another
//! folder, is ignored.
//!
//! ```text
//!   magic │ checksum │ erasures │ root │ snapshot │ excluded │ folders: stamps, rules, tree … │ entries of each
//! ```
//!
//! It names content that was stored when it was written. If the store has erased content since, each id is looked up
//! once before the cache is used.

mod file;
mod format;

pub(super) use file::{CacheData, CacheFile};
pub(super) use format::{CacheWriter, CachedEntry, Exclusion, Folder};

use std::ffi::CStr;

use retake_model::content::{ContentId, Kind};
use retake_model::object::Objects;
use retake_model::reference::{Reference, references};
use retake_store::{Queries, Store, StoreError};

/// Results of the last snapshot.
pub(super) struct Cache {
    body: Vec<u8>,
    folders: Vec<Folder>,
    device: u64,
    /// The snapshot that it belongs to.
    pub(super) snapshot: ContentId,
    /// List of excluded paths of this root.
    pub(super) excluded: Option<ContentId>,
}

impl Cache {
    /// Loads the cache of a root, if it is usable.
    pub(super) fn load(
        cache_file: &CacheFile,
        epoch: i64,
        store: &Store,
    ) -> Result<Option<Self>, StoreError> {
        let Some((head, body)) = cache_file.read() else { return Ok(None) };
        let Some(folders) = format::folders(&body, head.folders, cache_file.device) else { return Ok(None) };
        let cache = Self {
            body,
            folders,
            device: cache_file.device,
            snapshot: head.snapshot,
            excluded: head.excluded,
        };
        if head.epoch != epoch && !cache.is_complete(&store.read()?.queries())? {
            return Ok(None);
        }
        Ok(Some(cache))
    }

    pub(super) fn folder(&self, index: u32) -> Option<&Folder> {
        self.folders.get(index as usize)
    }

    /// Entries of a folder, sorted by name.
    pub(super) fn entries(&self, folder: &Folder) -> Vec<(&CStr, CachedEntry<'_>)> {
        format::entries(&self.body, folder, self.device).unwrap_or_default()
    }

    /// Parses cache data that was just written, for that snapshot.
    pub(super) fn of(cache_data: &CacheData, device: u64, snapshot: ContentId) -> Option<Self> {
        let body = cache_data.body.clone();
        let folders = format::folders(&body, cache_data.folders, device)?;
        Some(Self { body, folders, device, snapshot, excluded: cache_data.excluded })
    }

    /// Number of folders.
    pub(super) fn len(&self) -> usize {
        self.folders.len()
    }

    /// A copy of the data.
    pub(super) fn cache_data(&self) -> CacheData {
        CacheData { body: self.body.clone(), folders: self.folders.len() as u32, excluded: self.excluded }
    }

    /// Returns whether the store still has all named content.
    fn is_complete(&self, queries: &Queries<'_>) -> Result<bool, StoreError> {
        let named = [Some((Kind::Snapshot, self.snapshot)), self.excluded.map(|id| (Kind::Excluded, id))];
        for (kind, id) in named.into_iter().flatten() {
            if !queries.is_indexed(kind, id)? {
                return Ok(false);
            }
        }
        for folder in &self.folders {
            if !queries.is_indexed(Kind::Tree, folder.tree)? {
                return Ok(false);
            }
            for (_, entry) in self.entries(folder) {
                let CachedEntry::File { stat, content, .. } = entry else { continue };
                let known = match content.node(&stat).stored_as() {
                    Some((Kind::Blob, id)) => queries.is_indexed(Kind::Blob, id)?,
                    Some((kind, id)) => all_are_indexed(queries, (kind, id))?,
                    None => true,
                };
                if !known {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Returns whether the store has a list of parts or chunks, and everything below it.
fn all_are_indexed(queries: &Queries<'_>, top: Reference) -> Result<bool, StoreError> {
    let mut open = vec![top];
    while let Some((kind, id)) = open.pop() {
        if kind == Kind::Blob {
            if !queries.is_indexed(kind, id)? {
                return Ok(false);
            }
            continue;
        }
        let Ok(bytes) = queries.bytes(kind, id) else { return Ok(false) };
        match references(kind, &bytes) {
            Ok(below) => open.extend(below),
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}
