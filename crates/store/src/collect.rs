//! Garbage: content that no operation of any log reaches.
//!
//! All history is reached, that of threads that were put away too; so garbage is what purges and repairs left
//! over. It is left alone while it is young, for whoever wrote it may be about to use it.
//!
//! ```text
//!   reading          mark from every operation there is        (writers go on)
//!   transaction      mark from operations made since; delete   (writers wait)
//! ```
//!
//! The second mark matters: storing content that is stored already writes nothing, so an operation made
//! meanwhile may have begun to use what was garbage at the first.

use std::time::Duration;

use retake_model::time::Timestamp;
use rusqlite::params;
use serde::Serialize;

use crate::budget::size;
use crate::location::database;
use crate::maintenance::LogState;
use crate::packs::{Care, PackGarbage};
use crate::queries::Queries;
use crate::reach::{OnDamage, Reached, each_operation};
use crate::{Store, StoreError, Writing};

/// Whether garbage is only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Say what would go.
    DryRun,
    /// Delete it.
    Collect,
}

/// What was collected, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Collected {
    /// Objects that nothing reaches and that are older than the grace period: they go.
    pub unreachable: u64,
    /// Bytes that they take in the store.
    pub bytes: u64,
    /// Objects that nothing reaches and that are younger: they stay for now.
    pub young: u64,
    /// Bytes by which the database file became shorter, and of packs that went.
    pub freed_file_bytes: u64,
}

impl Store {
    /// Deletes content that nothing reaches, if it is older than the grace period; or says what would go.
    ///
    /// A store in which content cannot be read is refused: what that content reaches is not known.
    pub fn collect(&self, grace: Duration, now: Timestamp, mode: Mode) -> Result<Collected, StoreError> {
        let mut reached = Reached::default();
        let reading = self.read()?;
        let queries = reading.queries();
        let last = each_operation(&queries, 0, &mut |_, operation| {
            reached.mark(&queries, operation, OnDamage::Refuse)
        })?;
        reached.mark_folders(&queries)?;
        let cutoff = (now.millis() / 1000).saturating_sub(i64::try_from(grace.as_secs()).unwrap_or(i64::MAX));
        let garbage = Garbage::find(&queries, &reached, cutoff)?;
        let unfinished = queries.has_doomed_frames()?;
        // The reading would keep the log from being emptied.
        drop(reading);
        if mode == Mode::DryRun || (garbage.old.is_empty() && garbage.packed.is_empty() && !unfinished) {
            return Ok(garbage.counted());
        }
        let path = database(&self.folder);
        let before = size(&path)?;
        self.alone(|alone| {
            let mut collected = alone.transact(|writing| {
                each_operation(writing, last, &mut |_, operation| {
                    reached.mark(writing, operation, OnDamage::Refuse)
                })?;
                reached.mark_folders(writing)?;
                writing.sort_recent()?;
                let garbage = Garbage::find(writing, &reached, cutoff)?;
                for (number, prefix) in &garbage.old {
                    writing.remove_object(*number, *prefix)?;
                }
                writing.forget_packed(&garbage.packed.rows, Care::Room)?;
                // Who remembers what the store holds, as stat caches do, must ask again.
                writing.record_erasure()?;
                Ok(garbage.counted())
            })?;
            alone.give_back_pages()?;
            // A reader that looks at an older moment may still need what lies in packs.
            let freed = match alone.empty_log()? {
                LogState::Emptied => alone.sweep_packs(cutoff)?,
                LogState::HeldByReader => 0,
            };
            collected.freed_file_bytes = before.saturating_sub(size(&path)?) + freed;
            Ok(collected)
        })
    }
}

/// Objects that nothing reaches.
#[derive(Default)]
struct Garbage {
    /// Number and prefix of those that go.
    old: Vec<(i64, i64)>,
    bytes: u64,
    young: u64,
    packed: PackGarbage,
}

impl Garbage {
    /// Goes by the beginning of names, as the index does: in the unlikely case that garbage shares it with
    /// something that is reached, it stays.
    fn find(queries: &Queries<'_>, reached: &Reached, cutoff: i64) -> Result<Self, StoreError> {
        let reached = reached.prefixes();
        let mut garbage = Self::default();
        let mut object =
            queries.connection.prepare_cached("SELECT born, length(body) FROM object WHERE number = ?1")?;
        let mut unreached = Vec::new();
        queries.each_name(&mut |prefix, number| {
            if !reached.contains(&prefix) {
                unreached.push((prefix, number));
            }
        })?;
        for (prefix, number) in unreached {
            let (born, bytes): (i64, i64) =
                object.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if born > cutoff {
                garbage.young += 1;
            } else {
                garbage.old.push((number, prefix));
                garbage.bytes += bytes as u64;
            }
        }
        garbage.packed = PackGarbage::find(queries, &reached, cutoff)?;
        Ok(garbage)
    }

    fn counted(&self) -> Collected {
        Collected {
            unreachable: (self.old.len() + self.packed.rows.len()) as u64,
            bytes: self.bytes + self.packed.bytes,
            young: self.young + self.packed.young,
            freed_file_bytes: 0,
        }
    }
}

impl Writing<'_> {
    /// Removes an object and its row in the sorted index. The pages are overwritten.
    pub(crate) fn remove_object(&self, number: i64, prefix: i64) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM object WHERE number = ?1")?.execute([number])?;
        self.connection
            .prepare_cached("DELETE FROM object_index WHERE prefix = ?1 AND number = ?2")?
            .execute(params![prefix, number])?;
        Ok(())
    }
}
