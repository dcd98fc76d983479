//! The rows that locate packed blobs.

use retake_model::content::{ContentId, Kind};
use retake_model::object::NewObject;
use retake_model::time::Timestamp;

use super::remove::put_pack;
use super::write::{BlobLocation, PackedBatch};
use crate::log::queries::Queries;
use crate::objects::index::IndexPart;
use crate::{StoreError, WriteTransaction};

impl WriteTransaction<'_> {
    /// Stores objects that are missing, without an operation. Returns the number of bytes added.
    ///
    /// Objects that no later operation refers to are garbage, and collected when they are old.
    pub fn put_contents(&self, objects: &[NewObject], now: Timestamp) -> Result<u64, StoreError> {
        self.put_objects(objects, now)
    }

    /// Adds a batch to the store in this transaction. Returns its stored size.
    pub fn put_packed(&self, batch: &PackedBatch, now: Timestamp) -> Result<u64, StoreError> {
        self.put_packed_at(batch, now.millis() / 1000)
    }

    pub(super) fn put_packed_at(&self, batch: &PackedBatch, born: i64) -> Result<u64, StoreError> {
        let folder = self.cache.packs.folder();
        for pack in &batch.packs {
            if !pack.is_same_file(folder) {
                return Err(StoreError::File {
                    path: super::path(folder, pack.number),
                    error: std::io::ErrorKind::NotFound.into(),
                });
            }
            let raw: u64 = pack.blobs.iter().map(|place| u64::from(place.length)).sum();
            put_pack(self, [pack.number, born, pack.bytes as i64, raw as i64])?;
            // In table order, so that pages fill one after the other.
            let mut places: Vec<&BlobLocation> = pack.blobs.iter().collect();
            places.sort_unstable_by_key(|place| place.id.prefix());
            let mut insert = self.connection.prepare_cached(INSERT)?;
            for place in places {
                insert.execute([
                    place.id.prefix(),
                    pack.number,
                    place.frame as i64,
                    i64::from(place.start),
                    i64::from(place.length),
                ])?;
            }
        }
        Ok(batch.stored_bytes())
    }
}

pub(super) const INSERT: &str =
    "INSERT OR IGNORE INTO packed (prefix, pack, frame, start, length) VALUES (?1, ?2, ?3, ?4, ?5)";

impl Queries<'_> {
    /// The number of erasures when this transaction began. Caches of another epoch must be checked again.
    pub fn erasure_epoch(&self) -> i64 {
        self.epoch
    }

    /// Whether the index contains this name. The object is not read, so damage goes unnoticed; this is meant for
    /// checking many objects.
    pub fn is_indexed(&self, kind: Kind, id: ContentId) -> Result<bool, StoreError> {
        // The cache of recent names may contain some that were never committed.
        let stored = !self.rows_with_prefix(id.prefix(), IndexPart::Sorted)?.is_empty()
            || (!self.rows_with_prefix(id.prefix(), IndexPart::Recent)?.is_empty()
                && self.contains(kind, id)?);
        if stored {
            return Ok(true);
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM packed WHERE prefix = ?1)";
        let packed = || self.connection.prepare_cached(sql)?.query_row([id.prefix()], |row| row.get(0));
        Ok(kind == Kind::Blob && packed()?)
    }

    /// The ids of all content that was destroyed on purpose.
    pub fn redacted(&self) -> Result<Vec<ContentId>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM redaction")?;
        let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
        let ids = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| id.as_slice().try_into().ok().map(ContentId::from_bytes)).collect())
    }
}
