//! The calls of an answer, which run in batches.
//!
//! ```text
//!   answer: 1 2 3 … 100 │ 101 102 …        beyond the limit: results that say so, in the answer's operation
//!           ├──────┤├──────┤
//!           in the   later: derived from the conversation, not stored
//!           state
//! ```

use std::collections::{HashMap, HashSet};

use retake_model::agent::{AgentState, NamedCall, ToolOutcome, ToolRun, ToolStatus};
use retake_model::command::NewEntry;
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::operation::Version;

use super::driver::Driver;
use super::event::TurnEvent;
use super::session::TurnSession;
use super::{AgentRuntime, TurnError, calls, entries};
use crate::provider::Answer;
use crate::tools::{self, Call};

/// Maximum refused calls reported to observers.
const SHOWN: usize = 20;
/// Entries read at a time.
const PAGE: u64 = 200;

/// The calls of the last answer that are not in the state yet, and the input of all its calls.
#[derive(Default)]
pub(super) struct CallQueue {
    later: Vec<NamedCall>,
    known: Option<KnownCalls>,
    /// Whether a tool of this round ran that can change files, which is known before it is recorded.
    pub(super) may_have_changed: bool,
    /// Whether a tool of this round changed files.
    pub(super) has_changed: bool,
}

/// The calls of the current answer at a version of the thread.
struct KnownCalls {
    version: Version,
    calls: HashMap<String, (Call, Option<String>)>,
}

/// The calls of an answer that run, and the results of the others.
pub(super) struct AdmittedCalls {
    pub(super) calls: Vec<NamedCall>,
    pub(super) results: Vec<NewEntry>,
    /// Events for calls over the limit, emitted once the answer is on disk.
    pub(super) events: Vec<TurnEvent>,
}

impl CallQueue {
    pub(super) fn later(&self) -> &[NamedCall] {
        &self.later
    }

    /// Queues the calls of a new answer. Those that start are removed when the state has them.
    pub(super) fn queue(&mut self, calls: Vec<NamedCall>) {
        self.later = calls;
    }

    /// Follows a published step of this driver.
    pub(super) fn follow(&mut self, state: &AgentState, version: Version) {
        match state {
            AgentState::Executing { calls } => {
                self.later.retain(|(call, _)| calls.iter().all(|run| run.call != *call));
            }
            AgentState::PostTools { .. } => self.later.clear(),
            _ => {
                self.later.clear();
                (self.may_have_changed, self.has_changed) = (false, false);
            }
        }
        // The driver's own steps do not change the answer. After a change by another writer, it is read
        // again.
        if let Some(known) = self.known.as_mut().filter(|known| known.version + 1 == version) {
            known.version = version;
        }
    }

    /// Finds the calls that have not run yet after another process started the turn.
    pub(super) fn recall(
        &mut self,
        runtime: &AgentRuntime,
        session: &TurnSession,
        state: &AgentState,
    ) -> Result<(), TurnError> {
        // The files that a killed process recorded are not counted again, so they are assumed to have changed.
        let ran = |run: &&ToolRun| matches!(run.status, ToolStatus::Running | ToolStatus::Completed { .. });
        self.has_changed = state.calls().iter().filter(ran).any(|run| tools::may_write(&run.name));
        self.may_have_changed = self.has_changed;
        let known_calls: HashSet<&str> = state.calls().iter().map(|run| run.call.as_str()).collect();
        if known_calls.is_empty() {
            return Ok(());
        }
        let reader = runtime.timeline.read()?;
        let take = session.read_take(&reader)?;
        let (mut ended, mut end) = (HashSet::new(), take.entries.len());
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            for view in reader.entries(session.thread(), &take).page(start..end)?.into_iter().rev() {
                let made = calls_of(&view.entry);
                if made.iter().any(|(call, _)| known_calls.contains(call.as_str())) {
                    let open =
                        |(call, _): &NamedCall| !known_calls.contains(call.as_str()) && !ended.contains(call);
                    self.later = unique(made).into_iter().filter(open).collect();
                    return Ok(());
                }
                for block in view.entry.blocks {
                    if let Block::ToolResult { call, .. } = block {
                        ended.insert(call);
                    }
                }
            }
            end = start;
        }
        Ok(())
    }
}

/// Accepts the calls of an answer up to the limit, and creates results for the others.
pub(super) fn admit(runtime: &AgentRuntime, answer: &Answer) -> AdmittedCalls {
    let mut calls = unique(answer.blocks.iter().filter_map(named).collect());
    let limit = runtime.calls;
    let over = calls.split_off(calls.len().min(limit));
    let text = format!("Not run: at most {limit} tool calls of one answer run. Make this call again.");
    let now = runtime.timeline.now();
    let refused = |(call, _): &NamedCall| entries::result(call, text.clone(), true, Fields::default(), now);
    let results = over.iter().map(|call| refused(call).into()).collect();
    let ended = |(call, tool)| TurnEvent::ToolEnded {
        call,
        tool,
        outcome: ToolOutcome::Denied,
        text: text.clone(),
        files: 0,
    };
    AdmittedCalls { calls, results, events: over.into_iter().take(SHOWN).map(ended).collect() }
}

impl Driver<'_> {
    /// The tool and input of a call, with the error if its input was cut off. Reads the answer once, and
    /// again only after another writer changed the thread.
    pub(super) fn call_of(&mut self, call: &str) -> Result<Option<(Call, Option<String>)>, TurnError> {
        let version = self.publisher.newest(&self.session)?;
        if let Some(known) = self.calls.known.as_ref().filter(|known| known.version == version)
            && let Some(found) = known.calls.get(call)
        {
            return Ok(Some(found.clone()));
        }
        let reader = self.runtime.timeline.read()?;
        let take = self.session.read_take(&reader)?;
        let Some(entry) = calls::find(&reader, self.session.thread(), &take, call)? else {
            return Ok(None);
        };
        let mut calls = HashMap::new();
        for block in &entry.blocks {
            if let Some((call, broken)) = calls::read(block) {
                calls.entry(call.id.clone()).or_insert((call, broken));
            }
        }
        let found = calls.get(call).cloned();
        self.calls.known = Some(KnownCalls { version, calls });
        Ok(found)
    }
}

fn unique(calls: Vec<NamedCall>) -> Vec<NamedCall> {
    // Calls with the same id cannot be distinguished: the second never runs.
    let mut seen = HashSet::new();
    calls.into_iter().filter(|(call, _)| seen.insert(call.clone())).collect()
}

fn calls_of(entry: &EntryVersion) -> Vec<NamedCall> {
    entry.blocks.iter().filter_map(named).collect()
}

fn named(block: &Block) -> Option<NamedCall> {
    match block {
        Block::ToolCall { call, name, .. } => Some((call.clone(), name.clone())),
        _ => None,
    }
}
