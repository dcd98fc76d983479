//! Validation of imported content: accepts only content that a command could have created.
//!
//! ```text
//!   single     content(kind, bytes)     names, sizes, times and values of one object
//!              operation(operation)     the same for one operation
//!   combined   StateChecker::state      takes with distinct names and ids, one of them active,
//!                                       lists with correct chunks and without duplicates
//!              FileChecker::content     trees within the size limits, files with the declared size
//! ```
//!
//! These checks do not follow references: the importer resolves them first, object by object (see
//! [`crate::reference`]).

mod agent;
mod files;
mod operation;
mod state;

use crate::content::{Kind, MalformedError, decode};
use crate::entry::{Block, ENTRY_FIELDS, EntryVersion, Fields, USAGE_FIELDS, block_fields};
use crate::environment::{Environment, RECORDED_VARIABLES};
use crate::json::{InvalidJsonError, Json};
use crate::limits::{ENTRY_BYTES, FILES, NAME_CHARS, NAMES, OBSERVATION_BYTES};
use crate::list::InvalidListError;
use crate::name::{InvalidNameError, NameKind, base, check};
use crate::object::ObjectError;
use crate::path::{FileName, InvalidPathError};
use crate::sealed::SealedFiles;
use crate::settings::{InvalidSettingError, Settings};
use crate::state::ThreadState;
use crate::take::{FileItem, Take};
use crate::time::Timestamp;
use crate::tree::{Chunks, Excluded, Parts, Snapshot, TreeNode};

pub use files::FileChecker;
pub use operation::operation;
pub use state::StateChecker;

/// Why imported content was rejected.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InvalidContentError {
    /// The bytes are malformed.
    #[error(transparent)]
    Malformed(#[from] MalformedError),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidNameError),
    /// A name differs from its stored form.
    #[error("a name has surrounding white space, or occurs twice")]
    NameForm,
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] InvalidSettingError),
    /// Invalid JSON.
    #[error(transparent)]
    Json(#[from] InvalidJsonError),
    /// A known field is stored as an unknown one.
    #[error("{0:?} is a known field or type, but is stored as an unknown one")]
    FieldName(String),
    /// A limit is exceeded.
    #[error("{what}: at most {limit}")]
    TooMuch {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The time is out of range.
    #[error("{0} ms since 1970 is out of range")]
    Time(i64),
    /// A list is invalid.
    #[error(transparent)]
    List(#[from] InvalidListError),
    /// A take is listed under a different id.
    #[error("a take is listed under a different id")]
    TakeIdentity,
    /// The agent's state cannot result from any turn.
    #[error("the agent of a take has a state that no turn can reach")]
    Agent,
    /// Two takes of a thread have the same name.
    #[error("two takes have the same name")]
    TakeName,
    /// The active take does not exist.
    #[error("the active take is not among the takes")]
    NoActiveTake,
    /// The operation that creates a thread must come first, and only once.
    #[error("the first operation, and only the first, must create the thread")]
    NotFirstOperation,
    /// A file's size differs from the size in its folder.
    #[error("a file's size differs from the size in its folder")]
    FileSize,
    /// A chunk of a folder does not fit to the others.
    #[error("a chunk of a folder does not end at a boundary, or differs from its summary")]
    FolderChunk,
    /// A folder contains a name that no snapshot would contain.
    #[error("a folder contains an invalid name {name:?}: {reason}")]
    FileName {
        /// The name.
        name: FileName,
        /// The reason.
        reason: InvalidPathError,
    },
    /// An object could not be read.
    #[error(transparent)]
    Unavailable(#[from] ObjectError),
}

/// Checks one object. List nodes are checked together with their list.
pub fn content(kind: Kind, bytes: &[u8]) -> Result<(), InvalidContentError> {
    match kind {
        Kind::Entry => entry(&decode(bytes)?),
        Kind::Take => take(&decode(bytes)?),
        Kind::Settings => settings(&decode(bytes)?),
        Kind::State => thread(&decode(bytes)?),
        Kind::Environment => environment(&decode(bytes)?),
        Kind::Operation => operation(&decode(bytes)?),
        Kind::Tree => tree(&decode(bytes)?),
        Kind::Snapshot => Ok(decode::<Snapshot>(bytes)?.check()?),
        Kind::Parts => decode::<Parts>(bytes).map(|_| ()).map_err(InvalidContentError::from),
        Kind::Chunks => decode::<Chunks>(bytes).map(|_| ()).map_err(InvalidContentError::from),
        Kind::Excluded => decode::<Excluded>(bytes).map(|_| ()).map_err(InvalidContentError::from),
        Kind::SealedFiles => Ok(decode::<SealedFiles>(bytes)?.check()?),
        Kind::Blob | Kind::Entries | Kind::Takes | Kind::Sealed => Ok(()),
    }
}

fn tree(node: &TreeNode) -> Result<(), InvalidContentError> {
    node.check()?;
    // A local tree may predate the list of protected names; an imported one must respect it.
    match node.entries().iter().find(|entry| entry.name.is_repository()) {
        None => Ok(()),
        Some(entry) => Err(InvalidContentError::FileName {
            name: entry.name.clone(),
            reason: InvalidPathError::Repository,
        }),
    }
}

fn entry(entry: &EntryVersion) -> Result<(), InvalidContentError> {
    // Clients may send roles with surrounding white space, which is stored unchanged.
    check(NameKind::Role, &entry.role)?;
    at_most("bytes of an entry", entry.size(), ENTRY_BYTES)?;
    // The importer supplies these times, so they may be long ago.
    for time in entry.edited.iter().chain([&entry.created]) {
        if !time.has_text_form() {
            return Err(InvalidContentError::Time(time.millis()));
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

/// The known fields of a block. A block of a known type must not be stored as an unknown one.
fn known_fields(block: &Block) -> Result<&'static [&'static str], InvalidContentError> {
    match (block, block_fields(block.kind())) {
        (Block::Unknown { kind, .. }, Some(_)) => Err(InvalidContentError::FieldName(kind.clone())),
        (Block::Unknown { .. }, None) => Ok(&["type"]),
        (_, known) => Ok(known.unwrap_or_default()),
    }
}

/// Checks unknown fields: they must be valid JSON, and no known field may be among them, or it would occur
/// twice.
fn fields(fields: &Fields, known: &[&str]) -> Result<(), InvalidContentError> {
    for (name, value) in fields.iter() {
        if known.contains(&name) {
            return Err(InvalidContentError::FieldName(name.to_owned()));
        }
        json(value)?;
    }
    Ok(())
}

/// Git writes a commit id as 40 or 64 digits.
const COMMIT_DIGITS: usize = 64;

fn take(take: &Take) -> Result<(), InvalidContentError> {
    take_name(&take.name)?;
    clock_time(take.created)?;
    // A fork copies a whole message into a draft, so a draft may be as long as an entry.
    at_most("bytes of a draft", take.draft.len(), ENTRY_BYTES)?;
    let media = take.attached.iter().map(|attached| attached.media.len()).sum();
    at_most("bytes of the kinds of pictures", media, ENTRY_BYTES)?;
    if !take.attached.are_distinct() {
        return Err(MalformedError { kind: Kind::Take }.into());
    }
    for items in [&take.files, &take.context_files, &take.screenshots] {
        at_most("files in one list", items.len(), FILES)?;
        items.iter().flat_map(|FileItem { extra, .. }| extra.values()).try_for_each(json)?;
    }
    at_most("digits of a commit", take.git_commit.as_ref().map_or(0, String::len), COMMIT_DIGITS)?;
    take.agent.as_ref().map_or(Ok(()), agent::agent)
}

fn settings(settings: &Settings) -> Result<(), InvalidContentError> {
    let checked = settings.clone().checked()?;
    // Minus zero equals zero but encodes differently, which would give the same settings a second id.
    let same = crate::content::encode(&checked) == crate::content::encode(settings);
    if same { Ok(()) } else { Err(MalformedError { kind: Kind::Settings }.into()) }
}

fn thread(state: &ThreadState) -> Result<(), InvalidContentError> {
    name(NameKind::Title, &state.title)?;
    at_most("tags of a thread", state.tags.len(), NAMES)?;
    state.tags.iter().try_for_each(|tag| name(NameKind::Tag, tag))?;
    at_most("roles of a thread", state.roles.len(), NAMES)?;
    for (index, role) in state.roles.iter().enumerate() {
        name(NameKind::Role, role)?;
        if state.roles[..index].contains(role) {
            return Err(InvalidContentError::NameForm);
        }
    }
    state.deleted.map_or(Ok(()), clock_time)
}

fn environment(around: &Environment) -> Result<(), InvalidContentError> {
    let variables = around.environment.iter().flatten();
    at_most("environment variables", variables.clone().count(), RECORDED_VARIABLES.len())?;
    for (name, value) in variables {
        at_most("bytes of an environment variable", name.len() + value.len(), OBSERVATION_BYTES)?;
    }
    // Folders may have any name, so only the length is checked.
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

/// Checks a name in its stored form: valid, and without surrounding white space.
fn name(naming: NameKind, text: &str) -> Result<(), InvalidContentError> {
    if check(naming, text)? == text { Ok(()) } else { Err(InvalidContentError::NameForm) }
}

/// Checks the name of a take. Older versions appended a number to names that already had the maximum
/// length.
fn take_name(text: &str) -> Result<(), InvalidContentError> {
    const DIGITS: usize = 20;
    let beginning = base(text);
    let number = text.strip_prefix(beginning).and_then(|rest| rest.strip_prefix("_take_"));
    let given = number.is_some_and(|number| {
        (1..=DIGITS).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    if given && text.chars().count() > NAME_CHARS {
        return name(NameKind::Take, beginning);
    }
    name(NameKind::Take, text)
}

fn clock_time(time: Timestamp) -> Result<(), InvalidContentError> {
    if time.is_plausible_clock_time() { Ok(()) } else { Err(InvalidContentError::Time(time.millis())) }
}

fn json(json: &Json) -> Result<(), InvalidContentError> {
    // Decoding does not validate the text.
    Json::new(json.as_str())?;
    Ok(())
}

fn at_most(what: &'static str, found: usize, limit: usize) -> Result<(), InvalidContentError> {
    if found <= limit { Ok(()) } else { Err(InvalidContentError::TooMuch { what, limit }) }
}

#[cfg(test)]
mod tests;
