//! Summaries of threads and takes, derived from their state so that lists need not load it.
//!
//! A summary can be discarded and rebuilt from the state and the log. The store saves it with the thread, and
//! `verify` compares the two.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::entry::{EntryVersion, RoleKind, preview};
use crate::environment::Environment;
use crate::id::{EntryId, ProjectId, TakeId, ThreadId};
use crate::object::{ObjectError, Objects, load};
use crate::operation::{Operation, OperationKind, Version};
use crate::settings::Settings;
use crate::sharing::Sharing;
use crate::state::{ThreadParent, ThreadState, Visibility};
use crate::take::Take;
use crate::time::Timestamp;

/// The summary of a thread, for lists.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSummary {
    /// Its identity.
    #[n(0)]
    pub id: ThreadId,
    /// The project it belongs to.
    #[n(1)]
    pub project: ProjectId,
    /// Number of its operations.
    #[n(2)]
    pub version: Version,
    /// Its title.
    #[n(3)]
    pub title: String,
    /// Tags for finding it.
    #[n(4)]
    pub tags: Vec<String>,
    /// Whether lists show it first.
    #[n(5)]
    pub pinned: bool,
    /// Visibility on a hub.
    #[n(6)]
    pub visibility: Visibility,
    /// Whether it is never sent to a hub.
    #[n(7)]
    pub private: bool,
    /// Whether support may see it.
    #[n(8)]
    pub shared_with_support: bool,
    /// Time of its creation.
    #[n(9)]
    pub created: Timestamp,
    /// Time of its last operation.
    #[n(10)]
    pub updated: Timestamp,
    /// Number of its takes.
    #[n(11)]
    pub takes: u64,
    /// The active take.
    #[n(12)]
    pub active: TakeSummary,
    /// The environment of its first operation.
    #[n(13)]
    pub first_seen: Environment,
    /// The environment of its last operation.
    #[n(14)]
    pub last_seen: Environment,
    /// Time at which it was deleted.
    #[n(15)]
    pub deleted: Option<Timestamp>,
    /// The thread it was promoted from.
    #[n(16)]
    pub parent: Option<ThreadParent>,
    /// The provider in use.
    #[n(17)]
    pub provider: Option<String>,
    /// The model in use.
    #[n(18)]
    pub model: Option<String>,
}

impl ThreadSummary {
    /// The sharing settings.
    pub fn sharing(&self) -> Sharing {
        Sharing {
            visibility: self.visibility,
            private: self.private,
            shared_with_support: self.shared_with_support,
        }
    }

    /// The same summary with other sharing settings.
    #[must_use]
    pub fn with_sharing(self, sharing: Sharing) -> Self {
        let Sharing { visibility, private, shared_with_support } = sharing;
        Self { visibility, private, shared_with_support, ..self }
    }
}

/// The summary of a thread after an operation, given the previous one.
///
/// `None` if the operation is the first of a thread and does not name its project; Retake never writes such a
/// log.
pub fn summarize_thread(
    before: Option<&ThreadSummary>,
    operation: &Operation,
    state: &ThreadState,
    objects: &(impl Objects + ?Sized),
) -> Result<Option<ThreadSummary>, ObjectError> {
    let project = match (before, &operation.kind) {
        (Some(before), _) => before.project,
        (None, OperationKind::ThreadCreated { project } | OperationKind::ThreadPromoted { project, .. }) => {
            *project
        }
        (None, _) => return Ok(None),
    };
    let around: Option<Environment> = operation.environment.map(|id| load(objects, id)).transpose()?;
    let settings: Settings = load(objects, state.settings)?;
    // Moving to another state never changes the sharing settings.
    let sharing = Sharing::from_operation(&operation.kind)
        .or_else(|| before.map(ThreadSummary::sharing))
        .unwrap_or_else(|| Sharing::from_first_state(state));
    Ok(Some(ThreadSummary {
        id: operation.thread,
        project,
        version: operation.version,
        title: state.title.clone(),
        tags: state.tags.iter().cloned().collect(),
        pinned: state.pinned,
        visibility: sharing.visibility,
        private: sharing.private,
        shared_with_support: sharing.shared_with_support,
        created: before.map_or(operation.time, |before| before.created),
        updated: operation.time,
        takes: state.takes.len(),
        active: summarize(&state.active_take(objects)?, objects)?,
        first_seen: before
            .map_or_else(|| around.clone().unwrap_or_default(), |before| before.first_seen.clone()),
        last_seen: around.or_else(|| before.map(|before| before.last_seen.clone())).unwrap_or_default(),
        deleted: state.deleted,
        parent: state.parent,
        provider: settings.provider,
        model: settings.model,
    }))
}

/// The summary of a take, for trees.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TakeSummary {
    /// Its identity.
    #[n(0)]
    pub id: TakeId,
    /// Its name.
    #[n(1)]
    pub name: String,
    /// Number of its entries.
    #[n(2)]
    pub entries: u64,
    /// The start of its first user message that its parent does not have.
    #[n(3)]
    pub preview: String,
    /// Time of its last entry, or of its creation.
    #[n(4)]
    pub last_entry: Timestamp,
    /// The take it was branched from.
    #[n(5)]
    pub parent: Option<TakeId>,
    /// The last entry that it shares with its parent.
    #[n(6)]
    pub fork_point: Option<EntryId>,
    /// Number of entries it shares with its parent.
    #[n(7)]
    pub shared: u64,
    /// The git commit of its source at the time of the branch.
    #[n(8)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
}

/// Number of entries after the fork point to search for a preview.
const LOOK_AHEAD: usize = 8;

/// Summarizes a take.
pub fn summarize(take: &Take, objects: &(impl Objects + ?Sized)) -> Result<TakeSummary, ObjectError> {
    let shared = match take.fork_point {
        Some(entry) => take.entries.find(objects, entry.bytes())?.map_or(0, |(position, _)| position + 1),
        None => 0,
    };
    let last_entry = match take.entries.len().checked_sub(1) {
        Some(position) => match take.entries.get(objects, position)? {
            Some(cell) => load::<EntryVersion>(objects, cell.version)?.created,
            None => take.created,
        },
        None => take.created,
    };
    Ok(TakeSummary {
        id: take.id,
        name: take.name.clone(),
        entries: take.entries.len(),
        preview: first_words(take, shared, objects)?,
        last_entry,
        parent: take.parent,
        fork_point: take.fork_point,
        shared,
        git_commit: take.git_commit.clone(),
    })
}

/// Sibling takes start alike, so the preview shows the first user message after the fork.
fn first_words(take: &Take, shared: u64, objects: &(impl Objects + ?Sized)) -> Result<String, ObjectError> {
    let mut fallback = None;
    for cell in take.entries.iter(objects, shared).take(LOOK_AHEAD) {
        let version: EntryVersion = load(objects, cell?.version)?;
        if RoleKind::of(&version.role) == RoleKind::User {
            return Ok(version.preview());
        }
        fallback.get_or_insert_with(|| version.preview());
    }
    Ok(fallback.unwrap_or_else(|| preview(&take.draft)))
}
