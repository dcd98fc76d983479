//! Tallies: what a lookup should find, so that a row that damage hides is missed.
//!
//! A row that is read can be checked by itself. A row that is not found cannot: one changed byte of a column that
//! is searched by, and the row is as if it had never been. So for each value that rows are searched by, the hashes
//! of the rows that have it are kept, folded into one number by exclusive or, in a table of its own.
//!
//! ```text
//!   facet   tag, "draft", thread 4  ─┐
//!           tag, "draft", thread 9  ─┴─► hash ⊕ hash  =  tally   tag, "draft"
//! ```
//!
//! A search by a range compares what it found with all tallies in that range. No single damaged place can change
//! both the rows and their tally.

use std::collections::BTreeMap;

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{OptionalExtension, params};

use crate::queries::{Queries, digest};
use crate::{StoreError, Writing};

/// What rows are searched by. Facets have the numbers below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i64)]
pub(crate) enum Tally {
    /// Threads by their key.
    ThreadKey = 11,
    /// Threads by the project that they are listed under.
    ThreadProject = 12,
    /// Threads by title.
    ThreadTitle = 13,
    /// Facets by thread.
    FacetsOfThread = 14,
    /// How entries are shown, by thread.
    ShownOfThread = 15,
    /// Projects by their key.
    ProjectKey = 16,
}

/// A value that is searched by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Searched {
    Number(i64),
    Text(String),
    Key(Vec<u8>),
}

impl ToSql for Searched {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Key(key) => ValueRef::Blob(key),
        }))
    }
}

/// The hash of a thread as a row that is searched for.
pub(crate) fn of_thread(number: i64, key: &[u8]) -> i64 {
    digest(&[number.to_le_bytes().as_slice(), key].concat())
}

/// The hash of a facet.
pub(crate) fn of_facet(kind: i64, value: &str, thread: i64) -> i64 {
    digest(&[&kind.to_le_bytes(), thread.to_le_bytes().as_slice(), value.as_bytes()].concat())
}

/// The hash of how an entry is shown.
pub(crate) fn of_shown(entry: &[u8], shown: i64) -> i64 {
    digest(&[shown.to_le_bytes().as_slice(), entry].concat())
}

/// The hash of a project.
pub(crate) fn of_project(key: &[u8]) -> i64 {
    digest(key)
}

/// All tallies, by what is searched by and for.
pub(crate) type Tallies = BTreeMap<(i64, Searched), i64>;

impl Queries<'_> {
    /// Refuses what a search by a value found, if it is not all that there was.
    pub(crate) fn check_tally(
        &self,
        tally: Tally,
        value: &Searched,
        found: impl IntoIterator<Item = i64>,
    ) -> Result<(), StoreError> {
        self.check_tallies(tally as i64, "value = ?", &[value], found)
    }

    /// The same for a search by a condition on the column `value`.
    pub(crate) fn check_tallies(
        &self,
        kind: i64,
        condition: &str,
        bound: &[&dyn ToSql],
        found: impl IntoIterator<Item = i64>,
    ) -> Result<(), StoreError> {
        let expected = self.tally_where(kind, condition, bound)?;
        if expected == found.into_iter().fold(0, |sum, hash| sum ^ hash) {
            Ok(())
        } else {
            Err(StoreError::Damaged("something is missing from a list".to_owned()))
        }
    }

    /// Whether all threads that there are come to that.
    pub(crate) fn tally_of_threads_is(&self, found: i64) -> Result<bool, StoreError> {
        // Every thread is listed under one project, and projects are fewer than threads.
        Ok(self.tally_where(Tally::ThreadProject as i64, "true", &[])? == found)
    }

    /// What all rows with a value come to.
    pub(crate) fn tally_of(&self, tally: Tally, value: &Searched) -> Result<i64, StoreError> {
        self.tally_where(tally as i64, "value = ?", &[value])
    }

    fn tally_where(&self, kind: i64, condition: &str, bound: &[&dyn ToSql]) -> Result<i64, StoreError> {
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

    /// The tallies as the rows say.
    pub(crate) fn expected_tallies(&self) -> rusqlite::Result<Tallies> {
        let mut tallies = Tallies::new();
        let mut add = |kind: i64, value: Searched, hash: i64| {
            *tallies.entry((kind, value)).or_default() ^= hash;
        };
        let mut statement = self.connection.prepare("SELECT number, key, project, title FROM thread")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (number, key): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let hash = of_thread(number, &key);
            add(Tally::ThreadKey as i64, Searched::Key(key), hash);
            add(Tally::ThreadProject as i64, Searched::Key(row.get(2)?), hash);
            add(Tally::ThreadTitle as i64, Searched::Text(row.get(3)?), hash);
        }
        let mut statement = self.connection.prepare("SELECT kind, value, thread FROM facet")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (kind, value, thread): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let hash = of_facet(kind, &value, thread);
            add(kind, Searched::Text(value), hash);
            add(Tally::FacetsOfThread as i64, Searched::Number(thread), hash);
        }
        let mut statement = self.connection.prepare("SELECT thread, entry, shown FROM presentation")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let entry: Vec<u8> = row.get(1)?;
            let hash = of_shown(&entry, row.get(2)?);
            add(Tally::ShownOfThread as i64, Searched::Number(row.get(0)?), hash);
        }
        let mut statement = self.connection.prepare("SELECT key FROM project")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let key: Vec<u8> = row.get(0)?;
            let hash = of_project(&key);
            add(Tally::ProjectKey as i64, Searched::Key(key), hash);
        }
        tallies.retain(|_, hash| *hash != 0);
        Ok(tallies)
    }

    /// The tallies that are kept.
    pub(crate) fn kept_tallies(&self) -> rusqlite::Result<Tallies> {
        let mut statement = self.connection.prepare("SELECT kind, value, digest FROM tally")?;
        let mut rows = statement.query([])?;
        let mut tallies = Tallies::new();
        while let Some(row) = rows.next()? {
            let value = match row.get::<_, Value>(1)? {
                Value::Integer(number) => Searched::Number(number),
                Value::Text(text) => Searched::Text(text),
                Value::Blob(key) => Searched::Key(key),
                Value::Null | Value::Real(_) => Searched::Key(Vec::new()),
            };
            tallies.insert((row.get(0)?, value), row.get(2)?);
        }
        Ok(tallies)
    }
}

impl Writing<'_> {
    /// Notes that a row came that has this value, or went: both are the same.
    pub(crate) fn tally(&self, tally: Tally, value: &Searched, hash: i64) -> Result<(), StoreError> {
        self.tally_kind(tally as i64, value, hash)
    }

    /// Notes what all rows with this value come to.
    pub(crate) fn set_tally(&self, tally: Tally, value: &Searched, hash: i64) -> Result<(), StoreError> {
        self.put_tally(tally as i64, value, hash)
    }

    pub(crate) fn tally_kind(&self, kind: i64, value: &Searched, hash: i64) -> Result<(), StoreError> {
        let before: Option<i64> = self
            .connection
            .prepare_cached("SELECT digest FROM tally WHERE kind = ?1 AND value = ?2")?
            .query_row(params![kind, value], |row| row.get(0))
            .optional()?;
        self.put_tally(kind, value, before.unwrap_or(0) ^ hash)
    }

    fn put_tally(&self, kind: i64, value: &Searched, hash: i64) -> Result<(), StoreError> {
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

    /// Brings all tallies to what the rows say; returns how many were wrong.
    pub(crate) fn tally_again(&self) -> Result<u64, StoreError> {
        let (expected, kept) = (self.expected_tallies()?, self.kept_tallies()?);
        let mut wrong = 0;
        for (kind, value) in kept.keys().filter(|key| !expected.contains_key(key)) {
            self.put_tally(*kind, value, 0)?;
            wrong += 1;
        }
        for ((kind, value), hash) in expected.iter().filter(|(key, hash)| kept.get(key) != Some(hash)) {
            self.put_tally(*kind, value, *hash)?;
            wrong += 1;
        }
        Ok(wrong)
    }
}
