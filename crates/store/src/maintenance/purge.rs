//! Purges threads: the one operation that destroys history.
//!
//! Deletes a thread's log, its rows in every index, and all content that no other thread reaches, and overwrites the
//! bytes, in the database and in the write-ahead log. One row without a body stays in the log of operations, so that
//! followers learn of the purge.
//!
//! Other copies are not touched: the result counts the backups, and a hub has its own purge.

use std::collections::{HashMap, HashSet};

use retake_model::id::{FolderId, ProjectId, ThreadId};
use retake_model::time::Timestamp;
use rusqlite::params;
use serde::Serialize;

use crate::location::backups;
use crate::log::queries::Queries;
use crate::maintenance::budget::list_files;
use crate::maintenance::bundles::Places;
use crate::maintenance::exclusive::WalState;
use crate::maintenance::reachability::{OnDamage, ReachableContent, for_each_operation};
use crate::objects::packs::{PackedRow, RemovalMode};
use crate::{DeletedFilter, SearchError, Store, StoreError, ThreadFilter, WriteTransaction};

/// The result of a purge, or of its preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PurgeReport {
    /// Threads. A thread that does not exist is not counted.
    pub threads: u64,
    pub operations: u64,
    /// Objects that nothing else reached.
    pub objects: u64,
    /// Their stored size.
    pub bytes: u64,
    /// The state of the write-ahead log; `None` if nothing was destroyed.
    pub log: Option<WalState>,
    /// Backups next to the store, which may still contain copies.
    pub backups: u64,
}

impl Store {
    /// Computes what purging these threads would destroy.
    pub fn preview_purge(&self, threads: &[ThreadId]) -> Result<PurgeReport, StoreError> {
        let reading = self.read()?;
        let queries = reading.queries();
        let mut marked = PurgeMarks::default();
        let targets = numbers(&queries, threads)?;
        marked.follow(&queries, &targets)?;
        self.report(&queries, &targets, &marked)
    }

    /// Destroys these threads and everything that only they reach.
    ///
    /// Fails if content of other threads cannot be read, because it is then unknown which objects they share.
    /// [`Store::finish_erasure`] completes an interrupted purge.
    pub fn purge_threads(&self, threads: &[ThreadId]) -> Result<PurgeReport, SearchError> {
        let mut marked = PurgeMarks::default();
        let reading = self.read()?;
        let targets = numbers(&reading.queries(), threads)?;
        marked.follow(&reading.queries(), &targets)?;
        // An open read transaction would prevent the truncation of the write-ahead log.
        drop(reading);
        if targets.is_empty() {
            return Ok(PurgeReport::default());
        }
        // The runtime database comes first: once the threads are gone, their ids are lost, and a crash could not be
        // completed.
        let mut runtime_wal = WalState::Emptied;
        if let Some(runtime_database) = self.existing_runtime_database()? {
            for thread in threads {
                runtime_wal = runtime_wal.and(runtime_database.erase_thread(*thread)?);
            }
        }
        let erasure_marker = self.begin_erasure()?;
        let mut purged = self.with_exclusive_access(|exclusive| {
            let mut purged = exclusive.transact(|writing| {
                writing.sort_recent()?;
                // Include operations that were published in between.
                marked.follow(writing, &targets)?;
                let purged = self.report(writing, &targets, &marked)?;
                for folder in folders_of(writing, &targets)? {
                    writing.forget_folder(folder)?;
                }
                for (&number, &thread) in &targets {
                    // A file move of a purged thread has nothing left to publish.
                    if let Some(stored) = writing.intent_for_thread(thread)? {
                        writing.end_intent(stored.number)?;
                    }
                    writing.keep_shared_objects(number, &marked)?;
                    writing.purge_thread(number)?;
                }
                writing.remove_places(&unshared_objects(writing, &marked)?)?;
                writing.remove_packed(&unshared_blobs(writing, &marked)?, RemovalMode::Destroy)?;
                writing.purge_quarantine(&marked)?;
                writing.rebuild_row_checksums()?;
                writing.reselect_current_threads(&targets)?;
                writing.record_erasure()?;
                Ok(purged)
            })?;
            self.cache.clear();
            exclusive.sweep_packs(i64::MIN)?;
            purged.log = Some(exclusive.destroy_deleted_rows()?.and(runtime_wal));
            Ok(purged)
        })?;
        let index_log = self.erase_from_search_index(erasure_marker)?;
        purged.log = purged.log.map(|log| log.and(index_log));
        Ok(purged)
    }

    fn report(
        &self,
        queries: &Queries<'_>,
        targets: &HashMap<i64, ThreadId>,
        marked: &PurgeMarks,
    ) -> Result<PurgeReport, StoreError> {
        let mut purged = PurgeReport {
            threads: targets.len() as u64,
            backups: list_files(&backups(&self.folder))?.len() as u64,
            ..PurgeReport::default()
        };
        for number in targets.keys() {
            let operations: i64 = queries
                .connection
                .prepare_cached("SELECT count(*) FROM operation WHERE thread = ?1 AND version > 0")?
                .query_row([number], |row| row.get(0))?;
            purged.operations += operations as u64;
        }
        let objects = unshared_objects(queries, marked)?;
        purged.objects += objects.len() as u64;
        purged.bytes += stored_sizes(queries, &objects)?;
        for row in unshared_blobs(queries, marked)? {
            purged.objects += 1;
            purged.bytes += row.bytes();
        }
        Ok(purged)
    }
}

/// The content reachable from the purged threads, and from all others.
#[derive(Default)]
struct PurgeMarks {
    purged_content: ReachableContent,
    kept_content: ReachableContent,
    last: i64,
}

impl PurgeMarks {
    /// Marks from all operations since the last call.
    fn follow(&mut self, queries: &Queries<'_>, targets: &HashMap<i64, ThreadId>) -> Result<(), StoreError> {
        let Self { purged_content, kept_content, last } = self;
        *last = for_each_operation(queries, *last, &mut |thread, operation| {
            if targets.contains_key(&thread) {
                purged_content.mark(queries, operation, OnDamage::Skip)
            } else {
                kept_content.mark(queries, operation, OnDamage::Refuse)
            }
        })?;
        for stored in queries.intents()? {
            let operation = &stored.intent.operation;
            if targets.values().any(|thread| *thread == operation.thread) {
                purged_content.mark(queries, operation, OnDamage::Skip)?;
            } else {
                kept_content.mark(queries, operation, OnDamage::Refuse)?;
            }
        }
        let going_folders = folders_of(queries, targets)?;
        for folder in queries.folders()? {
            if going_folders.contains(&folder.id) {
                purged_content.mark_folder(queries, &folder, OnDamage::Skip)?;
            } else {
                kept_content.mark_folder(queries, &folder, OnDamage::Refuse)?;
            }
        }
        Ok(())
    }

    /// Name prefixes that only purged threads reach.
    fn only_purged(&self) -> HashSet<i64> {
        let kept_content = self.kept_content.prefixes();
        let mut purged_content = self.purged_content.prefixes();
        purged_content.retain(|prefix| !kept_content.contains(prefix));
        purged_content
    }
}

/// The folders that only these threads use: those of their takes, and those of projects without other threads.
fn folders_of(queries: &Queries<'_>, targets: &HashMap<i64, ThreadId>) -> Result<Vec<FolderId>, StoreError> {
    let rows = queries.threads(&ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() })?;
    let kept_content: HashSet<ProjectId> =
        rows.iter().filter(|row| !targets.contains_key(&row.number)).map(|row| row.home).collect();
    let gone: HashSet<ThreadId> = targets.values().copied().collect();
    let folders = queries.folders()?.into_iter().filter(|folder| match folder.worktree {
        Some(worktree) => gone.contains(&worktree.thread),
        None => !kept_content.contains(&folder.project),
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

/// The objects that only purged threads reach.
fn unshared_objects(queries: &Queries<'_>, marked: &PurgeMarks) -> Result<Places, StoreError> {
    let mut found = Places::default();
    for prefix in marked.only_purged() {
        for place in queries.all_rows_with_prefix(prefix)? {
            // The cache of recent names may contain some that were never committed.
            if queries.is_stored_at(prefix, place)? {
                found.add(prefix, place);
            }
        }
    }
    Ok(found)
}

/// The sizes of objects: that of its row, or the unpacked one in a bundle.
fn stored_sizes(queries: &Queries<'_>, objects: &Places) -> Result<u64, StoreError> {
    let mut size = 0;
    let mut statement =
        queries.connection.prepare_cached("SELECT length(body) FROM object WHERE number = ?1")?;
    for (number, _) in &objects.rows {
        size += statement.query_row([number], |row| row.get::<_, i64>(0))? as u64;
    }
    for (&sequence, prefixes) in &objects.bundles {
        let sizes = queries.bundled_sizes(sequence)?;
        size += prefixes.iter().filter_map(|prefix| sizes.get(prefix)).sum::<u64>();
    }
    Ok(size)
}

impl Queries<'_> {
    /// Whether there is an object with this name prefix at this place.
    fn is_stored_at(&self, prefix: i64, place: i64) -> Result<bool, StoreError> {
        if place < 0 {
            return Ok(self.bundled_sizes(-place)?.contains_key(&prefix));
        }
        let mut statement = self.connection.prepare_cached("SELECT 1 FROM object WHERE number = ?1")?;
        Ok(statement.exists([place])?)
    }
}

/// Packed blobs that only purged threads reach.
fn unshared_blobs(queries: &Queries<'_>, marked: &PurgeMarks) -> Result<Vec<PackedRow>, StoreError> {
    let purged_content = marked.only_purged();
    let mut rows = queries.packed_rows(None)?;
    rows.retain(|row| purged_content.contains(&row.prefix()));
    Ok(rows)
}

impl WriteTransaction<'_> {
    /// Gives the objects in the bundles of a thread that others reach rows of their own, and removes the bundles.
    fn keep_shared_objects(&self, number: i64, marked: &PurgeMarks) -> Result<(), StoreError> {
        let bundles: Vec<i64> = {
            let mut statement = self
                .connection
                .prepare("SELECT sequence FROM operation WHERE thread = ?1 AND bundle IS NOT NULL")?;
            statement.query_map([number], |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        for sequence in bundles {
            let mut objects = self.dissolve_bundle(sequence)?;
            objects.retain(|object| marked.kept_content.contains(object.id));
            self.put_objects(&objects, Timestamp::default())?;
        }
        Ok(())
    }

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
    fn reselect_current_threads(&self, targets: &HashMap<i64, ThreadId>) -> Result<(), StoreError> {
        for project in self.projects()? {
            if project.current.is_some_and(|current| targets.values().any(|target| *target == current)) {
                let filter = ThreadFilter { project: Some(project.id), ..ThreadFilter::default() };
                let latest = self.threads(&filter)?.into_iter().max_by_key(|row| row.summary.updated);
                self.set_current(project.id, latest.map(|row| row.summary.id))?;
            }
        }
        Ok(())
    }

    /// Deletes quarantined objects that only purged threads needed.
    fn purge_quarantine(&self, marked: &PurgeMarks) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM quarantine WHERE source = 'object' AND prefix = ?1")?;
        for prefix in marked.only_purged() {
            statement.execute(params![prefix])?;
        }
        Ok(())
    }
}
