//! Reads and writes one folder of the user.
//!
//! All reading happens in this process. No command runs, in particular none that a repository configures. Only
//! three modules write to the user's folder: [`apply`] restores files, [`copy`] fills a new folder, and
//! [`folder::mark`] sets one extended attribute on the folder itself, which git does not see.
//!
//! ```text
//!   folder ──► folder::observe ──► identity: device, inode, birth, mark, remote ──► model::project::decide
//!          └─► git::observe    ──► branch, commit, remote, root of the work tree
//!   cwd    ──► root::find_root ──► the project folder of a command
//! ```

pub mod apply;
pub mod boot;
pub mod copy;
pub mod durable;
pub mod folder;
pub mod git;
pub mod leftover;
pub mod pattern;
pub mod root;
pub mod snapshot;
pub mod watch;
