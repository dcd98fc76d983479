//! Applies one path of one step to the current node.

use std::collections::BTreeMap;

use super::{How, OnConflict, Touched, same};
use crate::content::{ContentId, Kind};
use crate::merge::{Labels, Merged, merge};
use crate::object::{Additions, Objects, Unavailable};
use crate::path::RootPath;
use crate::tree::{Difference, Node, PART, Snapshot, SnapshotCursor, SnapshotRoot, TreeCursor};

/// Applies one difference.
pub(super) fn carry<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    root: &SnapshotRoot,
    now: &mut TreeCursor,
    touched: &mut BTreeMap<RootPath, Touched>,
    difference: Difference,
    on_conflict: OnConflict,
    labels: Labels<'_>,
) -> Result<(), Unavailable> {
    let path = RootPath { root: root.name.clone(), path: difference.path };
    let touched = match touched.entry(path) {
        std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
        std::collections::btree_map::Entry::Vacant(free) => {
            let present = now.get(additions, &free.key().path)?;
            free.insert(Touched { wanted: present.clone(), present, how: How::Exact, settled: false })
        }
    };
    if touched.is_settled() {
        return Ok(());
    }
    let (from, to) = (difference.before, difference.after);
    let now = touched.wanted.take();
    let (wanted, how) = if same(now.as_ref(), from.as_ref()) {
        (to, How::Exact)
    } else if same(now.as_ref(), to.as_ref()) {
        (now, How::Exact)
    } else {
        between(additions, from.as_ref(), now, to, on_conflict, labels)?
    };
    touched.wanted = wanted;
    // A merged path stays reported as merged, regardless of later steps.
    if how != How::Exact {
        touched.how = how;
    }
    Ok(())
}

/// Reports a conflict for each file that the previous move skipped and the user changed since.
pub(super) fn report_changed<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    left: &Snapshot,
    passed_over: BTreeMap<RootPath, Option<Node>>,
    touched: &mut BTreeMap<RootPath, Touched>,
) -> Result<(), Unavailable> {
    let (mut left, mut present) = (SnapshotCursor::new(left), SnapshotCursor::new(present));
    for (path, theirs) in passed_over {
        let (left, now) = (left.get(additions, &path)?, present.get(additions, &path)?);
        // The content of folders has its own paths.
        let folder = [&now, &theirs].into_iter().flatten().any(Node::is_folder);
        if !folder && !same(now.as_ref(), left.as_ref()) && !same(now.as_ref(), theirs.as_ref()) {
            let how = How::Conflict { theirs };
            touched.insert(path, Touched { present: now.clone(), wanted: now, how, settled: true });
        }
    }
    Ok(())
}

/// The result for a path with other changes.
fn between<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    from: Option<&Node>,
    now: Option<Node>,
    to: Option<Node>,
    on_conflict: OnConflict,
    labels: Labels<'_>,
) -> Result<(Option<Node>, How), Unavailable> {
    let mut marked = None;
    if let (
        Some(Node::File { content: base, size: base_size, mode: base_mode }),
        Some(Node::File { content: ours, size: our_size, mode: our_mode }),
        Some(Node::File { content: theirs, size: their_size, mode: their_mode }),
    ) = (from, &now, &to)
    {
        let mode = if our_mode == base_mode { *their_mode } else { *our_mode };
        let merged = if ours == base {
            Some((*theirs, *their_size))
        } else if theirs == base || theirs == ours {
            Some((*ours, *our_size))
        } else if [base_size, our_size, their_size].iter().all(|size| **size <= PART) {
            match merge_texts(additions, [*base, *ours, *theirs], labels)? {
                Text::Clean(content, size) => Some((content, size)),
                Text::Marked(content, size) => {
                    marked = Some(Node::File { content, size, mode });
                    None
                }
                Text::Other => None,
            }
        } else {
            None
        };
        if let Some((content, size)) = merged {
            return Ok((Some(Node::File { content, size, mode }), How::Merged));
        }
    }
    let wanted = match on_conflict {
        OnConflict::Keep => now,
        OnConflict::Take => to.clone(),
        OnConflict::Mark => marked.or(now),
    };
    Ok((wanted, How::Conflict { theirs: to }))
}

enum Text {
    Clean(ContentId, u64),
    Marked(ContentId, u64),
    Other,
}

fn merge_texts<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    [base, ours, theirs]: [ContentId; 3],
    labels: Labels<'_>,
) -> Result<Text, Unavailable> {
    let read = |id| additions.bytes(Kind::Blob, id);
    let (base, ours, theirs) = (read(base)?, read(ours)?, read(theirs)?);
    let merged = merge(&base, &ours, &theirs, labels);
    let mut add = |bytes: Vec<u8>| {
        let size = bytes.len() as u64;
        // Two small texts can merge into one that would be stored in parts; that rare file is a conflict.
        (size <= PART).then(|| (additions.add_bytes(Kind::Blob, bytes), size))
    };
    Ok(match merged {
        Merged::Clean(bytes) => add(bytes).map_or(Text::Other, |(content, size)| Text::Clean(content, size)),
        Merged::Conflict { marked, .. } => {
            add(marked).map_or(Text::Other, |(content, size)| Text::Marked(content, size))
        }
        Merged::Binary => Text::Other,
    })
}
