//! What takes did to files, and which moments were saved: read from the logs of threads.
//!
//! The tree is drawn again whenever anything happens anywhere, so what was read of a thread is kept until its next
//! operation, and what was compared until the files are others. The thread that is looked at is always read; others as long
//! as that takes no time, and the rest with the next drawing.

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

/// So many operations with files are looked at.
const LOOKED_AT: usize = 500;
/// The lines of so many files are compared.
const COMPARED: usize = 50;
/// So many operations are looked through for moments that were saved.
const LOOKED_THROUGH: usize = 300;
/// So many saved moments are shown.
const MOMENTS: usize = 4;
/// What is known of so many threads is kept.
const KEPT: usize = 300;
/// So long are threads read that nobody looks at.
const TIME_FOR_OTHERS: Duration = Duration::from_millis(10);

/// What is known of the threads that were looked at last.
#[derive(Default)]
pub(crate) struct Badges(Mutex<VecDeque<Arc<Known>>>);

/// What is known of a thread at one moment.
pub(super) struct Known {
    thread: ThreadId,
    version: Version,
    files: FilesOfTakes,
    /// What differs between the files that a take began with and those that it has.
    changed: HashMap<TakeFiles, Changed>,
    saved: OnceLock<Vec<(Version, String)>>,
}

/// How the files of two moments differ.
#[derive(Clone, Copy)]
struct Changed {
    files: u64,
    /// Lines that came and went; none if there are too many files to compare.
    lines: Option<Counts>,
}

impl Badges {
    /// What is known of threads now: of one for certain, of the others as far as there is time.
    pub(super) fn of(
        &self,
        looking: &Looking<'_>,
        threads: &[TreeThread],
        here: Option<ThreadId>,
    ) -> Result<HashMap<ThreadId, Arc<Known>>, Failed> {
        let began = Instant::now();
        let mut all = HashMap::new();
        // The sort is stable: the others come in the order of the list.
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
                // What was so a moment ago is better than nothing.
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
            // Files that are not there any more are no reason to show no tree.
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
    /// The moments that were saved last, newest first.
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

    /// How many files and lines a take changed since it began.
    pub(super) fn badge(&self, take: TakeId) -> Markup {
        let Some(changed) = self.changed_by(take).filter(|changed| changed.files > 0) else {
            return html! {};
        };
        let since = if self.files.more { "Lately" } else { "Since the take began" };
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
