//! Every log read: versions in a row, each operation naming the one before it, each in its place.

use std::collections::BTreeMap;

use retake_model::content::{ContentId, Kind};
use retake_model::history::{self, FIRST, Link, Step, link_note};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{FileChange, Version};
use retake_model::reference::{Reference, named};
use retake_model::sharing::Sharing;

use super::{MaintenanceProgress, Problem, Stage, WhichThread};
use crate::StoreError;
use crate::operations::checked;
use crate::queries::Queries;
use crate::scan::{Gap, OPERATIONS, scan};

const REPORT_EVERY: u64 = 4096;

/// All logs, by the number of their thread.
pub(crate) struct Logs {
    pub(crate) threads: BTreeMap<i64, Log>,
    pub(crate) operations: u64,
    gaps: Vec<Gap>,
}

/// The log of one thread.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) thread: i64,
    /// What the first sound operation says.
    pub(crate) id: Option<ThreadId>,
    /// The operations, by version.
    pub(crate) operations: Vec<Row>,
    /// Where the mark stands that the thread was purged.
    pub(crate) purged: Option<i64>,
}

/// One operation as it stands in its row.
pub(crate) struct Row {
    pub(crate) sequence: i64,
    pub(crate) version: i64,
    /// What it says; `None` if its bytes are not the ones that were stored.
    pub(crate) sound: Option<Sound>,
}

/// What is needed of an operation whose bytes are whole.
pub(crate) struct Sound {
    pub(crate) id: ContentId,
    pub(crate) thread: ThreadId,
    pub(crate) version: Version,
    pub(crate) previous: Option<ContentId>,
    step: Step,
    link: Link,
    pub(crate) after: ContentId,
    pub(crate) surroundings: Option<ContentId>,
    pub(crate) files: Option<FileChange>,
    filed: Option<Version>,
    sharing: Option<Sharing>,
    /// Versions of entries that it names.
    named: [Option<Reference>; 2],
}

/// Reads all operations.
pub(crate) fn gather(
    queries: &Queries<'_>,
    progress: &mut dyn FnMut(MaintenanceProgress),
) -> Result<Logs, StoreError> {
    let mut logs = Logs { threads: BTreeMap::new(), operations: 0, gaps: Vec::new() };
    let total = queries.last_sequence().map_or(0, |last| last as u64);
    logs.gaps = scan(queries.connection, OPERATIONS, &mut |row| {
        if logs.operations.is_multiple_of(REPORT_EVERY) {
            progress(MaintenanceProgress {
                done: logs.operations,
                total: total.max(logs.operations),
                what: Stage::Operations,
            });
        }
        let sequence: i64 = row.get(0)?;
        let thread: i64 = row.get_ref(1)?.as_i64().unwrap_or(-1);
        let version: i64 = row.get_ref(2)?.as_i64().unwrap_or(-1);
        let log = logs.threads.entry(thread).or_default();
        log.thread = thread;
        let body = row.get_ref(4)?.as_blob().unwrap_or_default();
        if version == 0 && body.is_empty() {
            // A purged thread leaves one row without a body.
            log.purged = Some(sequence);
            return Ok(());
        }
        logs.operations += 1;
        let id = row.get_ref(3)?.as_blob().unwrap_or_default();
        let sound = checked(sequence, id, body).ok().map(|stored| Sound {
            id: stored.id,
            thread: stored.operation.thread,
            version: stored.operation.version,
            previous: stored.operation.previous,
            step: Step::of(&stored.operation),
            link: Link::of(&stored.operation),
            after: stored.operation.after,
            surroundings: stored.operation.surroundings,
            files: stored.operation.files,
            filed: stored.operation.filed,
            sharing: Sharing::set_by(&stored.operation.kind),
            named: named(&stored.operation.kind),
        });
        log.operations.push(Row { sequence, version, sound });
        Ok(())
    })?;
    for log in logs.threads.values_mut() {
        log.operations.sort_by_key(|row| row.version);
        log.id = log.operations.iter().find_map(|row| row.sound.as_ref().map(|sound| sound.thread));
    }
    Ok(logs)
}

impl Logs {
    /// Operations that could not be read.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Problem> {
        self.gaps.iter().map(|gap| Problem::RowsUnreadable {
            table: OPERATIONS.name,
            first: gap.first,
            last: gap.last,
        })
    }
}

impl Sound {
    /// The content that it refers to.
    pub(crate) fn needs(&self) -> impl Iterator<Item = Reference> {
        let around = self.surroundings.map(|id| (Kind::Surroundings, id));
        let files = self.files.map(|files| [files.before, files.after].map(|id| (Kind::Snapshot, id)));
        let named = self.named.into_iter().flatten();
        [(Kind::State, self.after)].into_iter().chain(around).chain(files.into_iter().flatten()).chain(named)
    }
}

impl Log {
    pub(crate) fn which(&self) -> WhichThread {
        WhichThread { number: self.thread, id: self.id }
    }

    /// The operations whose bytes are whole, by version.
    pub(crate) fn sound(&self) -> impl Iterator<Item = (Version, &Sound)> {
        self.operations.iter().filter_map(|row| Some((row.version as Version, row.sound.as_ref()?)))
    }

    /// The surroundings of its operations, in order, each only where it differs from the one before.
    pub(crate) fn seen(&self) -> Vec<ContentId> {
        let mut seen: Vec<ContentId> =
            self.sound().filter_map(|(_, operation)| operation.surroundings).collect();
        seen.dedup();
        seen
    }

    /// Who may see the thread; `None` for what it was created with. Its row decides, which is guarded: an import brings
    /// what was set elsewhere into the log and leaves the marks here as they are. Where the row is lost, the log cannot
    /// tell what was set here, so nobody else may see the thread if it was ever set, or may have been.
    pub(crate) fn sharing(&self, queries: &Queries<'_>) -> Option<Sharing> {
        if let Ok(Some(row)) = queries.thread_numbered(self.thread) {
            return Some(row.summary.sharing());
        }
        let may_set = |row: &Row| row.sound.as_ref().is_none_or(|sound| sound.sharing.is_some());
        self.operations.iter().any(may_set).then_some(Sharing::NOBODY_ELSE)
    }

    /// Checks the log; says whether it is whole, so that more can be asked of it.
    pub(crate) fn check(&self, problems: &mut Vec<Problem>) -> bool {
        let before = problems.len();
        let thread = self.which();
        if self.purged.is_some() {
            problems.push(Problem::PurgedThreadHasLog { thread });
        }
        let mut expected: Version = 1;
        // Places are worked out anew, so that a wrong one does not make those behind it wrong too.
        let mut walked = Walked::default();
        let mut in_row = true;
        for row in &self.operations {
            let version = row.version as Version;
            if row.version < 1 || version < expected {
                problems.push(Problem::OperationForeign { thread, version });
                continue;
            }
            if version > expected {
                problems.push(Problem::LogGap { thread, first: expected, last: version - 1 });
                in_row = false;
            }
            expected = version + 1;
            let Some(operation) = &row.sound else {
                problems.push(Problem::OperationDamaged {
                    thread,
                    version: row.version,
                    sequence: row.sequence,
                });
                in_row = false;
                continue;
            };
            if in_row && let Some(problem) = walked.step(thread, version, operation) {
                problems.push(problem);
            }
        }
        problems.len() == before
    }
}

impl Log {
    /// How many operations from the first on are as they should be.
    pub(crate) fn sound_until(&self) -> usize {
        let mut walked = Walked::default();
        (1..)
            .zip(&self.operations)
            .take_while(|(version, row)| {
                let sound = row.sound.as_ref().filter(|_| row.version as Version == *version);
                sound.is_some_and(|sound| walked.step(self.which(), *version, sound).is_none())
            })
            .count()
    }
}

/// A log as far as it has been walked.
#[derive(Default)]
struct Walked {
    steps: Vec<Step>,
    after: Vec<ContentId>,
    last: Option<ContentId>,
    thread: Option<ThreadId>,
    /// The last operation that has files.
    filed: Option<Version>,
}

/// No operation has that version.
struct NoSuchVersion;

impl history::Log for Walked {
    type Error = NoSuchVersion;

    fn step(&self, version: Version) -> Result<Step, NoSuchVersion> {
        let index = version.checked_sub(1).ok_or(NoSuchVersion)?;
        self.steps.get(index as usize).cloned().ok_or(NoSuchVersion)
    }

    /// Nothing that is checked here asks for it.
    fn active(&self, _: Version) -> Result<TakeId, NoSuchVersion> {
        Err(NoSuchVersion)
    }
}

impl Walked {
    /// Adds an operation, and says what is wrong with it.
    fn step(&mut self, thread: WhichThread, version: Version, operation: &Sound) -> Option<Problem> {
        let belongs = *self.thread.get_or_insert(operation.thread) == operation.thread;
        let follows = operation.previous == self.last;
        let head = version - 1;
        let placed = operation.link.follows(self, head).unwrap_or(false);
        let step = if placed { operation.step.clone() } else { self.stand_in(head, operation) };
        // An old log makes an old state current; in a newer one a note changes nothing, and a move makes a state.
        let leads = if !operation.step.moves_only {
            true
        } else if operation.link.is_old() {
            let target = (step.place.position as usize).wrapping_sub(1);
            self.after.get(target).is_some_and(|after| *after == operation.after)
        } else {
            operation.link.is_move() || self.after.last() == Some(&operation.after)
        };
        self.filed = operation.files.map(|_| version).or(self.filed);
        self.last = Some(operation.id);
        self.after.push(operation.after);
        self.steps.push(step);
        if !belongs || operation.version != version {
            Some(Problem::OperationForeign { thread, version })
        } else if !follows {
            Some(Problem::LogBroken { thread, version })
        } else if !placed {
            Some(Problem::OperationMisplaced { thread, version })
        } else if !leads {
            Some(Problem::StateMismatch { thread, version })
        } else if operation.filed != self.filed {
            Some(Problem::FiledWrong { thread, version })
        } else {
            None
        }
    }

    /// A step that stands where nothing goes astray, for one that does not: going on from there keeps one fault from
    /// hiding or causing others.
    fn stand_in(&self, head: Version, operation: &Sound) -> Step {
        let linked = link_note(self, head).ok();
        let (place, chains) = linked.map_or((FIRST, None), |(place, chains)| (place, Some(chains)));
        Step { place, chains, moves_only: head > 0, ..operation.step.clone() }
    }
}
