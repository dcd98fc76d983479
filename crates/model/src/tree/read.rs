//! The bytes of what stands in a tree, and what stands at one path of two trees.

use std::ops::Range;

use super::{Node, PART, Parts, Tree};
use crate::content::{ContentId, Kind};
use crate::object::{Objects, Unavailable, load};
use crate::path::TreePath;

/// What stood at a path, and what stands there.
pub type BeforeAfter = (Option<Node>, Option<Node>);

/// The bytes of a file, all of them, or the target of a link. Look at the size first. A folder has none.
pub fn read(objects: &(impl Objects + ?Sized), node: &Node) -> Result<Vec<u8>, Unavailable> {
    match node {
        Node::File { content, size, .. } => match Node::kind_of(*size) {
            Kind::Parts => {
                let parts: Parts = load(objects, *content)?;
                // The size is a claim of the tree's: it must not make room that nothing fills.
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

/// Some of the bytes of a file, or of the target of a link. No more of the content is read than is needed.
pub fn read_piece(
    objects: &(impl Objects + ?Sized),
    node: &Node,
    range: Range<u64>,
) -> Result<Vec<u8>, Unavailable> {
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

/// What is in a range of bytes of which the first has that place.
fn cut(bytes: &[u8], start: u64, range: &Range<u64>) -> Vec<u8> {
    let place = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
    let (from, to) = (place(range.start), place(range.end));
    bytes.get(from..to).unwrap_or_default().to_vec()
}

/// What stood and what stands at a path, if that differs between two trees. Reads no further than to the first
/// folder on the way that is the same in both.
pub fn difference_at(
    objects: &(impl Objects + ?Sized),
    before: Option<ContentId>,
    after: Option<ContentId>,
    path: &TreePath,
) -> Result<Option<BeforeAfter>, Unavailable> {
    let (mut before, mut after) = (before, after);
    let mut names = path.names().iter();
    loop {
        if before == after {
            return Ok(None);
        }
        let Some(name) = names.next() else { return Ok(None) };
        let get = |tree: Option<ContentId>| -> Result<Option<Node>, Unavailable> {
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
