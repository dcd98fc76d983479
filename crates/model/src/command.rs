//! Commands: what a user can ask of a thread, and the pure function that does it.
//!
//! [`apply`] takes a state and a command and gives the next state, what happened, and (in the additions) the
//! new content. It never touches what is stored; a command that is refused leaves nothing behind.

mod draft;
mod entries;
mod naming;
mod reset;
mod takes;
mod thread;
mod turns;

use crate::agent::AgentState;
use crate::content::ContentId;
use crate::entry::EntryVersion;
use crate::id::{EntryId, Fresh, TakeId, TurnId};
use crate::list::{EntryCell, List};
use crate::name::BadName;
use crate::object::{Additions, Objects, Unavailable};
use crate::operation::{OperationKind, TurnStep};
use crate::settings::BadSetting;
use crate::sharing::Sharing;
use crate::state::{ThreadState, Visibility};
use crate::take::{FileItem, FileList, NewPicture};

pub use crate::take::NotAPicture;
pub use takes::{Promotion, promote};
pub use thread::checked_roles;
pub use turns::check_prompt;

/// What a user can ask of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Put entries into a take.
    AddEntries {
        /// Which take.
        take: TakeId,
        /// Where.
        at: Spot,
        /// The entries, in order.
        entries: Vec<NewEntry>,
    },
    /// Put the draft of a take behind its last entry, and empty the draft.
    SendDraft {
        /// Which take.
        take: TakeId,
        /// Who speaks; `None` for the first of the thread's roles.
        role: Option<String>,
    },
    /// Change the text of an entry.
    EditEntry {
        /// Which take.
        take: TakeId,
        /// Which entry.
        entry: EntryId,
        /// The new text.
        text: String,
    },
    /// Change everything about an entry but its identity.
    RewriteEntry {
        /// Which take.
        take: TakeId,
        /// Which entry.
        entry: EntryId,
        /// The new content.
        version: EntryVersion,
    },
    /// Change the role of an entry.
    ChangeRole {
        /// Which take.
        take: TakeId,
        /// Which entry.
        entry: EntryId,
        /// The new role.
        role: String,
    },
    /// Take entries out. Those that are gone already are passed over.
    DeleteEntries {
        /// Which take.
        take: TakeId,
        /// Which entries.
        entries: Vec<EntryId>,
    },
    /// Put other entries in the place of all there are.
    ReplaceEntries {
        /// Which take.
        take: TakeId,
        /// The entries, in order.
        entries: Vec<NewEntry>,
    },
    /// Keep only the last pairs of user and AI entries.
    Truncate {
        /// Which take.
        take: TakeId,
        /// How many pairs.
        pairs: u64,
    },
    /// Take all entries out of one take.
    Clear {
        /// Which take.
        take: TakeId,
    },
    /// Make a take with everything up to and including an entry, and go there.
    Branch {
        /// From which take.
        from: TakeId,
        /// The last entry that both will share; `None` for an empty take.
        at: Option<EntryId>,
        /// Its name; `None` for the next free one.
        name: Option<String>,
    },
    /// Make a take with everything before a user message, that message as its draft, and go there.
    Fork {
        /// From which take.
        from: TakeId,
        /// The user message.
        at: EntryId,
        /// Its name; `None` for the next free one.
        name: Option<String>,
    },
    /// Work on another take.
    Switch {
        /// Which take.
        take: TakeId,
    },
    /// Give a take another name.
    RenameTake {
        /// Which take.
        take: TakeId,
        /// The new name.
        name: String,
    },
    /// Take a take away.
    DeleteTake {
        /// Which take.
        take: TakeId,
    },
    /// Give the thread another title.
    Rename {
        /// The new title.
        title: String,
    },
    /// Add and remove tags.
    Tag {
        /// Tags to add.
        add: Vec<String>,
        /// Tags to remove.
        remove: Vec<String>,
    },
    /// Keep the thread on top of lists, or no longer.
    Pin {
        /// Whether it is to be pinned.
        pinned: bool,
    },
    /// Say who may see the thread. `None` leaves a part as it is.
    Share {
        /// Who may see it.
        visibility: Option<Visibility>,
        /// Whether it never leaves this machine.
        private: Option<bool>,
        /// Whether support may see it.
        shared_with_support: Option<bool>,
    },
    /// Put the thread away.
    Delete,
    /// Take the thread back into use.
    Restore,
    /// Say which roles there are.
    SetRoles {
        /// The roles, in order; none is fine.
        roles: Vec<String>,
    },
    /// Change settings.
    Set {
        /// Names and values.
        values: Vec<(String, String)>,
    },
    /// Record what is being typed.
    SetDraft {
        /// Of which take.
        take: TakeId,
        /// The whole text.
        text: String,
    },
    /// Let pictures go along with what is being typed.
    Attach {
        /// Of which take.
        take: TakeId,
        /// The pictures; those that go along already stay where they are.
        pictures: Vec<NewPicture>,
    },
    /// Let a picture go along no more.
    Detach {
        /// Of which take.
        take: TakeId,
        /// The picture.
        picture: ContentId,
    },
    /// Throw away what is being typed, with its pictures.
    ClearDraft {
        /// Of which take.
        take: TakeId,
    },
    /// Say which files a take names.
    SetFiles {
        /// Of which take.
        take: TakeId,
        /// In which list.
        list: FileList,
        /// The whole list.
        items: Vec<FileItem>,
    },
    /// Record what was given to the model.
    RecordSend {
        /// Of which take.
        take: TakeId,
        /// Conversation and context.
        markdown: String,
        /// The system prompt.
        system_prompt: String,
    },
    /// Begin a turn: the prompt goes in, and the agent's next move is to call the model.
    StartTurn {
        /// In which take.
        take: TakeId,
        /// What it begins with.
        start: Start,
    },
    /// Make a take with everything before a user message, go there, and begin a turn with that message or another.
    Retry {
        /// From which take.
        from: TakeId,
        /// The user message.
        at: EntryId,
        /// The name of the new take; `None` for the next free one.
        name: Option<String>,
        /// What the turn begins with; without a prompt, the message as it is.
        start: Start,
    },
    /// Go on with a turn.
    AdvanceTurn {
        /// In which take.
        take: TakeId,
        /// What it does.
        advance: Advance,
    },
    /// Put a summary in the place of the first entries.
    Compress {
        /// In which take.
        take: TakeId,
        /// What is replaced, and by what.
        compression: Compression,
    },
    /// Clear entries, settings, drafts and files of the whole thread.
    Reset,
    /// Give the present moment a name.
    Save {
        /// The name.
        name: String,
    },
}

/// What a turn begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The turn.
    pub turn: TurnId,
    /// What goes along with the prompt, before it: context files and pictures.
    pub context: Vec<NewEntry>,
    /// The prompt.
    pub prompt: Prompt,
    /// Settings that hold from here on, such as another model.
    pub settings: Vec<(String, String)>,
    /// What is given to the model beside the entries.
    pub sent: Option<SentText>,
}

/// What a person asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// That entry.
    Entry(NewEntry),
    /// What is being typed, which is empty then.
    Draft {
        /// Its role; `None` for the first of the thread's own roles.
        role: Option<String>,
    },
    /// The message that is tried again.
    Same,
}

/// What is given to the model beside the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentText {
    /// Context files and prompt, as Markdown.
    pub markdown: String,
    /// The system prompt.
    pub system_prompt: String,
}

/// What a turn does next.
#[derive(Clone, Debug, PartialEq)]
pub struct Advance {
    /// The turn.
    pub turn: TurnId,
    /// Entries that it brings, behind the last one.
    pub entries: Vec<NewEntry>,
    /// Settings that hold from here on, such as another model.
    pub settings: Vec<(String, String)>,
    /// Where the agent stands then.
    pub state: AgentState,
    /// What it does, for the log.
    pub step: TurnStep,
}

/// A summary in the place of the first entries of a take.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// The turn that it is a part of, if it is a part of one: once that turn is gone, nothing is changed.
    pub turn: Option<TurnId>,
    /// The take's entries when they were summarised. Of the first `end` none may have changed since.
    pub seen: List<EntryCell>,
    /// How many of the first entries are replaced.
    pub end: u64,
    /// Those of them that stay all the same, before the summary.
    pub kept: Vec<EntryId>,
    /// The summary.
    pub summary: NewEntry,
}

/// Where entries are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// Behind the last entry.
    End,
    /// Just before that entry.
    Before(EntryId),
    /// Just behind that entry.
    After(EntryId),
    /// Before all entries.
    Start,
}

/// An entry that is to be put in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Its identity, if the caller chose one; a second entry with the same identity is refused, so that a
    /// caller who does not know whether its first try arrived can safely try again.
    pub id: Option<EntryId>,
    /// Its content.
    pub version: EntryVersion,
    /// The bytes of pictures that it shows and that are not stored yet.
    pub blobs: Vec<Vec<u8>>,
}

impl From<EntryVersion> for NewEntry {
    fn from(version: EntryVersion) -> Self {
        Self { id: None, version, blobs: Vec::new() }
    }
}

impl NewEntry {
    /// An entry with pictures behind its text, given as their bytes.
    pub fn with_pictures(version: EntryVersion, pictures: Vec<Vec<u8>>) -> Result<Self, NotAPicture> {
        let mut entry = Self::from(version);
        for bytes in pictures {
            let NewPicture { attached, bytes } = NewPicture::new(bytes)?;
            entry.version.blocks.push(attached.into_block());
            entry.blobs.push(bytes);
        }
        Ok(entry)
    }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// The thread has a new state.
    Changed {
        /// The new state.
        state: ThreadState,
        /// What happened.
        kind: OperationKind,
    },
    /// The thread is already as it was asked to be.
    Unchanged,
}

/// Why a command was refused. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The thread has no such take.
    #[error("there is no such take in this thread; `retake tree` shows those there are")]
    NoSuchTake,
    /// The take has no such entry.
    #[error("there is no such entry in this take; it may have been deleted, and `retake history` shows when")]
    NoSuchEntry,
    /// An entry with that identity is there already.
    #[error("entry {} is in this take already", .0.short())]
    EntryExists(EntryId),
    /// An entry shows a picture that is not stored and did not come along.
    #[error("the entry shows picture {}, which is not stored; `retake entry add --attach` brings one along", .0.short())]
    NoSuchPicture(ContentId),
    /// No such picture goes along with the draft.
    #[error("the draft has no picture {}; `retake draft` shows those it has", .0.short())]
    NotAttached(ContentId),
    /// There is nothing to send.
    #[error("the draft of {take:?} is empty, so there is nothing to send; `retake draft set` writes one")]
    EmptyDraft {
        /// The take's name.
        take: String,
    },
    /// Another take has that name.
    #[error("a take called {0:?} exists already; choose another name")]
    NameTaken(String),
    /// A thread always has a take.
    #[error("this is the thread's last take; delete the thread instead, or clear the take")]
    LastTake,
    /// The thread's only take cannot become a thread of its own.
    #[error("this is the thread's only take, so it is a thread of its own already")]
    OnlyTake,
    /// There is nothing to ask the model.
    #[error("the prompt is empty, so there is nothing to ask; nothing was changed")]
    EmptyPrompt,
    /// The model gave no summary.
    #[error(
        "the summary is empty, so it cannot stand for the entries; nothing was changed. Try again, or with another model"
    )]
    EmptySummary,
    /// The turn is not the one that the take is in any more.
    #[error("the turn was undone, or ended elsewhere; it does not go on")]
    TurnGone,
    /// A turn of the take has not ended.
    #[error("a turn of this take has not ended; `retake resume` goes on with it, `retake stop` ends it")]
    TurnUnfinished,
    /// An entry that was summarised is not what the summary was made of.
    #[error("an entry was changed while the summary of it was written; nothing was compressed, try again")]
    SummaryOutdated,
    /// There is nothing to summarise.
    #[error("there is nothing to compress: no entry would be replaced")]
    NothingToCompress,
    /// A fork starts at a user message.
    #[error("the entry's role is {role:?}; a fork starts at a user message, `take branch` at any entry")]
    NotAUserMessage {
        /// The role it has.
        role: String,
    },
    /// A prompt has the role of a user.
    #[error(
        "the prompt would have the role {role:?}, which is an assistant's; nothing was changed. Put a user's role first: \
         `retake role` lists the roles"
    )]
    AssistantPrompt {
        /// The role it has.
        role: String,
    },
    /// A name is not one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A setting is not one.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// More than there may be.
    #[error("{what}: at most {limit}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// The most there may be.
        limit: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// What commands need besides the state.
pub struct Context<'call, 'base, O: Objects + ?Sized, F: Fresh> {
    /// Where content is read and new content is left.
    pub additions: &'call mut Additions<'base, O>,
    /// Time and dice.
    pub fresh: &'call mut F,
    /// Whether the thread has a take with that name. A thread can have thousands of takes, so the caller
    /// answers from an index.
    pub take_named: &'call dyn Fn(&str) -> Result<bool, Unavailable>,
    /// The git commit that the thread is at: what a new branch is anchored to.
    pub git_commit: Option<&'call str>,
}

/// Does what the command asks.
pub fn apply<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    command: Command,
    context: &mut Context<'_, '_, O, F>,
) -> Result<Applied, Refusal> {
    match command {
        Command::AddEntries { take, at, entries } => entries::add(state, take, at, entries, context),
        Command::SendDraft { take, role } => draft::send(state, take, role.as_deref(), context),
        Command::EditEntry { take, entry, text } => entries::edit(state, take, entry, &text, context),
        Command::RewriteEntry { take, entry, version } => {
            entries::rewrite(state, take, entry, &version, context)
        }
        Command::ChangeRole { take, entry, role } => entries::change_role(state, take, entry, &role, context),
        Command::DeleteEntries { take, entries } => entries::delete(state, take, &entries, context),
        Command::ReplaceEntries { take, entries } => entries::replace(state, take, entries, context),
        Command::Truncate { take, pairs } => entries::truncate(state, take, pairs, context),
        Command::Clear { take } => entries::clear(state, take, context),
        Command::Branch { from, at, name } => takes::branch(state, from, at, name, context),
        Command::Fork { from, at, name } => takes::fork(state, from, at, name, context),
        Command::Switch { take } => takes::switch(state, take, context),
        Command::RenameTake { take, name } => takes::rename(state, take, &name, context),
        Command::DeleteTake { take } => takes::delete(state, take, context),
        Command::SetDraft { take, text } => draft::set(state, take, text, context),
        Command::Attach { take, pictures } => draft::attach(state, take, pictures, context),
        Command::Detach { take, picture } => draft::detach(state, take, picture, context),
        Command::ClearDraft { take } => draft::clear(state, take, context),
        Command::SetFiles { take, list, items } => takes::set_files(state, take, list, items, context),
        Command::StartTurn { take, start } => turns::start(state, take, start, context),
        Command::Retry { from, at, name, start } => turns::retry(state, from, at, name, start, context),
        Command::AdvanceTurn { take, advance } => turns::advance(state, take, advance, context),
        Command::Compress { take, compression } => turns::compress(state, take, compression, context),
        Command::RecordSend { take, markdown, system_prompt } => {
            takes::record_send(state, take, markdown, system_prompt, context)
        }
        Command::Rename { title } => thread::rename(state, &title),
        Command::Tag { add, remove } => thread::tag(state, &add, &remove),
        Command::Pin { pinned } => Ok(thread::pin(state, pinned)),
        Command::Share { visibility, private, shared_with_support } => {
            let marks = Sharing::of_first(state).with(visibility, private, shared_with_support);
            Ok(thread::share(state, marks))
        }
        Command::Delete => Ok(thread::delete(state, context.fresh.now())),
        Command::Restore => Ok(thread::restore(state)),
        Command::SetRoles { roles } => thread::set_roles(state, &roles),
        Command::Set { values } => thread::set(state, &values, context),
        Command::Reset => reset::reset(state, context),
        Command::Save { name } => {
            let name = crate::name::check(crate::name::Naming::Save, &name)?;
            Ok(Applied::Changed { state: state.clone(), kind: OperationKind::Saved { name } })
        }
    }
}

/// The state with another version of one of its takes.
fn with_take<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: &crate::take::Take,
    context: &mut Context<'_, '_, O, F>,
) -> Result<ThreadState, Refusal> {
    let content = context.additions.add(take);
    let (position, _) = state.takes.find(context.additions, take.id.bytes())?.ok_or(Refusal::NoSuchTake)?;
    let takes =
        state.takes.splice(context.additions, position..position + 1, vec![take_cell(take, content)])?;
    Ok(ThreadState { takes, ..state.clone() })
}

fn take_cell(take: &crate::take::Take, content: ContentId) -> crate::list::TakeCell {
    crate::list::TakeCell { take: take.id, content }
}

fn find_take<O: Objects + ?Sized, F: Fresh>(
    state: &ThreadState,
    take: TakeId,
    context: &Context<'_, '_, O, F>,
) -> Result<crate::take::Take, Refusal> {
    state.take(context.additions, take)?.ok_or(Refusal::NoSuchTake)
}
