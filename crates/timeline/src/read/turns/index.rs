//! Finds the turns of a take in the log, and remembers them.
//!
//! Walks the chain of the take together with that of the thread, newest first. At the operation that created the take the
//! walk continues in the take that it was forked from, whose turns up to the fork belong to both:
//!
//! ```text
//!   main      1 ── 2 ── 3 ── 4          turns of retry: 1, 2, 3'
//!                  └─ retry ─ 3'
//! ```
//!
//! An operation never changes, nor do those before it, so an earlier result is continued from the first turn whose last
//! operation the walk meets again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_model::content::ContentId;
use retake_model::history::{OperationLog as _, take_position, thread_position};
use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::object::load;
use retake_model::operation::{Operation, OperationKind, TurnStep, Version};
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_store::{Queries, StoreError, StoredOperation};

use crate::ReadError;

/// Operations to read at a time.
const PAGE: usize = 500;
/// Takes to remember.
const MAX_REMEMBERED: usize = 16;

/// The operations of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnSpan {
    pub(crate) turn: TurnId,
    /// The take in which it ran.
    pub(crate) take: TakeId,
    /// Its first operation.
    pub(crate) first: Version,
    /// The operation that added the prompt.
    pub(crate) started: Version,
    /// Its last operation.
    pub(crate) last: Version,
    last_id: ContentId,
    pub(crate) operations: u64,
}

/// The turns of takes.
type KnownTurns = HashMap<(ThreadId, TakeId), Arc<Vec<TurnSpan>>>;

/// The turns of takes, as last read.
#[derive(Debug, Default)]
pub(crate) struct TurnCache(Mutex<KnownTurns>);

impl TurnCache {
    /// The turns of a take after an operation, oldest first.
    pub(crate) fn spans(
        &self,
        queries: &Queries<'_>,
        (thread, number): (ThreadId, i64),
        take: TakeId,
        head: Version,
    ) -> Result<Arc<Vec<TurnSpan>>, ReadError> {
        let known = self.lock().get(&(thread, take)).cloned().unwrap_or_default();
        let spans = Walk::new(queries, number, take, head)?.spans(&known)?;
        if spans == *known {
            return Ok(known);
        }
        let spans = Arc::new(spans);
        let mut remembered = self.lock();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert((thread, take), spans.clone());
        Ok(spans)
    }

    fn lock(&self) -> MutexGuard<'_, KnownTurns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn whose first operation the walk has not reached.
struct OpenTurn {
    last: Version,
    last_id: ContentId,
    operations: u64,
}

struct Walk<'walk, 'transaction> {
    queries: &'walk Queries<'transaction>,
    number: i64,
    /// The take, and the newest operations of its chain and of the thread's that are still to be read.
    take: TakeId,
    take_at: Version,
    thread_at: Version,
    /// The entries with which a later take was forked from this one, until a turn that both share.
    fork: Option<Take>,
    page: Vec<StoredOperation>,
}

impl<'walk, 'transaction> Walk<'walk, 'transaction> {
    fn new(
        queries: &'walk Queries<'transaction>,
        number: i64,
        take: TakeId,
        head: Version,
    ) -> Result<Self, ReadError> {
        let log = queries.log(number);
        let take_at = take_position(&log, head, take)?.position;
        let thread_at = thread_position(&log.step(head)?, head).position;
        Ok(Self { queries, number, take, take_at, thread_at, fork: None, page: Vec::new() })
    }

    /// The turns, oldest first, continuing an earlier result.
    fn spans(mut self, known: &[TurnSpan]) -> Result<Vec<TurnSpan>, ReadError> {
        let ends: HashMap<ContentId, usize> =
            known.iter().enumerate().map(|(index, span)| (span.last_id, index)).collect();
        let mut open: HashMap<TurnId, OpenTurn> = HashMap::new();
        let mut newer: Vec<TurnSpan> = Vec::new();
        let mut older: Vec<TurnSpan> = Vec::new();
        while let Some(stored) = self.next()? {
            let known_end = ends.get(&stored.id).filter(|_| self.fork.is_none());
            if let Some(&end) = known_end {
                older = known[..=end].to_vec();
                break;
            }
            let operation = &stored.operation;
            if self.belongs(operation) {
                let turn = open.entry(operation.turn).or_insert(OpenTurn {
                    last: operation.version,
                    last_id: stored.id,
                    operations: 0,
                });
                turn.operations += 1;
                if starts_turn(operation) {
                    let turn = open.remove(&operation.turn);
                    newer.extend(self.span(operation, turn)?);
                } else if let Some(span) = newer.last_mut().filter(|span| span.turn == operation.turn) {
                    // Settings of the request are set just before its prompt.
                    open.remove(&operation.turn);
                    (span.first, span.operations) = (operation.version, span.operations + 1);
                }
            }
            if operation.kind.created_take() == Some(self.take) {
                self.continue_in_source(operation)?;
            }
        }
        for span in &mut older {
            // A turn that failed was resumed later.
            if let Some(later) = open.remove(&span.turn) {
                (span.last, span.last_id) = (later.last, later.last_id);
                span.operations += later.operations;
            }
        }
        older.extend(newer.into_iter().rev());
        Ok(older)
    }

    /// The next older operation of the two chains.
    fn next(&mut self) -> Result<Option<StoredOperation>, ReadError> {
        let version = self.take_at.max(self.thread_at);
        if version == 0 {
            return Ok(None);
        }
        let stored = self.read(version)?;
        let parent = stored.operation.place.parent;
        if version == self.take_at {
            self.take_at = parent;
        } else {
            self.thread_at = parent;
        }
        Ok(Some(stored))
    }

    fn read(&mut self, version: Version) -> Result<StoredOperation, StoreError> {
        let found = self.page.first().and_then(|newest| {
            let back = newest.operation.version.checked_sub(version)?;
            self.page.get(usize::try_from(back).ok()?).cloned()
        });
        if let Some(found) = found {
            return Ok(found);
        }
        self.page = self.queries.operations_back(self.number, version, PAGE)?;
        let missing = || StoreError::Damaged(format!("operation {version} is missing"));
        self.page.first().cloned().ok_or_else(missing)
    }

    /// Whether an operation of the two chains changed this take. Logs of older versions have one chain for all takes.
    fn belongs(&self, operation: &Operation) -> bool {
        match (&operation.kind, operation.chains.as_ref().and_then(|chains| chains.take)) {
            (OperationKind::TurnAdvanced { take, .. }, _) => *take == self.take,
            (_, Some(take)) => take == self.take,
            (kind, None) => match kind.take().or(operation.files.map(|files| files.take)) {
                Some(take) => take == self.take,
                None => true,
            },
        }
    }

    /// The turn that an operation started; `None` if a later take was forked before it.
    fn span(&mut self, operation: &Operation, open: Option<OpenTurn>) -> Result<Option<TurnSpan>, ReadError> {
        let Some(OpenTurn { last, last_id, operations }) = open else { return Ok(None) };
        if let (Some(fork), Some(added)) = (&self.fork, operation.kind.added()) {
            if fork.entries.find(self.queries, added.entry.bytes())?.is_none() {
                return Ok(None);
            }
            // The turns before a shared one are shared too.
            self.fork = None;
        }
        Ok(Some(TurnSpan {
            turn: operation.turn,
            take: self.take,
            first: operation.version,
            started: operation.version,
            last,
            last_id,
            operations,
        }))
    }

    fn continue_in_source(&mut self, created: &Operation) -> Result<(), ReadError> {
        let from = match &created.kind {
            OperationKind::TakeBranched { from, .. } | OperationKind::TakeForked { from, .. } => *from,
            OperationKind::TurnAdvanced { step: TurnStep::Started { forked: Some(origin) }, .. } => {
                origin.from
            }
            _ => return Ok(()),
        };
        if self.fork.is_none() {
            let state: ThreadState = load(self.queries, created.after)?;
            self.fork = state.take(self.queries, self.take)?;
        }
        let log = self.queries.log(self.number);
        self.take_at = take_position(&log, created.version - 1, from)?.position;
        self.take = from;
        Ok(())
    }
}

/// Whether an operation is the start of an agent's turn.
fn starts_turn(operation: &Operation) -> bool {
    matches!(operation.kind, OperationKind::TurnAdvanced { step: TurnStep::Started { .. }, .. })
}
