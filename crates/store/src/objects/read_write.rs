//! Objects: immutable content, checked against its hash on every read.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::entry::EntryVersion;
use retake_model::object::{NewObject, ObjectError, Objects};
use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, params};
use zstd::bulk::{Compressor, Decompressor};

use crate::log::queries::Queries;
use crate::objects::bundle::is_text;
use crate::objects::index::IndexPart;
use crate::{StoreError, WriteTransaction};

/// Smaller content compresses too little.
const MIN_PACKED: usize = 512;
/// The fastest level, which achieves most of the possible compression on text.
const LEVEL: i32 = 1;
/// Limits the unpacked size, so that damage cannot exhaust memory.
pub(crate) const MAX_UNPACKED: usize = 256 * 1024 * 1024;

const PLAIN: i64 = 0;
const ZSTD: i64 = 1;

thread_local! {
    // Creating a context costs more than compressing most objects.
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

impl WriteTransaction<'_> {
    /// Stores objects that are missing, in rows of their own. Returns the number of bytes added.
    pub(crate) fn put_objects(&self, objects: &[NewObject], now: Timestamp) -> Result<u64, StoreError> {
        self.put_rows(&self.missing(objects)?, now)
    }

    /// The objects that are not stored yet, each once.
    ///
    /// An object is stored after everything it refers to. So one that names a new object is new itself, which is usually
    /// true of all but the first, and costs much less than looking each of them up. If damage or a redaction took what
    /// it names, it is stored a second time, which does no harm.
    pub(crate) fn missing(&self, objects: &[NewObject]) -> Result<Vec<NewObject>, StoreError> {
        let mut missing: Vec<NewObject> = Vec::with_capacity(objects.len());
        let mut seen = HashSet::with_capacity(objects.len());
        for object in objects {
            if !seen.insert(object.id) {
                continue;
            }
            let recent = missing.iter().rev().take(MAX_COMPARED);
            if names_any(object, recent) || self.stored_object(object.kind, object.id)?.is_none() {
                missing.push(object.clone());
            }
        }
        Ok(missing)
    }

    /// Stores objects in rows of their own, as the caller knows that they are missing.
    pub(crate) fn put_rows(&self, objects: &[NewObject], now: Timestamp) -> Result<u64, StoreError> {
        let mut stored = Vec::with_capacity(objects.len());
        for object in objects {
            let packed = if is_text(object.kind) { compress(&object.bytes)? } else { None };
            let (packing, body) = match &packed {
                Some(packed) => (ZSTD, packed.as_slice()),
                None => (PLAIN, &*object.bytes),
            };
            self.connection
                .prepare_cached("INSERT INTO object (kind, packing, born, body) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![object.kind as i64, packing, now.millis() / 1000, body])?;
            stored.push((object.id.prefix(), self.connection.last_insert_rowid()));
        }
        self.index_objects(&stored)?;
        Ok(self.remember_new(objects))
    }

    /// Caches new content, which is usually read next, and returns its size. If the transaction is rolled back,
    /// nothing refers to it.
    pub(crate) fn remember_new(&self, objects: &[NewObject]) -> u64 {
        for object in objects {
            self.cache.put(object.id, &object.bytes, self.epoch);
        }
        objects.iter().map(|object| object.bytes.len() as u64).sum()
    }
}

impl WriteTransaction<'_> {
    /// Makes every process drop its cached content.
    pub(crate) fn record_erasure(&self) -> Result<(), StoreError> {
        self.connection.execute("INSERT INTO erasure DEFAULT VALUES", [])?;
        Ok(())
    }

    /// Records that content was destroyed on purpose, here or at its origin.
    pub fn put_redaction(&self, kind: Kind, id: ContentId, now: Timestamp) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO redaction (id, kind, time) VALUES (?1, ?2, ?3)")?
            .execute(params![id.bytes(), kind as i64, now.millis()])?;
        Ok(())
    }
}

impl Queries<'_> {
    /// The bytes of an object, if it is stored and intact.
    pub(crate) fn stored_object(&self, kind: Kind, id: ContentId) -> Result<Option<Vec<u8>>, StoreError> {
        // A damaged copy must not hide an intact one stored later.
        for part in [IndexPart::Recent, IndexPart::Sorted] {
            for number in self.rows_with_prefix(id.prefix(), part)? {
                if let Some(bytes) = self.object_at(number, kind, id)? {
                    return Ok(Some(bytes));
                }
            }
        }
        if kind == Kind::Blob { self.packed_blob(id) } else { Ok(None) }
    }

    /// The bytes of an object, if that row or bundle contains it intact.
    fn object_at(&self, number: i64, kind: Kind, id: ContentId) -> Result<Option<Vec<u8>>, StoreError> {
        if number < 0 {
            return self.bundled_object(-number, kind, id);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT kind, packing, body FROM object WHERE number = ?1")?;
        let mut rows = statement.query([number])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let found: i64 = row.get(0)?;
        let packing: i64 = row.get(1)?;
        let body = row.get_ref(2)?.as_blob().unwrap_or_default();
        let bytes = if found == kind as i64 { unpack(packing, body) } else { None };
        Ok(bytes.filter(|bytes| ContentId::of(kind, bytes) == id))
    }

    /// Whether an object is stored and intact. Redacted content may have been stored again.
    pub fn contains(&self, kind: Kind, id: ContentId) -> Result<bool, StoreError> {
        Ok(self.stored_object(kind, id)?.is_some())
    }

    /// Whether the content was destroyed on purpose.
    pub fn is_redacted(&self, id: ContentId) -> Result<bool, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT 1 FROM redaction WHERE id = ?1")?
            .query_row([id.bytes()], |_| Ok(()))
            .optional()?;
        Ok(found.is_some())
    }

    /// Whether a repair recorded the content as lost.
    pub(crate) fn is_lost(&self, id: ContentId) -> Result<bool, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT 1 FROM lost WHERE id = ?1")?
            .query_row([id.bytes()], |_| Ok(()))
            .optional()?;
        Ok(found.is_some())
    }

    fn fetch(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, StoreError> {
        let mut stored = self.stored_object(kind, id)?;
        for number in if stored.is_none() { self.recent_rows_on_disk(id.prefix())? } else { Vec::new() } {
            stored = stored.or(self.object_at(number, kind, id)?);
        }
        if let Some(bytes) = stored {
            let bytes: Arc<[u8]> = bytes.into();
            self.cache.put(id, &bytes, self.epoch);
            return Ok(bytes);
        }
        if self.is_redacted(id)? {
            return Ok(redaction_placeholder(kind).into());
        }
        let taken = !self.all_rows_with_prefix(id.prefix())?.is_empty() || self.is_indexed(kind, id)?;
        Err(if taken { ObjectError::Damaged { kind, id } } else { ObjectError::Missing { kind, id } }.into())
    }
}

impl Objects for Queries<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        match self.cache.get(id, self.epoch) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.fetch(kind, id)?),
        }
    }
}

/// So many of the last new objects are searched for in the next one.
const MAX_COMPARED: usize = 8;

/// Whether the bytes of an object contain the id of one of these.
fn names_any<'new>(object: &NewObject, mut new: impl Iterator<Item = &'new NewObject>) -> bool {
    new.any(|child| memchr::memmem::find(&object.bytes, child.id.bytes()).is_some())
}

/// The placeholder for redacted content, so that history around it stays readable.
fn redaction_placeholder(kind: Kind) -> Vec<u8> {
    match kind {
        Kind::Entry => encode(&EntryVersion::from_text("System", "[redacted]", Timestamp::default())),
        // Must not begin like sealed bytes, which could be opened.
        Kind::Sealed => Vec::new(),
        _ => b"[redacted]".to_vec(),
    }
}

fn get_or_create<T>(kept: &mut Option<T>, make: impl FnOnce() -> io::Result<T>) -> io::Result<&mut T> {
    match kept {
        Some(kept) => Ok(kept),
        None => Ok(kept.insert(make()?)),
    }
}

/// Compresses content; `None` if that does not make it smaller.
pub(crate) fn compress(bytes: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    if bytes.len() < MIN_PACKED {
        return Ok(None);
    }
    let packed = PACKER
        .with_borrow_mut(|packer| get_or_create(packer, || Compressor::new(LEVEL))?.compress(bytes))
        .map_err(|error| StoreError::Damaged(format!("compression failed: {error}")))?;
    Ok((packed.len() < bytes.len()).then_some(packed))
}

/// Decompresses at most so many bytes; `None` if they are damaged.
pub(crate) fn decompress(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    UNPACKER
        .with_borrow_mut(|unpacker| get_or_create(unpacker, Decompressor::new)?.decompress(packed, size))
        .ok()
}

/// Decompresses a body; `None` if it is damaged.
pub(crate) fn unpack(packing: i64, body: &[u8]) -> Option<Vec<u8>> {
    match packing {
        PLAIN => Some(body.to_vec()),
        ZSTD => {
            let size = zstd::zstd_safe::get_frame_content_size(body).ok()??;
            let size = usize::try_from(size).ok().filter(|&size| size <= MAX_UNPACKED)?;
            decompress(body, size)
        }
        _ => None,
    }
}
