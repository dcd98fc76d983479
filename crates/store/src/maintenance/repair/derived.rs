//! Repairs derived rows, which lists, trees and filters read.

use retake_model::object::ObjectError;
use retake_model::time::Timestamp;
use rusqlite::params;

use super::RepairChange;
use crate::log::queries::hexadecimal;
use crate::maintenance::verify::{Logs, MaintenanceProgress, MaintenanceStage, ThreadRef, differences};
use crate::tables::derive::{DerivedRows, derive};
use crate::tables::projects;
use crate::{StoreError, WriteTransaction};

/// Rebuilds the rows of every thread that differ from its log.
pub(super) fn repair(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    progress: &mut dyn FnMut(MaintenanceProgress),
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    let total = logs.threads.len() as u64;
    for (done, log) in logs.threads.values().enumerate() {
        progress(MaintenanceProgress { done: done as u64, total, stage: MaintenanceStage::Threads });
        let first = writing.operation(log.thread, 1)?;
        let last = writing.head(log.thread)?;
        let Some((first, last)) = first.zip(last) else {
            continue;
        };
        match derive(&first.operation, &last.operation, &log.environments(), log.sharing(writing), &**writing)
        {
            Ok(Some(derived)) => {
                if !differences(writing, log.thread_ref(), &derived)?.is_empty() {
                    writing.replace_derived(log.thread, &derived)?;
                    changes.push(RepairChange::ThreadIndexRebuilt { thread: log.thread_ref() });
                }
            }
            Err(error @ ObjectError::Unreadable(_)) => return Err(error.into()),
            // Such a thread cannot be displayed; `verify` continues to report it.
            Ok(None) | Err(_) => {}
        }
    }
    Ok(())
}

/// Removes derived rows without a log.
pub(super) fn remove_strays(
    writing: &WriteTransaction<'_>,
    logs: &Logs,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    for (table, column) in
        [("thread", "number"), ("take", "thread"), ("facet", "thread"), ("presentation", "thread")]
    {
        let numbers: Vec<i64> = {
            let mut statement =
                writing.connection.prepare(&format!("SELECT DISTINCT {column} FROM {table}"))?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        let logged = |number: &i64| logs.threads.get(number).is_some_and(|log| !log.operations.is_empty());
        for number in numbers.into_iter().filter(|number| !logged(number)) {
            writing
                .connection
                .prepare(&format!("DELETE FROM {table} WHERE {column} = ?1"))?
                .execute([number])?;
            changes.push(RepairChange::StrayRowsRemoved { table, thread: ThreadRef { number, id: None } });
        }
    }
    Ok(())
}

/// Accepts a damaged project row if its id is readable: its threads depend on the id, and the rest is updated when
/// the folder is opened.
pub(super) fn repair_projects(
    writing: &WriteTransaction<'_>,
    now: Timestamp,
    changes: &mut Vec<RepairChange>,
) -> Result<(), StoreError> {
    let mut trusted = Vec::new();
    let mut hopeless = Vec::new();
    {
        let mut statement =
            writing.connection.prepare(&format!("SELECT {} FROM project", projects::COLUMNS))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            match projects::raw(row) {
                Ok((Some(project), guard)) => {
                    if projects::checked((Some(project.clone()), guard)).is_err() {
                        trusted.push(project);
                    }
                }
                Ok((None, _)) | Err(_) => hopeless.push(row.get::<_, Vec<u8>>(0)?),
            }
        }
    }
    for project in trusted {
        writing.put_project(&project)?;
        changes.push(RepairChange::ProjectRowAccepted { path: project.path });
    }
    for key in hopeless {
        writing
            .connection
            .prepare_cached(
                "INSERT INTO quarantine (source, place, id, body, time)
                 SELECT 'project', 0, key, CAST(path AS BLOB), ?2 FROM project WHERE key = ?1",
            )?
            .execute(params![key, now.millis()])?;
        writing.connection.prepare_cached("DELETE FROM project WHERE key = ?1")?.execute([&key])?;
        changes.push(RepairChange::ProjectQuarantined { project: hexadecimal(&key) });
    }
    Ok(())
}

impl WriteTransaction<'_> {
    fn replace_derived(&self, thread: i64, derived: &DerivedRows) -> Result<(), StoreError> {
        let home = self.home_of(thread)?.unwrap_or(derived.summary.project);
        for sql in [
            "DELETE FROM thread WHERE number = ?1",
            "DELETE FROM take WHERE thread = ?1",
            "DELETE FROM facet WHERE thread = ?1",
        ] {
            self.connection.prepare_cached(sql)?.execute([thread])?;
        }
        // A row under another number with this thread's id is a stray.
        self.connection
            .prepare_cached("DELETE FROM thread WHERE key = ?1")?
            .execute([derived.summary.id.key()])?;
        self.put_thread(thread, &derived.summary, home)?;
        for take in &derived.takes {
            self.put_take(thread, take)?;
        }
        for (facet, value) in &derived.facets {
            self.put_facet(thread, *facet, value)?;
        }
        Ok(())
    }
}
