//! Random entries: text, thinking, tool calls, unknown fields.

use retake_model::agent::AgentState;
use retake_model::command::{InsertPosition, NewEntry, Prompt, TurnAdvance, TurnStart};
use retake_model::entry::{Block, EntryVersion, Fields, Usage};
use retake_model::id::{EntryId, TakeId};
use retake_model::json::Json;
use retake_model::operation::TurnStep;
use retake_model::time::Timestamp;
use retake_timeline::Command;

use super::apply::turn_id;
use super::generate::{shuffled, spot};
use super::names;
use super::plain::PlainTake;
use crate::rng::Rng;

/// Adds random entries.
pub fn add(take: &PlainTake, id: TakeId, now: i64, rng: &mut Rng) -> Command {
    let count = if rng.once_in(5) { rng.below(6) } else { 1 };
    let mut entries = new_entries(count, now, rng);
    let mut at = spot(take, rng);
    if rng.once_in(40)
        && let Some(first) = entries.first_mut()
        && let Some(known) = rng.pick(&take.entries)
    {
        // A duplicate id; the rest must be valid.
        first.id = Some(known.id);
        at = InsertPosition::End;
    } else if rng.once_in(60)
        && let Some(last) = entries.last_mut()
    {
        last.version.role = String::new();
        at = InsertPosition::End;
    }
    Command::AddEntries { take: id, at, entries }
}

/// Appends many entries.
pub fn add_many(take: TakeId, count: u64, now: i64, rng: &mut Rng) -> Command {
    Command::AddEntries { take, at: InsertPosition::End, entries: new_entries(count, now, rng) }
}

/// Starts a turn in a take, or continues the running one; may change settings.
pub fn turn(take: &PlainTake, id: TakeId, now: i64, rng: &mut Rng) -> Command {
    let count = if rng.once_in(3) { 0 } else { rng.below(2) + 1 };
    let settings = (0..count).map(|_| names::setting(rng)).collect();
    let entry_content = |role, rng: &mut Rng| {
        let text = format!("{} so", names::sentence(rng));
        NewEntry::from(EntryVersion::from_text(role, &text, Timestamp::from_millis(now)))
    };
    if let Some(turn) = take.running.filter(|_| !rng.once_in(8)) {
        let goes_on = AgentState::Calling { attempt: 1, steered: false };
        let advance = TurnAdvance {
            turn: turn_id(turn),
            entries: vec![entry_content("AI", rng)],
            settings,
            state: if rng.once_in(3) { goes_on } else { AgentState::Waiting },
            step: TurnStep::Answered,
        };
        Command::AdvanceTurn { take: id, advance }
    } else {
        // A number that no other turn has.
        let turn = turn_id(1 << 48 | rng.next_u64() >> 32);
        let prompt = Prompt::Entry(entry_content("User", rng));
        let start = TurnStart { turn, context: Vec::new(), prompt, settings, sent: None };
        Command::StartTurn { take: id, start }
    }
}

/// Merges a take into another, with a conclusion.
pub fn merge(into: TakeId, from: TakeId, now: i64, rng: &mut Rng) -> Command {
    Command::Merge { into, from, entries: new_entries(1, now, rng) }
}

/// Replaces all entries, or reorders them.
pub fn replace(take: &PlainTake, id: TakeId, now: i64, rng: &mut Rng) -> Command {
    let mut entries = match rng.below(3) {
        0 => new_entries(take.entries.len() as u64, now, rng),
        _ => new_entries(rng.below(12), now, rng),
    };
    for (new, old) in entries.iter_mut().zip(&take.entries) {
        // Some keep their id.
        if rng.once_in(2) {
            new.id = Some(old.id);
        }
    }
    Command::ReplaceEntries { take: id, entries: shuffled(entries, rng) }
}

/// A random entry version.
pub fn version(now: i64, rng: &mut Rng) -> EntryVersion {
    let role = names::ROLES[rng.index(names::ROLES.len())];
    let mut version = EntryVersion::from_text(role, &names::sentence(rng), Timestamp::from_millis(now));
    if rng.once_in(4) {
        for _ in 0..rng.below(4) {
            let place = rng.index(version.blocks.len() + 1);
            version.blocks.insert(place, block(rng));
        }
    }
    if rng.once_in(8) {
        version.extra.insert(format!("field{}", rng.below(3)), Json::string(&names::sentence(rng)));
        version.model = Some("opus".to_owned());
        let extra = unknown_fields(rng);
        version.usage = Some(Usage { input_tokens: rng.below(1000), extra, ..Usage::default() });
    }
    version
}

fn block(rng: &mut Rng) -> Block {
    let call = rng.below(100).to_string();
    let extra = if rng.once_in(4) { unknown_fields(rng) } else { Fields::default() };
    match rng.below(5) {
        0 => Block::of_text(names::sentence(rng)),
        1 => {
            let signature = rng.once_in(2).then_some(call);
            Block::Thinking { text: names::sentence(rng), signature, extra }
        }
        2 => {
            let input = Json::string(&names::sentence(rng));
            Block::ToolCall { call, name: "read".to_owned(), input, extra }
        }
        3 => Block::ToolResult { call, text: names::sentence(rng), failed: rng.once_in(2), extra },
        _ => Block::Unknown { kind: format!("kind{}", rng.below(3)), extra },
    }
}

fn unknown_fields(rng: &mut Rng) -> Fields {
    let count = rng.below(3);
    (0..count).map(|field| (format!("unknown{field}"), Json::string(&names::sentence(rng)))).collect()
}

fn new_entries(count: u64, now: i64, rng: &mut Rng) -> Vec<NewEntry> {
    let chosen = rng.once_in(3);
    (0..count)
        .map(|_| {
            let id = chosen.then(|| {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
                bytes[8..].copy_from_slice(&rng.next_u64().to_be_bytes());
                EntryId::from_bytes(bytes)
            });
            NewEntry { id, ..version(now, rng).into() }
        })
        .collect()
}
