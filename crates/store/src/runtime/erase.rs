//! Erases the runtime data of threads and secrets.

use std::collections::HashSet;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Transaction, params};

use super::idempotency_keys::erase_answers;
use super::trace::{HASH_BYTES, join};
use super::{BUSY_TIMEOUT, RuntimeDatabase};
use crate::maintenance::exclusive::READER_WAIT;
use crate::{Secrets, StoreError, WalState};

impl RuntimeDatabase {
    /// Destroys the bodies of a thread's trace and keeps its records.
    pub fn erase_bodies(&self, thread: ThreadId) -> Result<WalState, StoreError> {
        self.write(|transaction| {
            // A piece that another thread's request shares goes as well: it may be the redacted text.
            delete_pieces(transaction, &pieces_of(transaction, "thread = ?1", thread)?)
        })?;
        self.destroy_deleted_rows()
    }

    /// Destroys the bodies of these threads' traces, and everything else that contains a secret: approvals, messages
    /// to turns, partial answers, typed lines. Returns whether the write-ahead log is free of them too.
    pub fn erase_secrets(&self, threads: &[ThreadId], secrets: &Secrets) -> Result<WalState, StoreError> {
        self.write(|transaction| {
            for thread in threads {
                delete_pieces(transaction, &pieces_of(transaction, "thread = ?1", *thread)?)?;
            }
            if secrets.is_empty() {
                return Ok(());
            }
            delete_pieces(transaction, &pieces_holding(transaction, secrets)?)?;
            delete_where(transaction, "comm", "number", "facts", &|facts| {
                std::str::from_utf8(facts).is_ok_and(|facts| secrets.occur_in_json(facts))
            })?;
            delete_approvals(transaction, secrets)?;
            delete_where(transaction, "typed", "number", "text", &|text| secrets.occur_in_bytes(text))?;
            for (table, key) in [("letter", "number"), ("turn", "take")] {
                delete_where(transaction, table, key, "record", &|record| secrets.occur_in_bytes(record))?;
            }
            Ok(())
        })?;
        self.destroy_deleted_rows()
    }

    /// Destroys all data of a thread.
    pub fn erase_thread(&self, thread: ThreadId) -> Result<WalState, StoreError> {
        let turns: Vec<TakeId> =
            self.turns()?.into_iter().filter(|turn| turn.thread == thread).map(|turn| turn.take).collect();
        self.write(|transaction| {
            let others = pieces_of(transaction, "thread <> ?1", thread)?;
            let own = pieces_of(transaction, "thread = ?1", thread)?;
            delete_pieces(transaction, &own.difference(&others).cloned().collect())?;
            transaction.execute("DELETE FROM comm WHERE thread = ?1", [thread.key()])?;
            transaction.execute("DELETE FROM typed WHERE thread = ?1", [thread.key()])?;
            for take in turns {
                transaction.execute("DELETE FROM turn WHERE take = ?1", [take.key()])?;
                transaction.execute("DELETE FROM letter WHERE take = ?1", [take.key()])?;
            }
            Ok(())
        })?;
        self.destroy_deleted_rows()
    }

    /// Destroys what deleted rows left in free space, and in the write-ahead log unless another process is reading it.
    fn destroy_deleted_rows(&self) -> Result<WalState, StoreError> {
        let connection = self.connection();
        connection.execute_batch("VACUUM")?;
        connection.busy_timeout(READER_WAIT)?;
        let busy: rusqlite::Result<i64> =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(if busy? == 0 { WalState::Emptied } else { WalState::HeldByReader })
    }
}

/// Deletes the rows in which `holds` accepts the column.
fn delete_where(
    transaction: &Transaction<'_>,
    table: &str,
    key: &str,
    column: &str,
    holds: &dyn Fn(&[u8]) -> bool,
) -> Result<(), StoreError> {
    let mut doomed: Vec<Value> = Vec::new();
    {
        let mut statement = transaction.prepare(&format!("SELECT {key}, {column} FROM {table}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let bytes = match row.get_ref(1)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
                _ => &[],
            };
            if holds(bytes) {
                doomed.push(row.get(0)?);
            }
        }
    }
    for key_value in doomed {
        transaction.execute(&format!("DELETE FROM {table} WHERE {key} = ?1"), [key_value])?;
    }
    Ok(())
}

/// Deletes approvals of redacted calls.
fn delete_approvals(transaction: &Transaction<'_>, secrets: &Secrets) -> Result<(), StoreError> {
    let mut statement = transaction.prepare("SELECT project, fingerprint, facts FROM approval")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, String>(2)?))
    })?;
    for row in rows.collect::<Result<Vec<_>, _>>()? {
        let (project, fingerprint, shown) = row;
        if secrets.match_approval(ProjectId::from_key(project), &fingerprint, &shown) {
            transaction.execute(
                "DELETE FROM approval WHERE project = ?1 AND fingerprint = ?2",
                params![project, fingerprint],
            )?;
        }
    }
    Ok(())
}

/// Deletes pieces of bodies, and all stored answers to requests, without checking which texts the answers contain.
fn delete_pieces(transaction: &Transaction<'_>, pieces: &HashSet<Vec<u8>>) -> Result<(), StoreError> {
    erase_answers(transaction)?;
    let mut gone = transaction.prepare("DELETE FROM piece WHERE hash = ?1")?;
    for hash in pieces {
        gone.execute([hash])?;
    }
    Ok(())
}

/// The pieces that the records of some threads refer to.
fn pieces_of(
    transaction: &Transaction<'_>,
    which: &str,
    thread: ThreadId,
) -> Result<HashSet<Vec<u8>>, StoreError> {
    let mut statement = transaction.prepare(&format!("SELECT pieces FROM comm WHERE {which}"))?;
    let lists = statement.query_map([thread.key()], |row| row.get::<_, Vec<u8>>(0))?;
    let mut found = HashSet::new();
    for list in lists {
        found.extend(each(&list?));
    }
    Ok(found)
}

/// The pieces of every body that contains a secret, which may span two pieces; and pieces that cannot be read.
fn pieces_holding(transaction: &Transaction<'_>, secrets: &Secrets) -> Result<HashSet<Vec<u8>>, StoreError> {
    let mut statement = transaction.prepare("SELECT pieces FROM comm")?;
    let lists = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
    let mut found = HashSet::new();
    let mut single = transaction.prepare("SELECT hash, body FROM piece")?;
    let mut rows = single.query([])?;
    while let Some(row) = rows.next()? {
        let plain = zstd::stream::decode_all(row.get_ref(1)?.as_blob().unwrap_or_default());
        if plain.map_or(true, |plain| secrets.occur_verbatim_in(&plain)) {
            found.insert(row.get(0)?);
        }
    }
    for list in lists {
        let list = list?;
        let holds = match join(transaction, &list) {
            Ok(text) => text.is_some_and(|text| secrets.occur_verbatim_in(text.as_bytes())),
            Err(StoreError::Damaged(_)) => true,
            Err(error) => return Err(error),
        };
        if holds {
            found.extend(each(&list));
        }
    }
    Ok(found)
}

fn each(list: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    list.chunks_exact(HASH_BYTES).map(<[u8]>::to_vec)
}
