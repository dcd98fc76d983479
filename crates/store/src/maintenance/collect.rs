//! Garbage collection: deletes content that no operation of any log reaches.
//!
//! All history is reachable, including that of deleted threads, so garbage comes from purges and repairs. Young
//! garbage stays, because its writer may be about to refer to it.
//!
//! ```text
//!   read transaction    mark from every operation              (writers continue)
//!   write transaction   mark from newer operations; delete     (writers wait)
//! ```
//!
//! The second pass matters. Storing content that exists already writes nothing, so an operation that was published in
//! between may refer to content that was garbage during the first pass.

use std::time::Duration;

use retake_model::time::Timestamp;
use serde::Serialize;

use crate::location::database;
use crate::log::queries::Queries;
use crate::maintenance::budget::size;
use crate::maintenance::bundles::Places;
use crate::maintenance::exclusive::WalState;
use crate::maintenance::reachability::{OnDamage, ReachableContent, for_each_operation};
use crate::objects::packs::{PackGarbage, RemovalMode};
use crate::{Store, StoreError};

/// Whether to delete garbage or only count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectMode {
    DryRun,
    Collect,
}

/// The result of a collection, or of a dry run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectReport {
    /// Unreachable objects older than the grace period; these are deleted.
    pub unreachable: u64,
    pub bytes: u64,
    /// Unreachable objects younger than the grace period; these stay.
    pub young: u64,
    /// Bytes freed in the database file and in deleted packs.
    pub freed_file_bytes: u64,
}

impl Store {
    /// Deletes unreachable content older than the grace period, or counts it in a dry run.
    ///
    /// Fails if some content cannot be read, because its references are then unknown.
    pub fn collect(
        &self,
        grace: Duration,
        now: Timestamp,
        mode: CollectMode,
    ) -> Result<CollectReport, StoreError> {
        let mut reachable = ReachableContent::default();
        let reading = self.read()?;
        let queries = reading.queries();
        let last = for_each_operation(&queries, 0, &mut |_, operation| {
            reachable.mark(&queries, operation, OnDamage::Refuse)
        })?;
        reachable.mark_folders(&queries)?;
        let cutoff = (now.millis() / 1000).saturating_sub(i64::try_from(grace.as_secs()).unwrap_or(i64::MAX));
        let garbage = Garbage::find(&queries, &reachable, cutoff)?;
        let unfinished = queries.has_doomed_frames()?;
        // An open read transaction would prevent the truncation of the write-ahead log.
        drop(reading);
        if mode == CollectMode::DryRun || (garbage.old.len() == 0 && garbage.packed.is_empty() && !unfinished)
        {
            return Ok(garbage.report());
        }
        let path = database(&self.folder);
        let before = size(&path)?;
        self.with_exclusive_access(|exclusive| {
            let mut collected = exclusive.transact(|writing| {
                for_each_operation(writing, last, &mut |_, operation| {
                    reachable.mark(writing, operation, OnDamage::Refuse)
                })?;
                reachable.mark_folders(writing)?;
                writing.sort_recent()?;
                let garbage = Garbage::find(writing, &reachable, cutoff)?;
                writing.remove_places(&garbage.old)?;
                writing.remove_packed(&garbage.packed.rows, RemovalMode::ReclaimSpace)?;
                // Processes with caches of stored content, such as stat caches, must check it again.
                writing.record_erasure()?;
                Ok(garbage.report())
            })?;
            exclusive.release_free_pages()?;
            // A reader on an older snapshot may still need the packs.
            let freed = match exclusive.truncate_wal()? {
                WalState::Emptied => exclusive.sweep_packs(cutoff)?,
                WalState::HeldByReader => 0,
            };
            collected.freed_file_bytes = before.saturating_sub(size(&path)?) + freed;
            Ok(collected)
        })
    }
}

/// Unreachable objects.
#[derive(Default)]
struct Garbage {
    /// The objects to delete.
    old: Places,
    bytes: u64,
    young: u64,
    packed: PackGarbage,
}

impl Garbage {
    /// Compares name prefixes, as the index does. Garbage that shares its prefix with reachable content stays.
    fn find(queries: &Queries<'_>, reachable: &ReachableContent, cutoff: i64) -> Result<Self, StoreError> {
        let reachable = reachable.prefixes();
        let mut garbage = Self::default();
        let mut object =
            queries.connection.prepare_cached("SELECT born, length(body) FROM object WHERE number = ?1")?;
        let mut unreached = Places::default();
        queries.for_each_name(&mut |prefix, place| {
            if !reachable.contains(&prefix) {
                unreached.add(prefix, place);
            }
        })?;
        for (number, prefix) in unreached.rows {
            let (born, bytes): (i64, i64) =
                object.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if born > cutoff {
                garbage.young += 1;
            } else {
                garbage.old.rows.push((number, prefix));
                garbage.bytes += bytes as u64;
            }
        }
        // Nothing refers to garbage in a bundle soon: what the operation needs was published with it.
        for (&sequence, prefixes) in &unreached.bundles {
            let sizes = queries.bundled_sizes(sequence)?;
            garbage.bytes += prefixes.iter().filter_map(|prefix| sizes.get(prefix)).sum::<u64>();
        }
        garbage.old.bundles = unreached.bundles;
        garbage.packed = PackGarbage::find(queries, &reachable, cutoff)?;
        Ok(garbage)
    }

    fn report(&self) -> CollectReport {
        CollectReport {
            unreachable: (self.old.len() + self.packed.rows.len()) as u64,
            bytes: self.bytes + self.packed.bytes,
            young: self.young + self.packed.young,
            freed_file_bytes: 0,
        }
    }
}
