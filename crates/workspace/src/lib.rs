//! One folder of the user's, seen from the outside.
//!
//! Everything here is read in this process. No command is run, least of all one that a repository configures.
//!
//! ```text
//!   folder ──► git::observe    ──► branch, commit, remote, root of the work tree
//!   cwd    ──► root::find_root ──► the folder that a command is about
//! ```

pub mod git;
pub mod root;
