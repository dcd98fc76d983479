//! Applies undone and redone changes to the current files: a simple implementation of the merge rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::folder::{FileNode, Folder};

use super::merge::merge;
use super::reference::ModelFault;

/// A file change, from the first to the second state.
pub(super) type FileChange = (Rc<Folder>, Rc<Folder>);

struct PathState {
    present: Option<FileNode>,
    wanted: Option<FileNode>,
    settled: bool,
}

/// Applies the changes. Those in `back`, if any, take precedence on the paths they touch; with `only_back`, no other
/// path changes then.
pub(super) fn replay(
    present: &Folder,
    (back, only_back): (&[FileChange], bool),
    steps: &[FileChange],
    mistake: Option<ModelFault>,
) -> Folder {
    let mut touched: BTreeMap<PathBuf, PathState> = BTreeMap::new();
    let last_word = only_back && !back.is_empty();
    for (number, (from, to)) in back.iter().chain(steps).enumerate() {
        if number == back.len() {
            for at in touched.values_mut() {
                at.settled = true;
            }
        }
        for difference in from.differences(to) {
            // A path that the reverted move did not touch stays, whoever changed it since.
            if number >= back.len() && last_word && mistake != Some(ModelFault::RedoChangesFilesThatUndoKept)
            {
                continue;
            }
            let at = touched.entry(difference.path.to_owned()).or_insert_with(|| {
                let present = present.0.get(difference.path).cloned();
                PathState { wanted: present.clone(), present, settled: false }
            });
            if !at.settled {
                carry(at, difference.left, difference.right, mistake);
            }
        }
    }
    settle(present, &mut touched, mistake);
    finished(present, &touched)
}

fn carry(at: &mut PathState, from: Option<&FileNode>, to: Option<&FileNode>, mistake: Option<ModelFault>) {
    let now = at.wanted.as_ref();
    if now == from {
        at.wanted = to.cloned();
    } else if now != to {
        #[expect(clippy::single_match_else, reason = "the comment belongs to the other side")]
        match both(from, now, to, mistake) {
            Some(merged) => {
                at.settled = permissions_conflict(from, now, to);
                at.wanted = Some(merged);
            }
            // A conflict: the path stays as it is.
            None => {
                if mistake == Some(ModelFault::ConflictsAreOverwritten) {
                    at.wanted = to.cloned();
                }
                at.settled = true;
            }
        }
    }
}

/// Whether two changes of the permissions do not merge. The content may have merged.
fn permissions_conflict(from: Option<&FileNode>, now: Option<&FileNode>, to: Option<&FileNode>) -> bool {
    let mode = |node: Option<&FileNode>| match node {
        Some(FileNode::File { mode, .. }) => Some(*mode),
        _ => None,
    };
    let [from, now, to] = [from, now, to].map(mode);
    now != from && to != from && now != to
}

fn both(
    from: Option<&FileNode>,
    now: Option<&FileNode>,
    to: Option<&FileNode>,
    mistake: Option<ModelFault>,
) -> Option<FileNode> {
    let (
        Some(FileNode::File { bytes: base, mode: base_mode }),
        Some(FileNode::File { bytes: ours, mode: our_mode }),
        Some(FileNode::File { bytes: theirs, mode: their_mode }),
    ) = (from, now, to)
    else {
        return None;
    };
    let keeps = our_mode == base_mode || mistake == Some(ModelFault::PermissionsAreNotMerged);
    let mode = if keeps { *their_mode } else { *our_mode };
    let bytes = if ours == base {
        theirs.clone()
    } else if theirs == base || theirs == ours {
        ours.clone()
    } else {
        merge(base, ours, theirs)?
    };
    Some(FileNode::File { bytes, mode })
}

/// Folders are removed only if they are empty.
fn settle(present: &Folder, touched: &mut BTreeMap<PathBuf, PathState>, mistake: Option<ModelFault>) {
    if mistake == Some(ModelFault::FoldersAreRemovedWithNewFiles) {
        return;
    }
    loop {
        let stays = |path: &Path| touched.get(path).is_none_or(|at| at.wanted.is_some());
        let stored: Vec<PathBuf> = touched
            .iter()
            .filter(|(_, at)| matches!(at.present, Some(FileNode::Folder(_))) && at.wanted.is_none())
            .filter(|(path, _)| present.0.keys().any(|below| below.parent() == Some(path) && stays(below)))
            .map(|(path, _)| path.clone())
            .collect();
        if stored.is_empty() {
            return;
        }
        for path in stored {
            let at = touched.get_mut(&path).expect("it was just there");
            at.wanted = at.present.clone();
        }
    }
}

fn finished(present: &Folder, touched: &BTreeMap<PathBuf, PathState>) -> Folder {
    let mut files = present.0.clone();
    for (path, at) in touched {
        match &at.wanted {
            None => drop(files.remove(path)),
            Some(wanted) => drop(files.insert(path.clone(), wanted.clone())),
        }
    }
    // Removing a non-empty folder is an injected fault.
    let gone = |path: &Path| {
        path.ancestors()
            .skip(1)
            .any(|above| touched.get(above).is_some_and(|at| at.wanted.is_none() && at.present.is_some()))
    };
    let orphans: Vec<PathBuf> = files
        .keys()
        .filter(|path| gone(path) && touched.get(*path).is_none_or(|at| at.wanted == at.present))
        .cloned()
        .collect();
    for path in orphans {
        files.remove(&path);
    }
    // Creates missing parent folders.
    let missing: Vec<PathBuf> = files
        .keys()
        .flat_map(|path| path.ancestors().skip(1).map(Path::to_owned))
        .filter(|above| above.as_os_str() != "" && !files.contains_key(above))
        .collect();
    files.extend(missing.into_iter().map(|path| (path, FileNode::Folder(0o755))));
    Folder(files)
}
