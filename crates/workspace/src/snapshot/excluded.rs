//! Decides whether snapshots exclude a path by its name, whether it exists or not.

use std::os::fd::AsFd;
use std::sync::Arc;

use retake_model::path::TreePath;
use rustix::fs::{Mode, OFlags};

use super::rules::{Decision, MatchContext, Rules, open_below, read_texts};
use super::workspace::Workspace;

/// Returns whether snapshots exclude a path of the main root: an ignore file names it, or it is a likely secret.
/// `false` if the rules cannot be read.
pub fn is_excluded(workspace: &Workspace, path: &TreePath) -> bool {
    let root = workspace.main();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(top) = rustix::fs::open(&root.path, flags, Mode::empty()) else { return false };
    let outer_ignore_rules = crate::git::outer_ignore_rules(&root.path);
    let globs = &workspace.options().globs;
    let mut rules = Rules::root_rules(globs);
    for (base, texts) in outer_ignore_rules.texts {
        rules = Rules::with_texts(&rules, base, texts);
    }
    let context = MatchContext { globs, root: top.as_fd(), prefix: &outer_ignore_rules.prefix };
    let mut here = Vec::new();
    for (depth, name) in path.names().iter().enumerate() {
        if let Some(folder) = open_below(top.as_fd(), &here) {
            let base = [&outer_ignore_rules.prefix[..], &here].concat();
            rules = Rules::with_texts(&rules, base, read_texts(folder.as_fd(), depth == 0));
        }
        here.push(b'/');
        here.extend(name.bytes());
        let is_folder = depth + 1 < path.names().len();
        match rules.decide(&context, name.bytes(), &here, is_folder) {
            Decision::Exclude(_) => return true,
            decision => rules = if is_folder { Rules::inside(&rules, decision) } else { Arc::clone(&rules) },
        }
    }
    false
}
