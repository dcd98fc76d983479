//! Applies one path of one step to the current node.

use std::collections::BTreeMap;

use super::{OnConflict, PathOutcome, PathState, same};
use crate::merge::{MergeLabels, MergeResult, merge};
use crate::object::{Additions, ObjectError, Objects};
use crate::path::RootPath;
use crate::tree::{
    Difference, Node, PART, Snapshot, SnapshotCursor, SnapshotRoot, TreeCursor, add_file, read,
};

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
        Some(base @ Node::File { content: base_content, size: base_size, mode: base_mode, .. }),
        Some(ours @ Node::File { content: our_content, size: our_size, mode: our_mode, .. }),
        Some(theirs @ Node::File { content: their_content, size: their_size, mode: their_mode, .. }),
    ) = (from, &now, &to)
    {
        let keeps_mode = our_mode != base_mode && on_conflict != OnConflict::Take;
        let both_changed = our_mode != base_mode && their_mode != base_mode && our_mode != their_mode;
        let mode =
            if our_mode == base_mode || (both_changed && !keeps_mode) { *their_mode } else { *our_mode };
        let merged = if our_content == base_content {
            Some(theirs.clone())
        } else if their_content == base_content || their_content == our_content {
            Some(ours.clone())
        } else if [base_size, our_size, their_size].iter().all(|size| **size <= PART) {
            match merge_texts(additions, [base, ours, theirs], labels)? {
                TextMerge::Clean(merged) => Some(merged),
                TextMerge::Marked(merged) => {
                    marked = Some(merged.with_mode(mode));
                    None
                }
                TextMerge::Other => None,
            }
        } else {
            None
        };
        if let Some(merged) = merged {
            let how = if both_changed {
                PathOutcome::Conflict { theirs: to, kept: keeps_mode }
            } else {
                PathOutcome::Merged
            };
            return Ok((Some(merged.with_mode(mode)), how));
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
    Clean(Node),
    Marked(Node),
    Other,
}

fn merge_texts<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    files: [&Node; 3],
    labels: MergeLabels<'_>,
) -> Result<TextMerge, ObjectError> {
    let [base, ours, theirs] = files.map(|node| read(additions, node));
    let merged = merge(&base?, &ours?, &theirs?, labels);
    // Two small texts can merge into a large one; that rare file is a conflict.
    let is_small = |bytes: &[u8]| bytes.len() as u64 <= PART;
    Ok(match merged {
        MergeResult::Clean(bytes) if is_small(&bytes) => TextMerge::Clean(add_file(additions, bytes, 0)),
        MergeResult::Conflict { marked, .. } if is_small(&marked) => {
            TextMerge::Marked(add_file(additions, marked, 0))
        }
        MergeResult::Clean(_) | MergeResult::Conflict { .. } | MergeResult::Binary => TextMerge::Other,
    })
}
