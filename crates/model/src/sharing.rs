//! Sharing settings of a thread, which are outside history.
//!
//! ```text
//!   created --private      private
//!   set to not private     not private     recorded by an operation that undo skips
//!   undo, redo, jump …     not private     moving to an old state does not bring its settings back
//! ```
//!
//! The settings are stored in the thread's row ([`crate::summary::ThreadSummary`]). The fields of the same
//! names in a [`ThreadState`] hold the values at creation, and values written by older versions; only the
//! first state of a log is used.

use crate::operation::OperationKind;
use crate::state::{ThreadState, Visibility};

/// Sharing settings of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Visibility on a hub.
    pub visibility: Visibility,
    /// Whether it is never sent to a hub.
    pub private: bool,
    /// Whether support may see it.
    pub shared_with_support: bool,
}

impl Sharing {
    /// Visible only to the owner, on this machine.
    pub const OWNER_ONLY: Self =
        Self { visibility: Visibility::Private, private: true, shared_with_support: false };

    /// The settings at creation, from the first state.
    pub fn from_first_state(state: &ThreadState) -> Self {
        let ThreadState { visibility, private, shared_with_support, .. } = *state;
        Self { visibility, private, shared_with_support }
    }

    /// The settings that an operation sets; `None` for every other operation.
    pub fn from_operation(kind: &OperationKind) -> Option<Self> {
        match *kind {
            OperationKind::SharingSet { visibility, private, shared_with_support }
            | OperationKind::SharingChanged { visibility, private, shared_with_support } => {
                Some(Self { visibility, private, shared_with_support })
            }
            _ => None,
        }
    }

    /// The settings with some of them changed.
    #[must_use]
    pub fn with(
        self,
        visibility: Option<Visibility>,
        private: Option<bool>,
        shared_with_support: Option<bool>,
    ) -> Self {
        Self {
            visibility: visibility.unwrap_or(self.visibility),
            private: private.unwrap_or(self.private),
            shared_with_support: shared_with_support.unwrap_or(self.shared_with_support),
        }
    }

    /// The operation that records these settings.
    pub fn into_operation(self) -> OperationKind {
        let Self { visibility, private, shared_with_support } = self;
        OperationKind::SharingSet { visibility, private, shared_with_support }
    }
}
