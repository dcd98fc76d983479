//! Writes packs: many threads add blobs, and each compresses the frames that it fills.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_model::content::ContentId;

use super::format::{FILE_HEADER, encode};
use super::{folder, number_of, path};
use crate::location::{Permissions, private_folder, sync_folder};
use crate::maintenance::budget::list_files;
use crate::{Store, StoreError};

/// Blobs accumulate until a frame has this many bytes.
const FRAME_BYTES: usize = 256 * 1024;
/// A longer pack is followed by another, which bounds what `gc` copies at once.
const MAX_PACK: u64 = 64 * 1024 * 1024;

/// Writes blobs into packs that nothing refers to yet.
///
/// Several threads may add blobs at once. Dropping an unfinished writer deletes its files.
#[must_use = "nothing is durable before it is finished"]
pub struct PackWriter {
    folder: PathBuf,
    pending: Mutex<Pending>,
    output: Mutex<Vec<Pack>>,
}

/// Durable packs that nothing refers to before [`put_packed`](crate::WriteTransaction::put_packed).
#[must_use = "nothing refers to packs before a transaction records them"]
#[derive(Debug)]
pub struct PackedBatch {
    pub(super) packs: Vec<Pack>,
}

#[derive(Debug)]
pub(super) struct Pack {
    pub(super) number: i64,
    /// Locked while the batch exists, so that no collection deletes it.
    file: Arc<File>,
    pub(super) bytes: u64,
    pub(super) blobs: Vec<BlobLocation>,
}

/// The location of a blob in a pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlobLocation {
    pub(super) id: ContentId,
    pub(super) frame: u64,
    pub(super) start: u32,
    pub(super) length: u32,
}

#[derive(Default)]
struct Pending {
    seen: HashSet<ContentId>,
    blobs: Blobs,
}

/// The blobs of one frame.
#[derive(Default)]
struct Blobs {
    ids: Vec<ContentId>,
    lengths: Vec<u32>,
    bytes: Vec<u8>,
}

impl Store {
    pub fn pack_writer(&self) -> Result<PackWriter, StoreError> {
        let folder = folder(&self.folder);
        private_folder(&folder)?;
        Ok(PackWriter::at(&folder))
    }
}

impl PackWriter {
    pub(super) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), pending: Mutex::default(), output: Mutex::default() }
    }

    /// Adds a blob. A duplicate is ignored.
    pub fn add(&self, id: ContentId, bytes: &[u8]) -> Result<(), StoreError> {
        let full = {
            let mut pending = lock(&self.pending);
            if !pending.seen.insert(id) {
                return Ok(());
            }
            if bytes.len() >= FRAME_BYTES {
                // A separate frame, compressed without blocking other threads.
                let mut single = Blobs::default();
                drop(pending);
                single.push(id, bytes);
                single
            } else {
                pending.blobs.push(id, bytes);
                if pending.blobs.bytes.len() < FRAME_BYTES {
                    return Ok(());
                }
                std::mem::take(&mut pending.blobs)
            }
        };
        self.write(&full)
    }

    /// Makes all packs durable.
    pub fn finish(self) -> Result<PackedBatch, StoreError> {
        let rest = std::mem::take(&mut lock(&self.pending).blobs);
        if !rest.ids.is_empty() {
            self.write(&rest)?;
        }
        for pack in lock(&self.output).iter() {
            pack.file.sync_data().map_err(|error| failed(&path(&self.folder, pack.number), error))?;
        }
        sync_folder(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let packs = std::mem::take(&mut *lock(&self.output));
        Ok(PackedBatch { packs })
    }

    fn write(&self, blobs: &Blobs) -> Result<(), StoreError> {
        let frame = encode(&blobs.lengths, &blobs.bytes)
            .map_err(|error| StoreError::Damaged(format!("compression failed: {error}")))?;
        let (file, number, at) = {
            let mut packs = lock(&self.output);
            if packs.last().is_none_or(|last| last.bytes >= MAX_PACK) {
                packs.push(create(&self.folder)?);
            }
            let pack = packs.last_mut().expect("a pack was pushed");
            let at = pack.bytes;
            pack.bytes += frame.len() as u64;
            let mut start = 0;
            for (&id, &length) in blobs.ids.iter().zip(&blobs.lengths) {
                pack.blobs.push(BlobLocation { id, frame: at, start, length });
                start += length;
            }
            (Arc::clone(&pack.file), pack.number, at)
        };
        // The offset is reserved, so other threads may write at the same time.
        file.write_all_at(&frame, at).map_err(|error| failed(&path(&self.folder, number), error))
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        for pack in lock(&self.output).iter() {
            // Nothing refers to it; if it cannot be deleted, `gc` finds it.
            let _ = std::fs::remove_file(path(&self.folder, pack.number));
        }
    }
}

impl PackedBatch {
    pub fn len(&self) -> usize {
        self.packs.iter().map(|pack| pack.blobs.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their stored size in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.packs.iter().map(|pack| pack.bytes).sum()
    }
}

impl Pack {
    /// Whether the file is still the one that was written.
    pub(super) fn is_same_file(&self, folder: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::symlink_metadata(path(folder, self.number));
        match (found, self.file.metadata()) {
            (Ok(found), Ok(own)) => found.dev() == own.dev() && found.ino() == own.ino(),
            _ => false,
        }
    }
}

impl Blobs {
    fn push(&mut self, id: ContentId, bytes: &[u8]) {
        self.ids.push(id);
        self.lengths.push(bytes.len() as u32);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Creates a pack with an unused number.
fn create(folder: &Path) -> Result<Pack, StoreError> {
    let taken = list_files(folder)?.iter().filter_map(|file| number_of(file)).max().unwrap_or(0);
    for number in taken + 1.. {
        let path = path(folder, number);
        let new =
            OpenOptions::new().read(true).write(true).create_new(true).mode(Permissions::FILE).open(&path);
        match new {
            Ok(file) => {
                let head = || {
                    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(Permissions::FILE))?;
                    file.lock()?;
                    file.write_all_at(FILE_HEADER, 0)
                };
                head().map_err(|error| failed(&path, error))?;
                let bytes = FILE_HEADER.len() as u64;
                return Ok(Pack { number, file: Arc::new(file), bytes, blobs: Vec::new() });
            }
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    unreachable!("there are more numbers than files")
}

pub(super) fn failed(path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::File { path: path.to_owned(), error },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under the lock completes before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
