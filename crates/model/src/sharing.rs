//! Who may see a thread: marks that are outside history.
//!
//! ```text
//!   created --private      private
//!   set to not private     not private     an operation records it, and is no step of undo
//!   undo, redo, jump …     not private     no state that becomes current again brings its old marks with it
//! ```
//!
//! The marks are kept with the thread's row ([`crate::summary::ThreadSummary`]). The fields of the same names in a
//! [`ThreadState`] are what a thread was created with, and what older programs wrote; only the first state of a log is
//! asked for them.

use crate::operation::OperationKind;
use crate::state::{ThreadState, Visibility};

/// Who may see a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Who may see it once it is on a hub.
    pub visibility: Visibility,
    /// Whether it never leaves this machine.
    pub private: bool,
    /// Whether support may see it.
    pub shared_with_support: bool,
}

impl Sharing {
    /// Only the owner, on this machine.
    pub const NOBODY_ELSE: Self =
        Self { visibility: Visibility::Private, private: true, shared_with_support: false };

    /// What a thread is created with, by its first state.
    pub fn of_first(state: &ThreadState) -> Self {
        let ThreadState { visibility, private, shared_with_support, .. } = *state;
        Self { visibility, private, shared_with_support }
    }

    /// What an operation sets the marks to; `None` for every operation that is not about them.
    pub fn set_by(kind: &OperationKind) -> Option<Self> {
        match *kind {
            OperationKind::SharingSet { visibility, private, shared_with_support }
            | OperationKind::SharingChanged { visibility, private, shared_with_support } => {
                Some(Self { visibility, private, shared_with_support })
            }
            _ => None,
        }
    }

    /// The marks with some of them set.
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

    /// The operation that records that the marks were set.
    pub fn recorded(self) -> OperationKind {
        let Self { visibility, private, shared_with_support } = self;
        OperationKind::SharingSet { visibility, private, shared_with_support }
    }
}
