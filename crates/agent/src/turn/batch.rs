//! Runs the calls of an answer in batches.
//!
//! ```text
//!   answer: 1 2 3 … 100 │ 101 102 …        beyond the limit: results that say so, in the answer's operation
//!           ├──────┤├──────┤
//!           in the   later: derived from the conversation, not stored
//!           state
//! ```
//!
//! The state of a turn is written at each step. It has one batch of calls, so that the cost of a step does
//! not depend on the number of calls.

use std::collections::{HashMap, HashSet};

use retake_model::agent::ToolOutcome;
use retake_model::command::NewEntry;
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::operation::Version;

use super::driver::Driver;
use super::event::TurnEvent;
use super::{TurnError, calls, entries};
use crate::tools::Call;

/// Calls in the state of a turn.
pub(super) const BATCH: usize = 16;
/// Maximum refused calls reported to observers.
const SHOWN: usize = 20;
/// Entries read at a time.
const PAGE: u64 = 200;

/// The id of a call and the name of its tool.
pub(super) type NamedCall = (String, String);

/// The calls of the current answer at a version of the thread.
pub(super) struct KnownCalls {
    pub(super) version: Version,
    calls: HashMap<String, (Call, Option<String>)>,
}

impl Driver<'_> {
    /// Accepts the calls of an answer: returns the first batch, and results for calls over the limit. Queues
    /// the rest.
    pub(super) fn admit(&mut self, calls: Vec<NamedCall>) -> (Vec<NamedCall>, Vec<NewEntry>) {
        let mut calls = unique(calls);
        let over = calls.split_off(calls.len().min(self.runtime.calls));
        let limit = self.runtime.calls;
        let text = format!("Not run: at most {limit} tool calls of one answer run. Make this call again.");
        let now = self.runtime.timeline.now();
        let refused =
            |(call, _): &NamedCall| entries::result(call, text.clone(), true, Fields::default(), now);
        let results: Vec<NewEntry> = over.iter().map(|call| refused(call).into()).collect();
        for (call, tool) in over.into_iter().take(SHOWN) {
            let outcome = ToolOutcome::Denied;
            self.refused.push(TurnEvent::ToolEnded { call, tool, outcome, text: text.clone(), files: 0 });
        }
        self.later = calls.into();
        (self.next_batch().unwrap_or_default(), results)
    }

    /// The next batch of calls, if any.
    pub(super) fn next_batch(&mut self) -> Option<Vec<NamedCall>> {
        let count = self.later.len().min(BATCH);
        (count > 0).then(|| self.later.drain(..count).collect())
    }

    /// Finds the calls that have not run yet after another process started the turn.
    pub(super) fn recall_later(&mut self) -> Result<(), TurnError> {
        let held: HashSet<&str> = self.state.calls().iter().map(|run| run.call.as_str()).collect();
        if held.is_empty() {
            return Ok(());
        }
        let reader = self.runtime.timeline.read()?;
        let state = reader.state(self.thread)?;
        let take = state.take(&reader.queries(), self.take)?.ok_or(TurnError::NoSuchTake)?;
        let (mut ended, mut end) = (HashSet::new(), take.entries.len());
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            for view in reader.entries(self.thread, &take).page(start..end)?.into_iter().rev() {
                let made = calls_of(&view.entry);
                if made.iter().any(|(call, _)| held.contains(call.as_str())) {
                    let open = |(call, _): &NamedCall| !held.contains(call.as_str()) && !ended.contains(call);
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

    /// The tool and input of a call, with the error if its input was cut off. Reads the answer once, and
    /// again only after another writer changed the thread.
    pub(super) fn call_of(&mut self, call: &str) -> Result<Option<(Call, Option<String>)>, TurnError> {
        let version = self.newest()?;
        if let Some(known) = self.known.as_ref().filter(|known| known.version == version)
            && let Some(found) = known.calls.get(call)
        {
            return Ok(Some(found.clone()));
        }
        let reader = self.runtime.timeline.read()?;
        let state = reader.state(self.thread)?;
        let take = state.take(&reader.queries(), self.take)?.ok_or(TurnError::NoSuchTake)?;
        let Some(entry) = calls::find(&reader, self.thread, &take, call)? else { return Ok(None) };
        let mut calls = HashMap::new();
        for block in &entry.blocks {
            if let Some((call, broken)) = calls::read(block) {
                calls.entry(call.id.clone()).or_insert((call, broken));
            }
        }
        let found = calls.get(call).cloned();
        self.known = Some(KnownCalls { version, calls });
        Ok(found)
    }
}

fn unique(calls: Vec<NamedCall>) -> Vec<NamedCall> {
    // Calls with the same id cannot be distinguished: the second never runs.
    let mut seen = HashSet::new();
    calls.into_iter().filter(|(call, _)| seen.insert(call.clone())).collect()
}

fn calls_of(entry: &EntryVersion) -> Vec<NamedCall> {
    let named = |block: &Block| match block {
        Block::ToolCall { call, name, .. } => Some((call.clone(), name.clone())),
        _ => None,
    };
    entry.blocks.iter().filter_map(named).collect()
}
