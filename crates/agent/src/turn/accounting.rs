//! Requests, tokens and cost of a turn.

use retake_model::entry::Usage;

use super::AgentRuntime;

#[derive(Default)]
pub(super) struct Accounting {
    /// Number of model calls so far.
    pub(super) rounds: u32,
    pub(super) usage: Usage,
    pub(super) micro_dollars: Option<u64>,
}

impl Accounting {
    /// Adds the usage of an answer; returns its cost.
    pub(super) fn count(&mut self, runtime: &AgentRuntime, usage: Option<&Usage>) -> Option<u64> {
        let usage = usage?;
        self.usage.add(usage);
        let cost = runtime.prices.cost(Some(runtime.backend.provider()), runtime.backend.model(), usage)?;
        self.micro_dollars = Some(self.micro_dollars.unwrap_or_default().saturating_add(cost));
        Some(cost)
    }
}
