//! Purging threads: the one thing that destroys.
//!
//! A purged thread's log, its rows in every index, and all content that only it reached are deleted and their
//! bytes overwritten, in the database and in its log. One row without a body stays in the log of operations,
//! so that whoever follows the sequence learns of it. What other threads reach too stays.
//!
//! Copies that are elsewhere are not touched: backups are counted in the result, and a hub has its own purge.

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

/// What was destroyed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Purged {
    /// Threads. One that is not there is not counted.
    pub threads: u64,
    /// Operations of their logs.
    pub operations: u64,
    /// Objects that nothing else reached.
    pub objects: u64,
    /// Bytes that those took in the store.
    pub bytes: u64,
    /// Whether the database's log is rid of them too; `None` if nothing was destroyed.
    pub log: Option<LogState>,
    /// Backups beside the store, which may still hold copies.
    pub backups: u64,
}

impl Store {
    /// What purging these threads would destroy.
    pub fn would_purge(&self, threads: &[ThreadId]) -> Result<Purged, StoreError> {
        let reading = self.read()?;
        let queries = reading.queries();
        let mut marked = Marked::default();
        let victims = numbers(&queries, threads)?;
        marked.follow(&queries, &victims)?;
        self.counted(&queries, &victims, &marked)
    }

    /// Destroys these threads with everything that only they reach.
    ///
    /// A store in which content of other threads cannot be read is refused: what they reach must be known
    /// before anything can be said to be reached by nobody else. A purge that is killed on the way is finished by
    /// [`Store::finish_erasing`].
    pub fn purge_threads(&self, threads: &[ThreadId]) -> Result<Purged, SearchError> {
        let mut marked = Marked::default();
        let reading = self.read()?;
        let victims = numbers(&reading.queries(), threads)?;
        marked.follow(&reading.queries(), &victims)?;
        // The reading would keep the log from being emptied.
        drop(reading);
        if victims.is_empty() {
            return Ok(Purged::default());
        }
        // The ledger goes first: once the threads are gone, nobody could name them to finish this.
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
                // What was published meanwhile counts too, on either side.
                marked.follow(writing, &victims)?;
                let purged = self.counted(writing, &victims, &marked)?;
                for folder in folders_of(writing, &victims)? {
                    writing.forget_folder(folder)?;
                }
                for (&number, &thread) in &victims {
                    // Whatever was under way with its files has nothing left to lead to.
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

/// What the threads that go reach, and what those that stay reach.
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

    /// Beginnings of names that only the threads that go reach.
    fn only_going(&self) -> HashSet<i64> {
        let staying = self.staying.prefixes();
        let mut going = self.going.prefixes();
        going.retain(|prefix| !staying.contains(prefix));
        going
    }
}

/// The folders that nothing is kept of any more when these threads go: those of their takes, and those of projects
/// that have no other thread.
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

/// The threads that exist, by their number.
fn numbers(queries: &Queries<'_>, threads: &[ThreadId]) -> Result<HashMap<i64, ThreadId>, StoreError> {
    let mut found = HashMap::new();
    for &thread in threads {
        if let Some(row) = queries.thread(thread)? {
            found.insert(row.number, thread);
        }
    }
    Ok(found)
}

/// Number, prefix and stored bytes of the objects that only the threads that go reach.
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

/// Blobs in packs that only the threads that go reach.
fn packed_victims(queries: &Queries<'_>, marked: &Marked) -> Result<Vec<Row>, StoreError> {
    let going = marked.only_going();
    let mut rows = queries.packed_rows(None)?;
    rows.retain(|row| going.contains(&row.prefix()));
    Ok(rows)
}

impl Writing<'_> {
    /// Deletes a thread's log and its rows, and leaves a mark in the log.
    fn purge_thread(&self, number: i64) -> Result<(), StoreError> {
        // First the mark: its place in the sequence must be behind all that goes, or a follower misses it.
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

    /// Where a thread that is gone was the current one, the most lately changed of those that remain becomes it.
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

    /// Deletes what repairs put aside that only the purged threads had needed.
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
