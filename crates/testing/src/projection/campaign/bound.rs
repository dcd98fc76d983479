//! Simulates conversations with a model that binds its thoughts, with all edits that a user can make between
//! prompts.
//!
//! ```text
//!   prompt ─► request ─► provider: is every thought where it was made? ─► answer with new thoughts ─► …
//!     ▲                                                                        │
//!     └── edit, delete, insert, move, role, undo, compress, prompt, tools, model ◄┘
//! ```
//!
//! The simulated provider uses no digests: for each thought it remembers the whole request, and the content
//! of the answer before it, and compares both. It must never receive a thought out of place. No thought may
//! be omitted needlessly: while a conversation only grows, each thought that was sent is sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Value, json};

use super::{Failure, tools, unmarked};
use crate::projection::sample::{Entry, Rng, picture};
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::id::EntryId;
use retake_model::json::Json;
use retake_model::projection::{
    Ask, Dialect, EffortWords, REQUEST_PREFIX, THOUGHTS_OMITTED, Thinking, ThinkingField, Thoughts, ToolSpec,
    Wire, converse, request, request_prefix, rules,
};
use retake_model::settings::Effort;
use retake_model::time::Timestamp;

/// Statistics of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundSummary {
    /// Conversations.
    pub histories: u64,
    /// Requests in them.
    pub requests: u64,
    /// Thoughts in those requests, each in its original place.
    pub sent: u64,
    /// Changes that a user made between prompts.
    pub changes: u64,
}

/// A deliberate mistake, to test the checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mistake {
    /// None.
    #[default]
    None,
    /// Sends a thought while its own entry is unchanged, whatever changed before it.
    ForgetPrefix,
    /// Omits only the first thought of a request.
    LeaveOneOut,
    /// Sends no thoughts.
    LeaveAllOut,
}

/// Simulates the conversations of these seeds.
pub fn bound(seeds: Range<u64>, mistake: Mistake) -> Result<BoundSummary, Failure> {
    let mut summary = BoundSummary::default();
    for seed in seeds {
        let mut world = World::new(seed, mistake);
        world.play().map_err(|(problem, body)| Failure {
            seed,
            wire: Wire::Anthropic,
            problem,
            body: format!("{body:#}"),
        })?;
        summary.histories += 1;
        summary.requests += world.requests;
        summary.sent += world.sent;
        summary.changes += world.changes;
    }
    Ok(summary)
}

type Problem = (String, Value);

const MODELS: &[&str] = &["claude-a", "claude-b"];
const SYSTEMS: &[&str] = &["Be brief.", "Be long.", " "];
const TEXTS: &[&str] = &["one", "two", "three\n", "größer 🦀", " ", "{\"a\":1}"];
const ROLES: &[&str] = &["User", "AI", "System", "Tool", "Reviewer"];

/// The context that a thought is bound to.
struct BoundContext {
    /// The model, system prompt, tools and messages of its request, exact to the byte.
    request: String,
    /// The content of the answer before it.
    written: Vec<Value>,
}

/// A provider that binds its thoughts.
#[derive(Default)]
struct Provider {
    made: BTreeMap<String, BoundContext>,
    /// Thoughts that it no longer accepts, although they are in place.
    forgotten: BTreeSet<String>,
}

impl Provider {
    /// The thoughts of a request, if each is in its original place.
    fn thoughts(&self, body: &Value) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        let messages = body["messages"].as_array().expect("messages");
        for (index, message) in messages.iter().enumerate() {
            let content = message["content"].as_array().expect("content");
            for (place, block) in content.iter().enumerate() {
                let Some(seal) = seal(block) else { continue };
                let made = self.made.get(seal).ok_or_else(|| format!("{seal} was never made"))?;
                let before = bare(body, index).to_string();
                if made.request != before {
                    return Err(format!("{seal} is bound to a different conversation"));
                }
                if made.written[..] != content[..place] {
                    return Err(format!("{seal} is not where it was written"));
                }
                found.push(seal.to_owned());
            }
        }
        Ok(found)
    }
}

fn seal(block: &Value) -> Option<&str> {
    match block["type"].as_str()? {
        "thinking" => block["signature"].as_str(),
        "redacted_thinking" => block["data"].as_str(),
        _ => None,
    }
}

/// The part of a request that a thought is bound to, with this many messages.
fn bare(body: &Value, messages: usize) -> Value {
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    let [mut system, mut tools] = [list("system"), list("tools")];
    for block in system.iter_mut().chain(&mut tools).filter_map(Value::as_object_mut) {
        block.remove("cache_control");
    }
    let mut sent = list("messages");
    sent.truncate(messages);
    sent.iter_mut().for_each(unmarked);
    json!({"model": body["model"], "system": system, "tools": tools, "messages": sent})
}

#[derive(Clone)]
struct State {
    entries: Vec<Entry>,
    model: &'static str,
    system: &'static str,
    tools: usize,
    effort: Option<Effort>,
}

struct World {
    rng: Rng,
    mistake: Mistake,
    provider: Provider,
    state: State,
    past: Vec<State>,
    made: u64,
    requests: u64,
    sent: u64,
    changes: u64,
}

impl World {
    fn new(seed: u64, mistake: Mistake) -> Self {
        let state =
            State { entries: Vec::new(), model: MODELS[0], system: SYSTEMS[0], tools: 4, effort: None };
        Self {
            rng: Rng::new(seed ^ 0xb0d),
            mistake,
            provider: Provider::default(),
            state,
            past: Vec::new(),
            made: 0,
            requests: 0,
            sent: 0,
            changes: 0,
        }
    }

    fn play(&mut self) -> Result<(), Problem> {
        for _ in 0..2 + self.rng.below(4) {
            self.turn()?;
            for _ in 0..self.rng.below(3) {
                self.past.push(self.state.clone());
                self.change();
                self.changes += 1;
            }
        }
        Ok(())
    }

    /// A prompt, and answers with calls until the model is done.
    fn turn(&mut self) -> Result<(), Problem> {
        self.past.push(self.state.clone());
        let text = Block::of_text(*self.rng.pick(&TEXTS[..4]));
        self.push(version("User", vec![text], None));
        let mut before: Option<(Vec<Value>, Vec<String>)> = None;
        let rounds = 1 + self.rng.below(4);
        for round in 1..=rounds {
            let (body, omitted) = self.ask()?;
            let sent = self.provider.thoughts(&body).map_err(|problem| (problem, body.clone()))?;
            self.sent += sent.len() as u64;
            if let Some((messages, expected)) = before
                && !omitted
            {
                let unmarked_body = bare(&body, usize::MAX);
                if !unmarked_body["messages"].as_array().expect("messages").starts_with(&messages) {
                    return Err(("appending changes what was sent before".to_owned(), body));
                }
                if let Some(missing) = expected.iter().find(|seal| !sent.contains(seal)) {
                    return Err((format!("{missing} is left out without need"), body));
                }
            }
            let calls = if round == rounds || self.state.tools == 0 { 0 } else { 1 + self.rng.below(2) };
            let made = self.answer(&body, calls, omitted);
            let messages = bare(&body, usize::MAX)["messages"].as_array().expect("messages").clone();
            let expected = sent.into_iter().chain(made).filter(|_| self.state.effort != Some(Effort::Off));
            before = Some((messages, expected.collect()));
            if calls == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The next request, and whether it omits thoughts because the provider refused them.
    fn ask(&mut self) -> Result<(Value, bool), Problem> {
        let body = self.request(Thoughts::Accepted);
        let refused = body["messages"].as_array().into_iter().flatten().any(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks.filter_map(seal).any(|seal| self.provider.forgotten.contains(seal))
        });
        if !refused {
            return Ok((body, false));
        }
        let marked = |entry: &Entry| entry.1.role == "AI" && entry.1.extra.contains_key(THOUGHTS_OMITTED);
        if self.state.entries.iter().rev().take_while(|entry| !self.is_forgotten(entry)).any(marked) {
            return Err(("a refused thought goes out again".to_owned(), body));
        }
        Ok((self.request(Thoughts::Omitted), true))
    }

    /// Whether an entry has a thought that the provider no longer accepts.
    fn is_forgotten(&self, (_, entry): &Entry) -> bool {
        let seals = entry
            .blocks
            .iter()
            .filter_map(|block| written(block).and_then(|block| seal(&block).map(str::to_owned)));
        seals.into_iter().any(|seal| self.provider.forgotten.contains(&seal))
    }

    fn request(&mut self, thoughts: Thoughts) -> Value {
        self.requests += 1;
        let all: Vec<ToolSpec> = tools();
        let ask = Ask {
            wire: Wire::Anthropic,
            dialect: Dialect {
                sampling: false,
                thinking: ThinkingField::Adaptive { always: false },
                effort_words: EffortWords { off: "low", max: "max" },
                bound_thoughts: self.mistake != Mistake::ForgetPrefix,
                ..Dialect::of(Wire::Anthropic)
            },
            model: self.state.model,
            system: self.state.system,
            tools: &all[..self.state.tools],
            max_tokens: 32_000,
            temperature: None,
            top_p: None,
            thinking: self.state.effort.map(Thinking::from),
            thoughts: if self.mistake == Mistake::LeaveAllOut { Thoughts::Omitted } else { thoughts },
        };
        let mut body = request(&converse(&self.state.entries), &ask, &picture);
        let violations = rules::check(Wire::Anthropic, &body);
        assert!(violations.is_empty(), "{violations:?}\n{body:#}");
        if self.mistake == Mistake::LeaveOneOut {
            leave_one_out(&mut body);
        }
        body
    }

    /// The model's answer. Returns its new thoughts.
    fn answer(&mut self, body: &Value, calls: usize, omitted: bool) -> Vec<String> {
        let mut blocks = Vec::new();
        let mut made = Vec::new();
        let mut whole = true;
        let thinks = self.state.effort != Some(Effort::Off) && !self.rng.once_in(4);
        for _ in 0..if thinks { 1 + self.rng.below(2) } else { 0 } {
            let seal = format!("seal-{}", self.fresh());
            blocks.push(self.thought(&seal));
            if whole {
                made.push(seal);
            }
            if self.rng.once_in(4) {
                let text = *self.rng.pick(TEXTS);
                // Blank text cannot be sent, so a thought after it is no longer in its original place.
                whole &= !text.trim().is_empty();
                blocks.push(Block::of_text(text));
            }
        }
        if calls == 0 || self.rng.once_in(3) {
            blocks.push(Block::of_text("So."));
        }
        let ids: Vec<String> = (0..calls).map(|_| self.call_id()).collect();
        for id in &ids {
            let input = Json::new(r#"{"path":"a","deep":{"z":1,"b":[2,1e3]}}"#).expect("JSON");
            let extra = Fields::default();
            blocks.push(Block::ToolCall { call: id.clone(), name: "read".to_owned(), input, extra });
        }
        let request = bare(body, usize::MAX).to_string();
        for (place, block) in blocks.iter().enumerate() {
            let Some(seal) = written(block).as_ref().and_then(seal).map(str::to_owned) else { continue };
            let written = blocks[..place].iter().filter_map(written).collect();
            self.provider.made.insert(seal, BoundContext { request: request.clone(), written });
        }
        let mut entry = version("AI", blocks, Some(self.state.model));
        // Some entries have no digest: they are older, or imported.
        if self.rng.once_in(12) {
            made.clear();
        } else if let Some(prefix) = request_prefix(body) {
            entry.extra.insert(REQUEST_PREFIX.to_owned(), Json::string(&prefix));
        }
        if omitted {
            entry.extra.insert(THOUGHTS_OMITTED.to_owned(), Json::string(Wire::Anthropic.name()));
        }
        self.push(entry);
        for id in ids {
            let text = (*self.rng.pick(TEXTS)).to_owned();
            let failed = self.rng.once_in(4);
            let result = Block::ToolResult { call: id, text, failed, extra: Fields::default() };
            self.push(version("Tool", vec![result], None));
        }
        made
    }

    fn thought(&mut self, seal: &str) -> Block {
        let text = (*self.rng.pick(TEXTS)).to_owned();
        let mut extra = vec![("wire".to_owned(), Json::string(Wire::Anthropic.name()))];
        let hidden = self.rng.once_in(4);
        if hidden {
            extra.push(("redacted".to_owned(), Json::string(seal)));
        }
        Block::Thinking {
            text,
            signature: (!hidden).then(|| seal.to_owned()),
            extra: extra.into_iter().collect(),
        }
    }

    fn call_id(&mut self) -> String {
        if self.rng.once_in(5) { "call_1".to_owned() } else { format!("toolu_{}", self.fresh()) }
    }

    /// A change by the user or the provider between two prompts.
    fn change(&mut self) {
        let count = self.state.entries.len();
        let place = self.rng.below(count);
        match self.rng.below(13) {
            0 => self.state.system = *self.rng.pick(SYSTEMS),
            1 => self.state.tools = *self.rng.pick(&[0, 1, 2, 4]),
            2 => self.state.model = *self.rng.pick(MODELS),
            3 => self.state.effort = *self.rng.pick(&[None, Some(Effort::Off), Some(Effort::Max)]),
            4 | 5 => {
                let steps = 1 + self.rng.below(3);
                let at = self.past.len().saturating_sub(1 + steps);
                self.state = self.past[at].clone();
            }
            6 => self.provider.forgotten = self.provider.made.keys().cloned().collect(),
            7 if count > 0 => {
                let text = *self.rng.pick(TEXTS);
                let entry = &mut self.state.entries[place].1;
                *entry = entry.with_edit(text, Timestamp::from_millis(5));
            }
            8 if count > 0 => _ = self.state.entries.remove(place),
            9 if count > 0 => self.state.entries[place].1.role = (*self.rng.pick(ROLES)).to_owned(),
            10 if count > 0 => {
                let end = (place + 1 + self.rng.below(4)).min(count);
                let id = self.id();
                let summary = version("Summary", vec![Block::of_text("What was said.")], None);
                self.state.entries.splice(place..end, [(id, summary)]);
            }
            11 if count > 0 => {
                let other = self.rng.below(count);
                self.state.entries.swap(place, other);
            }
            _ => {
                let role = *self.rng.pick(ROLES);
                let entry = version(role, vec![Block::of_text("More.")], None);
                let id = self.id();
                self.state.entries.insert(place, (id, entry));
            }
        }
    }

    fn fresh(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn id(&mut self) -> EntryId {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&self.fresh().to_be_bytes());
        EntryId::from_bytes(bytes)
    }

    fn push(&mut self, entry: EntryVersion) {
        let id = self.id();
        self.state.entries.push((id, entry));
    }
}

/// A block as the model wrote it.
fn written(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Thinking { text, signature: Some(signature), .. } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Block::Thinking { extra, .. } => {
            let data: String = serde_json::from_str(extra.get("redacted")?.as_str()).ok()?;
            json!({"type": "redacted_thinking", "data": data})
        }
        Block::Text { text, .. } => json!({"type": "text", "text": text}),
        Block::ToolCall { call, name, input, .. } => {
            let input: Value = serde_json::from_str(input.as_str()).ok()?;
            json!({"type": "tool_use", "id": call, "name": name, "input": input})
        }
        _ => return None,
    })
}

fn leave_one_out(body: &mut Value) {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        let content = message["content"].as_array_mut().expect("content");
        if let Some(place) = content.iter().position(|block| seal(block).is_some()) {
            content.remove(place);
            return;
        }
    }
}

fn version(role: &str, blocks: Vec<Block>, model: Option<&str>) -> EntryVersion {
    EntryVersion {
        role: role.to_owned(),
        blocks,
        created: Timestamp::from_millis(1),
        extra: BTreeMap::new(),
        edited: None,
        usage: None,
        model: model.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_thoughts_are_sent_exactly_where_they_are_valid() {
        let summary = bound(0..400, Mistake::None).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(summary.sent > 1_000 && summary.changes > 400, "{summary:?}");
    }

    #[test]
    fn each_planted_mistake_is_found_quickly() {
        for mistake in [Mistake::ForgetPrefix, Mistake::LeaveOneOut, Mistake::LeaveAllOut] {
            assert!(bound(0..200, mistake).is_err(), "{mistake:?}");
        }
    }
}
