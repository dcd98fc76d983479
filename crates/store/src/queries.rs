//! What can be asked of the store, the same inside a read and inside a write.

use std::fmt::Write;

use std::cell::RefCell;
use std::collections::HashMap;

use retake_model::operation::Version;
use rusqlite::Connection;

use crate::cache::Cache;
use crate::index::{Extent, Index};
use crate::operations::StoredOperation;

/// The store as one transaction sees it.
pub struct Queries<'transaction> {
    pub(crate) connection: &'transaction Connection,
    pub(crate) cache: &'transaction Cache,
    /// How often content had been destroyed when the transaction began.
    pub(crate) epoch: i64,
    pub(crate) index: Index,
    /// Operations that were read already, by thread and version. A move along a log asks for the same few
    /// again and again, and until something is rolled back they stay what they are.
    pub(crate) operations: RefCell<HashMap<(i64, Version), StoredOperation>>,
}

impl<'transaction> Queries<'transaction> {
    /// The store as the transaction sees it that was just begun on the connection.
    pub(crate) fn begin(connection: &'transaction Connection, cache: &'transaction Cache) -> Self {
        // Where even this cannot be read nothing is kept in memory; what else is damaged shows by itself.
        let epoch = first(connection, "SELECT coalesce(max(number), 0) FROM erasure").unwrap_or(UNKNOWN);
        cache.enter(epoch);
        let extent = Extent::of(connection)
            .and_then(|extent| cache.recent.enter(connection, extent).map(|()| extent))
            .unwrap_or_default();
        Self::at(connection, cache, Moment { epoch, extent })
    }

    /// The same, for a transaction that began at a moment that is known.
    pub(crate) fn at(
        connection: &'transaction Connection,
        cache: &'transaction Cache,
        moment: Moment,
    ) -> Self {
        Self {
            connection,
            cache,
            epoch: moment.epoch,
            index: Index::at(moment.extent),
            operations: RefCell::default(),
        }
    }

    /// When the transaction began.
    pub(crate) fn moment(&self) -> Moment {
        Moment { epoch: self.epoch, extent: self.index.extent() }
    }
}

/// What tells one moment of the store from another, for what is kept in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    epoch: i64,
    extent: Extent,
}

fn first(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// An epoch that no cache is ever in.
pub(crate) const UNKNOWN: i64 = -1;

/// The guard of a derived row: a row whose bytes changed by themselves is not shown.
pub(crate) fn digest(record: &[u8]) -> i64 {
    let hash = blake3::hash(record);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_be_bytes(first)
}

/// Bytes that should have been something, as a person can read them.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing into memory cannot fail");
        text
    })
}

/// A derived record, if its bytes are the ones that were written.
pub(crate) fn checked<T>(record: &[u8], guard: i64, what: &str) -> Result<T, crate::StoreError>
where
    T: for<'bytes> minicbor::Decode<'bytes, ()>,
{
    let damaged = || crate::StoreError::Damaged(format!("a {what} in the index"));
    if digest(record) != guard {
        return Err(damaged());
    }
    minicbor::decode(record).map_err(|_| damaged())
}
