//! The operations that touched one path, over all threads of a project, newest first.
//!
//! ```text
//!   thread A   ──12────────15──────────┐
//!   thread B   ───────13────────14─────┤──►  15 · 14 · 13 · 12   by their place in the store's log
//!                                      │
//!   path       notes.md ◄── 14 renamed it from todo.md: before 14 it is todo.md that is followed
//! ```
//!
//! Each operation with files is asked only whether its two snapshots differ at the path, which reads no further
//! than to the first folder that is the same in both. Whatever costs more is done for those that touched it.

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_model::id::ProjectId;
use retake_model::object::load;
use retake_model::operation::FileChange;
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::{
    self, Happened, Node, PathChange, Snapshot, SnapshotRoot, difference_at, pair_renames,
};
use retake_store::{Queries, StoredOperation, ThreadRow};

use crate::filed::FileOperations;
use crate::{LookError, Looking};

/// An operation that touched a path.
pub(crate) struct Touch {
    pub(crate) stored: StoredOperation,
    /// The thread, as a place in [`Touches::threads`].
    pub(crate) thread: usize,
    /// What it did. A file that came under this name from another has that name in `from`.
    pub(crate) change: PathChange,
    /// The name under which the file went on, if it went from this one.
    pub(crate) to: Option<TreePath>,
}

/// Walks back along the operations that touched a path.
pub(crate) struct Touches<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    root: String,
    /// The names that the file has in the operations that are still to come.
    names: BTreeSet<TreePath>,
    filed: FileOperations<'queries, 'transaction>,
    ready: Vec<Touch>,
}

impl Looking<'_> {
    /// The operations of a project that touched a path, up to and including a place in the store's log.
    pub(crate) fn touches<'queries, 'transaction>(
        queries: &'queries Queries<'transaction>,
        project: ProjectId,
        path: &RootPath,
        up_to: i64,
    ) -> Result<Touches<'queries, 'transaction>, LookError> {
        let mut filed = FileOperations::of_project(queries, project)?;
        if let Some(beyond) = up_to.checked_add(1) {
            filed.pass_over(beyond)?;
        }
        let names = BTreeSet::from([path.path.clone()]);
        Ok(Touches { queries, root: path.root.clone(), names, filed, ready: Vec::new() })
    }
}

impl Touches<'_, '_> {
    /// The threads that the touches refer to.
    pub(crate) fn threads(&self) -> &[ThreadRow] {
        self.filed.threads()
    }

    fn find(&mut self) -> Result<Option<Touch>, LookError> {
        loop {
            if let Some(touch) = self.ready.pop() {
                return Ok(Some(touch));
            }
            let Some((thread, stored)) = self.filed.step()? else { return Ok(None) };
            let Some(files) = stored.operation.files else { continue };
            if files.before != files.after {
                self.look_at(thread, &stored, files)?;
            }
        }
    }

    fn look_at(
        &mut self,
        thread: usize,
        stored: &StoredOperation,
        files: FileChange,
    ) -> Result<(), LookError> {
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

    /// The change with the name that the file came from, and the name that it went to; `None` if it only came into
    /// sight, or went out of it, because it is held now and was not, or the other way round.
    fn with_names(
        &self,
        before: Option<&SnapshotRoot>,
        after: Option<&SnapshotRoot>,
        change: PathChange,
    ) -> Result<Option<(PathChange, Option<TreePath>)>, LookError> {
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

    fn root(&self, snapshot: ContentId) -> Result<Option<SnapshotRoot>, LookError> {
        let snapshot: Snapshot = load(self.queries, snapshot)?;
        Ok(snapshot.root(&self.root).cloned())
    }
}

impl Touch {
    /// What happened to the path. A folder changed if anything in it did.
    pub(crate) fn happened(&self) -> Happened {
        match (&self.change.before, &self.change.after) {
            (Some(Node::Folder { tree: old, .. }), Some(Node::Folder { tree: new, .. })) if old != new => {
                Happened::Changed
            }
            _ => self.change.happened(),
        }
    }
}

impl Iterator for Touches<'_, '_> {
    type Item = Result<Touch, LookError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.find().transpose()
    }
}
