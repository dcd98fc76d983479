//! Queries, available in read and write transactions alike.

use std::fmt::Write;

use std::cell::RefCell;
use std::collections::HashMap;

use retake_model::operation::Version;
use rusqlite::Connection;

use crate::log::operations::StoredOperation;
use crate::objects::cache::Cache;
use crate::objects::index::{Extent, Index};

/// The store as seen by one transaction.
pub struct Queries<'transaction> {
    pub(crate) connection: &'transaction Connection,
    pub(crate) cache: &'transaction Cache,
    /// The number of erasures when the transaction began.
    pub(crate) epoch: i64,
    pub(crate) index: Index,
    /// Operations read in this transaction, by thread and version. Walking a log reads the same few repeatedly, and
    /// they do not change before a rollback.
    pub(crate) operations: RefCell<HashMap<(i64, Version), StoredOperation>>,
}

impl<'transaction> Queries<'transaction> {
    /// Queries for a transaction that has just begun on the connection.
    pub(crate) fn begin(connection: &'transaction Connection, cache: &'transaction Cache) -> Self {
        // If even this cannot be read, nothing is cached; other damage is reported where it is found.
        let epoch =
            first(connection, "SELECT coalesce(max(number), 0) FROM erasure").unwrap_or(UNKNOWN_EPOCH);
        cache.set_epoch(epoch);
        let extent = Extent::of(connection)
            .map_err(crate::StoreError::from)
            .and_then(|extent| cache.recent.refresh(connection, extent).map(|()| extent))
            .unwrap_or_default();
        Self::at(connection, cache, ReadPoint { epoch, extent })
    }

    /// Queries for a transaction whose start is known.
    pub(crate) fn at(
        connection: &'transaction Connection,
        cache: &'transaction Cache,
        read_point: ReadPoint,
    ) -> Self {
        Self {
            connection,
            cache,
            epoch: read_point.epoch,
            index: Index::at(read_point.extent),
            operations: RefCell::default(),
        }
    }

    /// How often content was erased from the store; `None` if that is not known. What was read before an erasure may no
    /// longer be shown.
    pub fn erasures(&self) -> Option<i64> {
        (self.epoch != UNKNOWN_EPOCH).then_some(self.epoch)
    }

    pub(crate) fn read_point(&self) -> ReadPoint {
        ReadPoint { epoch: self.epoch, extent: self.index.extent() }
    }
}

/// Identifies a state of the store for caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadPoint {
    epoch: i64,
    extent: Extent,
}

fn first(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// An epoch that no cache has.
pub(crate) const UNKNOWN_EPOCH: i64 = -1;

/// The checksum of a derived row, which detects damage.
pub(crate) fn digest(record: &[u8]) -> i64 {
    let hash = blake3::hash(record);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_be_bytes(first)
}

/// Damaged bytes in readable form.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing into memory cannot fail");
        text
    })
}

/// Decodes a derived record, if its checksum matches.
pub(crate) fn decode_checked<T>(record: &[u8], guard: i64, what: &str) -> Result<T, crate::StoreError>
where
    T: for<'bytes> minicbor::Decode<'bytes, ()>,
{
    let damaged = || crate::StoreError::Damaged(format!("a {what} in the index"));
    if digest(record) != guard {
        return Err(damaged());
    }
    minicbor::decode(record).map_err(|_| damaged())
}
