//! Bulk content: the bytes of many files, compressed together, in append-only files beside the database.
//!
//! A database is made for many small things. The first snapshot of a large folder brings a gigabyte at once;
//! that would go through the database's log and be written twice. So it goes into files of its own, and the
//! database gets one short row for each blob.
//!
//! ```text
//!   packs/00000007.pack    head │ frame │ frame │ frame │ …
//!                                  └─ head: how many blobs, their lengths ─ zstd of their bytes, end to end
//!
//!   packed   prefix ──► pack 7, frame at 4096, bytes 120 to 980         one row for each blob
//! ```
//!
//! - Blobs are small and alike, so a frame holds many: they compress better together, and a folder is read back
//!   with few reads.
//! - A frame says itself what is in it; names are hashes. So the table can be made anew from the files.
//! - What is read is checked against its name, like everything else that is stored.
//!
//! Writing takes two steps. [`PackWriter`] makes the files durable; nothing names them yet, so a crash leaves
//! garbage that `gc` finds. [`Writing::put_packed`](crate::Writing::put_packed) then enters the rows, in the same
//! transaction as the operation that needs the content.

mod check;
mod forget;
mod format;
mod index;
mod read;
mod write;

pub use write::{PackWriter, PackedBatch};

pub(crate) use forget::{Care, PackGarbage, Row};
pub(crate) use read::PackFiles;

use std::path::{Path, PathBuf};

/// Where the packs are.
pub(crate) fn folder(store: &Path) -> PathBuf {
    store.join("packs")
}

/// The file of one pack, in that folder.
fn path(folder: &Path, number: i64) -> PathBuf {
    folder.join(format!("{number:08x}.pack"))
}

/// The number of the pack that a file is.
fn number_of(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".pack")?;
    let number = i64::from_str_radix(name, 16).ok().filter(|number| *number > 0)?;
    (self::path(Path::new(""), number).to_str() == path.file_name()?.to_str()).then_some(number)
}
