//! Walks a root on all cores.
//!
//! ```text
//!   folder: open, stat ──► same as last time, rules too? ── yes ──► names from the cache
//!                                                         └─ no ──► list, decide by the rules
//!            └──► names in chunks ──► stat each ──► same? the node from the cache : read it
//!                          └──► subfolders: one task each
//! ```
//!
//! Results are collected unordered, each under the number of its folder, and `build` combines them. Children have
//! higher numbers than their parents.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use retake_model::tree::Reason;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::SnapshotError;
use super::cache::{Cache, Folder, Remembered};
pub(super) use super::found::{Chunk, Entry, Found, Here, Walked, What};
use super::kept::Marks;
use super::listing::list;
use super::others::OtherFolders;
use super::progress::Counter;
use super::queue;
use super::read::{Outcome, read_file, stat_at, unreadable};
use super::rules::{Asked, Decision, FILES, Fingerprint, Rules, Texts, read_texts};
use super::sink::{Feed, Sink};
use super::stat::{Stat, now};
use super::workspace::{Compiled, Root};
use crate::watch::Events;

/// Names per chunk: the workers share large folders.
const CHUNK: usize = 256;

/// Watcher of a walk; none by default.
#[derive(Clone, Copy, Default)]
pub(super) struct Watched<'walk> {
    /// Sets a watch on each walked folder.
    pub(super) events: Option<&'walk Events>,
    /// Folders to visit; `None` means all.
    pub(super) marks: Option<&'walk Marks>,
}

/// State that all workers share.
struct Walk<'walk> {
    asked: Asked<'walk>,
    cache: Option<&'walk Cache>,
    device: u64,
    largest: u64,
    /// Device and inode of the store's folder.
    own: Option<(u64, u64)>,
    /// Folders of other projects and worktrees.
    others: &'walk OtherFolders,
    numbers: AtomicU32,
    counter: &'walk Counter<'walk>,
    moment: i64,
    watched: Watched<'walk>,
}

/// State of one worker.
struct Worker<'walk> {
    feed: Feed<'walk>,
    buffer: Vec<u8>,
    folders: Vec<(u32, Found)>,
    chunks: Vec<(u32, Chunk)>,
}

enum Task<'walk> {
    Folder(Below),
    Names(Arc<Open<'walk>>, usize),
}

/// A folder to walk.
struct Below {
    number: u32,
    parent: Arc<OwnedFd>,
    name: CString,
    path: Vec<u8>,
    rules: Arc<Rules>,
    remembered: Option<u32>,
}

/// A folder that is being walked.
struct Open<'walk> {
    number: u32,
    folder: Arc<OwnedFd>,
    path: Vec<u8>,
    rules: Arc<Rules>,
    names: Vec<Candidate<'walk>>,
    from_cache: bool,
    /// Whether it is walked only for a folder below it; its other entries then match the cache.
    on_the_way: bool,
}

/// A name and the decision about it.
struct Candidate<'walk> {
    name: Cow<'walk, CStr>,
    decision: Decision,
    remembered: Option<Remembered<'walk>>,
}

/// Walks a root.
pub(super) fn walk(
    root: &Root,
    options: &Compiled,
    cache: Option<&Cache>,
    sink: &Sink<'_>,
    counter: &Counter<'_>,
    watched: Watched<'_>,
) -> Result<Walked, SnapshotError> {
    let fail = |error: Errno| SnapshotError::Root { path: root.path.clone(), error: error.into() };
    let moment = now();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&root.path, flags, Mode::empty()).map_err(fail)?;
    let stat = Stat::from(&rustix::fs::fstat(&folder).map_err(fail)?);
    if (stat.device, stat.inode) != (root.device, root.inode) {
        // Another folder has taken the path since the workspace was opened.
        return Err(fail(Errno::STALE));
    }
    let around = crate::git::around(&root.path);
    let mut rules = Rules::outermost(&options.globs);
    for (base, texts) in around.texts {
        rules = Rules::with_texts(&rules, base, texts);
    }
    let folder = Arc::new(folder);
    let walk = Walk {
        asked: Asked { globs: &options.globs, root: folder.as_fd(), prefix: &around.prefix },
        cache,
        device: root.device,
        largest: options.options.largest_file,
        own: std::fs::metadata(sink.store().folder()).ok().map(|found| (found.dev(), found.ino())),
        others: sink.others(),
        numbers: AtomicU32::new(1),
        counter,
        moment,
        watched,
    };
    let first = Below {
        number: 0,
        parent: Arc::clone(&folder),
        name: c".".to_owned(),
        path: Vec::new(),
        rules,
        remembered: cache.map(|_| 0),
    };
    let make = || Worker { feed: sink.feed(), buffer: Vec::new(), folders: Vec::new(), chunks: Vec::new() };
    let workers = queue::run(options.options.workers(), Task::Folder(first), make, |worker, task, more| {
        if counter.is_cancelled() {
            return Err(SnapshotError::Cancelled);
        }
        match task {
            Task::Folder(below) => walk.folder(worker, below, more),
            Task::Names(open, start) => walk.names(worker, &open, start, more),
        }
    })?;
    let count = walk.numbers.load(Ordering::Relaxed) as usize;
    let mut walked = Walked { folders: Vec::new(), chunks: Vec::new(), moment };
    walked.folders.resize_with(count, || None);
    walked.chunks.resize_with(count, Vec::new);
    for worker in workers {
        for (number, found) in worker.folders {
            walked.folders[number as usize] = Some(found);
        }
        for (number, chunk) in worker.chunks {
            walked.chunks[number as usize].push(chunk);
        }
    }
    for chunks in &mut walked.chunks {
        chunks.sort_unstable_by_key(|chunk| chunk.start);
    }
    Ok(walked)
}

impl<'walk> Walk<'walk> {
    fn folder(
        &self,
        worker: &mut Worker<'_>,
        below: Below,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<(), SnapshotError> {
        let number = below.number;
        match self.open(below)? {
            Ok((here, open)) => {
                worker.folders.push((number, Found::Here(Box::new(here))));
                let open = Arc::new(open);
                for start in (CHUNK..open.names.len()).step_by(CHUNK) {
                    more.push(Task::Names(Arc::clone(&open), start));
                }
                self.names(worker, &open, 0, more)
            }
            Err(found) => {
                worker.folders.push((number, found));
                Ok(())
            }
        }
    }

    /// Opens a folder and decides which of its names are captured.
    fn open(&self, below: Below) -> Result<Result<(Here, Open<'walk>), Found>, SnapshotError> {
        let Below { number, parent, name, path, rules: outer, remembered } = below;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&*parent, &*name, flags, Mode::empty());
        let found = opened.and_then(|folder| Ok((rustix::fs::fstat(&folder)?, folder)));
        let (stat, folder) = match found {
            Ok((stat, folder)) => (Stat { size: 0, ..Stat::from(&stat) }, folder),
            Err(Errno::NOENT) => return Ok(Err(Found::Gone)),
            // It was a folder when it was listed.
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Err(Found::Left(Reason::Changing))),
            Err(error) => return unreadable(error).map(|reason| Err(Found::Left(reason))),
        };
        if stat.device != self.device {
            return Ok(Err(Found::Left(Reason::Mounted)));
        }
        if self.own == Some((stat.device, stat.inode)) {
            return Ok(Err(Found::Left(Reason::Repository)));
        }
        if number != 0 && self.others.holds(folder.as_fd(), &stat) {
            return Ok(Err(Found::Left(Reason::OtherProject)));
        }
        let watch = self.watched.events.and_then(|events| events.watch(folder.as_fd()));
        // Changes before the watch was set cause no event, so the stamps must reveal them.
        let stat = match watch.map(|_| rustix::fs::fstat(&folder)) {
            Some(Ok(stat)) => Stat { size: 0, ..Stat::from(&stat) },
            _ => stat,
        };
        let known = self.cache.zip(remembered).and_then(|(cache, index)| {
            let known = cache.folder(index)?;
            Some((cache, index, known))
        });
        let stamp = match &known {
            Some((.., known)) if known.stamp == [0; 16] && known.stat == stat && known.settled => [0; 16],
            _ => self.stamp(folder.as_fd(), number == 0),
        };
        let base = || [self.asked.prefix, &path].concat();
        let same = known.filter(|(.., known)| {
            known.stat == stat && known.settled && known.outer == outer.fingerprint && known.stamp == stamp
        });
        let here = |rules: &Rules, remembered| Here {
            path: path.clone(),
            stat,
            outer: outer.fingerprint,
            rules: rules.fingerprint,
            stamp,
            otherwise: rules.otherwise(),
            remembered,
            watch,
        };
        if let Some((cache, index, known)) = same {
            let rules = if known.rules == outer.fingerprint {
                Arc::clone(&outer)
            } else {
                Rules::remembered(&outer, base(), known.rules)
            };
            let names = names_from_cache(cache, known);
            let here = here(&rules, Some(index));
            let folder = Arc::new(folder);
            let on_the_way = self.watched.marks.is_some_and(|marks| marks.is_on_the_way(index));
            return Ok(Ok((here, Open { number, folder, path, rules, names, from_cache: true, on_the_way })));
        }
        let texts = if stamp == [0; 16] { Texts::default() } else { read_texts(folder.as_fd(), number == 0) };
        let rules = Rules::with_texts(&outer, base(), texts);
        let names =
            match self.list(folder.as_fd(), &path, &rules, known.map(|(cache, _, known)| (cache, known))) {
                Ok(names) => names,
                Err(Errno::NOENT) => return Ok(Err(Found::Gone)),
                Err(error) => return unreadable(error).map(|reason| Err(Found::Left(reason))),
            };
        let here = here(&rules, known.map(|(_, index, _)| index));
        let folder = Arc::new(folder);
        Ok(Ok((here, Open { number, folder, path, rules, names, from_cache: false, on_the_way: false })))
    }

    /// Stamps of a folder's ignore files; zero if there are none. A file that is too recent for reliable stamps gives a
    /// different result each time.
    fn stamp(&self, folder: BorrowedFd<'_>, is_root: bool) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        let mut some = false;
        for name in FILES.iter().take(if is_root { 3 } else { 4 }) {
            let Ok(Some(stat)) = stat_at(folder, name) else {
                hasher.update(b"-");
                continue;
            };
            some = true;
            let settled = if stat.is_settled(self.moment) { 0 } else { self.moment };
            for number in [stat.inode as i64, stat.size as i64, stat.modified, stat.changed, settled] {
                hasher.update(&number.to_le_bytes());
            }
        }
        let mut stamp = [0; 16];
        if some {
            stamp.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        }
        stamp
    }

    fn list(
        &self,
        folder: BorrowedFd<'_>,
        path: &[u8],
        rules: &Rules,
        known: Option<(&'walk Cache, &Folder)>,
    ) -> Result<Vec<Candidate<'walk>>, Errno> {
        let known = known.map_or_else(Vec::new, |(cache, known)| cache.entries(known));
        let mut full = Vec::with_capacity(path.len() + 64);
        let decide = |listed: super::listing::Listed| {
            full.clear();
            full.extend(path);
            full.push(b'/');
            full.extend(listed.name.to_bytes());
            let decision = rules.decide(&self.asked, listed.name.to_bytes(), &full, listed.is_folder);
            let found = known.binary_search_by(|(name, _)| (*name).cmp(listed.name.as_c_str()));
            let remembered = found.ok().map(|found| known[found].1);
            Candidate { name: Cow::Owned(listed.name), decision, remembered }
        };
        Ok(list(folder)?.into_iter().map(decide).collect())
    }

    /// Checks some names of a folder.
    fn names(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<Open<'walk>>,
        start: usize,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<(), SnapshotError> {
        let end = open.names.len().min(start + CHUNK);
        let names = &open.names[start..end];
        let mut chunk = Chunk {
            start,
            length: names.len(),
            entries: None,
            folders: Vec::new(),
            files: 0,
            bytes: 0,
            has_left: false,
        };
        let mut entries: Vec<Entry> = Vec::new();
        let mut differs = !open.from_cache;
        for (index, name) in names.iter().enumerate() {
            let what = self.look(worker, open, name, &mut chunk, more)?;
            if let Looked::Same = what
                && !differs
            {
                continue;
            }
            if !differs {
                // First difference: all names before it match the cache.
                differs = true;
                let mut folders = chunk.folders.iter();
                entries = names[..index].iter().filter_map(|name| entry_from(name, &mut folders)).collect();
            }
            let what = match what {
                Looked::Same => {
                    let last = chunk.folders.last();
                    entry_from(name, &mut last.into_iter()).map(|entry| entry.what)
                }
                Looked::Other(what) => Some(what),
                Looked::Gone => None,
            };
            entries.extend(what.map(|what| Entry { name: name.name.clone().into_owned(), what }));
        }
        chunk.entries = differs.then_some(entries);
        self.counter.looked_at(names.len() as u64);
        worker.chunks.push((open.number, chunk));
        Ok(())
    }

    fn look(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<Open<'walk>>,
        name: &Candidate<'walk>,
        chunk: &mut Chunk,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<Looked, SnapshotError> {
        let looked = match name.decision {
            Decision::Leave(reason) => name.left(reason, true),
            // A folder remains one while its parent did not change.
            Decision::Hold
                if open.from_cache && matches!(name.remembered, Some(Remembered::Folder { .. })) =>
            {
                self.go_below(worker, open, name, None, chunk, more);
                Looked::Same
            }
            Decision::Hold if open.on_the_way => {
                match name.remembered {
                    Some(Remembered::File { stat, .. }) => {
                        chunk.files += 1;
                        chunk.bytes += stat.size;
                    }
                    Some(Remembered::Link { .. }) => chunk.files += 1,
                    _ => {}
                }
                Looked::Same
            }
            Decision::Hold | Decision::HoldAll | Decision::Open(_) => {
                match stat_at(open.folder.as_fd(), &name.name) {
                    Ok(Some(stat)) => self.look_at(worker, open, name, stat, chunk, more)?,
                    Ok(None) => Looked::Gone,
                    Err(error) => name.left(unreadable(error)?, false),
                }
            }
        };
        let left = match &looked {
            Looked::Other(what) => matches!(what, What::Left { .. }),
            Looked::Same => name.remembered.is_some_and(|remembered| remembered.left().is_some()),
            Looked::Gone => false,
        };
        chunk.has_left |= left;
        Ok(looked)
    }

    fn look_at(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<Open<'walk>>,
        name: &Candidate<'walk>,
        stat: Stat,
        chunk: &mut Chunk,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<Looked, SnapshotError> {
        if stat.device != self.device {
            return Ok(name.left(Reason::Mounted, false));
        }
        match stat.file_type() {
            FileType::Directory => {
                let number = self.go_below(worker, open, name, Some(stat), chunk, more);
                Ok(match name.remembered {
                    Some(Remembered::Folder { .. }) => Looked::Same,
                    _ => Looked::Other(What::Folder { number }),
                })
            }
            FileType::RegularFile => {
                if stat.size > self.largest {
                    return Ok(name.left(Reason::TooLarge, false));
                }
                if let Some(Remembered::File { stat: before, settled: true, .. }) = name.remembered
                    && before == stat
                {
                    chunk.files += 1;
                    chunk.bytes += stat.size;
                    return Ok(Looked::Same);
                }
                let outcome = read_file(
                    open.folder.as_fd(),
                    &name.name,
                    (self.device, self.largest),
                    &mut worker.feed,
                    &mut worker.buffer,
                    self.counter,
                )?;
                Ok(match outcome {
                    Outcome::File(stat, content) => {
                        chunk.files += 1;
                        chunk.bytes += stat.size;
                        Looked::Other(What::File { stat, content })
                    }
                    Outcome::Left(reason) => name.left(reason, false),
                    Outcome::Gone => Looked::Gone,
                    Outcome::Other => name.left(Reason::Changing, false),
                })
            }
            FileType::Symlink => {
                chunk.files += 1;
                if let Some(Remembered::Link { stat: before, settled: true, .. }) = name.remembered
                    && before == stat
                {
                    return Ok(Looked::Same);
                }
                match rustix::fs::readlinkat(&*open.folder, &*name.name, Vec::new()) {
                    Ok(target) => Ok(Looked::Other(What::Link { stat, target: target.into_bytes() })),
                    Err(error) => {
                        chunk.files -= 1;
                        match error {
                            Errno::NOENT => Ok(Looked::Gone),
                            Errno::INVAL => Ok(name.left(Reason::Changing, false)),
                            error => Ok(name.left(unreadable(error)?, false)),
                        }
                    }
                }
            }
            _ => Ok(name.left(Reason::Special, false)),
        }
    }

    fn go_below(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<Open<'walk>>,
        name: &Candidate<'walk>,
        stat: Option<Stat>,
        chunk: &mut Chunk,
        more: &mut Vec<Task<'walk>>,
    ) -> u32 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        chunk.folders.push(number);
        let path = [&open.path, &b"/"[..], name.name.to_bytes()].concat();
        let decision = match name.decision {
            // The cache does not store the decision about a folder, so the rules decide again.
            Decision::Hold if open.from_cache => {
                open.rules.decide_folder(&self.asked, name.name.to_bytes(), &path)
            }
            decision => decision,
        };
        let rules = Rules::inside(&open.rules, decision);
        let remembered = match name.remembered {
            Some(Remembered::Folder { index }) => Some(index),
            _ => None,
        };
        if let Some(index) = remembered.filter(|index| self.passes(*index, stat, &rules)) {
            worker.folders.push((number, Found::Passed { index, path }));
            return number;
        }
        more.push(Task::Folder(Below {
            number,
            parent: Arc::clone(&open.folder),
            name: name.name.clone().into_owned(),
            rules,
            path,
            remembered,
        }));
        number
    }

    /// Returns whether nothing can have changed in or below a folder: no event, the same outer rules, and, if the
    /// parent changed, still the same folder under the name.
    fn passes(&self, index: u32, stat: Option<Stat>, rules: &Rules) -> bool {
        let known = self.cache.and_then(|cache| cache.folder(index));
        let unmarked = self.watched.marks.is_some_and(|marks| !marks.is_marked(index));
        unmarked
            && known.is_some_and(|known| {
                known.outer == rules.fingerprint
                    && stat.is_none_or(|stat| known.stat == Stat { size: 0, ..stat })
            })
    }
}

/// Names of a folder from the cache.
fn names_from_cache<'walk>(cache: &'walk Cache, folder: &Folder) -> Vec<Candidate<'walk>> {
    let decided = |entry: &Remembered<'_>| match entry {
        Remembered::Left { reason, by_name: true } => Decision::Leave(*reason),
        _ => Decision::Hold,
    };
    let entries = cache.entries(folder).into_iter();
    entries
        .map(|(name, entry)| Candidate {
            name: Cow::Borrowed(name),
            decision: decided(&entry),
            remembered: Some(entry),
        })
        .collect()
}

/// Outcome of checking a name.
enum Looked {
    Same,
    Other(What),
    Gone,
}

impl Candidate<'_> {
    fn left(&self, reason: Reason, by_name: bool) -> Looked {
        if self.remembered == Some(Remembered::Left { reason, by_name }) {
            Looked::Same
        } else {
            Looked::Other(What::Left { reason, by_name })
        }
    }
}

/// The cached entry of a name, with its folder number in this walk.
fn entry_from<'number>(
    name: &Candidate<'_>,
    folders: &mut impl Iterator<Item = &'number u32>,
) -> Option<Entry> {
    let what = match name.remembered? {
        Remembered::File { stat, content, .. } => What::File { stat, content },
        Remembered::Link { stat, target, .. } => What::Link { stat, target: target.to_vec() },
        Remembered::Folder { .. } => What::Folder { number: *folders.next()? },
        Remembered::Left { reason, by_name } => What::Left { reason, by_name },
    };
    Some(Entry { name: name.name.clone().into_owned(), what })
}
