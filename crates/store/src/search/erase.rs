//! Taking docs out, so that nothing of them stays behind.
//!
//! FTS5 only notes that a doc is gone; its words stay in the file until the part of the index that they are
//! in is written anew by chance. What was purged or redacted was destroyed on purpose, so here they are
//! driven out: the index is merged into one part without them, and the file is written anew without its free
//! pages. That costs about as much as reading the index, and is noted as due in the same transaction that
//! takes the docs out, so that whoever comes next does it if this program cannot.

use std::time::Duration;

use retake_model::content::ContentId;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::file::LONG_WAIT;

const SHORT_WAIT: Duration = Duration::from_secs(1);

/// Takes out all docs of a thread.
pub(super) fn forget_thread(transaction: &Connection, thread: i64) -> rusqlite::Result<u64> {
    take_out(transaction, "thread = ?1", thread)
}

/// Takes out all docs with these versions, in any thread, for good: they are not indexed again.
pub(super) fn forget(connection: &Connection, versions: &[ContentId]) -> rusqlite::Result<u64> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mut removed = 0;
    for version in versions {
        // A program whose reading is older than the redaction could still bring it back.
        transaction
            .prepare_cached("INSERT OR IGNORE INTO forgotten (version) VALUES (?1)")?
            .execute([version.bytes()])?;
        removed += take_out(&transaction, "version = ?1", version.bytes())?;
    }
    transaction.commit()?;
    Ok(removed)
}

fn take_out(transaction: &Connection, which: &str, value: impl rusqlite::ToSql) -> rusqlite::Result<u64> {
    transaction
        .prepare_cached(&format!("DELETE FROM words WHERE rowid IN (SELECT number FROM doc WHERE {which})"))?
        .execute([&value])?;
    let removed = transaction.prepare_cached(&format!("DELETE FROM doc WHERE {which}"))?.execute([&value])?;
    if removed > 0 {
        transaction.execute("UPDATE cursor SET leftovers = 1", [])?;
    }
    Ok(removed as u64)
}

/// Drives the words of docs that are gone out of the file, or leaves that to whoever comes next while another
/// program is reading.
pub(super) fn erase_leftovers(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(SHORT_WAIT)?;
    let erased = erase(connection);
    connection.busy_timeout(LONG_WAIT)?;
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
