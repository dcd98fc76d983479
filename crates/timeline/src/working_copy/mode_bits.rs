//! Setuid, setgid and sticky bits: snapshots do not capture them, so a move reports where one is lost.

use std::collections::{BTreeSet, HashSet};

use retake_model::object::{ObjectError, Objects, load};
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::{Excluded, ExclusionReason, Node, Snapshot};

use super::resolve_request::FileSteps;

/// Note for a path that is restored without such a bit.
pub(super) const MODE_BITS_LOST: &str =
    "without its setuid, setgid or sticky bit, which snapshots do not capture";

/// Paths that have such a bit now, or had one in a snapshot of the steps.
pub(super) fn paths_with_mode_bits<O: Objects + ?Sized>(
    objects: &O,
    present: &Snapshot,
    steps: &FileSteps,
) -> Result<BTreeSet<RootPath>, ObjectError> {
    let mut snapshots = vec![present.clone()];
    match steps {
        FileSteps::Restore { snapshot, .. } => snapshots.push(load(objects, *snapshot)?),
        FileSteps::Replay(way) => {
            for step in way.back.iter().chain(&way.steps) {
                snapshots.extend([load(objects, step.from)?, load(objects, step.to)?]);
            }
        }
    }
    let (mut recorded, mut paths) = (HashSet::new(), BTreeSet::new());
    for root in snapshots.iter().flat_map(|snapshot| &snapshot.roots) {
        let Some(id) = root.excluded.filter(|id| recorded.insert((root.name.clone(), *id))) else { continue };
        let excluded: Excluded = load(objects, id)?;
        let found = excluded.0.iter().filter(|left| left.reason == ExclusionReason::ModeBits);
        let found = found.filter_map(|left| TreePath::new(&left.path).ok());
        paths.extend(found.map(|path| RootPath { root: root.name.clone(), path }));
    }
    Ok(paths)
}

/// Returns whether a path is created again, which loses the bit. A change of permissions alone keeps it.
pub(super) fn is_recreated(present: Option<&Node>, wanted: Option<&Node>) -> bool {
    match (present, wanted) {
        (Some(Node::File { content: now, .. }), Some(Node::File { content: then, .. })) => now != then,
        (Some(Node::Folder { .. }), Some(Node::Folder { .. })) => false,
        (_, wanted) => matches!(wanted, Some(Node::File { .. } | Node::Folder { .. })),
    }
}
