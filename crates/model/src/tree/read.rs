//! Reads the bytes of tree nodes, and compares one path of two trees.

use std::ops::Range;

use super::{Node, PART, Parts, Tree};
use crate::content::{ContentId, Kind};
use crate::object::{ObjectError, Objects, load};
use crate::path::TreePath;

/// The nodes at a path before and after a change.
pub type BeforeAfter = (Option<Node>, Option<Node>);

/// All bytes of a file, or the target of a link; a folder has none. Check the size first.
pub fn read(objects: &(impl Objects + ?Sized), node: &Node) -> Result<Vec<u8>, ObjectError> {
    match node {
        Node::File { content, size, .. } => match Node::kind_of(*size) {
            Kind::Parts => {
                let parts: Parts = load(objects, *content)?;
                // The tree claims the size, so it must not cause an allocation by itself.
                let mut bytes = Vec::new();
                for part in parts.0 {
                    bytes.extend_from_slice(&objects.bytes(Kind::Blob, part)?);
                }
                Ok(bytes)
            }
            kind => Ok(objects.bytes(kind, *content)?.to_vec()),
        },
        Node::Link { target } => Ok(target.clone()),
        Node::Folder { .. } => Ok(Vec::new()),
    }
}

/// A range of the bytes of a file or of a link target. Reads only the parts needed.
pub fn read_piece(
    objects: &(impl Objects + ?Sized),
    node: &Node,
    range: Range<u64>,
) -> Result<Vec<u8>, ObjectError> {
    let Node::File { content, size, .. } = node else { return Ok(cut(&read(objects, node)?, 0, &range)) };
    if Node::kind_of(*size) != Kind::Parts {
        return Ok(cut(&objects.bytes(Kind::Blob, *content)?, 0, &range));
    }
    let parts: Parts = load(objects, *content)?;
    let mut bytes = Vec::new();
    for (start, part) in (0..).step_by(PART as usize).zip(parts.0) {
        if start >= range.end {
            break;
        }
        if start + PART > range.start {
            bytes.extend(cut(&objects.bytes(Kind::Blob, part)?, start, &range));
        }
    }
    Ok(bytes)
}

/// The part of `range` that `bytes`, which begin at `start`, contain.
fn cut(bytes: &[u8], start: u64, range: &Range<u64>) -> Vec<u8> {
    let place = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
    let (from, to) = (place(range.start), place(range.end));
    bytes.get(from..to).unwrap_or_default().to_vec()
}

/// The nodes at a path, if they differ between two trees. Stops reading at the first parent folder that both
/// have in common.
pub fn difference_at(
    objects: &(impl Objects + ?Sized),
    before: Option<ContentId>,
    after: Option<ContentId>,
    path: &TreePath,
) -> Result<Option<BeforeAfter>, ObjectError> {
    let (mut before, mut after) = (before, after);
    let mut names = path.names().iter();
    loop {
        if before == after {
            return Ok(None);
        }
        let Some(name) = names.next() else { return Ok(None) };
        let get = |tree: Option<ContentId>| -> Result<Option<Node>, ObjectError> {
            let Some(tree) = tree else { return Ok(None) };
            Ok(load::<Tree>(objects, tree)?.get(name).cloned())
        };
        let (old, new) = (get(before)?, get(after)?);
        if names.len() == 0 {
            return Ok((old != new).then_some((old, new)));
        }
        let folder = |node: Option<Node>| match node {
            Some(Node::Folder { tree, .. }) => Some(tree),
            _ => None,
        };
        (before, after) = (folder(old), folder(new));
    }
}
