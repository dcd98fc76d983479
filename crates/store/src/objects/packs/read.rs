//! Reads packs, with open files and recently unpacked frames cached.
//!
//! The files of a folder share few frames, so a restore reads the same frame many times in a row.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_model::content::{ContentId, Kind};

use super::format::{FRAME_MAGIC, FrameHeader, HEADER_BYTES};
use super::path;
use crate::StoreError;
use crate::log::queries::Queries;

const MAX_OPEN_FILES: usize = 64;
const CACHED_FRAMES: usize = 16;
/// Longer frames contain a single blob, which is rarely read twice.
const MAX_CACHED_FRAME: usize = 512 * 1024;
/// The first read; most frames are shorter.
const FIRST_READ: usize = 96 * 1024;

/// A cache of pack files and frames.
#[derive(Default)]
pub(crate) struct PackFiles {
    folder: PathBuf,
    cache: Mutex<OpenPacks>,
}

/// A pack, and the offset of a frame in it.
type FrameKey = (i64, i64);

#[derive(Default)]
struct OpenPacks {
    files: HashMap<i64, Arc<File>>,
    frames: VecDeque<(FrameKey, Arc<Vec<u8>>)>,
}

impl PackFiles {
    /// The packs of the store in this folder.
    pub(crate) fn of(store: &std::path::Path) -> Self {
        Self { folder: super::folder(store), cache: Mutex::default() }
    }

    pub(super) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Drops everything: files may have been replaced, or content destroyed.
    pub(crate) fn clear(&self) {
        *self.cache() = OpenPacks::default();
    }

    /// The unpacked bytes of a frame; `None` if they cannot be read.
    fn frame(&self, pack: i64, at: i64) -> Option<Arc<Vec<u8>>> {
        let found = {
            let cache = self.cache();
            cache.frames.iter().find(|(key, _)| *key == (pack, at)).map(|(_, bytes)| Arc::clone(bytes))
        };
        if found.is_some() {
            return found;
        }
        let frame = read_frame(&*self.file(pack)?, u64::try_from(at).ok()?)?;
        let raw = Arc::new(FrameHeader::parse(&frame)?.unpack(&frame)?);
        if raw.len() <= MAX_CACHED_FRAME {
            let mut cache = self.cache();
            cache.frames.push_front(((pack, at), Arc::clone(&raw)));
            cache.frames.truncate(CACHED_FRAMES);
        }
        Some(raw)
    }

    /// The bytes at a location: pack, frame, start and length. They are not checked here.
    pub(super) fn blob(&self, [pack, frame, start, length]: [i64; 4]) -> Option<Vec<u8>> {
        let frame = self.frame(pack, frame)?;
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        frame.get(start..end).map(<[u8]>::to_vec)
    }

    fn file(&self, pack: i64) -> Option<Arc<File>> {
        if let Some(file) = self.cache().files.get(&pack) {
            return Some(Arc::clone(file));
        }
        let file = Arc::new(File::open(path(&self.folder, pack)).ok()?);
        let mut cache = self.cache();
        if cache.files.len() >= MAX_OPEN_FILES {
            cache.files.clear();
        }
        cache.files.insert(pack, Arc::clone(&file));
        Some(file)
    }

    fn cache(&self) -> MutexGuard<'_, OpenPacks> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The packed bytes of the frame at an offset.
pub(super) fn read_frame(file: &File, at: u64) -> Option<Vec<u8>> {
    let mut frame = vec![0; FIRST_READ];
    let mut filled = read_some(file, &mut frame, at)?;
    let length = FrameHeader::parse(frame.get(..filled.min(HEADER_BYTES))?)?.frame_length();
    frame.resize(length, 0);
    if filled < length {
        filled += read_some(file, &mut frame[filled..], at + filled as u64)?;
    }
    (filled >= length).then_some(frame)
}

/// The offset of the next frame magic.
pub(super) fn find_next_magic(file: &File, from: u64, end: u64) -> Option<u64> {
    const STEP: usize = 1024 * 1024;
    let mut buffer = vec![0; STEP];
    let mut at = from;
    while at < end {
        let filled = read_some(file, &mut buffer, at)?;
        let sign = buffer[..filled].windows(FRAME_MAGIC.len()).position(|bytes| bytes == FRAME_MAGIC);
        if let Some(sign) = sign {
            return Some(at + sign as u64);
        }
        if filled < FRAME_MAGIC.len() {
            return None;
        }
        // The magic may span the end of the buffer.
        at += (filled - (FRAME_MAGIC.len() - 1)) as u64;
    }
    None
}

fn read_some(file: &File, buffer: &mut [u8], at: u64) -> Option<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(filled)
}

impl Queries<'_> {
    /// The bytes of a packed blob, if it is intact.
    pub(crate) fn packed_blob(&self, id: ContentId) -> Result<Option<Vec<u8>>, StoreError> {
        let places = self.packed_places(id)?;
        let look = || places.iter().find_map(|&place| self.blob_at(id, place));
        if places.is_empty() {
            return Ok(None);
        }
        let found = look().or_else(|| {
            // The number of a deleted pack may be reused, so the open file may be the old one.
            self.cache.packs.clear();
            look()
        });
        Ok(found)
    }

    /// The locations of blobs with this name prefix, according to the index.
    fn packed_places(&self, id: ContentId) -> Result<Vec<[i64; 4]>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT pack, frame, start, length FROM packed WHERE prefix = ?1")?;
        let rows = statement
            .query_map([id.prefix()], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn blob_at(&self, id: ContentId, place: [i64; 4]) -> Option<Vec<u8>> {
        self.cache.packs.blob(place).filter(|blob| ContentId::of(Kind::Blob, blob) == id)
    }
}
