//! The complete state of a thread at one version.
//!
//! ```text
//!   state ─┬─ title, tags, pinned, roles, active take
//!          ├─ settings ──► object
//!          └─ takes ──► list ──► take ─┬─ name, draft, context files, parent and fork point
//!                                     └─ entries ──► list ──► entry versions
//! ```
//!
//! States with the same content have the same content id, so a return to an older state writes only the
//! operation.

use std::collections::BTreeSet;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::content::{Content, ContentId, Kind};
use crate::entry::DEFAULT_ROLES;
use crate::id::{EntryId, IdSource, TakeId, ThreadId};
use crate::list::{List, TakeCell};
use crate::object::{Additions, ObjectError, Objects, load};
use crate::settings::Settings;
use crate::take::{FIRST_TAKE, Take};
use crate::time::Timestamp;

/// The complete state of a thread.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct ThreadState {
    /// Its title.
    #[n(0)]
    pub title: String,
    /// Tags for finding it.
    #[n(1)]
    pub tags: BTreeSet<String>,
    /// Whether lists show it first.
    #[n(2)]
    pub pinned: bool,
    /// Visibility on a hub at creation; see [`crate::sharing`].
    #[n(3)]
    pub visibility: Visibility,
    /// Whether it is never sent to a hub, at creation.
    #[n(4)]
    pub private: bool,
    /// Whether support may see it, at creation.
    #[n(5)]
    pub shared_with_support: bool,
    /// The roles available for entries, in the user's order.
    #[n(6)]
    pub roles: Vec<String>,
    /// Its settings.
    #[n(7)]
    pub settings: ContentId,
    /// Its takes, oldest first.
    #[n(8)]
    pub takes: List<TakeCell>,
    /// The active take.
    #[n(9)]
    pub active: TakeId,
    /// Time at which it was deleted; `None` if it is not.
    #[n(10)]
    pub deleted: Option<Timestamp>,
    /// Its origin, if it was promoted from a take of another thread. That thread may no longer exist.
    #[n(11)]
    pub parent: Option<ThreadParent>,
}

/// Visibility of a thread on a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// All members of the organization.
    #[n(0)]
    #[default]
    Organization,
    /// Only the owner.
    #[n(1)]
    Private,
    /// Anyone with the link.
    #[n(2)]
    Public,
}

/// The origin of a promoted take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadParent {
    /// The thread it was promoted from.
    #[n(0)]
    pub thread: ThreadId,
    /// The take it was branched from.
    #[n(1)]
    pub take: Option<TakeId>,
    /// The last entry that both share.
    #[n(2)]
    pub fork_point: Option<EntryId>,
}

impl Content for ThreadState {
    const KIND: Kind = Kind::State;
}

impl ThreadState {
    /// Creates a thread with one empty take.
    pub fn new<O: Objects + ?Sized>(
        title: String,
        additions: &mut Additions<'_, O>,
        fresh: &mut impl IdSource,
    ) -> Result<Self, ObjectError> {
        let created = fresh.now();
        let take = Take::empty(TakeId::generate(fresh), FIRST_TAKE.to_owned(), created);
        let active = take.id;
        let content = additions.add(&take);
        Ok(Self {
            title,
            tags: BTreeSet::new(),
            pinned: false,
            visibility: Visibility::default(),
            private: false,
            shared_with_support: false,
            roles: DEFAULT_ROLES.map(str::to_owned).to_vec(),
            settings: additions.add(&Settings::default()),
            takes: List::from_cells(additions, [TakeCell { take: active, content }]),
            active,
            deleted: None,
            parent: None,
        })
    }

    /// A take by id; `None` if the thread does not have it.
    pub fn take(&self, objects: &(impl Objects + ?Sized), id: TakeId) -> Result<Option<Take>, ObjectError> {
        match self.takes.find(objects, id.bytes())? {
            Some((_, cell)) => load(objects, cell.content).map(Some),
            None => Ok(None),
        }
    }

    /// The active take.
    pub fn active_take(&self, objects: &(impl Objects + ?Sized)) -> Result<Take, ObjectError> {
        self.take(objects, self.active)?.ok_or(ObjectError::Damaged { kind: Kind::State, id: self.settings })
    }

    /// The settings of the state itself, without those that other threads share with it.
    pub fn own_settings(&self, objects: &(impl Objects + ?Sized)) -> Result<Settings, ObjectError> {
        load(objects, self.settings)
    }

    /// All its takes, oldest first.
    pub fn all_takes(&self, objects: &(impl Objects + ?Sized)) -> Result<Vec<Take>, ObjectError> {
        self.takes.iter(objects, 0).map(|cell| load(objects, cell?.content)).collect()
    }
}
