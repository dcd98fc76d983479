//! Verifies packs, and rebuilds their rows from the files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::Reference;
use retake_model::time::Timestamp;

use super::format::{FILE_HEADER, FrameHeader, contents};
use super::index::INSERT;
use super::read::read_frame;
use super::remove::{PackedRow, put_pack};
use super::{number_of, path};
use crate::log::queries::Queries;
use crate::maintenance::budget::list_files;
use crate::{Problem, StoreError, WriteTransaction};

/// The blobs of a frame: name, offset and length.
type Blobs = Vec<(ContentId, u32, u32)>;

/// The result of checking packs.
#[derive(Default)]
pub(crate) struct PackCheck {
    /// Intact blobs with a row.
    pub(crate) present: Vec<ContentId>,
    pub(crate) bytes: u64,
    pub(crate) problems: Vec<Problem>,
}

/// A frame, and the rows that refer to it.
struct Frame<'check> {
    pack: i64,
    offset: i64,
    rows: Vec<PackedRow>,
    /// `None` if the pack is missing.
    file: Option<&'check File>,
}

impl Queries<'_> {
    /// Reads every frame that a row refers to once, on all processors; reports the number of rows done.
    pub(crate) fn check_packs(&self, rows: Vec<PackedRow>, progress: &mut dyn FnMut(u64)) -> PackCheck {
        let mut frames: BTreeMap<(i64, i64), Vec<PackedRow>> = BTreeMap::new();
        for row in rows {
            frames.entry((row.pack, row.frame)).or_default().push(row);
        }
        let mut files: HashMap<i64, Option<File>> = HashMap::new();
        for &(pack, _) in frames.keys() {
            files.entry(pack).or_insert_with(|| File::open(path(self.cache.packs.folder(), pack)).ok());
        }
        let frames: Vec<Frame<'_>> = frames
            .into_iter()
            .map(|((pack, offset), rows)| Frame { pack, offset, rows, file: files[&pack].as_ref() })
            .collect();
        let mut missing = BTreeSet::new();
        let mut all = PackCheck::default();
        for checked in check_all(&frames, progress) {
            all.present.extend(checked.present);
            all.bytes += checked.bytes;
            // Each missing pack is reported once.
            all.problems.extend(checked.problems.into_iter().filter(|problem| match problem {
                Problem::PackMissing { pack } => missing.insert(*pack),
                _ => true,
            }));
        }
        all
    }
}

/// Checks frames on all processors; the results have the order of the frames.
fn check_all(frames: &[Frame<'_>], progress: &mut dyn FnMut(u64)) -> Vec<PackCheck> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(frames.len());
    if workers < 2 {
        return frames.iter().map(Frame::check).collect();
    }
    let next = AtomicUsize::new(0);
    let mut results: Vec<PackCheck> = Vec::new();
    results.resize_with(frames.len(), PackCheck::default);
    std::thread::scope(|scope| {
        let (sender, checked) = std::sync::mpsc::channel();
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((index, frame)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    frames.get(index).map(|frame| (index, frame))
                } {
                    // The receiver lives until all workers have ended.
                    let _ = sender.send((index, frame.check()));
                }
            });
        }
        drop(sender);
        let mut done = 0;
        for (index, result) in checked {
            progress(done);
            done += frames[index].rows.len() as u64;
            results[index] = result;
        }
    });
    results
}

impl Frame<'_> {
    fn check(&self) -> PackCheck {
        let (pack, frame) = (self.pack, self.offset);
        let mut checked = PackCheck::default();
        let Some(file) = self.file else {
            checked.problems.push(Problem::PackMissing { pack });
            return checked;
        };
        let found = read_frame(file, frame as u64).and_then(|frame| contents(&frame));
        let mut whole = found.is_some();
        let found: HashMap<u32, (ContentId, u32)> =
            found.unwrap_or_default().into_iter().map(|(id, start, length)| (start, (id, length))).collect();
        let empty = ContentId::of(Kind::Blob, b"");
        for row in &self.rows {
            // An empty blob may share its offset with another one.
            let blob = u32::try_from(row.start).ok().and_then(|start| found.get(&start));
            if row.length == 0 && row.prefix == empty.prefix() {
                checked.present.push(empty);
                continue;
            }
            match blob {
                Some((id, length)) if id.prefix() == row.prefix && i64::from(*length) == row.length => {
                    checked.present.push(*id);
                    checked.bytes += u64::from(*length);
                }
                _ => whole = false,
            }
        }
        if !whole {
            checked.problems.push(Problem::PackDamaged { pack, frame });
        }
        checked
    }
}

impl WriteTransaction<'_> {
    /// Rebuilds the rows of all packs from the files, without doomed and redacted blobs. Returns the intact blobs and
    /// the number of wrong rows.
    pub(crate) fn rebuild_pack_rows(
        &self,
        needed: &HashSet<Reference>,
        now: Timestamp,
    ) -> Result<(HashSet<ContentId>, u64), StoreError> {
        let redacted: HashSet<ContentId> = self.redacted()?.into_iter().collect();
        let doomed: HashSet<(i64, i64)> = {
            let mut statement = self.connection.prepare("SELECT pack, frame FROM doomed")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<_, _>>()?
        };
        let folder = self.cache.packs.folder();
        let before: BTreeSet<PackedRow> = self.packed_rows(None)?.into_iter().collect();
        let named: HashSet<i64> = {
            let mut statement = self.connection.prepare("SELECT number FROM pack")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        let mut wanted = BTreeSet::new();
        let mut whole = HashSet::new();
        for file in list_files(folder)? {
            let Some(pack) = number_of(&file) else { continue };
            let Ok(open) = File::open(&file) else { continue };
            // A pack without a row that is locked is still being written.
            if !named.contains(&pack) && open.try_lock_shared().is_err() {
                continue;
            }
            let (mut raw, mut rows) = (0, 0);
            for (frame, blobs) in frames(&open) {
                raw += blobs.iter().map(|(.., length)| i64::from(*length)).sum::<i64>();
                if doomed.contains(&(pack, frame as i64)) {
                    continue;
                }
                for (id, start, length) in blobs {
                    let (start, length) = (i64::from(start), i64::from(length));
                    let row = PackedRow { pack, frame: frame as i64, start, length, prefix: id.prefix() };
                    // A blob without a row was removed, unless something needs it or the pack has no rows left.
                    let kept = before.contains(&row) || needed.contains(&(Kind::Blob, id));
                    if !redacted.contains(&id) && (kept || !named.contains(&pack)) {
                        rows += 1;
                        whole.insert(id);
                        wanted.insert(row);
                    }
                }
            }
            if rows > 0 && !named.contains(&pack) {
                let bytes = open.metadata().map_or(0, |found| found.len()) as i64;
                put_pack(self, [pack, now.millis() / 1000, bytes, raw])?;
            }
        }
        let mut repaired = 0;
        for row in before.difference(&wanted) {
            repaired += self
                .connection
                .prepare_cached(
                    "DELETE FROM packed WHERE prefix = ?1 AND pack = ?2 AND frame = ?3 AND start = ?4",
                )?
                .execute([row.prefix, row.pack, row.frame, row.start])?;
        }
        for row in wanted.difference(&before) {
            repaired += self
                .connection
                .prepare_cached(INSERT)?
                .execute([row.prefix, row.pack, row.frame, row.start, row.length])?;
        }
        Ok((whole, repaired as u64))
    }
}

/// All intact frames of a file, found by their own headers.
fn frames(file: &File) -> Vec<(u64, Blobs)> {
    let Ok(end) = file.metadata().map(|found| found.len()) else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = FILE_HEADER.len() as u64;
    while at < end {
        let frame = read_frame(file, at);
        let blobs = frame
            .as_deref()
            .and_then(|frame| Some((FrameHeader::parse(frame)?.frame_length(), contents(frame)?)));
        match blobs {
            Some((length, blobs)) => {
                found.push((at, blobs));
                at += length as u64;
            }
            // Damage, or a hole: search for the next header.
            None => match super::read::find_next_magic(file, at + 1, end) {
                Some(next) => at = next,
                None => break,
            },
        }
    }
    found
}
