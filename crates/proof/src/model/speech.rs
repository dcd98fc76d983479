//! Random entries: text, thinking, tool calls, unknown fields.

use retake_model::agent::AgentState;
use retake_model::command::{Advance, NewEntry, Prompt, Spot, Start};
use retake_model::entry::{Block, EntryVersion, Fields, Usage};
use retake_model::id::{EntryId, TakeId};
use retake_model::json::Json;
use retake_model::operation::TurnStep;
use retake_model::time::Timestamp;
use retake_timeline::Command;

use super::ask::turn_id;
use super::generate::{shuffled, spot};
use super::picture::TakePicture;
use super::words;
use crate::dice::Dice;

/// Adds random entries.
pub fn add(take: &TakePicture, id: TakeId, now: i64, dice: &mut Dice) -> Command {
    let count = if dice.once_in(5) { dice.below(6) } else { 1 };
    let mut entries = new_entries(count, now, dice);
    let mut at = spot(take, dice);
    if dice.once_in(40)
        && let Some(first) = entries.first_mut()
        && let Some(known) = dice.pick(&take.entries)
    {
        // A duplicate id; the rest must be valid.
        first.id = Some(known.id);
        at = Spot::End;
    } else if dice.once_in(60)
        && let Some(last) = entries.last_mut()
    {
        last.version.role = String::new();
        at = Spot::End;
    }
    Command::AddEntries { take: id, at, entries }
}

/// Appends many entries.
pub fn add_many(take: TakeId, count: u64, now: i64, dice: &mut Dice) -> Command {
    Command::AddEntries { take, at: Spot::End, entries: new_entries(count, now, dice) }
}

/// Starts a turn in a take, or continues the running one; may change settings.
pub fn turn(take: &TakePicture, id: TakeId, now: i64, dice: &mut Dice) -> Command {
    let count = if dice.once_in(3) { 0 } else { dice.below(2) + 1 };
    let settings = (0..count).map(|_| words::setting(dice)).collect();
    let said = |role, dice: &mut Dice| {
        let text = format!("{} so", words::sentence(dice));
        NewEntry::from(EntryVersion::from_text(role, &text, Timestamp::from_millis(now)))
    };
    if let Some(turn) = take.running.filter(|_| !dice.once_in(8)) {
        let goes_on = AgentState::Calling { attempt: 1, steered: false };
        let advance = Advance {
            turn: turn_id(turn),
            entries: vec![said("AI", dice)],
            settings,
            state: if dice.once_in(3) { goes_on } else { AgentState::Waiting },
            step: TurnStep::Answered,
        };
        Command::AdvanceTurn { take: id, advance }
    } else {
        // A number that no other turn has.
        let turn = turn_id(1 << 48 | dice.roll() >> 32);
        let prompt = Prompt::Entry(said("User", dice));
        let start = Start { turn, context: Vec::new(), prompt, settings, sent: None };
        Command::StartTurn { take: id, start }
    }
}

/// Replaces all entries, or reorders them.
pub fn replace(take: &TakePicture, id: TakeId, now: i64, dice: &mut Dice) -> Command {
    let mut entries = match dice.below(3) {
        0 => new_entries(take.entries.len() as u64, now, dice),
        _ => new_entries(dice.below(12), now, dice),
    };
    for (new, old) in entries.iter_mut().zip(&take.entries) {
        // Some keep their id.
        if dice.once_in(2) {
            new.id = Some(old.id);
        }
    }
    Command::ReplaceEntries { take: id, entries: shuffled(entries, dice) }
}

/// A random entry version.
pub fn version(now: i64, dice: &mut Dice) -> EntryVersion {
    let role = words::ROLES[dice.index(words::ROLES.len())];
    let mut version = EntryVersion::from_text(role, &words::sentence(dice), Timestamp::from_millis(now));
    if dice.once_in(4) {
        for _ in 0..dice.below(4) {
            let place = dice.index(version.blocks.len() + 1);
            version.blocks.insert(place, block(dice));
        }
    }
    if dice.once_in(8) {
        version.extra.insert(format!("field{}", dice.below(3)), Json::string(&words::sentence(dice)));
        version.model = Some("opus".to_owned());
        let extra = unknown_fields(dice);
        version.usage = Some(Usage { input_tokens: dice.below(1000), extra, ..Usage::default() });
    }
    version
}

fn block(dice: &mut Dice) -> Block {
    let call = dice.below(100).to_string();
    let extra = if dice.once_in(4) { unknown_fields(dice) } else { Fields::default() };
    match dice.below(5) {
        0 => Block::of_text(words::sentence(dice)),
        1 => {
            let signature = dice.once_in(2).then_some(call);
            Block::Thinking { text: words::sentence(dice), signature, extra }
        }
        2 => {
            let input = Json::string(&words::sentence(dice));
            Block::ToolCall { call, name: "read".to_owned(), input, extra }
        }
        3 => Block::ToolResult { call, text: words::sentence(dice), failed: dice.once_in(2), extra },
        _ => Block::Unknown { kind: format!("kind{}", dice.below(3)), extra },
    }
}

fn unknown_fields(dice: &mut Dice) -> Fields {
    let count = dice.below(3);
    (0..count).map(|field| (format!("unknown{field}"), Json::string(&words::sentence(dice)))).collect()
}

fn new_entries(count: u64, now: i64, dice: &mut Dice) -> Vec<NewEntry> {
    let chosen = dice.once_in(3);
    (0..count)
        .map(|_| {
            let id = chosen.then(|| {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&dice.roll().to_be_bytes());
                bytes[8..].copy_from_slice(&dice.roll().to_be_bytes());
                EntryId::from_bytes(bytes)
            });
            NewEntry { id, ..version(now, dice).into() }
        })
        .collect()
}
