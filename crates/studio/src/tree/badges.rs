//! File changes of takes and saved versions, read from the logs of threads.
//!
//! The tree is refreshed on every event, so that results are cached per thread until its next operation, and comparisons
//! until the files change. The open thread is always up to date; others are read within a time budget, and the rest with
//! the next refresh.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use maud::{Markup, html};
use retake_model::diff::LineCounts;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_render::number::{count, counted};
use retake_timeline::{Detail, DiffOptions, Reader, TakeFiles, TakeFilesIndex, TreeThread};

use crate::page_error::PageError;

/// Maximum operations with files to read.
const MAX_OPERATIONS: usize = 500;
/// Maximum files to compare by line.
const MAX_COMPARED_FILES: usize = 50;
/// Maximum operations to scan for saved versions.
const MAX_SCANNED: usize = 300;
/// Maximum saved versions.
const MAX_SAVED: usize = 4;
/// Maximum cached threads.
const CACHE_SIZE: usize = 300;
/// Time budget for threads other than the open one.
const OTHER_THREADS_BUDGET: Duration = Duration::from_millis(10);

/// Cached badges of recently shown threads.
#[derive(Default)]
pub(crate) struct BadgeCache(Mutex<VecDeque<Arc<ThreadBadges>>>);

/// The badges of a thread at a version.
pub(super) struct ThreadBadges {
    thread: ThreadId,
    version: Version,
    files: TakeFilesIndex,
    /// Differences between the first and the current files of takes.
    changed: HashMap<TakeFiles, ChangeCounts>,
    saved: OnceLock<Vec<(Version, String)>>,
}

/// The size of a change of files.
#[derive(Clone, Copy)]
struct ChangeCounts {
    files: u64,
    /// Added and removed lines; `None` if there are too many files.
    lines: Option<LineCounts>,
}

impl BadgeCache {
    /// The badges of threads: up to date for `open_thread`, for the others as far as time allows.
    pub(super) fn of(
        &self,
        reader: &Reader<'_>,
        threads: &[TreeThread],
        open_thread: Option<ThreadId>,
    ) -> Result<HashMap<ThreadId, Arc<ThreadBadges>>, PageError> {
        let first = Instant::now();
        let mut all = HashMap::new();
        // The sort is stable and keeps the order of the other threads.
        let mut threads: Vec<&TreeThread> = threads.iter().collect();
        threads.sort_by_key(|thread| Some(thread.summary.id) != open_thread);
        for thread in threads {
            let id = thread.summary.id;
            let before = self.cached(id);
            let known = match before {
                Some(known) if known.version == thread.summary.version => known,
                _ if Some(id) == open_thread || first.elapsed() < OTHER_THREADS_BUDGET => {
                    self.read(reader, id, before.as_deref())?
                }
                // Outdated badges are better than none.
                Some(known) => known,
                None => continue,
            };
            all.insert(id, known);
        }
        Ok(all)
    }

    fn read(
        &self,
        reader: &Reader<'_>,
        thread: ThreadId,
        before: Option<&ThreadBadges>,
    ) -> Result<Arc<ThreadBadges>, PageError> {
        let version = reader.thread(thread)?.summary.version;
        let files = reader.files(thread).of_takes(before.map(|before| &before.files), MAX_OPERATIONS)?;
        let mut changed = HashMap::new();
        for files in files.takes.values().filter(|files| files.first != files.current) {
            let known = before.and_then(|before| before.changed.get(files).copied());
            // Missing objects must not prevent rendering the tree.
            if let Some(now) = known.or_else(|| ChangeCounts::between(reader, *files)) {
                changed.insert(*files, now);
            }
        }
        let known = ThreadBadges { thread, version, files, changed, saved: OnceLock::new() };
        let known = Arc::new(known);
        self.store(&known);
        Ok(known)
    }

    fn cached(&self, thread: ThreadId) -> Option<Arc<ThreadBadges>> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.iter().find(|known| known.thread == thread).cloned()
    }

    fn store(&self, known: &Arc<ThreadBadges>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|other| other.thread != known.thread);
        cache.push_front(Arc::clone(known));
        cache.truncate(CACHE_SIZE);
    }
}

impl ChangeCounts {
    fn between(reader: &Reader<'_>, TakeFiles { first, current }: TakeFiles) -> Option<Self> {
        let options = DiffOptions::all(Detail::Counts);
        let found = reader.snapshot(first).changes_page(current, &options, 0, MAX_COMPARED_FILES).ok()?;
        let lines = (found.files.len() as u64 == found.count).then(|| {
            found.files.iter().filter_map(|file| file.lines).fold(LineCounts::default(), |sum, lines| {
                LineCounts { added: sum.added + lines.added, removed: sum.removed + lines.removed }
            })
        });
        Some(Self { files: found.count, lines })
    }
}

impl ThreadBadges {
    /// The last saved versions, newest first.
    pub(super) fn saved(&self, reader: &Reader<'_>) -> Result<&[(Version, String)], PageError> {
        if let Some(saved) = self.saved.get() {
            return Ok(saved);
        }
        let row = reader.thread(self.thread)?;
        let operations = reader.queries().operations_back(row.number, self.version, MAX_SCANNED)?;
        let saved = operations.into_iter().filter_map(|stored| match stored.operation.kind {
            OperationKind::Saved { name } => Some((stored.operation.version, name)),
            _ => None,
        });
        Ok(self.saved.get_or_init(|| saved.take(MAX_SAVED).collect()))
    }

    /// Whether a take changed files.
    pub(super) fn has_badge(&self, take: TakeId) -> bool {
        self.changed_by(take).is_some_and(|changed| changed.files > 0)
    }

    fn changed_by(&self, take: TakeId) -> Option<ChangeCounts> {
        self.changed.get(self.files.takes.get(&take)?).copied()
    }

    /// The file changes of a take since it started.
    pub(super) fn badge(&self, take: TakeId) -> Markup {
        let Some(changed) = self.changed_by(take).filter(|changed| changed.files > 0) else {
            return html! {};
        };
        let since = if self.files.more { "Recent changes" } else { "Changes since the take started" };
        html! {
            span class="changed" title=(since) {
                (counted(changed.files, "file", "files"))
                @if let Some(lines) = changed.lines {
                    @if lines.added > 0 { " " span class="added" { "+" (count(lines.added)) } }
                    @if lines.removed > 0 { " " span class="removed" { "−" (count(lines.removed)) } }
                }
            }
        }
    }
}
