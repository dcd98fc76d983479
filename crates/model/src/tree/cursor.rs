//! Lookup of many paths in one tree, without reading a folder again for each path.

use std::collections::BTreeMap;

use super::{Node, Snapshot, Tree};
use crate::content::ContentId;
use crate::object::{ObjectError, Objects, load};
use crate::path::{FileName, RootPath, TreePath};

/// Looks up paths of a tree and caches the folders of the last path. Sorted paths cost one read per folder;
/// [`resolve`](super::resolve) reads every parent folder for each path, which is quadratic in a large folder.
#[derive(Debug)]
pub struct TreeCursor {
    root: ContentId,
    names: Vec<FileName>,
    /// The root folder, then the folder at each of the names.
    folders: Vec<Tree>,
}

/// A cursor over all roots of a snapshot.
#[derive(Debug)]
pub struct SnapshotCursor {
    roots: BTreeMap<String, TreeCursor>,
}

impl SnapshotCursor {
    /// Creates a cursor without reading anything.
    pub fn new(snapshot: &Snapshot) -> Self {
        let roots = snapshot.roots.iter().map(|root| (root.name.clone(), TreeCursor::new(root.tree)));
        Self { roots: roots.collect() }
    }

    /// The node at a path; `None` if the snapshot does not have that root.
    pub fn get(
        &mut self,
        objects: &(impl Objects + ?Sized),
        path: &RootPath,
    ) -> Result<Option<Node>, ObjectError> {
        match self.roots.get_mut(&path.root) {
            Some(root) => root.get(objects, &path.path),
            None => Ok(None),
        }
    }
}

impl TreeCursor {
    /// Creates a cursor without reading anything.
    pub fn new(root: ContentId) -> Self {
        Self { root, names: Vec::new(), folders: Vec::new() }
    }

    /// The node at a path.
    pub fn get(
        &mut self,
        objects: &(impl Objects + ?Sized),
        path: &TreePath,
    ) -> Result<Option<Node>, ObjectError> {
        if self.folders.is_empty() {
            self.folders.push(load(objects, self.root)?);
        }
        let parents = path.parents();
        let mut shared = self.names.iter().zip(parents).take_while(|(known, name)| known == name).count();
        while shared < parents.len() {
            let Some(Node::Folder { tree, .. }) = self.folders[shared].get(&parents[shared]) else {
                return Ok(None);
            };
            let below = load(objects, *tree)?;
            self.names.truncate(shared);
            self.folders.truncate(shared + 1);
            self.names.push(parents[shared].clone());
            self.folders.push(below);
            shared += 1;
        }
        Ok(self.folders[shared].get(path.name()).cloned())
    }
}
