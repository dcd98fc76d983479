//! Where an operation was made: the folder, the program, and what git said then.
//!
//! These are observations, not settings: an undo does not change which commit was checked out. So they hang
//! on the operations, and a thread's branch, commits seen and folders are read off its log.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::content::{Content, Kind};

/// What was around when an operation was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Surroundings {
    /// The project's folder.
    #[n(0)]
    pub workspace_root: Option<String>,
    /// The folder that the program ran in.
    #[n(1)]
    pub working_directory: Option<String>,
    /// The version of the program.
    #[n(2)]
    pub program_version: Option<String>,
    /// The branch that was checked out.
    #[n(3)]
    pub git_branch: Option<String>,
    /// The commit that was checked out.
    #[n(4)]
    pub git_commit: Option<String>,
    /// Where the repository is pushed to, without credentials.
    #[n(5)]
    pub git_remote: Option<String>,
    /// Whether `git status` would have listed changed, staged or untracked files; `None` if that could not be decided.
    #[n(6)]
    pub git_dirty: Option<bool>,
}

impl Content for Surroundings {
    const KIND: Kind = Kind::Surroundings;
}
