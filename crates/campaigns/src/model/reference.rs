//! The effect of each command in the simplest way: copy everything, then change the copy.
//!
//! Shares only the command types with the crates under test.

mod entries;
mod takes;
mod thread;

use retake_model::command::{InsertPosition, Prompt};
use retake_model::id::{EntryId, TakeId};
use retake_timeline::Command;

use super::fault::ModelFault;
use super::names;
use super::observe::{shown, turn_number};
use super::plain::{PlainTake, PlainThread};

/// The expected refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedRefusal {
    Conflict,
    EmptyDraft,
    EntryExists,
    LastTake,
    LastThread,
    Name,
    NameTaken,
    NoSuchEntry,
    NoSuchTake,
    NoSuchVersion,
    NotAUserMessage,
    NotAttached,
    NothingToRedo,
    NothingToUndo,
    OnlyTake,
    SameTake,
    Setting,
    ThreadDeleted,
    TitleTaken,
    TooDeep,
    TooMuch,
    TurnUnfinished,
}

/// Ids that only the real implementation knows, because it generates them.
pub trait IdSource {
    /// The entry at this position of this take.
    fn entry(&mut self, take: TakeId, place: usize) -> EntryId;
    /// The new take and its name.
    fn take(&mut self) -> (TakeId, String);
}

/// The context of a command.
pub struct CommandContext<'call> {
    /// The current time.
    pub now: i64,
    /// Generated ids.
    pub learn: &'call mut dyn IdSource,
    /// The injected fault.
    pub fault: Option<ModelFault>,
    /// The shared roles.
    pub roles: &'call [String],
}

/// Applies a command; returns the same state if there is nothing to do.
pub fn apply(
    before: &PlainThread,
    command: &Command,
    around: &mut CommandContext<'_>,
) -> Result<PlainThread, ExpectedRefusal> {
    let mut after = before.clone();
    match command {
        Command::AddEntries { take, at, entries } => {
            entries::add(&mut after, *take, *at, entries, around)?;
        }
        Command::SendDraft { take, role } => {
            entries::send_draft(&mut after, *take, role.as_deref(), around)?;
        }
        Command::EditEntry { take, entry, text } => entries::edit(&mut after, *take, *entry, text, around)?,
        Command::RewriteEntry { take, entry, version } => {
            entries::rewrite(&mut after, *take, *entry, version)?;
        }
        Command::ChangeRole { take, entry, role } => entries::role(&mut after, *take, *entry, role)?,
        Command::DeleteEntries { take, entries } => {
            entries::delete(&mut after, *take, entries, around.fault)?;
        }
        Command::ReplaceEntries { take, entries } => entries::replace(&mut after, *take, entries, around)?,
        Command::Truncate { take, pairs } => entries::truncate(&mut after, *take, *pairs)?,
        Command::Clear { take } => find(&mut after, *take)?.entries.clear(),
        Command::Branch { from, at, name } => {
            takes::branch(&mut after, *from, *at, name.as_deref(), around)?;
        }
        Command::Fork { from, at, name } => takes::fork(&mut after, *from, *at, name.as_deref(), around)?,
        Command::Switch { take } => {
            find(&mut after, *take)?;
            after.active = *take;
        }
        Command::RenameTake { take, name } => takes::rename(&mut after, *take, name)?,
        Command::Merge { into, from, entries } => {
            find(&mut after, *into)?;
            find(&mut after, *from)?;
            if into == from {
                return Err(ExpectedRefusal::SameTake);
            }
            let added =
                if around.fault == Some(ModelFault::MergeAddsNothing) { &[] } else { entries.as_slice() };
            entries::add(&mut after, *into, InsertPosition::End, added, around)?;
        }
        Command::Keep { take } => takes::keep(&mut after, *take, around.fault)?,
        Command::DeleteTake { take } => {
            find(&mut after, *take)?;
            takes::remove(&mut after, *take, ExpectedRefusal::LastTake)?;
        }
        Command::SetDraft { take, text } => {
            let take = find(&mut after, *take)?;
            if text.len() > 4 * 1024 * 1024 {
                return Err(ExpectedRefusal::TooMuch);
            }
            text.clone_into(&mut take.draft);
        }
        Command::Attach { take, pictures } => {
            let take = find(&mut after, *take)?;
            for new in pictures {
                let one = shown(&new.attached);
                if take.attached.iter().all(|known| known.picture != one.picture) {
                    take.attached.push(one);
                }
            }
            if take.attached.len() > 100 {
                return Err(ExpectedRefusal::TooMuch);
            }
        }
        Command::Detach { take, picture } => {
            let take = find(&mut after, *take)?;
            let place = take.attached.iter().position(|one| one.picture == *picture);
            take.attached.remove(place.ok_or(ExpectedRefusal::NotAttached)?);
        }
        Command::ClearDraft { take } => {
            let take = find(&mut after, *take)?;
            take.draft.clear();
            if around.fault != Some(ModelFault::ClearKeepsPictures) {
                take.attached.clear();
            }
        }
        Command::SetFiles { take, list, items } => takes::files(&mut after, *take, *list, items)?,
        Command::RecordSend { take, markdown, system_prompt } => {
            find(&mut after, *take)?.sent = Some((markdown.clone(), system_prompt.clone()));
        }
        Command::StartTurn { take, start } => {
            if find(&mut after, *take)?.running.is_some() {
                return Err(ExpectedRefusal::TurnUnfinished);
            }
            let Prompt::Entry(prompt) = &start.prompt else { unreachable!("a prompt is an entry here") };
            entries::add(&mut after, *take, InsertPosition::End, std::slice::from_ref(prompt), around)?;
            find(&mut after, *take)?.running = Some(turn_number(start.turn));
        }
        Command::AdvanceTurn { take, advance } => {
            entries::add(&mut after, *take, InsertPosition::End, &advance.entries, around)?;
            let running = advance.state.is_running().then(|| turn_number(advance.turn));
            find(&mut after, *take)?.running = running;
        }
        Command::Reset => thread::reset(&mut after, around.fault),
        Command::Save { name } => {
            names::meaning(name).ok_or(ExpectedRefusal::Name)?;
        }
        other => thread::change(&mut after, other, around.now)?,
    }
    Ok(after)
}

/// Finds a take to change.
fn find(picture: &mut PlainThread, id: TakeId) -> Result<&mut PlainTake, ExpectedRefusal> {
    picture.takes.iter_mut().find(|take| take.id == id).ok_or(ExpectedRefusal::NoSuchTake)
}

/// The position of an entry in a take.
fn place_of(take: &PlainTake, id: EntryId) -> Result<usize, ExpectedRefusal> {
    take.entries.iter().position(|entry| entry.id == id).ok_or(ExpectedRefusal::NoSuchEntry)
}

pub use takes::promote;
