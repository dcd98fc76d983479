//! Purges threads: the one operation that destroys history.
//!
//! Deletes a thread's log, its rows in every index, and all content that no other thread reaches, and overwrites the
//! bytes, in the database and in the write-ahead log. One row without a body stays in the log of operations, so that
//! followers learn of the purge.
//!
//! Other copies are not touched: the result counts the backups, and a hub has its own purge.

use std::collections::{HashMap, HashSet};

use retake_model::id::{FolderId, ProjectId, ThreadId};
use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use crate::budget::files_of;
use crate::location::backups;
use crate::maintenance::LogState;
use crate::packs::{Care, Row};
use crate::queries::Queries;
use crate::reach::{OnDamage, Reached, each_operation};
use crate::{Deleted, SearchError, Store, StoreError, ThreadFilter, Writing};

/// The result of a purge, or of its preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Purged {
    /// Threads. A thread that does not exist is not counted.
    pub threads: u64,
    pub operations: u64,
    /// Objects that nothing else reached.
    pub objects: u64,
    /// Their stored size.
    pub bytes: u64,
    /// The state of the write-ahead log; `None` if nothing was destroyed.
    pub log: Option<LogState>,
    /// Backups next to the store, which may still contain copies.
    pub backups: u64,
}

impl Store {
    /// Computes what purging these threads would destroy.
    pub fn would_purge(&self, threads: &[ThreadId]) -> Result<Purged, StoreError> {
        let reading = self.read()?;
        let queries = reading.queries();
        let mut marked = Marked::default();
        let victims = numbers(&queries, threads)?;
        marked.follow(&queries, &victims)?;
        self.counted(&queries, &victims, &marked)
    }

    /// Destroys these threads and everything that only they reach.
    ///
    /// Fails if content of other threads cannot be read, because it is then unknown which objects they share.
    /// [`Store::finish_erasure`] completes an interrupted purge.
    pub fn purge_threads(&self, threads: &[ThreadId]) -> Result<Purged, SearchError> {
        let mut marked = Marked::default();
        let reading = self.read()?;
        let victims = numbers(&reading.queries(), threads)?;
        marked.follow(&reading.queries(), &victims)?;
        // An open read transaction would prevent the truncation of the write-ahead log.
        drop(reading);
        if victims.is_empty() {
            return Ok(Purged::default());
        }
        // The runtime database comes first: once the threads are gone, their ids are lost, and a crash could not be
        // completed.
        let mut ledger_log = LogState::Emptied;
        if let Some(ledger) = self.existing_ledger()? {
            for thread in threads {
                ledger_log = ledger_log.and(ledger.forget_thread(*thread)?);
            }
        }
        let erasing = self.begin_erasing()?;
        let mut purged = self.alone(|alone| {
            let mut purged = alone.transact(|writing| {
                writing.sort_recent()?;
                // Include operations that were published in between.
                marked.follow(writing, &victims)?;
                let purged = self.counted(writing, &victims, &marked)?;
                for folder in folders_of(writing, &victims)? {
                    writing.forget_folder(folder)?;
                }
                for (&number, &thread) in &victims {
                    // A file move of a purged thread has nothing left to publish.
                    if let Some(stored) = writing.intent_of(thread)? {
                        writing.end_intent(stored.number)?;
                    }
                    writing.purge_thread(number)?;
                }
                for (number, prefix, _) in only_victims(writing, &marked)? {
                    writing.remove_object(number, prefix)?;
                }
                writing.forget_packed(&packed_victims(writing, &marked)?, Care::Destroy)?;
                writing.purge_quarantine(&marked)?;
                writing.tally_again()?;
                writing.select_others(&victims)?;
                writing.record_erasure()?;
                Ok(purged)
            })?;
            self.cache.clear();
            alone.sweep_packs(i64::MIN)?;
            alone.give_back_pages()?;
            purged.log = Some(alone.empty_log()?.and(ledger_log));
            Ok(purged)
        })?;
        let index_log = self.erase_words(erasing)?;
        purged.log = purged.log.map(|log| log.and(index_log));
        Ok(purged)
    }

    fn counted(
        &self,
        queries: &Queries<'_>,
        victims: &HashMap<i64, ThreadId>,
        marked: &Marked,
    ) -> Result<Purged, StoreError> {
        let mut purged = Purged {
            threads: victims.len() as u64,
            backups: files_of(&backups(&self.folder))?.len() as u64,
            ..Purged::default()
        };
        for number in victims.keys() {
            let operations: i64 = queries
                .connection
                .prepare_cached("SELECT count(*) FROM operation WHERE thread = ?1 AND version > 0")?
                .query_row([number], |row| row.get(0))?;
            purged.operations += operations as u64;
        }
        for (_, _, bytes) in only_victims(queries, marked)? {
            purged.objects += 1;
            purged.bytes += bytes;
        }
        for row in packed_victims(queries, marked)? {
            purged.objects += 1;
            purged.bytes += row.bytes();
        }
        Ok(purged)
    }
}

/// The content reachable from the purged threads, and from all others.
#[derive(Default)]
struct Marked {
    going: Reached,
    staying: Reached,
    last: i64,
}

impl Marked {
    /// Marks from all operations since the last call.
    fn follow(&mut self, queries: &Queries<'_>, victims: &HashMap<i64, ThreadId>) -> Result<(), StoreError> {
        let Self { going, staying, last } = self;
        *last = each_operation(queries, *last, &mut |thread, operation| {
            if victims.contains_key(&thread) {
                going.mark(queries, operation, OnDamage::PassOver)
            } else {
                staying.mark(queries, operation, OnDamage::Refuse)
            }
        })?;
        for stored in queries.intents()? {
            let operation = &stored.intent.operation;
            if victims.values().any(|thread| *thread == operation.thread) {
                going.mark(queries, operation, OnDamage::PassOver)?;
            } else {
                staying.mark(queries, operation, OnDamage::Refuse)?;
            }
        }
        let going_folders = folders_of(queries, victims)?;
        for folder in queries.folders()? {
            if going_folders.contains(&folder.id) {
                going.mark_folder(queries, &folder, OnDamage::PassOver)?;
            } else {
                staying.mark_folder(queries, &folder, OnDamage::Refuse)?;
            }
        }
        Ok(())
    }

    /// Name prefixes that only purged threads reach.
    fn only_going(&self) -> HashSet<i64> {
        let staying = self.staying.prefixes();
        let mut going = self.going.prefixes();
        going.retain(|prefix| !staying.contains(prefix));
        going
    }
}

/// The folders that only these threads use: those of their takes, and those of projects without other threads.
fn folders_of(queries: &Queries<'_>, victims: &HashMap<i64, ThreadId>) -> Result<Vec<FolderId>, StoreError> {
    let rows = queries.threads(&ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() })?;
    let staying: HashSet<ProjectId> =
        rows.iter().filter(|row| !victims.contains_key(&row.number)).map(|row| row.home).collect();
    let gone: HashSet<ThreadId> = victims.values().copied().collect();
    let folders = queries.folders()?.into_iter().filter(|folder| match folder.apart {
        Some(apart) => gone.contains(&apart.thread),
        None => !staying.contains(&folder.project),
    });
    Ok(folders.map(|folder| folder.id).collect())
}

/// The row numbers of the threads that exist.
fn numbers(queries: &Queries<'_>, threads: &[ThreadId]) -> Result<HashMap<i64, ThreadId>, StoreError> {
    let mut found = HashMap::new();
    for &thread in threads {
        if let Some(row) = queries.thread(thread)? {
            found.insert(row.number, thread);
        }
    }
    Ok(found)
}

/// Row number, name prefix and size of the objects that only purged threads reach.
fn only_victims(queries: &Queries<'_>, marked: &Marked) -> Result<Vec<(i64, i64, u64)>, StoreError> {
    let mut found = Vec::new();
    let mut statement =
        queries.connection.prepare_cached("SELECT length(body) FROM object WHERE number = ?1")?;
    for prefix in marked.only_going() {
        for number in queries.all_places(prefix)? {
            let bytes: Option<i64> = statement.query_row([number], |row| row.get(0)).optional()?;
            found.extend(bytes.map(|bytes| (number, prefix, bytes as u64)));
        }
    }
    Ok(found)
}

/// Packed blobs that only purged threads reach.
fn packed_victims(queries: &Queries<'_>, marked: &Marked) -> Result<Vec<Row>, StoreError> {
    let going = marked.only_going();
    let mut rows = queries.packed_rows(None)?;
    rows.retain(|row| going.contains(&row.prefix()));
    Ok(rows)
}

impl Writing<'_> {
    /// Deletes a thread's log and rows, and appends a purge record to the log.
    fn purge_thread(&self, number: i64) -> Result<(), StoreError> {
        // The purge record comes first: its sequence number must follow all deleted operations, or a follower misses
        // it.
        self.connection
            .prepare_cached("INSERT INTO operation (thread, version, id, body) VALUES (?1, 0, x'', NULL)")?
            .execute([number])?;
        for sql in [
            "DELETE FROM operation WHERE thread = ?1 AND version <> 0",
            "DELETE FROM thread WHERE number = ?1",
            "DELETE FROM take WHERE thread = ?1",
            "DELETE FROM facet WHERE thread = ?1",
            "DELETE FROM presentation WHERE thread = ?1",
            "DELETE FROM quarantine WHERE thread = ?1",
        ] {
            self.connection.prepare_cached(sql)?.execute([number])?;
        }
        Ok(())
    }

    /// Where a purged thread was current, selects the most recently changed remaining thread.
    fn select_others(&self, victims: &HashMap<i64, ThreadId>) -> Result<(), StoreError> {
        for project in self.projects()? {
            if project.current.is_some_and(|current| victims.values().any(|victim| *victim == current)) {
                let filter = ThreadFilter { project: Some(project.id), ..ThreadFilter::default() };
                let latest = self.threads(&filter)?.into_iter().max_by_key(|row| row.summary.updated);
                self.set_current(project.id, latest.map(|row| row.summary.id))?;
            }
        }
        Ok(())
    }

    /// Deletes quarantined objects that only purged threads needed.
    fn purge_quarantine(&self, marked: &Marked) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM quarantine WHERE source = 'object' AND prefix = ?1")?;
        for prefix in marked.only_going() {
            statement.execute(params![prefix])?;
        }
        Ok(())
    }
}
