//! Projects random histories for every provider: no request may break a rule of its provider.
//!
//! ```text
//!   seed ──► a random history ──► four requests, one per wire ──► the rules: no violation
//!                                            │
//!                                            └─► broken on purpose ──► the rules: at least 999 of 1000 are caught
//! ```
//!
//! [`retake_testing::projection::campaign`] does the work, on all cores. The rules follow the providers' documentation
//! and share no code with the encoders. The control is an encoder without the care for pairs and order that makes a
//! request valid.

use std::ops::Range;
use std::thread;

use retake_model::entry::{Block, RoleKind};
use retake_model::projection::{Wire, rules};
use retake_testing::projection::campaign::{self, BoundSummary, Mistake, Summary, campaign};
use retake_testing::projection::sample::{Entry, random_entries};
use serde_json::{Value, json};

use crate::violation::{CampaignError, Violation};

/// Minimum number of detected requests per thousand broken ones.
const MIN_CAUGHT_PER_THOUSAND: u64 = 999;

/// Tests histories from this seed on.
pub fn project(seed: u64, histories: u64) -> Result<Summary, CampaignError> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64).min(histories.max(1));
    let part = |core: u64| -> Range<u64> {
        let at = |core: u64| seed.saturating_add(histories * core / cores);
        at(core)..at(core + 1)
    };
    let parts = thread::scope(|scope| {
        let running: Vec<_> = (0..cores).map(|core| scope.spawn(move || campaign(part(core)))).collect();
        running.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut all = Summary::default();
    for part in parts {
        let part = part.map_err(|_| CampaignError::trouble("the campaign panicked"))?.map_err(|failure| {
            Violation { campaign: "projection", seed: failure.seed, step: 1, what: failure.to_string() }
        })?;
        all.histories += part.histories;
        all.requests += part.requests;
        all.mutants += part.mutants;
        all.caught += part.caught;
    }
    if all.caught * 1000 < all.mutants * MIN_CAUGHT_PER_THOUSAND {
        let what = format!("only {} of {} broken requests were caught", all.caught, all.mutants);
        return Err(Violation { campaign: "projection", seed, step: histories, what }.into());
    }
    Ok(all)
}

/// Runs that many conversations, from a seed on, with a model that binds its thoughts.
pub fn bind(seed: u64, histories: u64) -> Result<BoundSummary, CampaignError> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64).min(histories.max(1));
    let at = |core: u64| seed.saturating_add(histories * core / cores);
    let parts = thread::scope(|scope| {
        let part = |core: u64| scope.spawn(move || campaign::bound(at(core)..at(core + 1), Mistake::None));
        let running: Vec<_> = (0..cores).map(part).collect();
        running.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut all = BoundSummary::default();
    for part in parts {
        let part = part
            .map_err(|_| CampaignError::trouble("the campaign panicked"))?
            .map_err(|failure| violation(&failure))?;
        all.histories += part.histories;
        all.requests += part.requests;
        all.sent += part.sent;
        all.changes += part.changes;
    }
    Ok(all)
}

/// The control: makes a mistake with bound thoughts. The provider must soon reject a request or miss a
/// thought.
pub fn unbound(seed: u64, mistake: Mistake) -> Result<(), CampaignError> {
    let played = campaign::bound(seed..seed.saturating_add(500), mistake);
    played.map(drop).map_err(|failure| violation(&failure).into())
}

fn violation(failure: &campaign::Failure) -> Violation {
    Violation { campaign: "projection", seed: failure.seed, step: 1, what: failure.to_string() }
}

/// The control: sends one message per entry, which the rules must soon reject.
pub fn broken(seed: u64) -> Result<(), CampaignError> {
    for step in 1..=50 {
        let body = careless(&random_entries(seed.wrapping_add(step)));
        if let Some(found) = rules::check(Wire::Anthropic, &body).first() {
            let what = format!("{} {}", found.at, found.rule);
            return Err(Violation { campaign: "projection", seed, step, what }.into());
        }
    }
    Ok(())
}

/// A naive request: one message per entry.
fn careless(entries: &[Entry]) -> Value {
    let block = |block: &Block| match block {
        Block::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        Block::ToolCall { call, name, input, .. } => {
            let input: Value = serde_json::from_str(input.as_str()).unwrap_or_default();
            Some(json!({"type": "tool_use", "id": call, "name": name, "input": input}))
        }
        Block::ToolResult { call, text, .. } => {
            Some(json!({"type": "tool_result", "tool_use_id": call, "content": text}))
        }
        _ => None,
    };
    let messages: Vec<Value> = entries
        .iter()
        .map(|(_, entry)| {
            let assistant = RoleKind::of(&entry.role) == RoleKind::Assistant;
            let role = if assistant { "assistant" } else { "user" };
            json!({"role": role, "content": entry.blocks.iter().filter_map(block).collect::<Vec<_>>()})
        })
        .collect();
    json!({"model": "careless-1", "max_tokens": 1024, "stream": true, "messages": messages})
}
