//! Entries to put in: text, thinking, tool calls, fields that nobody knows.

use retake_model::command::{NewEntry, Spot};
use retake_model::entry::{Block, EntryVersion, Fields, Usage};
use retake_model::id::{EntryId, TakeId};
use retake_model::json::Json;
use retake_model::time::Timestamp;
use retake_timeline::Command;

use super::generate::{shuffled, spot};
use super::picture::TakePicture;
use super::words;
use crate::dice::Dice;

/// Adds entries somewhere.
pub fn add(take: &TakePicture, id: TakeId, now: i64, dice: &mut Dice) -> Command {
    let count = if dice.once_in(5) { dice.below(6) } else { 1 };
    let mut entries = new_entries(count, now, dice);
    let mut at = spot(take, dice);
    if dice.once_in(40)
        && let Some(first) = entries.first_mut()
        && let Some(known) = dice.pick(&take.entries)
    {
        // An identity that is there already. Nothing else may be wrong then.
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

/// That many entries behind the last one.
pub fn add_many(take: TakeId, count: u64, now: i64, dice: &mut Dice) -> Command {
    Command::AddEntries { take, at: Spot::End, entries: new_entries(count, now, dice) }
}

/// Puts others in the place of all entries, or the same ones in another order.
pub fn replace(take: &TakePicture, id: TakeId, now: i64, dice: &mut Dice) -> Command {
    let mut entries = match dice.below(3) {
        0 => new_entries(take.entries.len() as u64, now, dice),
        _ => new_entries(dice.below(12), now, dice),
    };
    for (new, old) in entries.iter_mut().zip(&take.entries) {
        // Some keep the identity that an entry of this take had.
        if dice.once_in(2) {
            new.id = Some(old.id);
        }
    }
    Command::ReplaceEntries { take: id, entries: shuffled(entries, dice) }
}

/// A version of an entry, with anything that one can have.
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
