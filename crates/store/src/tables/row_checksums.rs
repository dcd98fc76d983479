//! Row checksums: detect rows that a lookup misses because of damage.
//!
//! A row that is found carries its own checksum. A row that is not found cannot be checked: one flipped byte
//! in an indexed column hides it. A separate table therefore stores, for each indexed value, the XOR of the
//! hashes of all rows with that value.
//!
//! ```text
//!   facet   tag, "draft", thread 4  ─┐
//!           tag, "draft", thread 9  ─┴─► hash ⊕ hash  =  checksum   tag, "draft"
//! ```
//!
//! A range lookup compares its result with all checksums in that range. No single damaged location can change
//! both the rows and their checksum.

use std::collections::BTreeMap;

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{OptionalExtension, params};

use crate::log::queries::{Queries, digest};
use crate::{StoreError, WriteTransaction};

/// Lookups that have checksums. Facets use the numbers below these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub(crate) enum ChecksumKind {
    /// Threads by their key.
    ThreadKey = 11,
    /// Threads by the project that lists them.
    ThreadProject = 12,
    /// Threads by title.
    ThreadTitle = 13,
    /// Facets by thread.
    FacetsOfThread = 14,
    /// Entry presentations, by thread.
    PresentationsOfThread = 15,
    /// Projects by their key.
    ProjectKey = 16,
}

/// An indexed value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LookupValue {
    Number(i64),
    Text(String),
    Key(Vec<u8>),
}

impl ToSql for LookupValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Key(key) => ValueRef::Blob(key),
        }))
    }
}

pub(crate) fn hash_thread(number: i64, key: &[u8]) -> i64 {
    digest(&[number.to_le_bytes().as_slice(), key].concat())
}

pub(crate) fn hash_facet(kind: i64, value: &str, thread: i64) -> i64 {
    digest(&[&kind.to_le_bytes(), thread.to_le_bytes().as_slice(), value.as_bytes()].concat())
}

pub(crate) fn hash_presentation(entry: &[u8], shown: i64) -> i64 {
    digest(&[shown.to_le_bytes().as_slice(), entry].concat())
}

pub(crate) fn hash_project(key: &[u8]) -> i64 {
    digest(key)
}

/// All row checksums, by kind and value.
pub(crate) type RowChecksums = BTreeMap<(i64, LookupValue), i64>;

impl Queries<'_> {
    /// Fails if a lookup by value did not find all rows.
    pub(crate) fn check_row_checksum(
        &self,
        checksum: ChecksumKind,
        value: &LookupValue,
        found: impl IntoIterator<Item = i64>,
    ) -> Result<(), StoreError> {
        self.check_row_checksums(checksum as i64, "value = ?", &[value], found)
    }

    /// Like `check_row_checksum`, for a condition on the column `value`.
    pub(crate) fn check_row_checksums(
        &self,
        kind: i64,
        condition: &str,
        bound: &[&dyn ToSql],
        found: impl IntoIterator<Item = i64>,
    ) -> Result<(), StoreError> {
        let expected = self.row_checksum_where(kind, condition, bound)?;
        if expected == found.into_iter().fold(0, |sum, hash| sum ^ hash) {
            Ok(())
        } else {
            Err(StoreError::Damaged("something is missing from a list".to_owned()))
        }
    }

    /// Whether a checksum covers all threads of the store.
    pub(crate) fn matches_thread_checksum(&self, found: i64) -> Result<bool, StoreError> {
        // Each thread belongs to exactly one project, and there are fewer projects than threads.
        Ok(self.row_checksum_where(ChecksumKind::ThreadProject as i64, "true", &[])? == found)
    }

    /// The stored checksum of all rows with a value.
    pub(crate) fn row_checksum(
        &self,
        checksum: ChecksumKind,
        value: &LookupValue,
    ) -> Result<i64, StoreError> {
        self.row_checksum_where(checksum as i64, "value = ?", &[value])
    }

    fn row_checksum_where(
        &self,
        kind: i64,
        condition: &str,
        bound: &[&dyn ToSql],
    ) -> Result<i64, StoreError> {
        let sql = format!("SELECT digest FROM tally WHERE {condition} AND kind = ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let bound = bound.iter().copied().chain([&kind as &dyn ToSql]);
        let mut rows = statement.query(rusqlite::params_from_iter(bound))?;
        let mut expected = 0;
        while let Some(row) = rows.next()? {
            expected ^= row.get::<_, i64>(0)?;
        }
        Ok(expected)
    }

    /// Computes all checksums from the rows.
    pub(crate) fn compute_row_checksums(&self) -> rusqlite::Result<RowChecksums> {
        let mut checksums = RowChecksums::new();
        let mut add = |kind: i64, value: LookupValue, hash: i64| {
            *checksums.entry((kind, value)).or_default() ^= hash;
        };
        let mut statement = self.connection.prepare("SELECT number, key, project, title FROM thread")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (number, key): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let hash = hash_thread(number, &key);
            add(ChecksumKind::ThreadKey as i64, LookupValue::Key(key), hash);
            add(ChecksumKind::ThreadProject as i64, LookupValue::Key(row.get(2)?), hash);
            add(ChecksumKind::ThreadTitle as i64, LookupValue::Text(row.get(3)?), hash);
        }
        let mut statement = self.connection.prepare("SELECT kind, value, thread FROM facet")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (kind, value, thread): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let hash = hash_facet(kind, &value, thread);
            add(kind, LookupValue::Text(value), hash);
            add(ChecksumKind::FacetsOfThread as i64, LookupValue::Number(thread), hash);
        }
        let mut statement = self.connection.prepare("SELECT thread, entry, shown FROM presentation")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let entry: Vec<u8> = row.get(1)?;
            let hash = hash_presentation(&entry, row.get(2)?);
            add(ChecksumKind::PresentationsOfThread as i64, LookupValue::Number(row.get(0)?), hash);
        }
        let mut statement = self.connection.prepare("SELECT key FROM project")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let key: Vec<u8> = row.get(0)?;
            let hash = hash_project(&key);
            add(ChecksumKind::ProjectKey as i64, LookupValue::Key(key), hash);
        }
        checksums.retain(|_, hash| *hash != 0);
        Ok(checksums)
    }

    /// Reads all stored checksums.
    pub(crate) fn stored_row_checksums(&self) -> rusqlite::Result<RowChecksums> {
        let mut statement = self.connection.prepare("SELECT kind, value, digest FROM tally")?;
        let mut rows = statement.query([])?;
        let mut checksums = RowChecksums::new();
        while let Some(row) = rows.next()? {
            let value = match row.get::<_, Value>(1)? {
                Value::Integer(number) => LookupValue::Number(number),
                Value::Text(text) => LookupValue::Text(text),
                Value::Blob(key) => LookupValue::Key(key),
                Value::Null | Value::Real(_) => LookupValue::Key(Vec::new()),
            };
            checksums.insert((row.get(0)?, value), row.get(2)?);
        }
        Ok(checksums)
    }
}

impl WriteTransaction<'_> {
    /// Adds a row to the checksum of a value, or removes it: XOR makes both the same.
    pub(crate) fn toggle_row_checksum(
        &self,
        checksum: ChecksumKind,
        value: &LookupValue,
        hash: i64,
    ) -> Result<(), StoreError> {
        self.toggle_checksum_of_kind(checksum as i64, value, hash)
    }

    /// Stores the checksum of all rows with a value.
    pub(crate) fn set_row_checksum(
        &self,
        checksum: ChecksumKind,
        value: &LookupValue,
        hash: i64,
    ) -> Result<(), StoreError> {
        self.put_row_checksum(checksum as i64, value, hash)
    }

    pub(crate) fn toggle_checksum_of_kind(
        &self,
        kind: i64,
        value: &LookupValue,
        hash: i64,
    ) -> Result<(), StoreError> {
        let before: Option<i64> = self
            .connection
            .prepare_cached("SELECT digest FROM tally WHERE kind = ?1 AND value = ?2")?
            .query_row(params![kind, value], |row| row.get(0))
            .optional()?;
        self.put_row_checksum(kind, value, before.unwrap_or(0) ^ hash)
    }

    fn put_row_checksum(&self, kind: i64, value: &LookupValue, hash: i64) -> Result<(), StoreError> {
        if hash == 0 {
            self.connection
                .prepare_cached("DELETE FROM tally WHERE kind = ?1 AND value = ?2")?
                .execute(params![kind, value])?;
        } else {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO tally (kind, value, digest) VALUES (?1, ?2, ?3)")?
                .execute(params![kind, value, hash])?;
        }
        Ok(())
    }

    /// Recomputes all checksums from the rows; returns how many were wrong.
    pub(crate) fn rebuild_row_checksums(&self) -> Result<u64, StoreError> {
        let (expected, kept) = (self.compute_row_checksums()?, self.stored_row_checksums()?);
        let mut wrong = 0;
        for (kind, value) in kept.keys().filter(|key| !expected.contains_key(key)) {
            self.put_row_checksum(*kind, value, 0)?;
            wrong += 1;
        }
        for ((kind, value), hash) in expected.iter().filter(|(key, hash)| kept.get(key) != Some(hash)) {
            self.put_row_checksum(*kind, value, *hash)?;
            wrong += 1;
        }
        Ok(wrong)
    }
}
