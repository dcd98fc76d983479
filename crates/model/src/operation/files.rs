//! The files that an operation changed.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::content::ContentId;
use crate::id::TakeId;

/// The files before and after an operation. The operation changed the paths that differ; both snapshots are
/// the same if the files were scanned and had not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// The snapshot before.
    #[n(0)]
    pub before: ContentId,
    /// The snapshot after.
    #[n(1)]
    pub after: ContentId,
    /// The take whose files they are.
    #[n(2)]
    pub take: TakeId,
    /// Whether they are in a worktree of the take instead of the project folder.
    #[n(3)]
    pub worktree: bool,
    /// The take that owned the files before, if the operation switched the active take.
    #[n(4)]
    pub left: Option<TakeId>,
    /// Whether another author may have contributed to the change.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<ConcurrentChange>,
}

/// Another possible author of a file change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum ConcurrentChange {
    /// Another command or tool ran at the same time, or the user may have made the change after this one was killed.
    /// Undo of this change does not cover that run.
    #[n(0)]
    OtherRuns,
    /// The thread is a copy, and its original, in the same project, has the same change.
    #[n(1)]
    OtherThread,
}
