//! Packs: the content of many files, compressed together, in append-only files next to the database.
//!
//! The first snapshot of a large folder may bring a gigabyte at once. In the database, it would be written twice,
//! through the write-ahead log. So it goes into separate files, and the database gets one short row per blob.
//!
//! ```text
//!   packs/00000007.pack    head │ frame │ frame │ frame │ …
//!                                  └─ head: how many blobs, their lengths ─ zstd of their bytes, end to end
//!
//!   packed   prefix ──► pack 7, frame at 4096, bytes 120 to 980         one row for each blob
//! ```
//!
//! - Blobs are small and similar, so a frame contains many: they compress better together, and restoring a folder
//!   takes few reads.
//! - A frame describes its own content, and names are hashes, so the table can be rebuilt from the files.
//! - Every blob is checked against its name when it is read.
//!
//! Writing takes two steps. [`PackWriter`] makes the files durable; nothing refers to them yet, so a crash leaves
//! garbage that `gc` finds. [`WriteTransaction::put_packed`](crate::Writing::put_packed) then inserts the rows, in
//! the same transaction as the operation that needs the content.

mod check;
mod format;
mod index;
mod read;
mod remove;
mod write;

pub use write::{PackWriter, PackedBatch};

pub(crate) use read::PackFiles;
pub(crate) use remove::{PackGarbage, PackedRow, RemovalMode};

use std::path::{Path, PathBuf};

/// The folder of the packs.
pub(crate) fn folder(store: &Path) -> PathBuf {
    store.join("packs")
}

fn path(folder: &Path, number: i64) -> PathBuf {
    folder.join(format!("{number:08x}.pack"))
}

/// The number in the name of a pack file.
fn number_of(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".pack")?;
    let number = i64::from_str_radix(name, 16).ok().filter(|number| *number > 0)?;
    (self::path(Path::new(""), number).to_str() == path.file_name()?.to_str()).then_some(number)
}
