//! One folder of the user's, seen from the outside.
//!
//! Everything here is read in this process. No command is run, least of all one that a repository configures,
//! and nothing inside the user's folder is written, except by [`apply`], which brings files back, by [`copy`],
//! which fills a new folder, and for one attribute on the folder itself ([`folder::mark`]) that git does not see.
//!
//! ```text
//!   folder ──► folder::observe ──► identity: device, inode, birth, mark, remote ──► model::project::decide
//!          └─► git::observe    ──► branch, commit, remote, root of the work tree
//!   cwd    ──► root::find_root ──► the folder that a command is about
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
