//! How entries are shown: remembered beside the state, and not part of history.

use std::collections::HashMap;

use retake_model::id::EntryId;
use rusqlite::{OptionalExtension, params};

use crate::queries::Queries;
use crate::tally::{self, Searched, Tally};
use crate::threads::key_of;
use crate::{StoreError, Writing};

/// How one entry is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// Only a preview of it.
    pub collapsed: bool,
    /// As text to be edited, not as rendered Markdown.
    pub source: bool,
}

impl Shown {
    fn to_bits(self) -> i64 {
        i64::from(self.collapsed) | i64::from(self.source) << 1
    }

    fn from_bits(bits: i64) -> Self {
        Self { collapsed: bits & 1 != 0, source: bits & 2 != 0 }
    }
}

impl Queries<'_> {
    /// The entries of a thread that are shown in another way than the usual.
    pub fn shown(&self, thread: i64) -> Result<HashMap<EntryId, Shown>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT entry, shown FROM presentation WHERE thread = ?1")?;
        let mut rows = statement.query([thread])?;
        let mut found = HashMap::new();
        let mut hashes = Vec::new();
        while let Some(row) = rows.next()? {
            let (entry, bits): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
            hashes.push(tally::of_shown(&entry, bits));
            if let Some(key) = key_of(&entry) {
                found.insert(EntryId::from_key(key), Shown::from_bits(bits));
            }
        }
        self.check_tally(Tally::ShownOfThread, &Searched::Number(thread), hashes)?;
        Ok(found)
    }
}

impl Writing<'_> {
    /// Remembers how entries are shown.
    pub fn set_shown(&self, thread: i64, entries: &[EntryId], shown: Shown) -> Result<(), StoreError> {
        for entry in entries {
            self.tally_shown(thread, *entry)?;
            if shown == Shown::default() {
                self.connection
                    .prepare_cached("DELETE FROM presentation WHERE thread = ?1 AND entry = ?2")?
                    .execute(params![thread, entry.key()])?;
            } else {
                self.connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO presentation (thread, entry, shown) VALUES (?1, ?2, ?3)",
                    )?
                    .execute(params![thread, entry.key(), shown.to_bits()])?;
            }
            self.tally_shown(thread, *entry)?;
        }
        Ok(())
    }

    /// Counts a row in, or out before it changes.
    fn tally_shown(&self, thread: i64, entry: EntryId) -> Result<(), StoreError> {
        let shown: Option<i64> = self
            .connection
            .prepare_cached("SELECT shown FROM presentation WHERE thread = ?1 AND entry = ?2")?
            .query_row(params![thread, entry.key()], |row| row.get(0))
            .optional()?;
        let Some(shown) = shown else { return Ok(()) };
        let hash = tally::of_shown(&entry.key(), shown);
        self.tally(Tally::ShownOfThread, &Searched::Number(thread), hash)
    }
}
