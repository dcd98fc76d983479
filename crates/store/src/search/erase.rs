//! Removes docs completely.
//!
//! FTS5 only marks a doc as deleted; its words stay in the file until a merge rewrites their segment. Purged and
//! redacted text must be destroyed, so the index is merged into one segment without it, and the file is vacuumed.
//! That costs about as much as reading the index. The transaction that removes the docs also records it as pending,
//! so that the next process does it if this one cannot.

use std::time::Duration;

use retake_model::content::ContentId;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::file::BUSY_TIMEOUT;

const ERASE_TIMEOUT: Duration = Duration::from_secs(1);

/// Removes all docs of a thread.
pub(super) fn erase_thread(transaction: &Connection, thread: i64) -> rusqlite::Result<u64> {
    remove_docs(transaction, "thread = ?1", thread)
}

/// Removes all docs with these versions, in any thread, and prevents indexing them again.
pub(super) fn forget(connection: &Connection, versions: &[ContentId]) -> rusqlite::Result<u64> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mut removed = 0;
    for version in versions {
        // A process with an older read transaction could index it again.
        transaction
            .prepare_cached("INSERT OR IGNORE INTO forgotten (version) VALUES (?1)")?
            .execute([version.bytes()])?;
        removed += remove_docs(&transaction, "version = ?1", version.bytes())?;
    }
    transaction.commit()?;
    Ok(removed)
}

fn remove_docs(transaction: &Connection, which: &str, value: impl rusqlite::ToSql) -> rusqlite::Result<u64> {
    transaction
        .prepare_cached(&format!("DELETE FROM words WHERE rowid IN (SELECT number FROM doc WHERE {which})"))?
        .execute([&value])?;
    let removed = transaction.prepare_cached(&format!("DELETE FROM doc WHERE {which}"))?.execute([&value])?;
    if removed > 0 {
        transaction.execute("UPDATE cursor SET leftovers = 1", [])?;
    }
    Ok(removed as u64)
}

/// Erases the words of removed docs from the file; leaves that to the next process while another one is reading.
pub(super) fn erase_leftovers(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(ERASE_TIMEOUT)?;
    let erased = erase(connection);
    connection.busy_timeout(BUSY_TIMEOUT)?;
    match erased {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        other => other,
    }
}

fn erase(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
    connection.execute_batch("VACUUM")?;
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if !busy {
        connection.execute("UPDATE cursor SET leftovers = 0", [])?;
    }
    Ok(())
}
