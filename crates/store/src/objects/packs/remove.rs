//! Removes blobs from packs.
//!
//! ```text
//!   gc       pack 3  ▓▓░░░░▓░░░      mostly garbage: live blobs move to a new pack, pack 3 is deleted
//!            pack 4  ▓▓▓▓░░▓▓▓▓      otherwise: frames without live blobs become holes
//!   redact,  pack 5  ▓▓▓█▓▓▓▓▓▓      the other blobs of the frame move to a new pack,
//!   purge                            the frame is overwritten at once
//! ```
//!
//! The new pack is synced before the transaction that refers to it commits, and the old pack is not touched before that. The table `doomed` lists the frames to overwrite, so the next maintenance completes this after a crash.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use retake_model::content::{ContentId, Kind};
use rusqlite::params;

use super::format::FrameHeader;
use super::read::read_frame;
use super::write::{PackWriter, failed};
use super::{number_of, path};
use crate::log::queries::Queries;
use crate::maintenance::budget::list_files;
use crate::maintenance::exclusive::ExclusiveAccess;
use crate::{StoreError, WriteTransaction};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackedRow {
    pub(super) pack: i64,
    pub(super) frame: i64,
    pub(super) start: i64,
    pub(super) length: i64,
    pub(super) prefix: i64,
}

/// How thoroughly to remove blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemovalMode {
    /// Reclaim space where that is cheap.
    ReclaimSpace,
    /// Overwrite every byte.
    Destroy,
}

#[derive(Debug, Default)]
pub(crate) struct PackGarbage {
    pub(crate) rows: Vec<PackedRow>,
    /// Their approximate size in the files.
    pub(crate) bytes: u64,
    /// Garbage that is too young to delete.
    pub(crate) young: u64,
    /// Files without a row.
    files: Vec<i64>,
}

impl PackGarbage {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.files.is_empty()
    }

    /// Finds blobs in old packs whose name prefix no reachable content shares.
    pub(crate) fn find(
        queries: &Queries<'_>,
        reachable: &HashSet<i64>,
        cutoff: i64,
    ) -> Result<Self, StoreError> {
        let packs = packs(queries)?;
        let mut garbage = Self::default();
        for row in queries.packed_rows(None)? {
            if reachable.contains(&row.prefix) {
                continue;
            }
            let Some(pack) = packs.get(&row.pack) else { continue };
            if pack.born > cutoff {
                garbage.young += 1;
            } else {
                garbage.bytes += row.length as u64 * pack.bytes / pack.raw.max(1);
                garbage.rows.push(row);
            }
        }
        let folder = queries.cache.packs.folder();
        for file in list_files(folder)? {
            let named = number_of(&file).filter(|number| !packs.contains_key(number));
            let Some(number) = named.filter(|_| is_abandoned(&file, cutoff)) else { continue };
            garbage.bytes += std::fs::metadata(&file).map_or(0, |found| found.len());
            garbage.files.push(number);
        }
        Ok(garbage)
    }
}

struct PackRow {
    born: i64,
    bytes: u64,
    raw: u64,
}

fn packs(queries: &Queries<'_>) -> Result<BTreeMap<i64, PackRow>, StoreError> {
    let mut statement = queries.connection.prepare("SELECT number, born, bytes, raw FROM pack")?;
    let rows = statement.query_map([], |row| {
        let (bytes, raw): (i64, i64) = (row.get(2)?, row.get(3)?);
        Ok((row.get(0)?, PackRow { born: row.get(1)?, bytes: bytes as u64, raw: raw as u64 }))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a pack without a row is old and no process writes to it.
fn is_abandoned(file: &Path, cutoff: i64) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(open) = File::open(file) else { return false };
    let old = open.metadata().is_ok_and(|found| found.mtime() <= cutoff);
    old && open.try_lock_shared().is_ok()
}

impl Queries<'_> {
    /// The bytes of a packed blob; `None` if they cannot be read.
    pub(crate) fn packed_bytes(&self, row: &PackedRow) -> Option<Vec<u8>> {
        self.cache.packs.blob([row.pack, row.frame, row.start, row.length])
    }

    /// The files of all packs, as paths within the store.
    pub(crate) fn pack_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        Ok(packs(self)?.into_keys().map(|number| path(Path::new("packs"), number)).collect())
    }

    /// Whether an interrupted maintenance left frames to overwrite.
    pub(crate) fn has_doomed_frames(&self) -> Result<bool, StoreError> {
        Ok(self.connection.query_row("SELECT EXISTS (SELECT 1 FROM doomed)", [], |row| row.get(0))?)
    }

    /// Rows of all packs, or of one.
    pub(crate) fn packed_rows(&self, pack: Option<i64>) -> rusqlite::Result<Vec<PackedRow>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT pack, frame, start, length, prefix FROM packed WHERE ?1 IS NULL OR pack = ?1",
        )?;
        let rows = statement.query_map([pack], |row| {
            Ok(PackedRow {
                pack: row.get(0)?,
                frame: row.get(1)?,
                start: row.get(2)?,
                length: row.get(3)?,
                prefix: row.get(4)?,
            })
        })?;
        rows.collect()
    }

    /// Rows with this name prefix.
    pub(crate) fn packed_rows_with_prefix(&self, prefix: i64) -> Result<Vec<PackedRow>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT pack, frame, start, length FROM packed WHERE prefix = ?1")?;
        let rows = statement.query_map([prefix], |row| {
            let (pack, frame, start, length) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(PackedRow { pack, frame, start, length, prefix })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl PackedRow {
    pub(crate) fn prefix(&self) -> i64 {
        self.prefix
    }

    /// The path of the blob's file within the store.
    pub(crate) fn file(&self) -> String {
        path(Path::new("packs"), self.pack).to_string_lossy().into_owned()
    }

    /// The approximate size of the blob.
    pub(crate) fn bytes(&self) -> u64 {
        self.length as u64
    }
}

impl WriteTransaction<'_> {
    /// Removes blobs from packs. The sweep after the commit destroys their bytes.
    pub(crate) fn remove_packed(&self, dead: &[PackedRow], mode: RemovalMode) -> Result<(), StoreError> {
        if dead.is_empty() {
            return Ok(());
        }
        let packs = packs(self)?;
        let dead: BTreeSet<PackedRow> = dead.iter().copied().collect();
        let touched: BTreeSet<i64> = dead.iter().map(|row| row.pack).collect();
        let mut live: Vec<PackedRow> = self.packed_rows(None)?;
        live.retain(|row| touched.contains(&row.pack) && !dead.contains(row));
        live.sort_unstable();
        let mut moving: Vec<PackedRow> = Vec::new();
        let mut doomed: BTreeSet<(i64, i64)> = BTreeSet::new();
        for &pack in &touched {
            let living: Vec<PackedRow> = live.iter().copied().filter(|row| row.pack == pack).collect();
            let frames: BTreeSet<i64> =
                dead.iter().filter(|row| row.pack == pack).map(|row| row.frame).collect();
            let raw: u64 = living.iter().map(PackedRow::bytes).sum();
            let mostly_garbage = packs.get(&pack).is_none_or(|pack| raw * 2 < pack.raw);
            match mode {
                RemovalMode::Destroy => {
                    moving.extend(living.iter().filter(|row| frames.contains(&row.frame)));
                    doomed.extend(frames.iter().map(|&frame| (pack, frame)));
                }
                RemovalMode::ReclaimSpace if mostly_garbage => moving.extend(living),
                RemovalMode::ReclaimSpace => {
                    let alive: HashSet<i64> = living.iter().map(|row| row.frame).collect();
                    doomed.extend(
                        frames.iter().filter(|frame| !alive.contains(frame)).map(|&frame| (pack, frame)),
                    );
                }
            }
        }
        let born = touched.iter().filter_map(|pack| packs.get(pack)).map(|pack| pack.born).max().unwrap_or(0);
        self.move_blobs(&moving, born)?;
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM packed WHERE prefix = ?1 AND pack = ?2 AND frame = ?3 AND start = ?4",
        )?;
        for row in dead.iter().chain(&moving) {
            delete.execute([row.prefix, row.pack, row.frame, row.start])?;
        }
        for (pack, frame) in doomed {
            let length = self.frame_length(pack, frame)?;
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO doomed (pack, frame, length) VALUES (?1, ?2, ?3)")?
                .execute([pack, frame, length])?;
        }
        for pack in touched {
            self.connection
                .prepare_cached(
                    "DELETE FROM pack WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM packed WHERE pack = ?1)",
                )?
                .execute([pack])?;
        }
        Ok(())
    }

    /// Copies blobs into a new pack, which this transaction refers to.
    fn move_blobs(&self, moving: &[PackedRow], born: i64) -> Result<(), StoreError> {
        if moving.is_empty() {
            return Ok(());
        }
        let writer = PackWriter::at(self.cache.packs.folder());
        for row in moving {
            let blob = self.cache.packs.blob([row.pack, row.frame, row.start, row.length]);
            let whole = blob.filter(|bytes| ContentId::of(Kind::Blob, bytes).prefix() == row.prefix);
            let Some(bytes) = whole else {
                return Err(StoreError::Damaged(format!("pack {} cannot be read", row.pack)));
            };
            writer.add(ContentId::of(Kind::Blob, &bytes), &bytes)?;
        }
        self.put_packed_at(&writer.finish()?, born)?;
        Ok(())
    }

    /// The length of a frame. If its header is unreadable, up to the next known frame or the end of the file.
    fn frame_length(&self, pack: i64, frame: i64) -> Result<i64, StoreError> {
        let file = path(self.cache.packs.folder(), pack);
        let Ok(open) = File::open(&file) else { return Ok(0) };
        let whole = read_frame(&open, frame as u64);
        if let Some(head) = whole.as_deref().and_then(FrameHeader::parse) {
            return Ok(head.frame_length() as i64);
        }
        let next: Option<i64> = self.connection.query_row(
            "SELECT min(frame) FROM packed WHERE pack = ?1 AND frame > ?2",
            [pack, frame],
            |row| row.get(0),
        )?;
        let end = open.metadata().map_err(|error| failed(&file, error))?.len() as i64;
        Ok(next.unwrap_or(end) - frame)
    }
}

impl ExclusiveAccess<'_> {
    /// Overwrites doomed frames, and deletes packs without rows that no process writes to. Packs that this
    /// maintenance emptied need not be old.
    pub(crate) fn sweep_packs(&mut self, cutoff: i64) -> Result<u64, StoreError> {
        let (folder, doomed, named) = self.transact(|writing| {
            let mut statement = writing.connection.prepare("SELECT pack, frame, length FROM doomed")?;
            let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
            let doomed = rows.collect::<Result<Vec<[i64; 3]>, _>>()?;
            let named: HashSet<i64> = packs(writing)?.into_keys().collect();
            writing.cache.packs.clear();
            Ok((writing.cache.packs.folder().to_owned(), doomed, named))
        })?;
        for &[pack, frame, length] in &doomed {
            wipe(&path(&folder, pack), frame as u64, length as u64)?;
        }
        if !doomed.is_empty() {
            self.transact(|writing| Ok(writing.connection.execute("DELETE FROM doomed", [])?))?;
        }
        let emptied: HashSet<i64> = doomed.iter().map(|[pack, ..]| *pack).collect();
        let mut freed = 0;
        for file in list_files(&folder)? {
            let Some(number) = number_of(&file).filter(|number| !named.contains(number)) else { continue };
            let cutoff = if emptied.contains(&number) { i64::MAX } else { cutoff };
            if is_abandoned(&file, cutoff) {
                freed += std::fs::metadata(&file).map_or(0, |found| found.len());
                std::fs::remove_file(&file).map_err(|error| failed(&file, error))?;
            }
        }
        Ok(freed)
    }
}

/// Overwrites a range of a file, and punches a hole if the file system can.
fn wipe(path: &Path, at: u64, length: u64) -> Result<(), StoreError> {
    use rustix::fs::{FallocateFlags, fallocate};
    let fail = |error| failed(path, error);
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail(error)),
    };
    let end = (at + length).min(file.metadata().map_err(fail)?.len());
    let zeros = vec![0; 64 * 1024];
    let mut at_now = at;
    while at_now < end {
        let step = (end - at_now).min(zeros.len() as u64);
        file.write_all_at(&zeros[..step as usize], at_now).map_err(fail)?;
        at_now += step;
    }
    file.sync_data().map_err(fail)?;
    // Not every file system supports holes; zeros are enough.
    let _ = fallocate(
        &file,
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        at,
        end.saturating_sub(at).max(1),
    );
    Ok(())
}

/// Inserts a row of the table `pack`.
pub(super) fn put_pack(queries: &Queries<'_>, values: [i64; 4]) -> Result<(), StoreError> {
    queries
        .connection
        .prepare_cached("INSERT OR REPLACE INTO pack (number, born, bytes, raw) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![values[0], values[1], values[2], values[3]])?;
    Ok(())
}
