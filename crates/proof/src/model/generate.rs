//! Generates the next request: usually valid, sometimes not.
//!
//! Threads are small, so that comparing them completely stays cheap; a few are long on purpose. An invalid request has
//! exactly one fault, so that there is one correct refusal.

use retake_model::command::{NewEntry, Spot};
use retake_model::id::{EntryId, TakeId};
use retake_model::state::Visibility;
use retake_model::take::{FileItem, FileList, NewPicture};
use retake_timeline::{Command, Unit};

use super::log::{Event, NaiveThread};
use super::picture::{EntryPicture, TakePicture, ThreadPicture};
use super::{speech, words};
use crate::dice::Dice;

/// Maximum number of takes.
const MOST_TAKES: usize = 7;
/// Above this number, entries are rather deleted than added.
const MOST_ENTRIES: usize = 40;

/// A request to a thread.
#[derive(Clone, Debug)]
pub enum Question {
    /// A command.
    Change(Command),
    /// Promote a take.
    Promote(TakeId, Option<String>),
    /// Undo.
    Undo(Unit, u64),
    /// Redo.
    Redo(Unit, u64),
    /// Undo, then redo: must lead back to the same state.
    There,
    /// Jump to a version.
    Jump(usize),
}

/// A random request for this thread.
pub fn question(thread: &NaiveThread, now: i64, dice: &mut Dice) -> Question {
    let picture = thread.picture();
    if picture.deleted.is_some() && !dice.once_in(4) {
        return if dice.once_in(2) {
            Question::Change(Command::Restore)
        } else {
            Question::Undo(unit(dice), 1)
        };
    }
    if let Event::Typed(take, _) = thread.head().event
        && !dice.once_in(3)
    {
        return Question::Change(typing(take, dice));
    }
    match dice.below(100) {
        0..=9 => Question::Undo(unit(dice), steps(dice)),
        10..=17 => Question::Redo(unit(dice), steps(dice)),
        18..=21 => Question::There,
        22..=26 => Question::Jump(dice.index(thread.version() + 2)),
        27..=32 if !thread.long && (picture.takes.len() > 1 || dice.once_in(6)) => {
            Question::Promote(any_take(picture, dice), dice.once_in(2).then(|| words::name(dice)))
        }
        _ => Question::Change(command(thread, now, dice)),
    }
}

/// A request to the source of a promotion.
pub fn question_to_source(dice: &mut Dice) -> Question {
    if dice.once_in(2) { Question::Undo(Unit::Turn, 1) } else { Question::Redo(Unit::Turn, 1) }
}

/// A request to the promoted thread.
pub fn question_to_promoted(thread: &NaiveThread, now: i64, dice: &mut Dice) -> Question {
    match dice.below(7) {
        0 | 1 => Question::Change(Command::Delete),
        2 | 3 => Question::Change(Command::Restore),
        4 => Question::Undo(Unit::Turn, 1),
        _ => Question::Change(command(thread, now, dice)),
    }
}

fn command(thread: &NaiveThread, now: i64, dice: &mut Dice) -> Command {
    let picture = thread.picture();
    let take = any_take(picture, dice);
    let missing = missing_take();
    let entries = picture.take(take).unwrap_or(&missing);
    // Drafts with images are rare and should be sent sometimes.
    if !entries.attached.is_empty() && dice.once_in(8) {
        return Command::SendDraft { take, role: None };
    }
    let crowded = entries.entries.len() > MOST_ENTRIES && !thread.long;
    // Long threads stay long.
    let choice = if thread.long { dice.below(60) } else { dice.below(100) };
    match choice {
        0..=21 if crowded => shorten(entries, take, dice),
        0..=21 => speech::add(entries, take, now, dice),
        22..=29 => Command::EditEntry { take, entry: any_entry(entries, dice), text: text(entries, dice) },
        30..=33 => {
            let (entry, version) = (any_entry(entries, dice), speech::version(now, dice));
            Command::RewriteEntry { take, entry, version }
        }
        34..=37 => Command::ChangeRole { take, entry: any_entry(entries, dice), role: role(dice) },
        38..=43 => delete(entries, take, dice),
        44..=49 | 69..=74 => take_command(thread, take, entries, dice),
        50..=54 => Command::Switch { take },
        55..=57 => typing(take, dice),
        58 | 59 => Command::SendDraft { take, role: dice.once_in(3).then(|| role(dice)) },
        60..=66 => speech::replace(entries, take, now, dice),
        67 | 68 if dice.once_in(4) => shorten(entries, take, dice),
        67 | 68 => speech::turn(entries, take, now, dice),
        75..=77 => {
            let items = (0..dice.below(4)).map(|_| FileItem::new(words::sentence(dice))).collect();
            Command::SetFiles { take, list: file_list(dice), items }
        }
        78 | 79 => Command::RecordSend {
            take,
            markdown: words::sentence(dice),
            system_prompt: words::sentence(dice),
        },
        _ => thread_command(dice),
    }
}

fn thread_command(dice: &mut Dice) -> Command {
    let flag = |dice: &mut Dice| dice.once_in(2);
    match dice.below(20) {
        0..=3 => Command::Rename { title: words::name(dice) },
        4..=6 if dice.once_in(30) => {
            Command::Tag { add: (0..300).map(|number| format!("tag{number}")).collect(), remove: Vec::new() }
        }
        4..=6 => Command::Tag { add: names(dice), remove: names(dice) },
        7 | 8 => Command::Pin { pinned: flag(dice) },
        9 => {
            let who = [Visibility::Organization, Visibility::Private, Visibility::Public];
            Command::Share {
                visibility: flag(dice).then(|| who[dice.index(3)]),
                private: flag(dice).then(|| flag(dice)),
                shared_with_support: flag(dice).then(|| flag(dice)),
            }
        }
        10 => Command::Delete,
        11 => Command::Restore,
        12 | 13 => Command::SetRoles { roles: names(dice) },
        14..=16 => Command::Set { values: (0..=dice.below(3)).map(|_| words::setting(dice)).collect() },
        17 => Command::Reset,
        _ => Command::Save { name: words::name(dice) },
    }
}

fn take_command(thread: &NaiveThread, take: TakeId, entries: &TakePicture, dice: &mut Dice) -> Command {
    let name = dice.once_in(2).then(|| words::name(dice));
    let many = thread.picture().takes.len() >= if thread.long { 2 } else { MOST_TAKES };
    match dice.below(10) {
        0..=5 if many => Command::DeleteTake { take },
        0..=2 => {
            let at = (!dice.once_in(8)).then(|| any_entry(entries, dice));
            // An empty take can only be branched without an entry.
            Command::Branch { from: take, at, name }
        }
        3..=5 => Command::Fork { from: take, at: message(entries, dice), name },
        6 | 7 => Command::RenameTake { take, name: words::name(dice) },
        _ if thread.long => Command::Switch { take },
        _ => Command::DeleteTake { take },
    }
}

fn shorten(entries: &TakePicture, take: TakeId, dice: &mut Dice) -> Command {
    match dice.below(3) {
        0 => Command::Clear { take },
        1 => Command::Truncate { take, pairs: dice.below(6) },
        _ => delete(entries, take, dice),
    }
}

fn delete(take: &TakePicture, id: TakeId, dice: &mut Dice) -> Command {
    let many = if dice.once_in(4) { dice.below(20) } else { 1 };
    let mut entries: Vec<EntryId> = (0..many).map(|_| any_entry(take, dice)).collect();
    if dice.once_in(5) {
        // The same entry twice.
        entries.extend(entries.last().copied());
    }
    Command::DeleteEntries { take: id, entries }
}

/// A random position for entries.
pub(super) fn spot(take: &TakePicture, dice: &mut Dice) -> Spot {
    match dice.below(6) {
        0 => Spot::Start,
        1 => Spot::Before(any_entry(take, dice)),
        2 => Spot::After(any_entry(take, dice)),
        _ => Spot::End,
    }
}

/// The entries of a take as new ones, shuffled.
pub(super) fn shuffled(mut entries: Vec<NewEntry>, dice: &mut Dice) -> Vec<NewEntry> {
    for place in (1..entries.len()).rev() {
        entries.swap(place, dice.index(place + 1));
    }
    entries
}

/// A random take, usually the active one; sometimes one that does not exist.
fn any_take(picture: &ThreadPicture, dice: &mut Dice) -> TakeId {
    match dice.below(40) {
        0 => TakeId::from_bytes([dice.below(256) as u8; 16]),
        1..=25 => picture.active,
        _ => picture.takes[dice.index(picture.takes.len())].id,
    }
}

/// A random entry; sometimes one that does not exist.
fn any_entry(take: &TakePicture, dice: &mut Dice) -> EntryId {
    match dice.pick(&take.entries) {
        Some(entry) if !dice.once_in(25) => entry.id,
        _ => EntryId::from_bytes([dice.below(256) as u8; 16]),
    }
}

/// An entry to fork at, sometimes one with an image.
fn message(take: &TakePicture, dice: &mut Dice) -> EntryId {
    let shows = |entry: &&EntryPicture| entry.said.is_from_user() && !entry.said.pictures().is_empty();
    let found: Vec<_> = take.entries.iter().filter(shows).collect();
    if found.is_empty() || dice.once_in(2) {
        return any_entry(take, dice);
    }
    found[dice.index(found.len())].id
}

/// New text, or the text of an existing entry.
fn text(take: &TakePicture, dice: &mut Dice) -> String {
    match dice.pick(&take.entries) {
        Some(entry) if dice.once_in(6) => entry.said.text(),
        _ => words::sentence(dice),
    }
}

/// A draft change. There are few images, so that the same one is often attached again.
fn typing(take: TakeId, dice: &mut Dice) -> Command {
    match dice.below(10) {
        0..=5 => Command::SetDraft { take, text: draft(dice) },
        // Sometimes more images than a draft may have.
        6 | 7 if dice.once_in(500) => Command::Attach { take, pictures: (0..=100).map(picture).collect() },
        6 | 7 => {
            let pictures = (0..dice.below(3)).map(|_| picture(dice.below(4))).collect();
            Command::Attach { take, pictures }
        }
        8 => Command::Detach { take, picture: picture(dice.below(4)).attached.picture },
        _ => Command::ClearDraft { take },
    }
}

fn picture(number: u64) -> NewPicture {
    NewPicture::new(format!("GIF89a{number}").into_bytes()).expect("it begins as one does")
}

fn draft(dice: &mut Dice) -> String {
    if dice.once_in(2000) { "x".repeat(4 * 1024 * 1024 + 1) } else { words::sentence(dice) }
}

fn role(dice: &mut Dice) -> String {
    if dice.once_in(4) { words::name(dice) } else { words::ROLES[dice.index(words::ROLES.len())].to_owned() }
}

fn names(dice: &mut Dice) -> Vec<String> {
    (0..dice.below(4)).map(|_| words::name(dice)).collect()
}

fn file_list(dice: &mut Dice) -> FileList {
    [FileList::Files, FileList::ContextFiles, FileList::Screenshots][dice.index(3)]
}

fn unit(dice: &mut Dice) -> Unit {
    if dice.once_in(3) { Unit::Operation } else { Unit::Turn }
}

fn steps(dice: &mut Dice) -> u64 {
    if dice.once_in(4) { dice.below(8) + 1 } else { 1 }
}

fn missing_take() -> TakePicture {
    TakePicture {
        id: TakeId::from_bytes([0; 16]),
        name: String::new(),
        created: 0,
        entries: Vec::new(),
        draft: String::new(),
        attached: Vec::new(),
        files: [Vec::new(), Vec::new(), Vec::new()],
        parent: None,
        fork_point: None,
        sent: None,
        running: None,
    }
}
