//! The paths to restore.

use std::collections::BTreeSet;

use crate::path::RootPath;

/// Some paths with everything below them; all paths if empty.
pub(super) struct Selection(BTreeSet<RootPath>);

impl Selection {
    pub(super) fn new(paths: &[RootPath]) -> Self {
        Self(paths.iter().cloned().collect())
    }

    /// Whether a path is selected or below a selected one.
    pub(super) fn covers(&self, path: &RootPath) -> bool {
        if self.0.is_empty() || self.0.contains(path) {
            return true;
        }
        let mut around = path.path.parent();
        while let Some(folder) = around {
            around = folder.parent();
            if self.0.contains(&RootPath { root: path.root.clone(), path: folder }) {
                return true;
            }
        }
        false
    }

    /// Whether a selected path is below `path`.
    pub(super) fn is_below(&self, path: &RootPath) -> bool {
        // In path order, the content of a folder directly follows it.
        let next = self.0.range(path..).next();
        next.is_some_and(|next| next.root == path.root && next.path.starts_with(&path.path))
    }
}
