//! The file of a stat cache.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use retake_model::content::ContentId;
use retake_store::{Permissions, Store};

use crate::snapshot::workspace::Root;

const MAGIC: &[u8; 8] = b"rtkstat4";
/// Of caches before files were stored in chunks: they have no such file, and are valid otherwise.
const EARLIER_MAGIC: &[u8; 8] = b"rtkstat3";
const CHECKSUM_BYTES: usize = 32;
/// Erasures, device, inode, snapshot, flag and id of the excluded paths, folders.
const HEADER_BYTES: usize = 8 + 8 + 8 + 32 + 1 + 32 + 4;

/// Path and root of a cache file.
#[derive(Clone, Debug)]
pub(in crate::snapshot) struct CacheFile {
    path: PathBuf,
    pub(super) device: u64,
    inode: u64,
}

/// Cache data for the next snapshot.
#[derive(Debug)]
pub(in crate::snapshot) struct CacheData {
    pub(in crate::snapshot) body: Vec<u8>,
    pub(in crate::snapshot) folders: u32,
    pub(in crate::snapshot) excluded: Option<ContentId>,
}

pub(super) struct CacheHeader {
    pub(super) epoch: i64,
    pub(super) snapshot: ContentId,
    pub(super) excluded: Option<ContentId>,
    pub(super) folders: u32,
}

impl CacheFile {
    pub(in crate::snapshot) fn of(store: &Store, root: &Root) -> Self {
        let name = format!("{:x}-{:x}.stat", root.device, root.inode);
        Self { path: store.folder().join("folders").join(name), device: root.device, inode: root.inode }
    }

    /// Reads the file, if it is intact and belongs to this root.
    pub(super) fn read(&self) -> Option<(CacheHeader, Vec<u8>)> {
        let mut bytes = fs::read(&self.path).ok()?;
        let rest = bytes.strip_prefix(MAGIC).or_else(|| bytes.strip_prefix(EARLIER_MAGIC))?;
        let (checksum, rest) = rest.split_first_chunk::<CHECKSUM_BYTES>()?;
        if blake3::hash(rest).as_bytes() != checksum {
            return None;
        }
        let (head, _) = rest.split_first_chunk::<HEADER_BYTES>()?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        let id = |at: usize| ContentId::from_bytes(std::array::from_fn(|index| head[at + index]));
        if number(8) != self.device || number(16) != self.inode {
            return None;
        }
        let head = CacheHeader {
            epoch: number(0) as i64,
            snapshot: id(24),
            excluded: (head[56] == 1).then(|| id(57)),
            folders: u32::from_le_bytes(std::array::from_fn(|index| head[89 + index])),
        };
        bytes.drain(..MAGIC.len() + CHECKSUM_BYTES + HEADER_BYTES);
        Some((head, bytes))
    }
}

impl CacheData {
    /// Replaces the file atomically. It is not synced: the checksum detects a torn file.
    pub(in crate::snapshot) fn save(
        &self,
        place: &CacheFile,
        epoch: i64,
        snapshot: ContentId,
    ) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut head = Vec::with_capacity(HEADER_BYTES);
        for number in [epoch as u64, place.device, place.inode] {
            head.extend(number.to_le_bytes());
        }
        head.extend(snapshot.bytes());
        head.push(u8::from(self.excluded.is_some()));
        head.extend(self.excluded.as_ref().map_or(&[0; 32], ContentId::bytes));
        head.extend(self.folders.to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head);
        hasher.update(&self.body);
        if let Some(folder) = place.path.parent() {
            DirBuilder::new().recursive(true).mode(Permissions::FOLDER).create(folder)?;
        }
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let new = place.path.with_extension(format!("{}-{unique}.new", std::process::id()));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(Permissions::FILE).open(&new)?;
        let written = file
            .write_all(MAGIC)
            .and_then(|()| file.write_all(hasher.finalize().as_bytes()))
            .and_then(|()| file.write_all(&head))
            .and_then(|()| file.write_all(&self.body))
            .and_then(|()| fs::rename(&new, &place.path));
        if written.is_err() {
            // A leftover file would do no harm, but take space.
            let _ = fs::remove_file(&new);
        }
        written
    }
}
