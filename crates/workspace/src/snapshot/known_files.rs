//! Looks up file content in the stat cache, without reading the file.

use std::collections::HashMap;

use retake_model::content::ContentId;
use retake_model::path::TreePath;
use retake_store::{Store, StoreError};

use super::cache::{Cache, CacheFile, CachedEntry};
use super::stat::Stat;
use super::workspace::Root;
use crate::apply::Identity;

/// Files of a root whose content is known by their stamps.
#[derive(Debug, Default)]
pub struct KnownFiles {
    files: HashMap<Vec<u8>, (Stat, ContentId)>,
}

impl KnownFiles {
    /// Loads the results of the last snapshot of a root.
    pub fn of(store: &Store, root: &Root) -> Result<Self, StoreError> {
        let epoch = store.read()?.queries().erasure_epoch();
        let cache = Cache::load(&CacheFile::of(store, root), epoch, store)?;
        let mut files = HashMap::new();
        if let Some(cache) = &cache {
            gather(cache, 0, &mut Vec::new(), &mut files);
        }
        Ok(Self { files })
    }

    /// Returns whether the file at a path, with that identity, certainly has that content.
    pub fn contains(&self, path: &TreePath, identity: &Identity, content: ContentId) -> bool {
        let nanoseconds =
            |(seconds, rest): (i64, i64)| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        self.files.get(&path.bytes()).is_some_and(|(stat, known)| {
            *known == content
                && stat.device == identity.device
                && stat.inode == identity.inode
                && stat.size == identity.size
                && stat.permissions() == identity.mode
                && stat.modified == nanoseconds(identity.modified)
                && stat.changed == nanoseconds(identity.changed)
        })
    }
}

fn gather(cache: &Cache, index: u32, above: &mut Vec<u8>, files: &mut HashMap<Vec<u8>, (Stat, ContentId)>) {
    let Some(folder) = cache.folder(index) else { return };
    for (name, entry) in cache.entries(folder) {
        let length = above.len();
        if length > 0 {
            above.push(b'/');
        }
        above.extend(name.to_bytes());
        match entry {
            CachedEntry::File { stat, settled: true, content } => {
                files.insert(above.clone(), (stat, content.id));
            }
            // Children have higher numbers, so a damaged index cannot cause a loop.
            CachedEntry::Folder { index: below } if below > index => gather(cache, below, above, files),
            _ => {}
        }
        above.truncate(length);
    }
}
