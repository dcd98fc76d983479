//! Generates the next request: usually valid, sometimes not.
//!
//! Threads are small, so that comparing them completely stays cheap; a few are long on purpose. An invalid request has
//! exactly one fault, so that there is one correct refusal.

use retake_model::command::{InsertPosition, NewEntry};
use retake_model::id::{EntryId, TakeId};
use retake_model::state::Visibility;
use retake_model::take::{FileItem, FileList, NewPicture};
use retake_timeline::{Command, Unit};

use super::log::{Event, ReferenceThread};
use super::plain::{PlainEntry, PlainTake, PlainThread};
use super::{entries, names};
use crate::rng::Rng;

/// Maximum number of takes.
const MAX_TAKES: usize = 7;
/// Above this number, entries are rather deleted than added.
const MAX_ENTRIES: usize = 40;

/// A request to a thread.
#[derive(Clone, Debug)]
pub enum Request {
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
pub fn question(thread: &ReferenceThread, now: i64, rng: &mut Rng) -> Request {
    let picture = thread.picture();
    if picture.deleted.is_some() && !rng.once_in(4) {
        return if rng.once_in(2) { Request::Change(Command::Restore) } else { Request::Undo(unit(rng), 1) };
    }
    if let Event::Typed(take, _) = thread.head().event
        && !rng.once_in(3)
    {
        return Request::Change(typing(take, rng));
    }
    match rng.below(100) {
        0..=9 => Request::Undo(unit(rng), steps(rng)),
        10..=17 => Request::Redo(unit(rng), steps(rng)),
        18..=21 => Request::There,
        22..=26 => Request::Jump(rng.index(thread.version() + 2)),
        27..=32 if !thread.long && (picture.takes.len() > 1 || rng.once_in(6)) => {
            Request::Promote(any_take(picture, rng), rng.once_in(2).then(|| names::name(rng)))
        }
        _ => Request::Change(command(thread, now, rng)),
    }
}

/// A request to the source of a promotion.
pub fn question_to_source(rng: &mut Rng) -> Request {
    if rng.once_in(2) { Request::Undo(Unit::Turn, 1) } else { Request::Redo(Unit::Turn, 1) }
}

/// A request to the promoted thread.
pub fn question_to_promoted(thread: &ReferenceThread, now: i64, rng: &mut Rng) -> Request {
    match rng.below(7) {
        0 | 1 => Request::Change(Command::Delete),
        2 | 3 => Request::Change(Command::Restore),
        4 => Request::Undo(Unit::Turn, 1),
        _ => Request::Change(command(thread, now, rng)),
    }
}

fn command(thread: &ReferenceThread, now: i64, rng: &mut Rng) -> Command {
    let picture = thread.picture();
    let take = any_take(picture, rng);
    let missing = missing_take();
    let entries = picture.take(take).unwrap_or(&missing);
    // Drafts with images are rare and should be sent sometimes.
    if !entries.attached.is_empty() && rng.once_in(8) {
        return Command::SendDraft { take, role: None };
    }
    let crowded = entries.entries.len() > MAX_ENTRIES && !thread.long;
    // Long threads stay long.
    let choice = if thread.long { rng.below(60) } else { rng.below(100) };
    match choice {
        0..=21 if crowded => shorten(entries, take, rng),
        0..=21 => entries::add(entries, take, now, rng),
        22..=29 => Command::EditEntry { take, entry: any_entry(entries, rng), text: text(entries, rng) },
        30..=33 => {
            let (entry, version) = (any_entry(entries, rng), entries::version(now, rng));
            Command::RewriteEntry { take, entry, version }
        }
        34..=37 => Command::ChangeRole { take, entry: any_entry(entries, rng), role: role(rng) },
        38..=43 => delete(entries, take, rng),
        44..=49 | 69..=74 => take_command(thread, take, entries, rng),
        50..=54 if rng.once_in(3) => Command::Keep { take },
        50..=54 if rng.once_in(3) => entries::merge(any_take(picture, rng), take, now, rng),
        50..=54 => Command::Switch { take },
        55..=57 => typing(take, rng),
        58 | 59 => Command::SendDraft { take, role: rng.once_in(3).then(|| role(rng)) },
        60..=66 => entries::replace(entries, take, now, rng),
        67 | 68 if rng.once_in(4) => shorten(entries, take, rng),
        67 | 68 => entries::turn(entries, take, now, rng),
        75..=77 => {
            let items = (0..rng.below(4)).map(|_| FileItem::new(names::sentence(rng))).collect();
            Command::SetFiles { take, list: file_list(rng), items }
        }
        78 | 79 => {
            Command::RecordSend { take, markdown: names::sentence(rng), system_prompt: names::sentence(rng) }
        }
        _ => thread_command(rng),
    }
}

fn thread_command(rng: &mut Rng) -> Command {
    let flag = |rng: &mut Rng| rng.once_in(2);
    match rng.below(20) {
        0..=3 => Command::Rename { title: names::name(rng) },
        4..=6 if rng.once_in(30) => {
            Command::Tag { add: (0..300).map(|number| format!("tag{number}")).collect(), remove: Vec::new() }
        }
        4..=6 => Command::Tag { add: names(rng), remove: names(rng) },
        7 | 8 => Command::Pin { pinned: flag(rng) },
        9 => {
            let who = [Visibility::Organization, Visibility::Private, Visibility::Public];
            Command::Share {
                visibility: flag(rng).then(|| who[rng.index(3)]),
                private: flag(rng).then(|| flag(rng)),
                shared_with_support: flag(rng).then(|| flag(rng)),
            }
        }
        10 => Command::Delete,
        11 => Command::Restore,
        12 | 13 => Command::SetRoles { roles: names(rng) },
        14..=16 => Command::Set { values: (0..=rng.below(3)).map(|_| names::setting(rng)).collect() },
        17 => Command::Reset,
        _ => Command::Save { name: names::name(rng) },
    }
}

fn take_command(thread: &ReferenceThread, take: TakeId, entries: &PlainTake, rng: &mut Rng) -> Command {
    let name = rng.once_in(2).then(|| names::name(rng));
    let many = thread.picture().takes.len() >= if thread.long { 2 } else { MAX_TAKES };
    match rng.below(10) {
        0..=5 if many => Command::DeleteTake { take },
        0..=2 => {
            let at = (!rng.once_in(8)).then(|| any_entry(entries, rng));
            // An empty take can only be branched without an entry.
            Command::Branch { from: take, at, name }
        }
        3..=5 => Command::Fork { from: take, at: message(entries, rng), name },
        6 | 7 => Command::RenameTake { take, name: names::name(rng) },
        _ if thread.long => Command::Switch { take },
        _ => Command::DeleteTake { take },
    }
}

fn shorten(entries: &PlainTake, take: TakeId, rng: &mut Rng) -> Command {
    match rng.below(3) {
        0 => Command::Clear { take },
        1 => Command::Truncate { take, pairs: rng.below(6) },
        _ => delete(entries, take, rng),
    }
}

fn delete(take: &PlainTake, id: TakeId, rng: &mut Rng) -> Command {
    let many = if rng.once_in(4) { rng.below(20) } else { 1 };
    let mut entries: Vec<EntryId> = (0..many).map(|_| any_entry(take, rng)).collect();
    if rng.once_in(5) {
        // The same entry twice.
        entries.extend(entries.last().copied());
    }
    Command::DeleteEntries { take: id, entries }
}

/// A random position for entries.
pub(super) fn spot(take: &PlainTake, rng: &mut Rng) -> InsertPosition {
    match rng.below(6) {
        0 => InsertPosition::Start,
        1 => InsertPosition::Before(any_entry(take, rng)),
        2 => InsertPosition::After(any_entry(take, rng)),
        _ => InsertPosition::End,
    }
}

/// The entries of a take as new ones, shuffled.
pub(super) fn shuffled(mut entries: Vec<NewEntry>, rng: &mut Rng) -> Vec<NewEntry> {
    for place in (1..entries.len()).rev() {
        entries.swap(place, rng.index(place + 1));
    }
    entries
}

/// A random take, usually the active one; sometimes one that does not exist.
fn any_take(picture: &PlainThread, rng: &mut Rng) -> TakeId {
    match rng.below(40) {
        0 => TakeId::from_bytes([rng.below(256) as u8; 16]),
        1..=25 => picture.active,
        _ => picture.takes[rng.index(picture.takes.len())].id,
    }
}

/// A random entry; sometimes one that does not exist.
fn any_entry(take: &PlainTake, rng: &mut Rng) -> EntryId {
    match rng.pick(&take.entries) {
        Some(entry) if !rng.once_in(25) => entry.id,
        _ => EntryId::from_bytes([rng.below(256) as u8; 16]),
    }
}

/// An entry to fork at, sometimes one with an image.
fn message(take: &PlainTake, rng: &mut Rng) -> EntryId {
    let shows = |entry: &&PlainEntry| {
        entry.entry_content.is_from_user() && !entry.entry_content.pictures().is_empty()
    };
    let found: Vec<_> = take.entries.iter().filter(shows).collect();
    if found.is_empty() || rng.once_in(2) {
        return any_entry(take, rng);
    }
    found[rng.index(found.len())].id
}

/// New text, or the text of an existing entry.
fn text(take: &PlainTake, rng: &mut Rng) -> String {
    match rng.pick(&take.entries) {
        Some(entry) if rng.once_in(6) => entry.entry_content.text(),
        _ => names::sentence(rng),
    }
}

/// A draft change. There are few images, so that the same one is often attached again.
fn typing(take: TakeId, rng: &mut Rng) -> Command {
    match rng.below(10) {
        0..=5 => Command::SetDraft { take, text: draft(rng) },
        // Sometimes more images than a draft may have.
        6 | 7 if rng.once_in(500) => Command::Attach { take, pictures: (0..=100).map(picture).collect() },
        6 | 7 => {
            let pictures = (0..rng.below(3)).map(|_| picture(rng.below(4))).collect();
            Command::Attach { take, pictures }
        }
        8 => Command::Detach { take, picture: picture(rng.below(4)).attached.picture },
        _ => Command::ClearDraft { take },
    }
}

fn picture(number: u64) -> NewPicture {
    NewPicture::new(format!("GIF89a{number}").into_bytes()).expect("it begins as one does")
}

fn draft(rng: &mut Rng) -> String {
    if rng.once_in(2000) { "x".repeat(4 * 1024 * 1024 + 1) } else { names::sentence(rng) }
}

fn role(rng: &mut Rng) -> String {
    if rng.once_in(4) { names::name(rng) } else { names::ROLES[rng.index(names::ROLES.len())].to_owned() }
}

fn names(rng: &mut Rng) -> Vec<String> {
    (0..rng.below(4)).map(|_| names::name(rng)).collect()
}

fn file_list(rng: &mut Rng) -> FileList {
    [FileList::Files, FileList::ContextFiles, FileList::Screenshots][rng.index(3)]
}

fn unit(rng: &mut Rng) -> Unit {
    if rng.once_in(3) { Unit::Operation } else { Unit::Turn }
}

fn steps(rng: &mut Rng) -> u64 {
    if rng.once_in(4) { rng.below(8) + 1 } else { 1 }
}

fn missing_take() -> PlainTake {
    PlainTake {
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
