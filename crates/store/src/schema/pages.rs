//! The pages of the database file.
//!
//! A change writes whole pages into the log: that of its operation, that of its thread, those of two indexes. Pages of
//! 2 KB therefore halve what is written, and hold rows of 2 or 3 KB with less unused space. Without `auto_vacuum`, which
//! schemas 1 and 2 had, no page maps the others, and the pages that a collection frees are used again.
//!
//! ```text
//!   schema 2   retake.db
//!                  │  leave WAL mode     fails while another program has the store open, before anything is written
//!                  ├──► backups/schema-2-1.db
//!                  │  VACUUM             with a journal: whatever stops it, the store is as before or done
//!                  ▼  enter WAL mode
//!   schema 3   retake.db
//! ```
//!
//! The file stays the same one throughout: under a new file with the old name, another program could write to the old.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use crate::StoreError;

/// The size of a page.
pub(crate) const PAGE_BYTES: usize = 2048;
/// The size of a page in schemas 1 and 2.
pub(crate) const OLD_PAGE_BYTES: usize = 4096;
/// A larger database is written anew with a temporary file, instead of in memory.
const MAX_IN_MEMORY: i64 = 256 * 1024 * 1024;
/// How long to wait for other programs to close the store.
const OTHERS_WAIT: Duration = Duration::from_secs(2);

/// Chooses the pages of a database that is still empty.
pub(crate) fn set_up(connection: &Connection) -> Result<(), StoreError> {
    choose(connection)?;
    enter_wal_mode(connection)
}

/// Whether changes go to a write-ahead log.
pub(crate) fn in_wal_mode(connection: &Connection) -> Result<bool, StoreError> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(mode == "wal")
}

pub(crate) fn enter_wal_mode(connection: &Connection) -> Result<(), StoreError> {
    Ok(connection.pragma_update(None, "journal_mode", "WAL")?)
}

/// The same for the pages that schemas 1 and 2 had.
pub(crate) fn set_up_old(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "page_size", OLD_PAGE_BYTES as i64)?;
    enter_wal_mode(connection)
}

fn choose(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "auto_vacuum", "NONE")?;
    connection.pragma_update(None, "page_size", PAGE_BYTES as i64)?;
    Ok(())
}

/// Whether the pages are those of this program.
pub(crate) fn are_current(connection: &Connection) -> Result<bool, StoreError> {
    Ok(number(connection, "page_size")? == PAGE_BYTES as i64 && number(connection, "auto_vacuum")? == 0)
}

/// Gives a database the pages of this program, after a backup. It can be stopped at any point and run again.
pub(crate) fn renew(
    connection: &Connection,
    back_up: impl FnOnce() -> Result<PathBuf, StoreError>,
) -> Result<(), StoreError> {
    let renewed = leave_wal_mode(connection).and_then(|()| {
        // An earlier migration made the backup, and was stopped.
        if are_current(connection)? {
            return Ok(());
        }
        let backup = back_up()?;
        let done = choose(connection).and_then(|()| vacuum(connection));
        // Every attempt of a full disk would leave another copy of the store.
        if done.is_err() && are_current(connection).is_ok_and(|renewed| !renewed) {
            let _ = std::fs::remove_file(backup);
        }
        done
    });
    let entered = enter_wal_mode(connection);
    renewed.and(entered)
}

/// Fails if another program has the database open.
fn leave_wal_mode(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(OTHERS_WAIT)?;
    let mode: rusqlite::Result<String> =
        connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0));
    connection.busy_timeout(crate::open::BUSY_WAIT)?;
    match mode {
        Ok(mode) if mode == "delete" => Ok(()),
        Ok(_) => Err(StoreError::InUse),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Err(StoreError::InUse),
        Err(error) => Err(error.into()),
    }
}

/// Writes the database anew from its rows.
fn vacuum(connection: &Connection) -> Result<(), StoreError> {
    let large = number(connection, "page_count")? * number(connection, "page_size")? > MAX_IN_MEMORY;
    connection.pragma_update(None, "temp_store", if large { "FILE" } else { "MEMORY" })?;
    let done = connection.execute_batch("VACUUM");
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(done?)
}

/// Returns free pages to the file system, if they are a large part of the file; others will be used again.
pub(crate) fn release_free(connection: &Connection) -> Result<(), StoreError> {
    let free = number(connection, "freelist_count")?;
    if free * FREE_SHARE > number(connection, "page_count")? { vacuum(connection) } else { Ok(()) }
}

/// More than one page in so many is a large part.
const FREE_SHARE: i64 = 8;

fn number(connection: &Connection, pragma: &str) -> Result<i64, StoreError> {
    Ok(connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))?)
}

/// The size of the pages of a file, which may be damaged: as its header says, or as most pages look.
pub(crate) fn size_in(file: &File) -> std::io::Result<usize> {
    let mut header = [0; 2];
    if file.read_exact_at(&mut header, 16).is_ok() {
        let size = usize::from(u16::from_be_bytes(header));
        if [PAGE_BYTES, OLD_PAGE_BYTES].contains(&size) {
            return Ok(size);
        }
    }
    // In a file with larger pages, the bytes at every other place are in the middle of a page.
    let (mut like_pages, mut seen) = (0, 0);
    let mut start = [0; 8];
    let length = file.metadata()?.len();
    for at in (PAGE_BYTES as u64..length).step_by(2 * PAGE_BYTES).take(SAMPLED_PAGES) {
        file.read_exact_at(&mut start, at)?;
        seen += 1;
        let cells = u16::from_be_bytes([start[3], start[4]]);
        let is_tree = [2, 5, 10, 13].contains(&start[0]) && usize::from(cells) < PAGE_BYTES / 4;
        let next = u64::from(u32::from_be_bytes([start[0], start[1], start[2], start[3]]));
        let is_overflow = next <= length / PAGE_BYTES as u64;
        like_pages += usize::from(is_tree || is_overflow);
    }
    Ok(if like_pages * 2 >= seen { PAGE_BYTES } else { OLD_PAGE_BYTES })
}

/// Enough to tell the page size.
const SAMPLED_PAGES: usize = 4_096;

/// The numbers of the pages with the definitions of all tables, the first page among them; `None` for other bytes.
pub(crate) fn of_schema(file: &[u8], page_bytes: usize) -> Option<Vec<usize>> {
    const FILE_HEADER: usize = 100;
    const INTERIOR: u8 = 5;
    const LEAF: u8 = 13;
    let header = file.get(FILE_HEADER..page_bytes)?;
    let pointer = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?) as usize);
    match header[0] {
        LEAF => Some(vec![1]),
        INTERIOR => {
            let cells = usize::from(u16::from_be_bytes([header[3], header[4]]));
            let offsets = header[12..].chunks_exact(2).take(cells);
            let children =
                offsets.map(|offset| pointer(usize::from(u16::from_be_bytes([offset[0], offset[1]]))));
            let mut pages = children.chain([pointer(FILE_HEADER + 8)]).collect::<Option<Vec<usize>>>()?;
            pages.insert(0, 1);
            Some(pages)
        }
        _ => None,
    }
}
