//! Reads the turns of a take: what each prompt led to.
//!
//! A turn is one prompt to the agent with everything that followed from it. Turns are numbered from 1 within a take, along
//! its history: an undone turn has no number, and a take continues the numbers of the take that it was forked from. They are
//! derived from the log (`index.rs`), so that nothing is stored for them.

pub(crate) mod index;

use std::collections::BTreeSet;
use std::sync::Arc;

use retake_model::agent::ToolOutcome;
use retake_model::content::ContentId;
use retake_model::entry::{EntryVersion, Usage, preview};
use retake_model::history::RouteStep;
use retake_model::id::{EntryId, TakeId, TurnId};
use retake_model::object::{ObjectError, load};
use retake_model::operation::{AddedEntries, Operation, OperationKind, TurnStep, Version};
use retake_model::path::RootPath;
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use retake_store::StoreError;
use serde::Serialize;

use self::index::TurnSpan;
use crate::files::changes::changed_paths;
use crate::read::history::HistoryReader;
use crate::working_copy::files_of_take;
use crate::{FindError, HistoryMove, ReadError, Reader};

/// The prefix of a revision that is a turn.
pub const TURN: &str = "turn:";
/// How many files of a turn are listed.
const MAX_FILES: usize = 100;

/// A turn of a take.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TurnOfTake"))]
pub struct Turn {
    /// Its number and the beginning of its prompt.
    #[serde(flatten)]
    pub name: TurnName,
    /// Its identity.
    pub turn: TurnId,
    /// The take in which it ran: this one, or one that this was forked from.
    pub take: TakeId,
    /// The version of its first operation.
    pub first: Version,
    /// The version of its last operation: the revision `turn:NUMBER`.
    pub last: Version,
    /// How it ended.
    pub status: TurnStatus,
    /// When it started.
    pub started: Timestamp,
    /// When its last operation was made.
    pub ended: Timestamp,
    /// Number of operations.
    pub operations: u64,
    /// The entry with the prompt.
    pub entry: Option<EntryId>,
    /// The entries that it added, the prompt included.
    pub entries: Vec<EntryId>,
    /// Number of tool calls that ran.
    pub calls: u64,
    /// The files that it changed, by path; at most 100.
    pub files: Vec<RootPath>,
    /// Number of files that it changed.
    pub file_count: u64,
    /// Tokens of its answers.
    pub usage: Usage,
    /// Their cost in millionths of a dollar; `null` if the price of one is unknown.
    pub micro_dollars: Option<u64>,
    /// Models that answered.
    pub models: Vec<String>,
}

/// The number of a turn with the beginning of its prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnName {
    /// The number in its take, from 1.
    pub number: u64,
    /// The beginning of the prompt, on one line; empty if it was redacted.
    pub prompt: String,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StatusOfTurn"))]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model answered.
    Finished,
    /// It failed.
    Failed,
    /// The user stopped it, or its process exited.
    Interrupted,
    /// It runs, waits for an approval, or its process was killed.
    Unfinished,
}

impl std::fmt::Display for TurnName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "turn {}", self.number)?;
        if self.prompt.is_empty() { Ok(()) } else { write!(formatter, " \"{}\"", self.prompt) }
    }
}

/// The turns of a take at one version of the thread.
pub struct Turns<'reader> {
    reader: &'reader Reader<'reader>,
    number: i64,
    take: TakeId,
    spans: Arc<Vec<TurnSpan>>,
}

impl<'reader> HistoryReader<'reader> {
    /// The turns of the take.
    pub fn turns(&self) -> Result<Turns<'reader>, ReadError> {
        self.turns_at(self.reader.thread(self.thread)?.summary.version)
    }

    /// The turns of the take after an operation.
    pub fn turns_at(&self, version: Version) -> Result<Turns<'reader>, ReadError> {
        let (reader, thread) = (self.reader, self.thread);
        let number = reader.thread(thread)?.number;
        let take = match self.take {
            Some(take) => take,
            None => reader.state_at(thread, version)?.active,
        };
        let spans = reader.turn_cache().spans(&reader.queries(), (thread, number), take, version)?;
        Ok(Turns { reader, number, take, spans })
    }

    /// The version that a text names: a number, a saved version or `turn:NUMBER`.
    pub fn version_named(&self, text: &str) -> Result<Version, FindError> {
        let text = text.trim();
        if let Some(turn) = text.strip_prefix(TURN) {
            return Ok(self.turns()?.find(turn)?.last);
        }
        if let Ok(version) = text.parse() {
            // Fails if the version does not exist.
            self.reader.state_at(self.thread, version)?;
            return Ok(version);
        }
        self.saved(text)?.ok_or_else(|| FindError::NoVersion(text.to_owned()))
    }
}

impl<'reader> HistoryReader<'reader> {
    /// The turns that an undo or a jump took back, newest first, or that a redo brought back, oldest first.
    pub fn turns_moved(&self, moved: &HistoryMove) -> Result<Vec<TurnName>, ReadError> {
        if !moved.done.changed() {
            return Ok(Vec::new());
        }
        let queries = self.reader.queries();
        let number = self.reader.thread(self.thread)?.number;
        let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
        let mut before: Option<Turns<'reader>> = None;
        for step in &moved.route {
            let Some(found) = queries.operation(number, step.version())? else { continue };
            let turn = found.operation.turn;
            // Only the start of a turn takes its prompt back or brings it back.
            let starts = matches!(
                found.operation.kind,
                OperationKind::TurnAdvanced { step: TurnStep::Started { .. }, .. }
            );
            if !starts || !seen.insert(turn) {
                continue;
            }
            let version = match step {
                RouteStep::Back(_) => moved.done.version.saturating_sub(1),
                RouteStep::Forward(_) => moved.done.version,
            };
            let take = found.operation.kind.take().or(found.operation.kind.created_take());
            let is_same = before.as_ref().is_some_and(|turns| Some(turns.take) == take);
            if !is_same {
                before = Some(self.in_take(take).turns_at(version)?);
            }
            if let Some(turns) = &before {
                names.extend(turns.name_of(turn)?);
            }
        }
        Ok(names)
    }
}

impl HistoryReader<'_> {
    /// The turns whose prompts a move along a route would take back or bring back, before the move.
    pub(crate) fn turns_on_route(&self, route: &[RouteStep]) -> Result<Vec<TurnName>, ReadError> {
        let queries = self.reader.queries();
        let number = self.reader.thread(self.thread)?.number;
        let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
        // The takes on the route, with the number of turns that each has at this point of it.
        let mut takes: Vec<(Turns<'_>, u64)> = Vec::new();
        for step in route {
            // Edits that the request would record first are not in the log yet.
            let Some(found) = queries.operation(number, step.version())? else { continue };
            let operation = found.operation;
            let back = matches!(step, RouteStep::Back(_));
            let starts =
                matches!(operation.kind, OperationKind::TurnAdvanced { step: TurnStep::Started { .. }, .. });
            if !starts || !seen.insert(operation.turn) {
                continue;
            }
            let Some(take) = operation.kind.take().or(operation.kind.created_take()) else { continue };
            let known = takes.iter().position(|(turns, _)| turns.take == take);
            let index = known.unwrap_or(takes.len());
            if known.is_none() {
                // As of the operation itself: the turn is the last one there, and the take exists, even if it was undone.
                let turns = self.in_take(Some(take)).turns_at(operation.version)?;
                let count = if back { turns.count() } else { turns.count().saturating_sub(1) };
                takes.push((turns, count));
            }
            let (turns, count) = &mut takes[index];
            let position = if back { *count } else { *count + 1 };
            *count = if back { position.saturating_sub(1) } else { position };
            names.push(TurnName { number: position, prompt: turns.prompt(&operation)? });
        }
        Ok(names)
    }
}

impl Turns<'_> {
    /// Number of turns.
    pub fn count(&self) -> u64 {
        self.spans.len() as u64
    }

    /// Turns with a number below `before` (or all), newest first, at most `limit`.
    pub fn list(&self, before: Option<u64>, limit: usize) -> Result<Vec<Turn>, ReadError> {
        let end = before.map_or(self.count(), |before| before.saturating_sub(1)).min(self.count());
        (1..=end).rev().take(limit).map(|number| self.read(number)).collect()
    }

    /// The turn that a text names: its number, or `last`.
    pub fn find(&self, text: &str) -> Result<Turn, FindError> {
        let number = self.find_number(text)?;
        Ok(self.read(number)?)
    }

    /// The number and prompt of a turn by its identity; `None` if it is not in this take or undone.
    pub fn name_of(&self, turn: TurnId) -> Result<Option<TurnName>, ReadError> {
        let found = self.spans.iter().rposition(|span| span.turn == turn);
        found.map(|index| self.name(index as u64 + 1)).transpose()
    }

    /// The files before a turn started and after its last operation; `None` if none are recorded.
    pub(crate) fn files(&self, number: u64) -> Result<Option<(ContentId, ContentId)>, ReadError> {
        let span = self.span(number);
        let started = self.operation(span.started)?;
        // A take that was forked for the turn has files only from then on.
        let forked = started.kind.created_take().is_some();
        let before = if forked { started } else { self.operation(span.first.saturating_sub(1).max(1))? };
        let queries = self.reader.queries();
        let files = |operation: &Operation| files_of_take(&queries, self.number, operation, span.take);
        let after = files(&self.operation(span.last)?)?;
        let Some(after) = after else { return Ok(None) };
        Ok(Some((files(&before)?.unwrap_or(after), after)))
    }

    /// The paths that a turn changed itself, without those that others changed meanwhile.
    pub(crate) fn changed_files(&self, number: u64) -> Result<BTreeSet<RootPath>, ReadError> {
        let mut changed = BTreeSet::new();
        for operation in self.operations(self.span(number))? {
            changed.extend(self.files_of(&operation)?);
        }
        Ok(changed)
    }

    /// The paths that an operation changed, former names included. A fork changes none itself.
    fn files_of(&self, operation: &Operation) -> Result<Vec<RootPath>, ReadError> {
        let made = operation.files.filter(|files| files.before != files.after);
        let Some(files) = made.filter(|_| operation.kind.created_take().is_none()) else {
            return Ok(Vec::new());
        };
        let changed = changed_paths(&self.reader.queries(), files.before, files.after)?;
        let names = changed.into_iter().flat_map(|(root, change)| {
            let names = std::iter::once(change.path).chain(change.from);
            names.map(move |path| RootPath { root: root.clone(), path })
        });
        Ok(names.collect())
    }

    /// The number of the turn that a text names.
    pub(crate) fn find_number(&self, text: &str) -> Result<u64, FindError> {
        let number = match text.trim() {
            "last" => Some(self.count()),
            text => text.parse().ok(),
        };
        number
            .filter(|number| (1..=self.count()).contains(number))
            .ok_or_else(|| FindError::NoTurn { text: text.trim().to_owned(), count: self.count() })
    }

    /// The version of the last operation of a turn that exists.
    pub(crate) fn last(&self, number: u64) -> Version {
        self.span(number).last
    }

    /// The number and prompt of a turn that exists.
    pub(crate) fn name(&self, number: u64) -> Result<TurnName, ReadError> {
        let started = self.operation(self.span(number).started)?;
        Ok(TurnName { number, prompt: self.prompt(&started)? })
    }

    /// The beginning of the prompt that an operation added.
    fn prompt(&self, started: &Operation) -> Result<String, ReadError> {
        Ok(match self.added(started)?.last() {
            Some((_, Some(entry))) => preview(&entry.text()),
            _ => String::new(),
        })
    }

    fn span(&self, number: u64) -> &TurnSpan {
        let index = usize::try_from(number - 1).expect("numbers come from the length of the list");
        &self.spans[index]
    }

    fn operation(&self, version: Version) -> Result<Operation, ReadError> {
        let missing = || StoreError::Damaged(format!("operation {version} is missing"));
        let found = self.reader.queries().operation(self.number, version)?;
        Ok(found.ok_or_else(missing)?.operation)
    }

    /// The entries that an operation added; without content where it was redacted.
    fn added(&self, operation: &Operation) -> Result<Vec<(EntryId, Option<EntryVersion>)>, ReadError> {
        let queries = self.reader.queries();
        let Some(AddedEntries { entry, version, count, position }) = operation.kind.added() else {
            return Ok(Vec::new());
        };
        let content = |version| match load(&queries, version) {
            Ok(entry) => Ok(Some(entry)),
            Err(ObjectError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        if count == 1 {
            return Ok(vec![(entry, content(version)?)]);
        }
        let state: ThreadState = load(&queries, operation.after)?;
        let take = operation.kind.take().or(operation.kind.created_take()).unwrap_or(self.take);
        let Some(take) = state.take(&queries, take)? else { return Ok(Vec::new()) };
        let cells = take.entries.page(&queries, position..position.saturating_add(count))?;
        cells.into_iter().map(|cell| Ok((cell.entry, content(cell.version)?))).collect()
    }

    /// Everything about a turn that exists.
    fn read(&self, number: u64) -> Result<Turn, ReadError> {
        let span = *self.span(number);
        let queries = self.reader.queries();
        let mut operations = self.operations(&span)?;
        operations.reverse();
        let mut found = Summary::default();
        let mut entry = None;
        for operation in &operations {
            for (id, added) in self.added(operation)? {
                found.entries.push(id);
                if let Some(added) = &added {
                    found.count(added);
                }
                if operation.version == span.started {
                    entry = Some(id);
                }
            }
            if let OperationKind::TurnAdvanced { step, .. } = &operation.kind {
                found.advance(step);
            }
            if let Some(files) = operation.files.filter(|files| files.before != files.after)
                && operation.kind.created_take().is_none()
            {
                let changed = changed_paths(&queries, files.before, files.after)?;
                found
                    .files
                    .extend(changed.into_iter().map(|(root, change)| RootPath { root, path: change.path }));
            }
        }
        let last = self.operation(span.last)?;
        let state: ThreadState = load(&queries, last.after)?;
        let runs = state
            .take(&queries, span.take)?
            .and_then(|take| take.agent)
            .is_some_and(|agent| agent.turn == span.turn && found.status == TurnStatus::Finished);
        let started = operations.first().map_or(last.time, |first| first.time);
        Ok(Turn {
            name: self.name(number)?,
            turn: span.turn,
            take: span.take,
            first: span.first,
            last: span.last,
            status: if runs { TurnStatus::Unfinished } else { found.status },
            started,
            ended: last.time,
            operations: span.operations,
            entry,
            entries: found.entries,
            calls: found.calls,
            file_count: found.files.len() as u64,
            files: found.files.into_iter().take(MAX_FILES).collect(),
            usage: found.usage,
            micro_dollars: (!found.unpriced).then_some(found.micro_dollars),
            models: found.models,
        })
    }

    /// The operations of a turn in its take, newest first.
    fn operations(&self, span: &TurnSpan) -> Result<Vec<Operation>, ReadError> {
        let mut found = Vec::new();
        let mut version = span.last;
        while version > span.started {
            let operation = self.operation(version)?;
            version = operation.place.parent;
            if operation.turn == span.turn {
                found.push(operation);
            }
        }
        found.push(self.operation(span.started)?);
        Ok(found)
    }
}

/// The sums over the operations of a turn.
struct Summary {
    status: TurnStatus,
    entries: Vec<EntryId>,
    calls: u64,
    files: BTreeSet<RootPath>,
    usage: Usage,
    micro_dollars: u64,
    unpriced: bool,
    models: Vec<String>,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            status: TurnStatus::Finished,
            entries: Vec::new(),
            calls: 0,
            files: BTreeSet::new(),
            usage: Usage::default(),
            micro_dollars: 0,
            unpriced: false,
            models: Vec::new(),
        }
    }
}

impl Summary {
    fn count(&mut self, entry: &EntryVersion) {
        let Some(model) = &entry.model else { return };
        if !self.models.contains(model) {
            self.models.push(model.clone());
        }
        if let Some(usage) = &entry.usage {
            self.usage.add(usage);
        }
        match entry.micro_dollars() {
            Some(cost) => self.micro_dollars = self.micro_dollars.saturating_add(cost),
            // The built-in assistant reports no tokens and costs nothing.
            None => self.unpriced |= entry.provider().as_deref() != Some("offline"),
        }
    }

    fn advance(&mut self, step: &TurnStep) {
        match step {
            TurnStep::Failed { .. } => self.status = TurnStatus::Failed,
            TurnStep::Interrupted => self.status = TurnStatus::Interrupted,
            TurnStep::ToolEnded { outcome, .. } => {
                self.calls += u64::from(!matches!(outcome, ToolOutcome::Denied));
                self.status = TurnStatus::Finished;
            }
            _ => self.status = TurnStatus::Finished,
        }
    }
}
