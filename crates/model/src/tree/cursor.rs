//! Lookup of many paths in one tree, without reading a folder again for each path.

use std::collections::BTreeMap;

use super::folder::FolderCursor;
use super::{Node, Snapshot};
use crate::content::ContentId;
use crate::object::{ObjectError, Objects};
use crate::path::{FileName, RootPath, TreePath};

/// Looks up paths of a tree and caches the nodes of the last path. Sorted paths read every node once;
/// [`resolve`](super::resolve) reads those of every parent folder for each path.
#[derive(Debug)]
pub struct TreeCursor {
    names: Vec<FileName>,
    /// The root folder, then the folder at each of the names.
    folders: Vec<(ContentId, FolderCursor)>,
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
        Self { names: Vec::new(), folders: vec![(root, FolderCursor::default())] }
    }

    /// The node at a path.
    pub fn get(
        &mut self,
        objects: &(impl Objects + ?Sized),
        path: &TreePath,
    ) -> Result<Option<Node>, ObjectError> {
        let parents = path.parents();
        let mut shared = self.names.iter().zip(parents).take_while(|(known, name)| known == name).count();
        while shared < parents.len() {
            let name = &parents[shared];
            let Some(Node::Folder { tree, .. }) = self.look_up(objects, shared, name)? else {
                return Ok(None);
            };
            self.names.truncate(shared);
            self.folders.truncate(shared + 1);
            self.names.push(name.clone());
            self.folders.push((tree, FolderCursor::default()));
            shared += 1;
        }
        self.look_up(objects, shared, path.name())
    }

    /// Looks up a name in one of the folders.
    fn look_up(
        &mut self,
        objects: &(impl Objects + ?Sized),
        depth: usize,
        name: &FileName,
    ) -> Result<Option<Node>, ObjectError> {
        let (tree, folder) = &mut self.folders[depth];
        folder.get(objects, *tree, name)
    }
}
