//! Content without a copy in the store that is where a move writes. A move renames it instead of overwriting it.

use std::collections::BTreeSet;

use retake_model::object::{Objects, load};
use retake_model::path::RootPath;
use retake_model::replay::ReplayResult;
use retake_model::sealed::{SealedState, sealed_changes, sealed_of};
use retake_model::tree::{Excluded, Snapshot};
use retake_workspace::apply::{OpenRoot, aside_path};

use super::{FileError, WorkingCopy};

/// The paths at which a replay writes over such content: files that became too large, and whatever took the place of a
/// sealed file.
pub(super) fn uncaptured_paths(
    objects: &(impl Objects + ?Sized),
    present: &Snapshot,
    replayed: &ReplayResult,
) -> Result<BTreeSet<RootPath>, FileError> {
    let mut found = BTreeSet::new();
    for root in &present.roots {
        let here = |path| RootPath { root: root.name.clone(), path };
        let (old, new) =
            (sealed_of(objects, Some(root))?, sealed_of(objects, replayed.snapshot.root(&root.name))?);
        let unsealed = sealed_changes(&old, &new).into_iter();
        let unsealed = unsealed.filter(|(_, before, _)| matches!(before, SealedState::NotStored { .. }));
        found.extend(unsealed.map(|(path, ..)| here(path)));
        let Some(id) = root.excluded else { continue };
        let excluded: Excluded = load(objects, id)?;
        let contents = excluded.0.iter().filter(|excluded| excluded.reason.is_about_content());
        let contents: BTreeSet<&[u8]> = contents.map(|excluded| excluded.path.as_slice()).collect();
        let written = replayed.paths.iter().filter(|path| path.path.root == root.name);
        let written = written.filter(|path| path.present.is_none() && path.wanted.is_some());
        let blocked = written.filter(|path| contents.contains(path.path.path.bytes().as_slice()));
        found.extend(blocked.map(|path| path.path.clone()));
    }
    Ok(found)
}

impl WorkingCopy {
    /// The paths to which a move would rename the content at these ones.
    pub(super) fn aside_paths(&self, paths: &BTreeSet<RootPath>) -> Vec<String> {
        let roots = self.workspace.roots().iter();
        let open = roots.filter_map(|root| Some((&root.name, OpenRoot::open(&root.path).ok()?)));
        open.flat_map(|(name, open)| {
            let here = paths.iter().filter(move |path| path.root == *name);
            here.filter_map(|path| aside_path(&open, &path.path)).collect::<Vec<_>>()
        })
        .collect()
    }
}
