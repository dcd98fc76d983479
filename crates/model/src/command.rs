//! Commands: the changes a user can make to a thread, and the pure function that applies them.
//!
//! [`apply`] takes a state and a command and returns the next state and the kind of operation; new content
//! goes into the additions. It never changes stored content, so a failed command has no effect.

mod draft;
mod entries;
pub(crate) mod naming;
mod reset;
mod takes;
mod thread;
mod turns;

use crate::agent::AgentState;
use crate::content::ContentId;
use crate::entry::EntryVersion;
use crate::id::{EntryId, IdSource, TakeId, TurnId};
use crate::list::{EntryCell, List};
use crate::name::InvalidNameError;
use crate::object::{Additions, ObjectError, Objects};
use crate::operation::{OperationKind, TurnStep};
use crate::settings::InvalidSettingError;
use crate::sharing::Sharing;
use crate::state::{ThreadState, Visibility};
use crate::take::{FileItem, FileList, NewPicture};

pub use crate::take::InvalidPictureError;
pub use takes::{Promotion, alternatives, promote};
pub use thread::checked_roles;
pub use turns::check_prompt;

/// A change that a user can make to a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Insert entries into a take.
    AddEntries {
        /// The take.
        take: TakeId,
        /// The position.
        at: InsertPosition,
        /// The entries, in order.
        entries: Vec<NewEntry>,
    },
    /// Append the draft of a take as an entry, and clear the draft.
    SendDraft {
        /// The take.
        take: TakeId,
        /// The role of the entry; `None` for the thread's first role.
        role: Option<String>,
    },
    /// Edit the text of an entry.
    EditEntry {
        /// The take.
        take: TakeId,
        /// The entry.
        entry: EntryId,
        /// The new text.
        text: String,
    },
    /// Replace everything in an entry except its id.
    RewriteEntry {
        /// The take.
        take: TakeId,
        /// The entry.
        entry: EntryId,
        /// The new content.
        version: EntryVersion,
    },
    /// Change the role of an entry.
    ChangeRole {
        /// The take.
        take: TakeId,
        /// The entry.
        entry: EntryId,
        /// The new role.
        role: String,
    },
    /// Delete entries. Entries that no longer exist are skipped.
    DeleteEntries {
        /// The take.
        take: TakeId,
        /// The entries to delete.
        entries: Vec<EntryId>,
    },
    /// Replace all entries of a take.
    ReplaceEntries {
        /// The take.
        take: TakeId,
        /// The entries, in order.
        entries: Vec<NewEntry>,
    },
    /// Keep only the last pairs of user and AI entries.
    Truncate {
        /// The take.
        take: TakeId,
        /// The number of pairs to keep.
        pairs: u64,
    },
    /// Delete all entries of one take.
    Clear {
        /// The take.
        take: TakeId,
    },
    /// Create a take with all entries up to and including an entry, and switch to it.
    Branch {
        /// The source take.
        from: TakeId,
        /// The last shared entry; `None` for an empty take.
        at: Option<EntryId>,
        /// The name of the new take; `None` for the next free one.
        name: Option<String>,
    },
    /// Create a take with all entries before a user message, with that message as its draft, and switch to
    /// it.
    Fork {
        /// The source take.
        from: TakeId,
        /// The user message.
        at: EntryId,
        /// The name of the new take; `None` for the next free one.
        name: Option<String>,
    },
    /// Switch to another take.
    Switch {
        /// The take.
        take: TakeId,
    },
    /// Rename a take.
    RenameTake {
        /// The take.
        take: TakeId,
        /// The new name.
        name: String,
    },
    /// Switch to a take and delete its alternatives: the takes that went on differently from its newest fork.
    Keep {
        /// The take.
        take: TakeId,
    },
    /// Merge another take: append its conclusion, if any. Its file changes are planned by the caller.
    Merge {
        /// The take.
        into: TakeId,
        /// The other take.
        from: TakeId,
        /// The entries to append.
        entries: Vec<NewEntry>,
    },
    /// Delete a take.
    DeleteTake {
        /// The take.
        take: TakeId,
    },
    /// Rename the thread.
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
    /// Pin the thread to the top of lists, or unpin it.
    Pin {
        /// Whether the thread is pinned.
        pinned: bool,
    },
    /// Change the thread's visibility. `None` leaves a field unchanged.
    Share {
        /// The new visibility.
        visibility: Option<Visibility>,
        /// Whether the thread is never sent to a hub.
        private: Option<bool>,
        /// Whether support may see the thread.
        shared_with_support: Option<bool>,
    },
    /// Delete the thread: hide it, until it is restored.
    Delete,
    /// Restore the deleted thread.
    Restore,
    /// Set the thread's roles.
    SetRoles {
        /// The roles, in order; may be empty.
        roles: Vec<String>,
    },
    /// Change settings.
    Set {
        /// Names and values.
        values: Vec<(String, String)>,
    },
    /// Set the draft.
    SetDraft {
        /// The take.
        take: TakeId,
        /// The whole text.
        text: String,
    },
    /// Attach pictures to the draft.
    Attach {
        /// The take.
        take: TakeId,
        /// The pictures. Those already attached stay in their position.
        pictures: Vec<NewPicture>,
    },
    /// Detach a picture from the draft.
    Detach {
        /// The take.
        take: TakeId,
        /// The picture.
        picture: ContentId,
    },
    /// Discard the draft and its pictures.
    ClearDraft {
        /// The take.
        take: TakeId,
    },
    /// Set one of a take's file lists.
    SetFiles {
        /// The take.
        take: TakeId,
        /// The list to set.
        list: FileList,
        /// Its new items.
        items: Vec<FileItem>,
    },
    /// Record the text that was sent to the model.
    RecordSend {
        /// The take.
        take: TakeId,
        /// The conversation and its context.
        markdown: String,
        /// The system prompt.
        system_prompt: String,
    },
    /// Start a turn: insert the prompt and set the agent to call the model.
    StartTurn {
        /// The take.
        take: TakeId,
        /// The content of the turn's first operation.
        start: TurnStart,
    },
    /// Create a take with all entries before a user message, switch to it, and start a turn with that
    /// message or another one.
    Retry {
        /// The source take.
        from: TakeId,
        /// The user message.
        at: EntryId,
        /// The name of the new take; `None` for the next free one.
        name: Option<String>,
        /// The content of the turn's first operation; by default the prompt is the original message.
        start: TurnStart,
    },
    /// Record the next step of a turn.
    AdvanceTurn {
        /// The take.
        take: TakeId,
        /// The step.
        advance: TurnAdvance,
    },
    /// Replace the first entries with a summary.
    Compress {
        /// The take.
        take: TakeId,
        /// The summary and the entries that it replaces.
        compression: Compression,
    },
    /// Clear entries, settings, drafts and files of the whole thread.
    Reset,
    /// Name the current version.
    Save {
        /// The name.
        name: String,
    },
}

/// The start of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnStart {
    /// The turn.
    pub turn: TurnId,
    /// Context files and pictures, inserted before the prompt.
    pub context: Vec<NewEntry>,
    /// The prompt.
    pub prompt: Prompt,
    /// Settings that apply from now on, such as another model.
    pub settings: Vec<(String, String)>,
    /// The text that the model receives in addition to the entries.
    pub sent: Option<SentContextText>,
}

/// The source of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// A new entry.
    Entry(NewEntry),
    /// The draft, which is then cleared.
    Draft {
        /// The role of the entry; `None` for the thread's first role.
        role: Option<String>,
    },
    /// The message that is retried.
    Original,
}

/// Text that the model receives in addition to the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentContextText {
    /// Context files and prompt as Markdown.
    pub markdown: String,
    /// The system prompt.
    pub system_prompt: String,
}

/// The next step of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnAdvance {
    /// The turn.
    pub turn: TurnId,
    /// New entries, appended to the take.
    pub entries: Vec<NewEntry>,
    /// Settings that apply from now on, such as another model.
    pub settings: Vec<(String, String)>,
    /// The agent's new state.
    pub state: AgentState,
    /// The kind of step, for the log.
    pub step: TurnStep,
}

/// A summary that replaces the first entries of a take.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// The turn it belongs to, if any. If that turn no longer runs, the command has no effect.
    pub turn: Option<TurnId>,
    /// The take's entries when the summary was written. The first `end` must not have changed since.
    pub seen: List<EntryCell>,
    /// The number of entries to replace.
    pub end: u64,
    /// Entries among them that stay, before the summary.
    pub kept: Vec<EntryId>,
    /// The summary.
    pub summary: NewEntry,
}

/// An insert position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPosition {
    /// After the last entry.
    End,
    /// Directly before that entry.
    Before(EntryId),
    /// Directly after that entry.
    After(EntryId),
    /// Before the first entry.
    Start,
}

/// An entry to insert.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Its id, if the caller chose one. A second entry with the same id is refused, so a caller can safely
    /// retry after a lost response.
    pub id: Option<EntryId>,
    /// Its content.
    pub version: EntryVersion,
    /// Bytes of pictures in the entry that are not stored yet.
    pub blobs: Vec<Vec<u8>>,
}

impl From<EntryVersion> for NewEntry {
    fn from(version: EntryVersion) -> Self {
        Self { id: None, version, blobs: Vec::new() }
    }
}

impl NewEntry {
    /// Creates an entry with pictures after its text, given as their bytes.
    pub fn with_pictures(version: EntryVersion, pictures: Vec<Vec<u8>>) -> Result<Self, InvalidPictureError> {
        let mut entry = Self::from(version);
        for bytes in pictures {
            let NewPicture { attached, bytes } = NewPicture::new(bytes)?;
            entry.version.blocks.push(attached.into_block());
            entry.blobs.push(bytes);
        }
        Ok(entry)
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandOutcome {
    /// The command changed the thread.
    Changed {
        /// The new state.
        state: ThreadState,
        /// The kind of operation, for the log.
        kind: OperationKind,
    },
    /// The thread already is in the requested state.
    Unchanged,
}

/// Why a command failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No such take in the thread.
    #[error("there is no such take in this thread; `retake tree` lists the takes")]
    NoSuchTake,
    /// The take was named twice.
    #[error("a take cannot be merged into itself; name another one")]
    SameTake,
    /// No such entry in the take.
    #[error("there is no such entry in this take; it may have been deleted, and `retake history` shows when")]
    NoSuchEntry,
    /// An entry with that id already exists.
    #[error("this take already has the entry {}", .0.short())]
    EntryExists(EntryId),
    /// The entry shows a picture that is neither stored nor supplied.
    #[error("the entry refers to picture {}, which is not stored; attach it with `retake entry add --attach`", .0.short())]
    NoSuchPicture(ContentId),
    /// No such picture is attached to the draft.
    #[error("the draft has no picture {}; `retake draft` shows those it has", .0.short())]
    NotAttached(ContentId),
    /// The draft is empty.
    #[error("the draft of {take:?} is empty, so there is nothing to send; `retake draft set` writes one")]
    EmptyDraft {
        /// The take's name.
        take: String,
    },
    /// Another take has that name.
    #[error("a take named {0:?} already exists; choose another name")]
    NameTaken(String),
    /// A thread needs at least one take.
    #[error("this is the thread's last take; delete the thread instead, or clear the take")]
    LastTake,
    /// The only take of a thread cannot be promoted.
    #[error("this is the thread's only take, so there is nothing to promote")]
    OnlyTake,
    /// The prompt is empty.
    #[error("the prompt is empty, so there is nothing to ask; nothing was changed")]
    EmptyPrompt,
    /// The summary is empty.
    #[error(
        "the summary is empty, so it cannot replace the entries; nothing was changed. Try again, or with another model"
    )]
    EmptySummary,
    /// The take is no longer in that turn.
    #[error("the turn was undone or has ended elsewhere; nothing was changed")]
    TurnGone,
    /// The take has an unfinished turn.
    #[error("a turn of this take has not ended; `retake resume` resumes it, `retake stop` ends it")]
    TurnUnfinished,
    /// An entry changed after it was summarized.
    #[error("an entry changed while its summary was written; nothing was compressed, try again")]
    SummaryOutdated,
    /// No entry would be replaced.
    #[error("there is nothing to compress: no entry would be replaced")]
    NothingToCompress,
    /// A fork must start at a user message.
    #[error("the entry's role is {role:?}; a fork starts at a user message, `take branch` at any entry")]
    NotAUserMessage {
        /// The entry's role.
        role: String,
    },
    /// A prompt must not have an assistant's role.
    #[error(
        "the prompt would have the role {role:?}, which is an assistant role; nothing was changed. Put a user role first: \
         `retake role` lists the roles"
    )]
    AssistantPrompt {
        /// The prompt's role.
        role: String,
    },
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidNameError),
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] InvalidSettingError),
    /// A limit is exceeded.
    #[error("{what}: at most {limit}")]
    TooMuch {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// An object could not be read.
    #[error(transparent)]
    Unavailable(#[from] ObjectError),
}

/// The inputs of a command besides the state.
pub struct CommandContext<'call, 'base, O: Objects + ?Sized, F: IdSource> {
    /// The source of stored content and the target of new content.
    pub additions: &'call mut Additions<'base, O>,
    /// The clock and the source of random bytes.
    pub fresh: &'call mut F,
    /// Whether the thread has a take with that name. A thread can have thousands of takes, so the caller
    /// looks the name up in an index.
    pub take_named: &'call dyn Fn(&str) -> Result<bool, ObjectError>,
    /// The thread's current git commit, recorded in new branches.
    pub git_commit: Option<&'call str>,
}

/// Applies a command.
pub fn apply<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    command: Command,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<CommandOutcome, CommandError> {
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
        Command::Keep { take } => takes::keep(state, take, context),
        Command::Merge { into, from, entries } => takes::merge(state, into, from, entries, context),
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
            let marks = Sharing::from_first_state(state).with(visibility, private, shared_with_support);
            Ok(thread::share(state, marks))
        }
        Command::Delete => Ok(thread::delete(state, context.fresh.now())),
        Command::Restore => Ok(thread::restore(state)),
        Command::SetRoles { roles } => thread::set_roles(state, &roles),
        Command::Set { values } => thread::set(state, &values, context),
        Command::Reset => reset::reset(state, context),
        Command::Save { name } => {
            let name = crate::name::check_new_save(&name)?;
            Ok(CommandOutcome::Changed { state: state.clone(), kind: OperationKind::Saved { name } })
        }
    }
}

/// Returns the state with a new version of one take.
fn with_take<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: &crate::take::Take,
    context: &mut CommandContext<'_, '_, O, F>,
) -> Result<ThreadState, CommandError> {
    let content = context.additions.add(take);
    let (position, _) =
        state.takes.find(context.additions, take.id.bytes())?.ok_or(CommandError::NoSuchTake)?;
    let takes =
        state.takes.splice(context.additions, position..position + 1, vec![take_cell(take, content)])?;
    Ok(ThreadState { takes, ..state.clone() })
}

fn take_cell(take: &crate::take::Take, content: ContentId) -> crate::list::TakeCell {
    crate::list::TakeCell { take: take.id, content }
}

fn find_take<O: Objects + ?Sized, F: IdSource>(
    state: &ThreadState,
    take: TakeId,
    context: &CommandContext<'_, '_, O, F>,
) -> Result<crate::take::Take, CommandError> {
    state.take(context.additions, take)?.ok_or(CommandError::NoSuchTake)
}
