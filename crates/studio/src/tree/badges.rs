//! File changes of takes and saved versions, read from the logs of threads.
//!
//! The tree is refreshed on every event, so that results are cached per thread until its next operation, and comparisons
//! until the files change. The open thread is always up to date; others are read within a time budget, and the rest with
//! the next refresh.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use maud::{Markup, html};
use retake_model::diff::Counts;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_timeline::{Detail, FilesOfTakes, Looking, Question, TakeFiles, TreeThread};
use retake_words::number::{count, counted};

use crate::failed::Failed;

/// Maximum operations with files to read.
const LOOKED_AT: usize = 500;
/// Maximum files to compare by line.
const COMPARED: usize = 50;
/// Maximum operations to scan for saved versions.
const LOOKED_THROUGH: usize = 300;
/// Maximum saved versions.
const MOMENTS: usize = 4;
/// Maximum cached threads.
const KEPT: usize = 300;
/// Time budget for threads other than the open one.
const TIME_FOR_OTHERS: Duration = Duration::from_millis(10);

/// Cached badges of recently shown threads.
#[derive(Default)]
pub(crate) struct Badges(Mutex<VecDeque<Arc<Known>>>);

/// The badges of a thread at a version.
pub(super) struct Known {
    thread: ThreadId,
    version: Version,
    files: FilesOfTakes,
    /// Differences between the first and the current files of takes.
    changed: HashMap<TakeFiles, Changed>,
    saved: OnceLock<Vec<(Version, String)>>,
}

/// The size of a change of files.
#[derive(Clone, Copy)]
struct Changed {
    files: u64,
    /// Added and removed lines; `None` if there are too many files.
    lines: Option<Counts>,
}

impl Badges {
    /// The badges of threads: up to date for `here`, for the others as far as time allows.
    pub(super) fn of(
        &self,
        looking: &Looking<'_>,
        threads: &[TreeThread],
        here: Option<ThreadId>,
    ) -> Result<HashMap<ThreadId, Arc<Known>>, Failed> {
        let began = Instant::now();
        let mut all = HashMap::new();
        // The sort is stable and keeps the order of the other threads.
        let mut threads: Vec<&TreeThread> = threads.iter().collect();
        threads.sort_by_key(|thread| Some(thread.summary.id) != here);
        for thread in threads {
            let id = thread.summary.id;
            let before = self.kept(id);
            let known = match before {
                Some(known) if known.version == thread.summary.version => known,
                _ if Some(id) == here || began.elapsed() < TIME_FOR_OTHERS => {
                    self.read(looking, id, before.as_deref())?
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
        looking: &Looking<'_>,
        thread: ThreadId,
        before: Option<&Known>,
    ) -> Result<Arc<Known>, Failed> {
        let version = looking.thread(thread)?.summary.version;
        let files = looking.files_of_takes(thread, before.map(|before| &before.files), LOOKED_AT)?;
        let mut changed = HashMap::new();
        for files in files.takes.values().filter(|files| files.began != files.now) {
            let known = before.and_then(|before| before.changed.get(files).copied());
            // Missing objects must not prevent rendering the tree.
            if let Some(now) = known.or_else(|| Changed::between(looking, *files)) {
                changed.insert(*files, now);
            }
        }
        let known = Known { thread, version, files, changed, saved: OnceLock::new() };
        let known = Arc::new(known);
        self.keep(&known);
        Ok(known)
    }

    fn kept(&self, thread: ThreadId) -> Option<Arc<Known>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|known| known.thread == thread).cloned()
    }

    fn keep(&self, known: &Arc<Known>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.thread != known.thread);
        kept.push_front(Arc::clone(known));
        kept.truncate(KEPT);
    }
}

impl Changed {
    fn between(looking: &Looking<'_>, TakeFiles { began, now }: TakeFiles) -> Option<Self> {
        let question = Question::all(Detail::Counts);
        let found = looking.some_changes(began, now, &question, 0, COMPARED).ok()?;
        let lines = (found.files.len() as u64 == found.count).then(|| {
            found.files.iter().filter_map(|file| file.lines).fold(Counts::default(), |sum, lines| Counts {
                added: sum.added + lines.added,
                removed: sum.removed + lines.removed,
            })
        });
        Some(Self { files: found.count, lines })
    }
}

impl Known {
    /// The last saved versions, newest first.
    pub(super) fn saved(&self, looking: &Looking<'_>) -> Result<&[(Version, String)], Failed> {
        if let Some(saved) = self.saved.get() {
            return Ok(saved);
        }
        let row = looking.thread(self.thread)?;
        let operations = looking.queries().operations_back(row.number, self.version, LOOKED_THROUGH)?;
        let saved = operations.into_iter().filter_map(|stored| match stored.operation.kind {
            OperationKind::Saved { name } => Some((stored.operation.version, name)),
            _ => None,
        });
        Ok(self.saved.get_or_init(|| saved.take(MOMENTS).collect()))
    }

    /// Whether a take changed files.
    pub(super) fn has_badge(&self, take: TakeId) -> bool {
        self.changed_by(take).is_some_and(|changed| changed.files > 0)
    }

    fn changed_by(&self, take: TakeId) -> Option<Changed> {
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
