//! Projects many histories onto all wires and checks each request; then breaks requests on purpose, to test
//! the checks.
//!
//! A request must break no rule, contain the whole conversation, have no seal of another model or of an
//! edited entry, and keep its prefix when the conversation grows.

mod bound;
mod mutants;

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Value, json};

pub use bound::{BoundSummary, Mistake, bound};
pub use mutants::mutants;

use super::sample::{Entry, Rng, models, picture, random_entries};
use retake_model::entry::{Block, EntryVersion, RoleKind};
use retake_model::id::EntryId;
use retake_model::projection::{
    Ask, Conversation, Dialect, EffortWords, NO_RESULT, Part, Speaker, Thinking, ThinkingField, Thoughts,
    ToolSpec, Wire, converse, request, rules, uncached_tokens,
};
use retake_model::settings::Effort;
use retake_model::time::Timestamp;

/// Statistics of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sampled histories.
    pub histories: u64,
    /// Requests built from them.
    pub requests: u64,
    /// Requests broken on purpose, on one wire per history.
    pub mutants: u64,
    /// Broken requests that the rules detected.
    pub caught: u64,
}

/// An invalid request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, {wire:?}: {problem}\n{body}")]
pub struct Failure {
    /// The seed of the history.
    pub seed: u64,
    /// The wire of the request.
    pub wire: Wire,
    /// The problem.
    pub problem: String,
    /// The request.
    pub body: String,
}

/// Tests every history of these seeds on every wire.
pub fn campaign(seeds: Range<u64>) -> Result<Summary, Failure> {
    let mut summary = Summary::default();
    for seed in seeds {
        let entries = random_entries(seed);
        summary.histories += 1;
        for wire in Wire::ALL {
            let mut rng = Rng::new(seed ^ ((wire as u64 + 1) << 56));
            let body = attempt(&entries, wire, &mut rng).map_err(|(problem, body)| Failure {
                seed,
                wire,
                problem,
                body: format!("{body:#}"),
            })?;
            summary.requests += 1;
            // One wire per seed, because there are many broken requests. Only a request without violations shows that a
            // broken one is caught.
            let is_valid = rules::check(wire, &body).is_empty();
            if !is_valid || seed % Wire::ALL.len() as u64 != wire as u64 {
                continue;
            }
            for (_, mutant) in mutants(&body, &mut rng) {
                summary.mutants += 1;
                summary.caught += u64::from(!rules::check(wire, &mutant).is_empty());
            }
        }
    }
    Ok(summary)
}

type Problem = (String, Value);

fn attempt(entries: &[Entry], wire: Wire, rng: &mut Rng) -> Result<Value, Problem> {
    let model = rng.pick(&models(wire)).clone();
    let tools = tools();
    let ask = Ask {
        wire,
        dialect: dialect(wire, rng),
        model: &model,
        system: if rng.once_in(3) { " " } else { "Be brief." },
        tools: if rng.once_in(3) { &[] } else { &tools },
        max_tokens: *rng.pick(&[1, 1_025, 8_192]),
        temperature: *rng.pick(&[None, Some(0.0), Some(1.5)]),
        top_p: *rng.pick(&[None, Some(0.9)]),
        thinking: thinking(rng),
        thoughts: if rng.once_in(8) { Thoughts::Omitted } else { Thoughts::Accepted },
    };
    // A prefix of a history is a history too.
    let part = &entries[..rng.below(entries.len() + 1)];
    for entries in [part, entries] {
        let conversation = converse(entries);
        let body = request(&conversation, &ask, &picture);
        let all = || body.clone();
        let mut violations = rules::check(wire, &body);
        // A provider that refused thoughts is not asked for new ones: it may not know the field.
        violations.retain(|found| ask.thoughts == Thoughts::Accepted || found.at != "include");
        if !violations.is_empty() {
            return Err((format!("{violations:?}"), all()));
        }
        complete(entries, &body).map_err(|problem| (problem, all()))?;
        sealed(entries, wire, &model, &body).map_err(|problem| (problem, all()))?;
        appended(entries, &conversation, &ask, &body).map_err(|problem| (problem, all()))?;
    }
    let (before, after) = (converse(part), converse(entries));
    let settled = settled(&before);
    let body = request(&after, &ask, &picture);
    if before.messages[..settled] != after.messages[..settled] {
        return Err(("what came later changed what was said before".to_owned(), body));
    }
    let bytes = |body: &Value| serde_json::to_vec(body).expect("a value is always JSON");
    if bytes(&request(&converse(entries), &ask, &picture)) != bytes(&body) {
        return Err(("not the same twice".to_owned(), body));
    }
    Ok(body)
}

/// The number of messages that later entries cannot change: all but the last answer and its reply, and
/// answers right before it whose calls have no results yet.
fn settled(conversation: &Conversation) -> usize {
    let open = |part: &Part| matches!(part, Part::Result { text, .. } if text == NO_RESULT);
    let messages = &conversation.messages;
    let answered = messages.last().is_some_and(|last| last.speaker == Speaker::Assistant);
    let mut settled = messages.len().saturating_sub(if answered { 1 } else { 2 });
    while settled > 0 && messages[settled - 1].parts.iter().all(open) {
        settled = settled.saturating_sub(2);
    }
    settled
}

/// Checks that the request contains every readable text and every result.
fn complete(entries: &[Entry], body: &Value) -> Result<(), String> {
    let mut sent = String::new();
    leaves(body, &mut |text| {
        sent.push_str(text);
        sent.push('\n');
    });
    for block in entries.iter().flat_map(|(_, entry)| &entry.blocks) {
        if let Block::Text { text, .. } | Block::ToolResult { text, .. } = block
            && !text.trim().is_empty()
            && !sent.contains(text.as_str())
        {
            return Err(format!("{text:?} is lost"));
        }
    }
    Ok(())
}

/// Checks that seals go only to the wire and model that made them, and only while their entry is unchanged.
fn sealed(entries: &[Entry], wire: Wire, model: &str, body: &Value) -> Result<(), String> {
    let mut good = BTreeSet::new();
    let whole =
        |entry: &&EntryVersion| entry.edited.is_none() && RoleKind::of(&entry.role) == RoleKind::Assistant;
    for block in entries.iter().map(|(_, entry)| entry).filter(whole).flat_map(|entry| &entry.blocks) {
        if let Block::Thinking { signature: Some(signature), .. } = block {
            good.insert(signature.clone());
        }
        for (_, value) in block.extra().iter() {
            let value: Value = serde_json::from_str(value.as_str()).unwrap_or_default();
            leaves(&value, &mut |text| _ = good.insert(text.to_owned()));
        }
    }
    let owner = format!("seal:{}:{model}:", wire.name());
    let mut wrong = None;
    leaves(body, &mut |text| {
        if text.starts_with("seal:") && !(text.starts_with(&owner) && good.contains(text)) {
            wrong = Some(format!("{text} has no place here"));
        }
    });
    wrong.map_or(Ok(()), Err)
}

/// Checks that an answer and another question leave the sent prefix unchanged, except for cache markers.
fn appended(
    entries: &[Entry],
    conversation: &Conversation,
    ask: &Ask<'_>,
    body: &Value,
) -> Result<(), String> {
    if conversation.messages.last().is_none_or(|last| last.speaker == Speaker::Assistant) {
        return Ok(());
    }
    let mut longer = entries.to_vec();
    for (number, role) in [(254, "AI"), (255, "User")] {
        let version = EntryVersion::from_text(role, "And on.", Timestamp::from_millis(9));
        longer.push((EntryId::from_bytes([number; 16]), version));
    }
    let after = converse(&longer);
    let again = request(&after, ask, &picture);
    if uncached_tokens(conversation, &after) != 0 {
        return Err("appending makes something be read again".to_owned());
    }
    // An answer without calls may enable thinking again, which brings the thoughts back.
    if again.get("thinking") != body.get("thinking") {
        return Ok(());
    }
    let [mut before, mut after] = [sent(body), sent(&again)];
    before.iter_mut().chain(&mut after).for_each(unmarked);
    let same = after.starts_with(&before);
    if same { Ok(()) } else { Err("appending changes what was sent before".to_owned()) }
}

fn sent(body: &Value) -> Vec<Value> {
    let list = ["messages", "input", "contents"].iter().find_map(|name| body.get(name)?.as_array());
    list.cloned().unwrap_or_default()
}

fn unmarked(value: &mut Value) {
    for block in value["content"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        block.remove("cache_control");
    }
}

/// Visits every string in a value.
fn leaves(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, see)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn thinking(rng: &mut Rng) -> Option<Thinking> {
    let effort = *rng.pick(&Effort::ALL);
    *rng.pick(&[None, Some(Thinking { effort, budget: 100 }), Some(Thinking { effort, budget: 5_000 })])
}

fn dialect(wire: Wire, rng: &mut Rng) -> Dialect {
    let thinking = [
        ThinkingField::None,
        ThinkingField::Effort,
        ThinkingField::Reasoning,
        ThinkingField::Switch,
        ThinkingField::Level,
        ThinkingField::Adaptive { always: false },
        ThinkingField::Adaptive { always: true },
    ];
    let usual = Dialect::of(wire);
    Dialect {
        cache_markers: !rng.once_in(4),
        images: !rng.once_in(4),
        sampling: !rng.once_in(4),
        thinking: if rng.once_in(3) { *rng.pick(&thinking) } else { usual.thinking },
        effort_words: EffortWords { off: "low", max: "high" },
        bound_thoughts: rng.once_in(3),
        drop_blocks: rng.once_in(2),
        return_reasoning: rng.once_in(2),
        reads_reasoning: rng.once_in(2),
        tools_without_reasoning: rng.once_in(6),
        nine_letter_ids: rng.once_in(4),
        completion_tokens: rng.once_in(2),
        stream_usage: rng.once_in(2),
        stand_in_signatures: rng.once_in(2),
    }
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, description: &str, schema: Value| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    };
    vec![
        tool(
            "read",
            "Reads a file.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "limit": {"type": ["integer", "null"], "default": 10},
                    "kinds": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"const": "x"}]}},
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        ),
        tool("mcp/server.tool", "", json!({})),
        tool("mcp.server.tool", "The same name once it is spelled.", json!(true)),
        tool("7zip", "Packs.", json!({"type": "object", "properties": {}})),
    ]
}
