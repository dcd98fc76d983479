//! Finds the operations that changed one path, over all threads of a project, newest first.
//!
//! ```text
//!   thread A   ──12────────15──────────┐
//!   thread B   ───────13────────14─────┤──►  15 · 14 · 13 · 12   by sequence number
//!                                      │
//!   path       notes.md ◄── 14 renamed it from todo.md: before 14, todo.md is followed
//! ```
//!
//! For each operation with files this only checks whether its two snapshots differ at the path, which reads no further
//! than the first folder that is equal in both. More expensive steps run only for matching operations.

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::id::ProjectId;
use retake_model::object::load;
use retake_model::operation::FileChange;
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::{
    self, Node, PathChange, PathChangeKind, Snapshot, SnapshotRoot, difference_at, pair_renames,
};
use retake_store::{Queries, StoredOperation, ThreadRow};

use crate::ReadError;
use crate::files::file_operations::FileOperations;

/// An operation that changed a path.
pub(crate) struct Touch {
    pub(crate) stored: StoredOperation,
    /// Index into [`Touches::threads`].
    pub(crate) thread: usize,
    /// The change. A renamed file has its former name in `from`.
    pub(crate) change: PathChange,
    /// The new name, if the file was renamed away from this one.
    pub(crate) to: Option<TreePath>,
}

/// Iterates backwards over the operations that changed a path.
pub(crate) struct Touches<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    root: String,
    /// Names of the file in the remaining operations.
    names: BTreeSet<TreePath>,
    last_file_operation: FileOperations<'queries, 'transaction>,
    ready: Vec<Touch>,
}

impl<'queries, 'transaction> Touches<'queries, 'transaction> {
    /// Operations of a project that changed a path, up to a sequence number.
    pub(crate) fn of(
        queries: &'queries Queries<'transaction>,
        project: ProjectId,
        path: &RootPath,
        up_to: i64,
    ) -> Result<Self, ReadError> {
        let mut last_file_operation = FileOperations::of_project(queries, project)?;
        if let Some(beyond) = up_to.checked_add(1) {
            last_file_operation.skip_to(beyond)?;
        }
        let names = BTreeSet::from([path.path.clone()]);
        Ok(Self { queries, root: path.root.clone(), names, last_file_operation, ready: Vec::new() })
    }
}

impl Touches<'_, '_> {
    /// The threads that the results refer to.
    pub(crate) fn threads(&self) -> &[ThreadRow] {
        self.last_file_operation.threads()
    }

    fn find(&mut self) -> Result<Option<Touch>, ReadError> {
        loop {
            if let Some(touch) = self.ready.pop() {
                return Ok(Some(touch));
            }
            let Some((thread, stored)) = self.last_file_operation.step()? else { return Ok(None) };
            let Some(files) = stored.operation.files else { continue };
            if files.before != files.after {
                self.inspect(thread, &stored, files)?;
            }
        }
    }

    fn inspect(
        &mut self,
        thread: usize,
        stored: &StoredOperation,
        files: FileChange,
    ) -> Result<(), ReadError> {
        let (before, after) = (self.root(files.before)?, self.root(files.after)?);
        let tree = |root: &Option<SnapshotRoot>| root.as_ref().map(|root| root.tree);
        for name in self.names.clone() {
            let found = difference_at(self.queries, tree(&before), tree(&after), &name)?;
            let Some((old, new)) = found else { continue };
            let change = PathChange { path: name.clone(), from: None, before: old, after: new };
            let named = self.with_names(before.as_ref(), after.as_ref(), change)?;
            let Some((change, to)) = named else { continue };
            if let Some(from) = &change.from {
                self.names.remove(&name);
                self.names.insert(from.clone());
            }
            self.ready.push(Touch { stored: stored.clone(), thread, change, to });
        }
        Ok(())
    }

    /// The change with the former and new name; `None` if the file only became captured or excluded.
    fn with_names(
        &self,
        before: Option<&SnapshotRoot>,
        after: Option<&SnapshotRoot>,
        change: PathChange,
    ) -> Result<Option<(PathChange, Option<TreePath>)>, ReadError> {
        if change.before.is_some() == change.after.is_some() {
            return Ok(Some((change, None)));
        }
        let paired = pair_renames(self.queries, tree::changes(self.queries, before, after)?)?;
        let here = paired.iter().find(|other| other.path == change.path);
        if change.before.is_none() {
            return Ok(here.map(|found| (found.clone(), None)));
        }
        let to = paired.iter().find(|other| other.from.as_ref() == Some(&change.path));
        let to = to.map(|other| other.path.clone());
        Ok((here.is_some() || to.is_some()).then_some((change, to)))
    }

    fn root(&self, snapshot: ContentId) -> Result<Option<SnapshotRoot>, ReadError> {
        let snapshot: Snapshot = load(self.queries, snapshot)?;
        Ok(snapshot.root(&self.root).cloned())
    }
}

impl Touch {
    /// The kind of change. A folder changed if anything in it did.
    pub(crate) fn kind(&self) -> PathChangeKind {
        match (&self.change.before, &self.change.after) {
            (Some(Node::Folder { tree: old, .. }), Some(Node::Folder { tree: new, .. })) if old != new => {
                PathChangeKind::Changed
            }
            _ => self.change.kind(),
        }
    }
}

impl Iterator for Touches<'_, '_> {
    type Item = Result<Touch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.find().transpose()
    }
}
