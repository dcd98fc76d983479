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

mod entries;

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use retake_model::tree::ExclusionReason;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use self::entries::{EntryOutcome, entry_from, names_from_cache};
use super::SnapshotError;
use super::cache::{Cache, CachedEntry, Exclusion, Folder};
use super::listing::list;
use super::other_folders::OtherFolders;
use super::progress::Counter;
use super::queue;
use super::read::{ReadOutcome, read_file, stat_at, unreadable};
use super::rules::{Decision, Fingerprint, MatchContext, RULE_FILES, Rules, Texts, read_texts};
use super::sink::{Sink, SinkWriter};
use super::stat::{Stat, now};
pub(super) use super::walk_result::{Chunk, Entry, EntryKind, FolderResult, WalkResult, WalkedFolder};
use super::watched_tree::Marks;
use super::workspace::{CompiledOptions, Root};
use crate::watch::Events;

/// Names per chunk: the workers share large folders.
const CHUNK_SIZE: usize = 256;

/// The watch that a walk serves; none by default.
#[derive(Clone, Copy, Default)]
pub(super) struct WatchContext<'walk> {
    /// Sets a watch on each walked folder.
    pub(super) events: Option<&'walk Events>,
    /// Folders to visit; `None` means all.
    pub(super) marks: Option<&'walk Marks>,
}

/// State that all workers share.
struct Walk<'walk> {
    context: MatchContext<'walk>,
    cache: Option<&'walk Cache>,
    device: u64,
    largest: u64,
    /// Device and inode of the store's folder.
    own: Option<(u64, u64)>,
    /// Folders of other projects and worktrees.
    others: &'walk OtherFolders,
    numbers: AtomicU32,
    counter: &'walk Counter<'walk>,
    now_nanos: i64,
    watched: WatchContext<'walk>,
}

/// State of one worker.
struct Worker<'walk> {
    writer: SinkWriter<'walk>,
    buffer: Vec<u8>,
    folders: Vec<(u32, FolderResult)>,
    chunks: Vec<(u32, Chunk)>,
}

enum Task<'walk> {
    Folder(SubfolderTask),
    Names(Arc<OpenFolder<'walk>>, usize),
}

/// A folder to walk.
struct SubfolderTask {
    number: u32,
    parent: Arc<OwnedFd>,
    name: CString,
    path: Vec<u8>,
    rules: Arc<Rules>,
    cached: Option<u32>,
}

/// A folder that is being walked.
struct OpenFolder<'walk> {
    number: u32,
    folder: Arc<OwnedFd>,
    path: Vec<u8>,
    rules: Arc<Rules>,
    names: Vec<Candidate<'walk>>,
    from_cache: bool,
    /// Whether it is walked only for a folder below it; its other entries then match the cache.
    is_ancestor: bool,
}

/// A name and the decision about it.
struct Candidate<'walk> {
    name: Cow<'walk, CStr>,
    is_folder: bool,
    decision: Decision,
    cached: Option<CachedEntry<'walk>>,
}

/// Walks a root.
pub(super) fn walk(
    root: &Root,
    options: &CompiledOptions,
    cache: Option<&Cache>,
    sink: &Sink<'_>,
    counter: &Counter<'_>,
    watched: WatchContext<'_>,
) -> Result<WalkResult, SnapshotError> {
    let fail = |error: Errno| SnapshotError::Root { path: root.path.clone(), error: error.into() };
    let now_nanos = now();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&root.path, flags, Mode::empty()).map_err(fail)?;
    let stat = Stat::from(&rustix::fs::fstat(&folder).map_err(fail)?);
    if (stat.device, stat.inode) != (root.device, root.inode) {
        // Another folder has taken the path since the workspace was opened.
        return Err(fail(Errno::STALE));
    }
    let outer_ignore_rules = crate::git::outer_ignore_rules(&root.path);
    let mut rules = Rules::root_rules(&options.globs);
    for (base, texts) in outer_ignore_rules.texts {
        rules = Rules::with_texts(&rules, base, texts);
    }
    let folder = Arc::new(folder);
    let walk = Walk {
        context: MatchContext {
            globs: &options.globs,
            root: folder.as_fd(),
            prefix: &outer_ignore_rules.prefix,
        },
        cache,
        device: root.device,
        largest: options.options.largest_file,
        own: std::fs::metadata(sink.store().folder()).ok().map(|found| (found.dev(), found.ino())),
        others: sink.others(),
        numbers: AtomicU32::new(1),
        counter,
        now_nanos,
        watched,
    };
    let first = SubfolderTask {
        number: 0,
        parent: Arc::clone(&folder),
        name: c".".to_owned(),
        path: Vec::new(),
        rules,
        cached: cache.map(|_| 0),
    };
    let make =
        || Worker { writer: sink.writer(), buffer: Vec::new(), folders: Vec::new(), chunks: Vec::new() };
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
    let mut walked = WalkResult { folders: Vec::new(), chunks: Vec::new(), now_nanos };
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

/// The result of opening a folder.
enum OpenOutcome<'walk> {
    /// Its names are to be walked.
    Open(WalkedFolder, OpenFolder<'walk>),
    /// Nothing in it is captured.
    Closed(FolderResult),
}

impl<'walk> Walk<'walk> {
    fn folder(
        &self,
        worker: &mut Worker<'_>,
        below: SubfolderTask,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<(), SnapshotError> {
        let number = below.number;
        match self.open(below)? {
            OpenOutcome::Open(here, open) => {
                worker.folders.push((number, FolderResult::Walked(Box::new(here))));
                let open = Arc::new(open);
                for start in (CHUNK_SIZE..open.names.len()).step_by(CHUNK_SIZE) {
                    more.push(Task::Names(Arc::clone(&open), start));
                }
                self.names(worker, &open, 0, more)
            }
            OpenOutcome::Closed(found) => {
                worker.folders.push((number, found));
                Ok(())
            }
        }
    }

    /// Opens a folder and decides which of its names are captured.
    fn open(&self, below: SubfolderTask) -> Result<OpenOutcome<'walk>, SnapshotError> {
        let SubfolderTask { number, parent, name, path, rules: outer, cached } = below;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&*parent, &*name, flags, Mode::empty());
        let found = opened.and_then(|folder| Ok((rustix::fs::fstat(&folder)?, folder)));
        let (stat, folder) = match found {
            Ok((stat, folder)) => (Stat { size: 0, ..Stat::from(&stat) }, folder),
            Err(Errno::NOENT) => return Ok(OpenOutcome::Closed(FolderResult::Gone)),
            // It was a folder when it was listed.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Ok(OpenOutcome::Closed(FolderResult::Excluded(ExclusionReason::Changing)));
            }
            Err(error) => {
                return unreadable(error).map(|reason| OpenOutcome::Closed(FolderResult::Excluded(reason)));
            }
        };
        if stat.device != self.device {
            return Ok(OpenOutcome::Closed(FolderResult::Excluded(ExclusionReason::Mounted)));
        }
        if self.own == Some((stat.device, stat.inode)) {
            return Ok(OpenOutcome::Closed(FolderResult::Excluded(ExclusionReason::Repository)));
        }
        if number != 0 && self.others.contains(folder.as_fd(), &stat) {
            return Ok(OpenOutcome::Closed(FolderResult::Excluded(ExclusionReason::OtherProject)));
        }
        let watch = self.watched.events.and_then(|events| events.watch(folder.as_fd()));
        // Changes before the watch was set cause no event, so the stamps must reveal them.
        let stat = match watch.map(|_| rustix::fs::fstat(&folder)) {
            Some(Ok(stat)) => Stat { size: 0, ..Stat::from(&stat) },
            _ => stat,
        };
        let known = self.cache.zip(cached).and_then(|(cache, index)| {
            let known = cache.folder(index)?;
            Some((cache, index, known))
        });
        let stamp = match &known {
            Some((.., known)) if known.stamp == [0; 16] && known.stat == stat && known.settled => [0; 16],
            _ => self.stamp(folder.as_fd(), number == 0),
        };
        let base = || [self.context.prefix, &path].concat();
        let same = known.filter(|(.., known)| {
            known.stat == stat && known.settled && known.outer == outer.fingerprint && known.stamp == stamp
        });
        let here = |rules: &Rules, cached| WalkedFolder {
            path: path.clone(),
            stat,
            outer: outer.fingerprint,
            rules: rules.fingerprint,
            stamp,
            default_reason: rules.default_reason(),
            cached,
            watch,
        };
        if let Some((cache, index, known)) = same {
            let rules = if known.rules == outer.fingerprint {
                Arc::clone(&outer)
            } else {
                Rules::cached(&outer, base(), known.rules)
            };
            let names = names_from_cache(cache, known);
            let here = here(&rules, Some(index));
            let folder = Arc::new(folder);
            let is_ancestor = self.watched.marks.is_some_and(|marks| marks.is_ancestor_of_marked(index));
            let open = OpenFolder { number, folder, path, rules, names, from_cache: true, is_ancestor };
            return Ok(OpenOutcome::Open(here, open));
        }
        let texts = if stamp == [0; 16] { Texts::default() } else { read_texts(folder.as_fd(), number == 0) };
        let rules = Rules::with_texts(&outer, base(), texts);
        let names =
            match self.list(folder.as_fd(), &path, &rules, known.map(|(cache, _, known)| (cache, known))) {
                Ok(names) => names,
                Err(Errno::NOENT) => return Ok(OpenOutcome::Closed(FolderResult::Gone)),
                Err(error) => {
                    return unreadable(error)
                        .map(|reason| OpenOutcome::Closed(FolderResult::Excluded(reason)));
                }
            };
        let here = here(&rules, known.map(|(_, index, _)| index));
        let folder = Arc::new(folder);
        let open = OpenFolder { number, folder, path, rules, names, from_cache: false, is_ancestor: false };
        Ok(OpenOutcome::Open(here, open))
    }

    /// Stamps of a folder's ignore files; zero if there are none. A file that is too recent for reliable stamps gives a
    /// different result each time.
    fn stamp(&self, folder: BorrowedFd<'_>, is_root: bool) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        let mut some = false;
        for name in RULE_FILES.iter().take(if is_root { 3 } else { 4 }) {
            let Ok(Some(stat)) = stat_at(folder, name) else {
                hasher.update(b"-");
                continue;
            };
            some = true;
            let settled = if stat.is_settled(self.now_nanos) { 0 } else { self.now_nanos };
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
        let decide = |listed: super::listing::ListedName| {
            full.clear();
            full.extend(path);
            full.push(b'/');
            full.extend(listed.name.to_bytes());
            let decision = rules.decide(&self.context, listed.name.to_bytes(), &full, listed.is_folder);
            let found = known.binary_search_by(|(name, _)| (*name).cmp(listed.name.as_c_str()));
            let cached = found.ok().map(|found| known[found].1);
            Candidate { name: Cow::Owned(listed.name), is_folder: listed.is_folder, decision, cached }
        };
        Ok(list(folder)?.into_iter().map(decide).collect())
    }

    /// Checks some names of a folder.
    fn names(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<OpenFolder<'walk>>,
        start: usize,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<(), SnapshotError> {
        let end = open.names.len().min(start + CHUNK_SIZE);
        let names = &open.names[start..end];
        let mut chunk = Chunk {
            start,
            length: names.len(),
            entries: None,
            folders: Vec::new(),
            files: 0,
            bytes: 0,
            has_excluded: false,
        };
        let mut entries: Vec<Entry> = Vec::new();
        let mut differs = !open.from_cache;
        for (index, name) in names.iter().enumerate() {
            let kind = self.check_names(worker, open, name, &mut chunk, more)?;
            if let EntryOutcome::Same = kind
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
            let kind = match kind {
                EntryOutcome::Same => {
                    let last = chunk.folders.last();
                    entry_from(name, &mut last.into_iter()).map(|entry| entry.kind)
                }
                EntryOutcome::Other(kind) => Some(kind),
                EntryOutcome::Gone => None,
            };
            entries.extend(kind.map(|kind| Entry { name: name.name.clone().into_owned(), kind }));
        }
        chunk.entries = differs.then_some(entries);
        self.counter.add_files(names.len() as u64);
        worker.chunks.push((open.number, chunk));
        Ok(())
    }

    fn check_names(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<OpenFolder<'walk>>,
        name: &Candidate<'walk>,
        chunk: &mut Chunk,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<EntryOutcome, SnapshotError> {
        let looked = match name.decision {
            Decision::Exclude(reason) => name.excluded_entry(reason, true),
            // A folder remains one while its parent did not change.
            Decision::Capture
                if open.from_cache && matches!(name.cached, Some(CachedEntry::Folder { .. })) =>
            {
                self.queue_subfolder(worker, open, name, None, chunk, more);
                EntryOutcome::Same
            }
            Decision::Capture if open.is_ancestor => {
                match name.cached {
                    Some(CachedEntry::File { stat, .. }) => {
                        chunk.files += 1;
                        chunk.bytes += stat.size;
                    }
                    Some(CachedEntry::Link { .. }) => chunk.files += 1,
                    _ => {}
                }
                EntryOutcome::Same
            }
            Decision::Capture | Decision::CaptureAll | Decision::Descend(_) => {
                match stat_at(open.folder.as_fd(), &name.name) {
                    Ok(Some(stat)) => self.check_name(worker, open, name, stat, chunk, more)?,
                    Ok(None) => EntryOutcome::Gone,
                    Err(error) => name.excluded_entry(unreadable(error)?, false),
                }
            }
        };
        let left = match &looked {
            EntryOutcome::Other(kind) => matches!(kind, EntryKind::Excluded(_)),
            EntryOutcome::Same => name.cached.is_some_and(|cached| cached.exclusion().is_some()),
            EntryOutcome::Gone => false,
        };
        chunk.has_excluded |= left;
        Ok(looked)
    }

    fn check_name(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<OpenFolder<'walk>>,
        name: &Candidate<'walk>,
        stat: Stat,
        chunk: &mut Chunk,
        more: &mut Vec<Task<'walk>>,
    ) -> Result<EntryOutcome, SnapshotError> {
        if stat.device != self.device {
            return Ok(name.excluded_entry(ExclusionReason::Mounted, false));
        }
        match stat.file_type() {
            FileType::Directory => {
                let number = self.queue_subfolder(worker, open, name, Some(stat), chunk, more);
                Ok(match name.cached {
                    Some(CachedEntry::Folder { .. }) => EntryOutcome::Same,
                    _ => EntryOutcome::Other(EntryKind::Folder { number }),
                })
            }
            FileType::RegularFile => {
                if stat.size > self.largest {
                    return Ok(name.excluded_entry(ExclusionReason::TooLarge, false));
                }
                if let Some(CachedEntry::File { stat: before, settled: true, .. }) = name.cached
                    && before == stat
                {
                    chunk.files += 1;
                    chunk.bytes += stat.size;
                    return Ok(EntryOutcome::Same);
                }
                let outcome = read_file(
                    open.folder.as_fd(),
                    &name.name,
                    (self.device, self.largest),
                    &mut worker.writer,
                    &mut worker.buffer,
                    self.counter,
                )?;
                Ok(match outcome {
                    ReadOutcome::File(stat, content) => {
                        chunk.files += 1;
                        chunk.bytes += stat.size;
                        EntryOutcome::Other(EntryKind::File { stat, content })
                    }
                    ReadOutcome::Excluded(reason) => name.excluded_entry(reason, false),
                    ReadOutcome::Gone => EntryOutcome::Gone,
                    ReadOutcome::Other => name.excluded_entry(ExclusionReason::Changing, false),
                })
            }
            FileType::Symlink => {
                chunk.files += 1;
                if let Some(CachedEntry::Link { stat: before, settled: true, .. }) = name.cached
                    && before == stat
                {
                    return Ok(EntryOutcome::Same);
                }
                match rustix::fs::readlinkat(&*open.folder, &*name.name, Vec::new()) {
                    Ok(target) => {
                        Ok(EntryOutcome::Other(EntryKind::Link { stat, target: target.into_bytes() }))
                    }
                    Err(error) => {
                        chunk.files -= 1;
                        match error {
                            Errno::NOENT => Ok(EntryOutcome::Gone),
                            Errno::INVAL => Ok(name.excluded_entry(ExclusionReason::Changing, false)),
                            error => Ok(name.excluded_entry(unreadable(error)?, false)),
                        }
                    }
                }
            }
            _ => Ok(name.excluded_entry(ExclusionReason::Special, false)),
        }
    }

    fn queue_subfolder(
        &self,
        worker: &mut Worker<'_>,
        open: &Arc<OpenFolder<'walk>>,
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
            Decision::Capture if open.from_cache => {
                open.rules.decide_folder(&self.context, name.name.to_bytes(), &path)
            }
            decision => decision,
        };
        let rules = Rules::inside(&open.rules, decision);
        let cached = match name.cached {
            Some(CachedEntry::Folder { index }) => Some(index),
            _ => None,
        };
        if let Some(index) = cached.filter(|index| self.is_unchanged(*index, stat, &rules)) {
            worker.folders.push((number, FolderResult::Unchanged { index, path }));
            return number;
        }
        more.push(Task::Folder(SubfolderTask {
            number,
            parent: Arc::clone(&open.folder),
            name: name.name.clone().into_owned(),
            rules,
            path,
            cached,
        }));
        number
    }

    /// Returns whether nothing can have changed in or below a folder: no event, the same outer rules, and, if the
    /// parent changed, still the same folder under the name.
    fn is_unchanged(&self, index: u32, stat: Option<Stat>, rules: &Rules) -> bool {
        let known = self.cache.and_then(|cache| cache.folder(index));
        let unmarked = self.watched.marks.is_some_and(|marks| !marks.is_marked(index));
        unmarked
            && known.is_some_and(|known| {
                known.outer == rules.fingerprint
                    && stat.is_none_or(|stat| known.stat == Stat { size: 0, ..stat })
            })
    }
}
