//! Applies one path of one step to the current node.

use std::collections::BTreeMap;

use super::{OnConflict, PathOutcome, PathState, same};
use crate::content::{ContentId, Kind};
use crate::merge::{MergeLabels, MergeResult, merge};
use crate::object::{Additions, ObjectError, Objects};
use crate::path::RootPath;
use crate::tree::{Difference, Node, PART, Snapshot, SnapshotCursor, SnapshotRoot, TreeCursor};

/// Applies one difference.
pub(super) fn carry<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    root: &SnapshotRoot,
    now: &mut TreeCursor,
    touched: &mut BTreeMap<RootPath, PathState>,
    difference: Difference,
    on_conflict: OnConflict,
    labels: MergeLabels<'_>,
) -> Result<(), ObjectError> {
    let path = RootPath { root: root.name.clone(), path: difference.path };
    let touched = match touched.entry(path) {
        std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
        std::collections::btree_map::Entry::Vacant(free) => {
            let present = now.get(additions, &free.key().path)?;
            free.insert(PathState {
                wanted: present.clone(),
                present,
                how: PathOutcome::Exact,
                settled: false,
            })
        }
    };
    if touched.is_settled() {
        return Ok(());
    }
    let (from, to) = (difference.before, difference.after);
    let now = touched.wanted.take();
    let (wanted, how) = if same(now.as_ref(), from.as_ref()) {
        (to, PathOutcome::Exact)
    } else if same(now.as_ref(), to.as_ref()) {
        (now, PathOutcome::Exact)
    } else {
        merge_path(additions, from.as_ref(), now, to, on_conflict, labels)?
    };
    touched.wanted = wanted;
    // A merged path stays reported as merged, regardless of later steps.
    if how != PathOutcome::Exact {
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
    touched: &mut BTreeMap<RootPath, PathState>,
) -> Result<(), ObjectError> {
    let (mut left, mut present) = (SnapshotCursor::new(left), SnapshotCursor::new(present));
    for (path, theirs) in passed_over {
        let (left, now) = (left.get(additions, &path)?, present.get(additions, &path)?);
        // The content of folders has its own paths.
        let folder = [&now, &theirs].into_iter().flatten().any(Node::is_folder);
        if !folder && !same(now.as_ref(), left.as_ref()) && !same(now.as_ref(), theirs.as_ref()) {
            let how = PathOutcome::Conflict { theirs, kept: true };
            touched.insert(path, PathState { present: now.clone(), wanted: now, how, settled: true });
        }
    }
    Ok(())
}

/// The result for a path with other changes.
fn merge_path<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    from: Option<&Node>,
    now: Option<Node>,
    to: Option<Node>,
    on_conflict: OnConflict,
    labels: MergeLabels<'_>,
) -> Result<(Option<Node>, PathOutcome), ObjectError> {
    let mut marked = None;
    if let (
        Some(Node::File { content: base, size: base_size, mode: base_mode }),
        Some(Node::File { content: ours, size: our_size, mode: our_mode }),
        Some(Node::File { content: theirs, size: their_size, mode: their_mode }),
    ) = (from, &now, &to)
    {
        let keeps_mode = our_mode != base_mode && on_conflict != OnConflict::Take;
        let both_changed = our_mode != base_mode && their_mode != base_mode && our_mode != their_mode;
        let mode =
            if our_mode == base_mode || (both_changed && !keeps_mode) { *their_mode } else { *our_mode };
        let merged = if ours == base {
            Some((*theirs, *their_size))
        } else if theirs == base || theirs == ours {
            Some((*ours, *our_size))
        } else if [base_size, our_size, their_size].iter().all(|size| **size <= PART) {
            match merge_texts(additions, [*base, *ours, *theirs], labels)? {
                TextMerge::Clean(content, size) => Some((content, size)),
                TextMerge::Marked(content, size) => {
                    marked = Some(Node::File { content, size, mode });
                    None
                }
                TextMerge::Other => None,
            }
        } else {
            None
        };
        if let Some((content, size)) = merged {
            let how = if both_changed {
                PathOutcome::Conflict { theirs: to, kept: keeps_mode }
            } else {
                PathOutcome::Merged
            };
            return Ok((Some(Node::File { content, size, mode }), how));
        }
    }
    let (wanted, kept) = match (on_conflict, marked) {
        (OnConflict::Take, _) => (to.clone(), false),
        (OnConflict::Mark, Some(marked)) => (Some(marked), false),
        (OnConflict::Keep | OnConflict::Mark, _) => (now, true),
    };
    Ok((wanted, PathOutcome::Conflict { theirs: to, kept }))
}

enum TextMerge {
    Clean(ContentId, u64),
    Marked(ContentId, u64),
    Other,
}

fn merge_texts<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    [base, ours, theirs]: [ContentId; 3],
    labels: MergeLabels<'_>,
) -> Result<TextMerge, ObjectError> {
    let read = |id| additions.bytes(Kind::Blob, id);
    let (base, ours, theirs) = (read(base)?, read(ours)?, read(theirs)?);
    let merged = merge(&base, &ours, &theirs, labels);
    let mut add = |bytes: Vec<u8>| {
        let size = bytes.len() as u64;
        // Two small texts can merge into one that would be stored in parts; that rare file is a conflict.
        (size <= PART).then(|| (additions.add_bytes(Kind::Blob, bytes), size))
    };
    Ok(match merged {
        MergeResult::Clean(bytes) => {
            add(bytes).map_or(TextMerge::Other, |(content, size)| TextMerge::Clean(content, size))
        }
        MergeResult::Conflict { marked, .. } => {
            add(marked).map_or(TextMerge::Other, |(content, size)| TextMerge::Marked(content, size))
        }
        MergeResult::Binary => TextMerge::Other,
    })
}
