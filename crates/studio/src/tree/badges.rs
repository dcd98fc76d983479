//! What takes did to files, and which moments were saved: read from the log of the thread that is looked at.
//!
//! The tree is drawn again whenever anything happens anywhere, so what was read of a thread is kept until its next
//! operation, and what was compared until the files are others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use maud::{Markup, html};
use retake_model::content::ContentId;
use retake_model::diff::Counts;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_timeline::{Detail, Looking, Question};
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
const KEPT: usize = 16;

/// What is known of the threads that were looked at last.
#[derive(Default)]
pub(crate) struct Badges(Mutex<VecDeque<Arc<Known>>>);

/// What is known of a thread at one moment.
pub(super) struct Known {
    thread: ThreadId,
    version: Version,
    takes: HashMap<TakeId, (ContentId, ContentId)>,
    /// Whether older operations were not looked at.
    more: bool,
    changed: HashMap<(ContentId, ContentId), Changed>,
    /// The moments that were saved last, newest first.
    pub(super) saved: Vec<(Version, String)>,
}

/// How the files of two moments differ.
#[derive(Clone, Copy)]
struct Changed {
    files: u64,
    /// Lines that came and went; none if there are too many files to compare.
    lines: Option<Counts>,
}

impl Badges {
    /// What is known of a thread now.
    pub(super) fn of(&self, looking: &Looking<'_>, thread: ThreadId) -> Result<Arc<Known>, Failed> {
        let row = looking.thread(thread)?;
        let before = self.kept(thread);
        if let Some(known) = before.as_ref().filter(|known| known.version == row.summary.version) {
            return Ok(Arc::clone(known));
        }
        let found = looking.files_of_takes(thread, LOOKED_AT)?;
        let takes: HashMap<_, _> =
            found.takes.into_iter().map(|(take, files)| (take, (files.began, files.now))).collect();
        let mut changed = HashMap::new();
        for pair in takes.values().filter(|(began, now)| began != now) {
            let known = before.as_ref().and_then(|before| before.changed.get(pair).copied());
            // Files that are not there any more are no reason to show no tree.
            if let Some(now) = known.or_else(|| Changed::between(looking, *pair)) {
                changed.insert(*pair, now);
            }
        }
        let operations =
            looking.queries().operations_back(row.number, row.summary.version, LOOKED_THROUGH)?;
        let saved = operations.into_iter().filter_map(|stored| match stored.operation.kind {
            OperationKind::Saved { name } => Some((stored.operation.version, name)),
            _ => None,
        });
        let (version, more) = (row.summary.version, found.more);
        let saved = saved.take(MOMENTS).collect();
        let known = Arc::new(Known { thread, version, takes, more, changed, saved });
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
    fn between(looking: &Looking<'_>, (began, now): (ContentId, ContentId)) -> Option<Self> {
        let question = Question { paths: Vec::new(), detail: Detail::Counts };
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
    /// Whether a take changed files.
    pub(super) fn has_badge(&self, take: TakeId) -> bool {
        self.changed_by(take).is_some_and(|changed| changed.files > 0)
    }

    fn changed_by(&self, take: TakeId) -> Option<Changed> {
        self.changed.get(self.takes.get(&take)?).copied()
    }

    /// How many files and lines a take changed since it began.
    pub(super) fn badge(&self, take: TakeId) -> Markup {
        let Some(changed) = self.changed_by(take).filter(|changed| changed.files > 0) else {
            return html! {};
        };
        let since = if self.more { "Lately" } else { "Since the take began" };
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
