//! Reads every log and checks that versions are consecutive and that each operation refers to the previous
//! one.

use std::collections::BTreeMap;

use retake_model::content::{ContentId, Kind};
use retake_model::history::{self, FIRST, Link, LogStep, link_note};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{FileChange, Version};
use retake_model::reference::{Reference, named_entries};
use retake_model::sharing::Sharing;

use super::{MaintenanceProgress, MaintenanceStage, Problem, ThreadRef};
use crate::StoreError;
use crate::log::operations::checked;
use crate::log::queries::Queries;
use crate::maintenance::scan::{Gap, OPERATIONS, scan};

const REPORT_EVERY: u64 = 4096;

/// All logs, by thread number.
pub(crate) struct Logs {
    pub(crate) threads: BTreeMap<i64, Log>,
    pub(crate) operations: u64,
    gaps: Vec<Gap>,
}

#[derive(Default)]
pub(crate) struct Log {
    pub(crate) thread: i64,
    /// The thread id in the first intact operation.
    pub(crate) id: Option<ThreadId>,
    /// Its operations, by version.
    pub(crate) operations: Vec<OperationRow>,
    /// Sequence number of the purge marker.
    pub(crate) purged: Option<i64>,
}

/// An operation and the columns of its row.
pub(crate) struct OperationRow {
    pub(crate) sequence: i64,
    pub(crate) version: i64,
    /// The decoded operation; `None` if its bytes are damaged.
    pub(crate) intact: Option<IntactOperation>,
}

/// The parts of an intact operation that the checks need.
pub(crate) struct IntactOperation {
    pub(crate) id: ContentId,
    pub(crate) thread: ThreadId,
    pub(crate) version: Version,
    pub(crate) previous: Option<ContentId>,
    step: LogStep,
    link: Link,
    pub(crate) after: ContentId,
    pub(crate) environment: Option<ContentId>,
    pub(crate) files: Option<FileChange>,
    last_file_operation: Option<Version>,
    sharing: Option<Sharing>,
    /// Entry versions that it refers to.
    named_entries: [Option<Reference>; 2],
}

/// Reads all operations.
pub(crate) fn read_logs(
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
                stage: MaintenanceStage::Operations,
            });
        }
        let sequence: i64 = row.get(0)?;
        let thread: i64 = row.get_ref(1)?.as_i64().unwrap_or(-1);
        let version: i64 = row.get_ref(2)?.as_i64().unwrap_or(-1);
        let log = logs.threads.entry(thread).or_default();
        log.thread = thread;
        let body = row.get_ref(4)?.as_blob().unwrap_or_default();
        if version == 0 && body.is_empty() {
            // The purge marker of a thread is a row without a body.
            log.purged = Some(sequence);
            return Ok(());
        }
        logs.operations += 1;
        let id = row.get_ref(3)?.as_blob().unwrap_or_default();
        let intact = checked(sequence, id, body).ok().map(|stored| IntactOperation {
            id: stored.id,
            thread: stored.operation.thread,
            version: stored.operation.version,
            previous: stored.operation.previous,
            step: LogStep::of(&stored.operation),
            link: Link::of(&stored.operation),
            after: stored.operation.after,
            environment: stored.operation.environment,
            files: stored.operation.files,
            last_file_operation: stored.operation.last_file_operation,
            sharing: Sharing::from_operation(&stored.operation.kind),
            named_entries: named_entries(&stored.operation.kind),
        });
        log.operations.push(OperationRow { sequence, version, intact });
        Ok(())
    })?;
    for log in logs.threads.values_mut() {
        log.operations.sort_by_key(|row| row.version);
        log.id = log.operations.iter().find_map(|row| row.intact.as_ref().map(|intact| intact.thread));
    }
    Ok(logs)
}

impl Logs {
    /// Operations that cannot be read.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Problem> {
        self.gaps.iter().map(|gap| Problem::RowsUnreadable {
            table: OPERATIONS.name,
            first: gap.first,
            last: gap.last,
        })
    }
}

impl IntactOperation {
    /// The content that it refers to.
    pub(crate) fn needs(&self) -> impl Iterator<Item = Reference> {
        let around = self.environment.map(|id| (Kind::Environment, id));
        let files = self.files.map(|files| [files.before, files.after].map(|id| (Kind::Snapshot, id)));
        let named_entries = self.named_entries.into_iter().flatten();
        [(Kind::State, self.after)]
            .into_iter()
            .chain(around)
            .chain(files.into_iter().flatten())
            .chain(named_entries)
    }
}

impl Log {
    pub(crate) fn thread_ref(&self) -> ThreadRef {
        ThreadRef { number: self.thread, id: self.id }
    }

    /// Intact operations, by version.
    pub(crate) fn intact(&self) -> impl Iterator<Item = (Version, &IntactOperation)> {
        self.operations.iter().filter_map(|row| Some((row.version as Version, row.intact.as_ref()?)))
    }

    /// The environments of its operations in order, without consecutive duplicates.
    pub(crate) fn environments(&self) -> Vec<ContentId> {
        let mut seen: Vec<ContentId> =
            self.intact().filter_map(|(_, operation)| operation.environment).collect();
        seen.dedup();
        seen
    }

    /// The sharing of the thread; `None` if it was never changed. The thread's row, which has a digest, takes
    /// precedence: an import adds sharing changes from elsewhere to the log without applying them here. If
    /// the row is lost, the log does not show the local setting, so a thread whose sharing was or may have
    /// been set becomes private.
    pub(crate) fn sharing(&self, queries: &Queries<'_>) -> Option<Sharing> {
        if let Ok(Some(row)) = queries.thread_by_number(self.thread) {
            return Some(row.summary.sharing());
        }
        let may_set = |row: &OperationRow| row.intact.as_ref().is_none_or(|intact| intact.sharing.is_some());
        self.operations.iter().any(may_set).then_some(Sharing::OWNER_ONLY)
    }

    /// Checks the log; returns whether it is complete, so that further checks make sense.
    pub(crate) fn check(&self, problems: &mut Vec<Problem>) -> bool {
        let before = problems.len();
        let thread = self.thread_ref();
        if self.purged.is_some() {
            problems.push(Problem::PurgedThreadHasLog { thread });
        }
        let mut expected: Version = 1;
        // Recompute the positions, so that one wrong position does not make all later ones wrong.
        let mut walk = LogWalk::default();
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
            let Some(operation) = &row.intact else {
                problems.push(Problem::OperationDamaged {
                    thread,
                    version: row.version,
                    sequence: row.sequence,
                });
                in_row = false;
                continue;
            };
            if in_row && let Some(problem) = walk.step(thread, version, operation) {
                problems.push(problem);
            }
        }
        problems.len() == before
    }
}

impl Log {
    /// Number of intact operations from the start of the log.
    pub(crate) fn intact_prefix(&self) -> usize {
        let mut walk = LogWalk::default();
        (1..)
            .zip(&self.operations)
            .take_while(|(version, row)| {
                let intact = row.intact.as_ref().filter(|_| row.version as Version == *version);
                intact.is_some_and(|intact| walk.step(self.thread_ref(), *version, intact).is_none())
            })
            .count()
    }
}

/// State of a walk through a log.
#[derive(Default)]
struct LogWalk {
    steps: Vec<LogStep>,
    after: Vec<ContentId>,
    last: Option<ContentId>,
    thread: Option<ThreadId>,
    /// The last operation that has files.
    last_file_operation: Option<Version>,
}

/// The log has no operation of that version.
struct NoSuchVersion;

impl history::OperationLog for LogWalk {
    type Error = NoSuchVersion;

    fn step(&self, version: Version) -> Result<LogStep, NoSuchVersion> {
        let index = version.checked_sub(1).ok_or(NoSuchVersion)?;
        self.steps.get(index as usize).cloned().ok_or(NoSuchVersion)
    }

    /// No check here needs the active take.
    fn active(&self, _: Version) -> Result<TakeId, NoSuchVersion> {
        Err(NoSuchVersion)
    }
}

impl LogWalk {
    /// Adds an operation and returns a problem with it, if any.
    fn step(&mut self, thread: ThreadRef, version: Version, operation: &IntactOperation) -> Option<Problem> {
        let belongs = *self.thread.get_or_insert(operation.thread) == operation.thread;
        let follows = operation.previous == self.last;
        let head = version - 1;
        let placed = operation.link.follows(self, head).unwrap_or(false);
        let step = if placed { operation.step.clone() } else { self.placeholder_step(head, operation) };
        // In old logs a move makes an old state current; in newer ones it creates a state, and a note changes
        // nothing.
        let leads = if !operation.step.is_not_undoable {
            true
        } else if operation.link.predates_chains() {
            let target = (step.place.position as usize).wrapping_sub(1);
            self.after.get(target).is_some_and(|after| *after == operation.after)
        } else {
            operation.link.is_move() || self.after.last() == Some(&operation.after)
        };
        self.last_file_operation = operation.files.map(|_| version).or(self.last_file_operation);
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
        } else if operation.last_file_operation != self.last_file_operation {
            Some(Problem::LastFileOperationWrong { thread, version })
        } else {
            None
        }
    }

    /// A valid step to use in place of an invalid one, so that one fault neither hides nor causes others.
    fn placeholder_step(&self, head: Version, operation: &IntactOperation) -> LogStep {
        let linked = link_note(self, head).ok();
        let (place, chains) = linked.map_or((FIRST, None), |(place, chains)| (place, Some(chains)));
        LogStep { place, chains, is_not_undoable: head > 0, ..operation.step.clone() }
    }
}
