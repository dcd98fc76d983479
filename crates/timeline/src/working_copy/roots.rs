//! Additional roots of a project: named folders that are captured and moved together with its own folder.
//!
//! A path is not enough to identify a root: another folder may have taken the path, and must not receive the project's
//! files. The record of the project's folder has device, inode and birth time of each root. Roots have no mark, because
//! another store may use the same folder.

use std::path::{Path, PathBuf};

use retake_model::id::FolderId;
use retake_model::intent::{FolderIdentity, FolderRecord};
use retake_store::StoreError;
use retake_workspace::folder::{Identity, path_from_text};

use super::worktree::is_same_folder;
use super::{FileError, WorkingCopy};
use crate::read::project::ProjectReader;

/// An additional root of a project.
#[derive(Clone, Debug)]
pub struct AdditionalRoot {
    /// The name.
    pub name: String,
    /// The path at which it was added.
    pub path: PathBuf,
    /// Identity of the folder on disk; `None` if an older version recorded it.
    identity: Option<FolderIdentity>,
}

impl AdditionalRoot {
    /// Returns whether the folder at its path is the one that was added.
    pub fn exists(&self) -> bool {
        match &self.identity {
            Some(known) => is_same_folder(known, &self.path, true),
            None => self.path.is_dir(),
        }
    }

    /// Rejects another folder at its path.
    pub(super) fn check_exists(&self) -> Result<(), FileError> {
        // An older version recorded only the path; opening the folder reports any problem.
        if self.identity.is_none() || self.exists() {
            return Ok(());
        }
        Err(FileError::RootReplaced { name: self.name.clone(), path: self.path.clone() })
    }
}

impl WorkingCopy {
    /// Stores the roots of this working copy as those of its project, its own folder first. Files in a new root are no
    /// change; the history of a removed root stays in the log. The folder at the path of the `added` root becomes the
    /// valid one, even if another one was known there.
    pub fn store_roots(&self, added: Option<&str>) -> Result<(), FileError> {
        if self.worktree.is_some() {
            return Err(FileError::RootsInWorktree);
        }
        let _session = self.begin_with_changed_roots()?;
        let (folder, project, roots) = (self.folder, self.project, self.roots());
        let store = self.timeline.store.folder();
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        for (_, root) in roots.iter().skip(1) {
            let root = path_from_text(root);
            if root.starts_with(&store) || store.starts_with(&root) {
                return Err(FileError::RootIsStore { root, store });
            }
        }
        let added = roots.iter().find(|(name, _)| Some(name.as_str()) == added).map(|(_, path)| path.clone());
        self.timeline.store.write(move |writing| -> Result<(), FileError> {
            for other in writing.folders()?.into_iter().filter(|other| other.id != folder) {
                for (_, theirs) in &other.roots {
                    // The project's own folder may be inside that of another project; an additional root may not.
                    for (_, ours) in roots.iter().skip(1) {
                        check_overlap(&path_from_text(ours), &path_from_text(theirs))?;
                    }
                }
            }
            let known = writing.folder(folder)?;
            let mut identities =
                known.as_ref().and_then(|known| known.root_identities.clone()).unwrap_or_default();
            identities.retain(|(path, _)| Some(path) != added.as_ref());
            let root_identities = identify_roots(&roots, &identities);
            let (snapshot, running, captured, others) = known.map_or((None, None, None, None), |known| {
                (known.snapshot, known.running, known.captured, known.other_runs)
            });
            writing.put_folder(&FolderRecord {
                id: folder,
                project,
                roots,
                snapshot,
                worktree: None,
                running,
                identity: None,
                removing: None,
                captured,
                other_runs: others,
                root_identities,
            })?;
            Ok(())
        })?;
        Ok(())
    }
}

impl WorkingCopy {
    /// Rejects an additional root that was replaced.
    pub(super) fn check_roots(&self) -> Result<(), FileError> {
        if self.worktree.is_some() || self.workspace.roots().len() == 1 {
            return Ok(());
        }
        let known = self.timeline.read()?.project(self.project).additional_roots()?;
        let ours = |root: &&AdditionalRoot| self.workspace.roots().iter().any(|our| our.path == root.path);
        known.iter().filter(ours).try_for_each(AdditionalRoot::check_exists)
    }
}

/// Identities of the additional roots: as recorded, or as they are now.
pub(super) fn identify_roots(
    roots: &[(String, String)],
    known: &[(String, FolderIdentity)],
) -> Option<Vec<(String, FolderIdentity)>> {
    let identify = |(_, path): &(String, String)| {
        if let Some(known) = known.iter().find(|(known, _)| known == path) {
            return Some(known.clone());
        }
        let Identity { device, inode, born } = Identity::of(&path_from_text(path)).ok()?;
        Some((path.clone(), FolderIdentity { device, inode, born, marked: false }))
    };
    let found: Vec<_> = roots.iter().skip(1).filter_map(identify).collect();
    (!found.is_empty()).then_some(found)
}

/// The path of the first root that was replaced by another folder.
pub(super) fn replaced_root(record: &FolderRecord, roots: &[(String, String)]) -> Option<PathBuf> {
    let mut known = record.root_identities.iter().flatten();
    let replaced = known.find(|(path, known)| {
        roots.iter().any(|(_, root)| root == path) && !is_same_folder(known, &path_from_text(path), true)
    })?;
    Some(path_from_text(&replaced.0))
}

/// Folders with different locks must not share files.
fn check_overlap(ours: &Path, theirs: &Path) -> Result<(), FileError> {
    if ours.starts_with(theirs) || theirs.starts_with(ours) {
        return Err(FileError::RootTaken { root: ours.to_owned(), other: theirs.to_owned() });
    }
    Ok(())
}

impl ProjectReader<'_> {
    /// The additional roots of the project, sorted by name.
    pub fn additional_roots(&self) -> Result<Vec<AdditionalRoot>, StoreError> {
        let Some(record) = self.reader.queries().folder(FolderId::of_project(self.project))? else {
            return Ok(Vec::new());
        };
        let identities = record.root_identities.unwrap_or_default();
        let others = record.roots.into_iter().skip(1).map(|(name, path)| {
            let identity = identities.iter().find(|(known, _)| *known == path).map(|(_, known)| *known);
            AdditionalRoot { name, path: path_from_text(&path), identity }
        });
        Ok(others.collect())
    }
}
