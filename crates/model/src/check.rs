//! Checking content from elsewhere: nothing gets in that no command could have made.
//!
//! ```text
//!   by itself     content(kind, bytes)     names, sizes, times and values of one piece
//!                 operation(operation)     the same for a line of the log
//!   together      Accepted::state          takes with names and identities of their own, one of them active,
//!                                          lists that are cut right and hold nothing twice
//!                 Measures::content        trees that are not too large, files as long as they say
//! ```
//!
//! What references lead to is not asked here: who takes content in does that first, piece by piece
//! (see [`crate::reference`]).

mod agent;
mod files;
mod operation;
mod state;

use crate::content::{Kind, Malformed, decode};
use crate::entry::{Block, ENTRY_FIELDS, EntryVersion, Fields, USAGE_FIELDS, block_fields};
use crate::json::{Json, NotJson};
use crate::limits::{ENTRY_BYTES, FILES, NAME_CHARS, NAMES, OBSERVATION_BYTES};
use crate::list::BadList;
use crate::name::{BadName, Naming, base, check};
use crate::object::Unavailable;
use crate::path::{BadPath, FileName};
use crate::sealed::SealedFiles;
use crate::settings::{BadSetting, Settings};
use crate::state::ThreadState;
use crate::surroundings::{RECORDED_VARIABLES, Surroundings};
use crate::take::{FileItem, Take};
use crate::time::Timestamp;
use crate::tree::{LeftOut, Parts, Snapshot, Tree};

pub use files::Measures;
pub use operation::operation;
pub use state::Accepted;

/// Why content from elsewhere was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadContent {
    /// The bytes are not what they should be.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A name is not one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A name is not written as it would have been stored.
    #[error("a name has white space around it, or is there twice")]
    NameForm,
    /// A setting is not one.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// Text that should be JSON is not.
    #[error(transparent)]
    Json(#[from] NotJson),
    /// A field that has a place of its own is kept as one that is not known.
    #[error("{0:?} is kept as something unknown, and is not")]
    FieldName(String),
    /// More than there may be.
    #[error("{what}: at most {limit}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// The most there may be.
        limit: usize,
    },
    /// No clock said that.
    #[error("{0} ms since 1970 is no time that can be")]
    Time(i64),
    /// A list is not one.
    #[error(transparent)]
    List(#[from] BadList),
    /// A take is listed under another identity than its own.
    #[error("a take is listed under another identity than its own")]
    TakeIdentity,
    /// The agent of a take stands where no turn leads.
    #[error("the agent of a take stands where no turn leads")]
    Agent,
    /// Two takes of a thread have one name.
    #[error("two takes have one name")]
    TakeName,
    /// The take that is being worked on is not there.
    #[error("the active take is not among the takes")]
    NoActiveTake,
    /// A thread is made by its first operation and by no other.
    #[error("a thread must be made by its first operation, and only by that")]
    NotTheFirst,
    /// A file is said to have another size than it has.
    #[error("a file does not have the size that its folder says")]
    FileSize,
    /// A folder holds something that no snapshot would.
    #[error("a folder of files holds {name:?}: {reason}")]
    FileName {
        /// Its name.
        name: FileName,
        /// Why it cannot be there.
        reason: BadPath,
    },
    /// Something could not be read.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Checks one piece of content by itself. List nodes are checked where their list is.
pub fn content(kind: Kind, bytes: &[u8]) -> Result<(), BadContent> {
    match kind {
        Kind::Entry => entry(&decode(bytes)?),
        Kind::Take => take(&decode(bytes)?),
        Kind::Settings => settings(&decode(bytes)?),
        Kind::State => thread(&decode(bytes)?),
        Kind::Surroundings => surroundings(&decode(bytes)?),
        Kind::Operation => operation(&decode(bytes)?),
        Kind::Tree => tree(&decode(bytes)?),
        Kind::Snapshot => Ok(decode::<Snapshot>(bytes)?.check()?),
        Kind::Parts => decode::<Parts>(bytes).map(|_| ()).map_err(BadContent::from),
        Kind::LeftOut => decode::<LeftOut>(bytes).map(|_| ()).map_err(BadContent::from),
        Kind::SealedFiles => Ok(decode::<SealedFiles>(bytes)?.check()?),
        Kind::Blob | Kind::Entries | Kind::Takes | Kind::Sealed => Ok(()),
    }
}

fn tree(tree: &Tree) -> Result<(), BadContent> {
    tree.check()?;
    // A tree of this machine may be older than the list of protected names; one from elsewhere is held to it.
    match tree.entries().iter().find(|entry| entry.name.is_repository()) {
        None => Ok(()),
        Some(entry) => Err(BadContent::FileName { name: entry.name.clone(), reason: BadPath::Repository }),
    }
}

fn entry(entry: &EntryVersion) -> Result<(), BadContent> {
    // Clients may leave white space around the roles of entries, and it is kept.
    check(Naming::Role, &entry.role)?;
    at_most("bytes of an entry", entry.size(), ENTRY_BYTES)?;
    // When something was said is told by whoever brings it, and may be long ago.
    for time in entry.edited.iter().chain([&entry.created]) {
        if !time.has_text() {
            return Err(BadContent::Time(time.millis()));
        }
    }
    for block in &entry.blocks {
        if let Block::ToolCall { input, .. } = block {
            json(input)?;
        }
        fields(block.extra(), known_fields(block)?)?;
    }
    if let Some(usage) = &entry.usage {
        fields(&usage.extra, USAGE_FIELDS)?;
    }
    fields(&entry.extra.clone().into_iter().collect(), ENTRY_FIELDS)
}

/// The fields of a block that have a place of their own. A type that is known is not kept as one that is not.
fn known_fields(block: &Block) -> Result<&'static [&'static str], BadContent> {
    match (block, block_fields(block.kind())) {
        (Block::Unknown { kind, .. }, Some(_)) => Err(BadContent::FieldName(kind.clone())),
        (Block::Unknown { .. }, None) => Ok(&["type"]),
        (_, known) => Ok(known.unwrap_or_default()),
    }
}

/// Fields that are not known: well-formed, and none that has a place of its own, or it would be there twice.
fn fields(fields: &Fields, known: &[&str]) -> Result<(), BadContent> {
    for (name, value) in fields.iter() {
        if known.contains(&name) {
            return Err(BadContent::FieldName(name.to_owned()));
        }
        json(value)?;
    }
    Ok(())
}

/// Git names a commit by 40 or 64 digits.
const COMMIT_DIGITS: usize = 64;

fn take(take: &Take) -> Result<(), BadContent> {
    take_name(&take.name)?;
    clock_time(take.created)?;
    // A fork makes a draft of a whole message, so a draft may be as long as an entry.
    at_most("bytes of a draft", take.draft.len(), ENTRY_BYTES)?;
    let media = take.attached.iter().map(|attached| attached.media.len()).sum();
    at_most("bytes of the kinds of pictures", media, ENTRY_BYTES)?;
    if !take.attached.are_distinct() {
        return Err(Malformed { kind: Kind::Take }.into());
    }
    for items in [&take.files, &take.context_files, &take.screenshots] {
        at_most("files in one list", items.len(), FILES)?;
        items.iter().flat_map(|FileItem { extra, .. }| extra.values()).try_for_each(json)?;
    }
    at_most("digits of a commit", take.git_commit.as_ref().map_or(0, String::len), COMMIT_DIGITS)?;
    take.agent.as_ref().map_or(Ok(()), agent::agent)
}

fn settings(settings: &Settings) -> Result<(), BadContent> {
    let checked = settings.clone().checked()?;
    // Minus zero equals zero and has other bytes, which would be a second name for the same settings.
    let same = crate::content::encode(&checked) == crate::content::encode(settings);
    if same { Ok(()) } else { Err(Malformed { kind: Kind::Settings }.into()) }
}

fn thread(state: &ThreadState) -> Result<(), BadContent> {
    name(Naming::Title, &state.title)?;
    at_most("tags of a thread", state.tags.len(), NAMES)?;
    state.tags.iter().try_for_each(|tag| name(Naming::Tag, tag))?;
    at_most("roles of a thread", state.roles.len(), NAMES)?;
    for (index, role) in state.roles.iter().enumerate() {
        name(Naming::Role, role)?;
        if state.roles[..index].contains(role) {
            return Err(BadContent::NameForm);
        }
    }
    state.deleted.map_or(Ok(()), clock_time)
}

fn surroundings(around: &Surroundings) -> Result<(), BadContent> {
    let variables = around.environment.iter().flatten();
    at_most("environment variables", variables.clone().count(), RECORDED_VARIABLES.len())?;
    for (name, value) in variables {
        at_most("bytes of an environment variable", name.len() + value.len(), OBSERVATION_BYTES)?;
    }
    // Folders may have any name, so only the length can be asked about.
    [
        &around.workspace_root,
        &around.working_directory,
        &around.program_version,
        &around.git_branch,
        &around.git_commit,
        &around.git_remote,
    ]
    .into_iter()
    .flatten()
    .try_for_each(|text| at_most("bytes of a folder or branch", text.len(), OBSERVATION_BYTES))
}

/// A name as it is stored: checked, and without white space around it.
fn name(naming: Naming, text: &str) -> Result<(), BadContent> {
    if check(naming, text)? == text { Ok(()) } else { Err(BadContent::NameForm) }
}

/// The name of a take. Names that Retake once gave have a number behind a name that may be as long as a name can be.
fn take_name(text: &str) -> Result<(), BadContent> {
    const DIGITS: usize = 20;
    let beginning = base(text);
    let number = text.strip_prefix(beginning).and_then(|rest| rest.strip_prefix("_take_"));
    let given = number.is_some_and(|number| {
        (1..=DIGITS).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    if given && text.chars().count() > NAME_CHARS {
        return name(Naming::Take, beginning);
    }
    name(Naming::Take, text)
}

fn clock_time(time: Timestamp) -> Result<(), BadContent> {
    if time.may_be_clock_time() { Ok(()) } else { Err(BadContent::Time(time.millis())) }
}

fn json(json: &Json) -> Result<(), BadContent> {
    // Decoding keeps the text without looking at it.
    Json::new(json.as_str())?;
    Ok(())
}

fn at_most(what: &'static str, found: usize, limit: usize) -> Result<(), BadContent> {
    if found <= limit { Ok(()) } else { Err(BadContent::TooMuch { what, limit }) }
}

#[cfg(test)]
mod tests;
