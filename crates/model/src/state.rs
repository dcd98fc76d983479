//! The whole of a thread at one moment.
//!
//! ```text
//!   state ─┬─ title, tags, pinned, roles, active take
//!          ├─ settings ──► object
//!          └─ takes ──► list ──► take ─┬─ name, draft, context files, parent and fork point
//!                                     └─ entries ──► list ──► entry versions
//! ```
//!
//! Two states with the same content have the same name, so going back to an older state writes nothing but
//! the operation that does it.

use std::collections::BTreeSet;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::content::{Content, ContentId, Kind};
use crate::entry::DEFAULT_ROLES;
use crate::id::{EntryId, Fresh, TakeId, ThreadId};
use crate::list::{List, TakeCell};
use crate::object::{Additions, Objects, Unavailable, load};
use crate::settings::Settings;
use crate::take::{FIRST_TAKE, Take};
use crate::time::Timestamp;

/// Everything that a thread is.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct ThreadState {
    /// What people call it.
    #[n(0)]
    pub title: String,
    /// Words to find it by.
    #[n(1)]
    pub tags: BTreeSet<String>,
    /// Whether it stays on top of lists.
    #[n(2)]
    pub pinned: bool,
    /// Who may see it once it is on a hub, as the thread was created; see [`crate::sharing`].
    #[n(3)]
    pub visibility: Visibility,
    /// Whether it never leaves this machine, as the thread was created.
    #[n(4)]
    pub private: bool,
    /// Whether support may see it, as the thread was created.
    #[n(5)]
    pub shared_with_support: bool,
    /// The roles that entries are given, in the user's order.
    #[n(6)]
    pub roles: Vec<String>,
    /// Its settings.
    #[n(7)]
    pub settings: ContentId,
    /// Its takes, oldest first.
    #[n(8)]
    pub takes: List<TakeCell>,
    /// The take that is being worked on.
    #[n(9)]
    pub active: TakeId,
    /// When it was put away; `None` while it is in use.
    #[n(10)]
    pub deleted: Option<Timestamp>,
    /// Where it came from, if it was a take of another thread once. That thread may be gone.
    #[n(11)]
    pub parent: Option<ThreadParent>,
}

/// Who may see a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Everyone of the organization.
    #[n(0)]
    #[default]
    Organization,
    /// The owner.
    #[n(1)]
    Private,
    /// Everyone with the link.
    #[n(2)]
    Public,
}

/// Where a promoted take came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadParent {
    /// The thread it was a take of.
    #[n(0)]
    pub thread: ThreadId,
    /// The take that it had been branched from.
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
    /// A new thread with one empty take.
    pub fn new<O: Objects + ?Sized>(
        title: String,
        additions: &mut Additions<'_, O>,
        fresh: &mut impl Fresh,
    ) -> Result<Self, Unavailable> {
        let created = fresh.now();
        let take = Take::empty(TakeId::fresh(fresh), FIRST_TAKE.to_owned(), created);
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

    /// One of its takes; `None` if it has no such take.
    pub fn take(&self, objects: &(impl Objects + ?Sized), id: TakeId) -> Result<Option<Take>, Unavailable> {
        match self.takes.find(objects, id.bytes())? {
            Some((_, cell)) => load(objects, cell.content).map(Some),
            None => Ok(None),
        }
    }

    /// The take that is being worked on.
    pub fn active_take(&self, objects: &(impl Objects + ?Sized)) -> Result<Take, Unavailable> {
        self.take(objects, self.active)?.ok_or(Unavailable::Damaged { kind: Kind::State, id: self.settings })
    }

    /// All its takes, oldest first.
    pub fn all_takes(&self, objects: &(impl Objects + ?Sized)) -> Result<Vec<Take>, Unavailable> {
        self.takes.iter(objects, 0).map(|cell| load(objects, cell?.content)).collect()
    }
}
