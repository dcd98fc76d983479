//! What the paths of a replay demand of each other: a folder goes only when it is empty, and nothing is put
//! below what is not a folder.

use std::collections::BTreeMap;

use super::{How, Touched};
use crate::object::{Additions, Objects, Unavailable, load};
use crate::path::{RootPath, TreePath};
use crate::tree::{LeftOut, Node, Reason, Snapshot, SnapshotCursor, Tree};

/// Makes the wanted paths fit together. What does not fit becomes a conflict and stays as it is.
pub(super) fn settle<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    touched: &mut BTreeMap<RootPath, Touched>,
) -> Result<(), Unavailable> {
    let mut now = SnapshotCursor::new(present);
    let others = other_projects(additions, present)?;
    let is_elsewhere = |path: &RootPath| {
        others.iter().any(|other| other.root == path.root && path.path.starts_with(&other.path))
    };
    // Each round can only turn more paths into ones that stay, so this comes to an end.
    loop {
        let mut staying = Vec::new();
        for (path, at) in touched.iter() {
            let moves = at.wanted != at.present;
            if (moves && is_elsewhere(path)) || stands_in_the_way(additions, &mut now, touched, path, at)? {
                staying.push(path.clone());
            }
        }
        // Folders that are not empty come after what is in them, so the deepest are seen to first.
        for (path, at) in touched.iter().rev() {
            if holds_more(additions, touched, path, at)? {
                staying.push(path.clone());
            }
        }
        if staying.is_empty() {
            return Ok(());
        }
        for path in staying {
            if let Some(at) = touched.get_mut(&path) {
                stay(at);
            }
        }
    }
}

/// The folders inside that are other projects, or worktrees of takes: whatever a step wants there, they have files of
/// their own.
fn other_projects<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
) -> Result<Vec<RootPath>, Unavailable> {
    let mut others = Vec::new();
    for root in &present.roots {
        let Some(id) = root.left_out else { continue };
        let left_out: LeftOut = load(additions, id)?;
        let found = left_out.0.iter().filter(|left| left.reason == Reason::OtherProject);
        let paths = found.filter_map(|left| TreePath::new(&left.path).ok());
        others.extend(paths.map(|path| RootPath { root: root.name.clone(), path }));
    }
    Ok(others)
}

/// Lets a path be as it is. A folder that merely is not empty is no conflict: nobody asked for its content to go.
fn stay(at: &mut Touched) {
    let theirs = std::mem::replace(&mut at.wanted, at.present.clone());
    let only_not_empty = at.present.as_ref().is_some_and(Node::is_folder) && theirs.is_none();
    at.how = if only_not_empty { How::Merged } else { How::Conflict { theirs } };
}

/// Whether something is wanted below what is not a folder.
fn stands_in_the_way<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    now: &mut SnapshotCursor,
    touched: &BTreeMap<RootPath, Touched>,
    path: &RootPath,
    at: &Touched,
) -> Result<bool, Unavailable> {
    if at.wanted.is_none() || at.wanted == at.present {
        return Ok(false);
    }
    let mut above = path.path.parent();
    while let Some(folder) = above {
        let key = RootPath { root: path.root.clone(), path: folder };
        let node = match touched.get(&key) {
            Some(found) => found.wanted.clone(),
            None => now.get(additions, &key)?,
        };
        if node.is_some_and(|node| !node.is_folder()) {
            return Ok(true);
        }
        above = key.path.parent();
    }
    Ok(false)
}

/// Whether a folder that is to go, or to become something else, holds what is to stay.
fn holds_more<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    touched: &BTreeMap<RootPath, Touched>,
    path: &RootPath,
    at: &Touched,
) -> Result<bool, Unavailable> {
    let Some(Node::Folder { tree, .. }) = &at.present else { return Ok(false) };
    if at.wanted.as_ref().is_some_and(Node::is_folder) {
        return Ok(false);
    }
    let tree: Tree = load(additions, *tree)?;
    Ok(tree.entries().iter().any(|entry| {
        let below = RootPath { root: path.root.clone(), path: path.path.join(entry.name.clone()) };
        touched.get(&below).is_none_or(|below| below.wanted.is_some())
    }))
}

/// What is grafted at a path: a folder that was not one brings nothing along, since what is in it has paths of
/// its own; one that was stays with what it has.
pub(super) fn as_grafted<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    touched: &Touched,
) -> Option<Node> {
    match (&touched.present, &touched.wanted) {
        (Some(Node::Folder { tree, .. }), Some(Node::Folder { mode, .. })) => {
            Some(Node::Folder { tree: *tree, mode: *mode })
        }
        (_, Some(Node::Folder { mode, .. })) => {
            Some(Node::Folder { tree: additions.add(&Tree::default()), mode: *mode })
        }
        (_, wanted) => wanted.clone(),
    }
}
