//! The paths that a restore is about.

use std::collections::BTreeSet;

use crate::path::RootPath;

/// Some paths with everything below them, or all paths if none is named.
pub(super) struct Selection(BTreeSet<RootPath>);

impl Selection {
    pub(super) fn new(paths: &[RootPath]) -> Self {
        Self(paths.iter().cloned().collect())
    }

    /// Whether a path is one of them, or is below one.
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

    /// Whether one of them is below a path.
    pub(super) fn is_below(&self, path: &RootPath) -> bool {
        // In the order of paths, what is below a folder follows it at once.
        let next = self.0.range(path..).next();
        next.is_some_and(|next| next.root == path.root && next.path.starts_with(&path.path))
    }
}
