//! Reads and adds the bytes of tree nodes, and compares one path of two trees.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use super::chunks::{Chunk, Chunker, Chunks, FileHasher, MAX_WHOLE, each_chunk};
use super::{Node, PART, Parts, entry};
use crate::content::{ContentId, Kind};
use crate::object::{Additions, ObjectError, Objects, load};
use crate::path::TreePath;

/// The nodes at a path before and after a change.
pub type BeforeAfter = (Option<Node>, Option<Node>);

/// All bytes of a file, or the target of a link; a folder has none. Check the size first.
pub fn read(objects: &(impl Objects + ?Sized), node: &Node) -> Result<Vec<u8>, ObjectError> {
    if let Node::Link { target } = node {
        return Ok(target.clone());
    }
    // The tree claims the size, so it must not cause an allocation by itself.
    let mut bytes = Vec::new();
    each_piece(objects, node, &mut |piece| {
        bytes.extend_from_slice(&piece);
        Ok::<_, ObjectError>(())
    })?;
    Ok(bytes)
}

/// Reads the bytes of a file in order, in pieces of up to [`PART`] bytes. Fails after the last piece if all of them are
/// not the content of the file. Stops if `each` fails.
pub fn each_piece<E: From<ObjectError>>(
    objects: &(impl Objects + ?Sized),
    node: &Node,
    each: &mut impl FnMut(Arc<[u8]>) -> Result<(), E>,
) -> Result<(), E> {
    let (Node::File { content, size, .. }, Some((kind, id))) = (node, node.stored_as()) else {
        return Ok(());
    };
    match kind {
        Kind::Chunks => {
            let mut hasher = FileHasher::default();
            each_chunk(objects, id, *size, &(0..*size), &mut |_, piece| {
                hasher.push(&piece);
                each(piece)
            })?;
            if hasher.finish() != *content {
                return Err(ObjectError::Damaged { kind, id }.into());
            }
        }
        Kind::Parts => {
            let parts: Parts = load(objects, id)?;
            let mut left = *size;
            for part in parts.0 {
                let bytes = objects.bytes(Kind::Blob, part)?;
                // Parts from other machines may have any size.
                if bytes.len() as u64 != left.min(PART) {
                    return Err(ObjectError::Damaged { kind: Kind::Blob, id: part }.into());
                }
                left -= bytes.len() as u64;
                each(bytes)?;
            }
            if left > 0 {
                return Err(ObjectError::Damaged { kind, id }.into());
            }
        }
        kind => each(objects.bytes(kind, id)?)?,
    }
    Ok(())
}

/// A range of the bytes of a file or of a link target. Reads only the parts needed. Fails if the range is the whole file,
/// and its bytes are not the content of the file.
pub fn read_piece(
    objects: &(impl Objects + ?Sized),
    node: &Node,
    range: Range<u64>,
) -> Result<Vec<u8>, ObjectError> {
    let (Node::File { size, .. }, Some((kind, id))) = (node, node.stored_as()) else {
        return Ok(cut(&read(objects, node)?, 0, &range));
    };
    let mut bytes = Vec::new();
    match kind {
        Kind::Chunks if range.start == 0 && range.end >= *size => bytes = read(objects, node)?,
        Kind::Chunks => each_chunk(objects, id, *size, &range, &mut |start, piece| {
            bytes.extend(cut(&piece, start, &range));
            Ok::<_, ObjectError>(())
        })?,
        Kind::Parts => {
            let parts: Parts = load(objects, id)?;
            for (start, part) in (0..).step_by(PART as usize).zip(parts.0) {
                if start >= range.end {
                    break;
                }
                if start + PART > range.start {
                    bytes.extend(cut(&objects.bytes(Kind::Blob, part)?, start, &range));
                }
            }
        }
        kind => bytes = cut(&objects.bytes(kind, id)?, 0, &range),
    }
    Ok(bytes)
}

/// Adds a file with these bytes.
pub fn add_file<O: Objects + ?Sized>(additions: &mut Additions<'_, O>, bytes: Vec<u8>, mode: u16) -> Node {
    let size = bytes.len() as u64;
    if size <= MAX_WHOLE {
        return Node::file(additions.add_bytes(Kind::Blob, bytes), size, mode);
    }
    let mut hasher = FileHasher::default();
    hasher.push(&bytes);
    let mut chunks = Vec::new();
    let mut each = |chunk: &[u8]| {
        let id = additions.add_bytes(Kind::Blob, chunk.to_vec());
        chunks.push(Chunk { id, bytes: chunk.len() as u64 });
        Ok::<_, Infallible>(())
    };
    let mut chunker = Chunker::default();
    let Ok(()) = chunker.push(&bytes, &mut each).and_then(|()| chunker.finish(&mut each));
    let mut add = |node| Ok::<_, Infallible>(additions.add_bytes(Kind::Chunks, node));
    let Ok(top) = Chunks::encode_nodes(chunks, &mut add);
    Node::File { content: hasher.finish(), size, mode, chunks: Some(top) }
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
            entry(objects, tree, name)
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
