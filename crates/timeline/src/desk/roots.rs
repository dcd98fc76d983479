//! Further folders of a project: roots with names, which are looked at and moved together with its own folder.
//!
//! A path is no identity: another folder may be at the path of a root by now, and must not get the project's files. The
//! record of the project's folder has device, inode and birth time of each root. Roots carry no mark: another store
//! may use the same folder.

use std::path::{Path, PathBuf};

use retake_model::id::{FolderId, ProjectId};
use retake_model::intent::{FolderIdentity, FolderRecord};
use retake_store::StoreError;
use retake_workspace::folder::{Identity, path_from_text};

use super::apart::is_same_folder;
use super::{Desk, FileError};
use crate::Looking;

/// A further folder of a project.
#[derive(Clone, Debug)]
pub struct FurtherRoot {
    /// What it is called.
    pub name: String,
    /// Where it was added.
    pub path: PathBuf,
    /// Which folder on the disk it is; none if an older version recorded it.
    identity: Option<FolderIdentity>,
}

impl FurtherRoot {
    /// Whether the folder at its path is the one that was added.
    pub fn is_there(&self) -> bool {
        match &self.identity {
            Some(known) => is_same_folder(known, &self.path, true),
            None => self.path.is_dir(),
        }
    }

    /// Refuses another folder at its path.
    pub(super) fn check_there(&self) -> Result<(), FileError> {
        // An older version recorded the path alone; opening the folder says what is wrong with it.
        if self.identity.is_none() || self.is_there() {
            return Ok(());
        }
        Err(FileError::RootReplaced { name: self.name.clone(), path: self.path.clone() })
    }
}

impl Desk {
    /// Lets the roots of this desk be those of its project from now on, its own folder the first of them. What is
    /// in a root that is new is not a change; what was recorded of one that is left out stays in the log. The folder of
    /// the root that is named as added is the right one from now on, even if another was known at its path.
    pub fn keep_roots(&self, added: Option<&str>) -> Result<(), FileError> {
        if self.apart.is_some() {
            return Err(FileError::RootsApart);
        }
        let _session = self.begin_with_any_roots()?;
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
                    // Its own folder may well be inside that of another project; what is added may not.
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
                (known.snapshot, known.running, known.captured, known.others)
            });
            writing.put_folder(&FolderRecord {
                id: folder,
                project,
                roots,
                snapshot,
                apart: None,
                running,
                identity: None,
                removing: None,
                captured,
                others,
                root_identities,
            })?;
            Ok(())
        })?;
        Ok(())
    }
}

impl Desk {
    /// Refuses a further root at whose path another folder is.
    pub(super) fn check_roots(&self) -> Result<(), FileError> {
        if self.apart.is_some() || self.workspace.roots().len() == 1 {
            return Ok(());
        }
        let known = self.timeline.look()?.other_roots(self.project)?;
        let ours = |root: &&FurtherRoot| self.workspace.roots().iter().any(|our| our.path == root.path);
        known.iter().filter(ours).try_for_each(FurtherRoot::check_there)
    }
}

/// Which folders the further roots are: as they are known, or as they are found now.
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

/// The path among those of the roots at which another folder is than the one that was added.
pub(super) fn replaced_root(record: &FolderRecord, roots: &[(String, String)]) -> Option<PathBuf> {
    let mut known = record.root_identities.iter().flatten();
    let replaced = known.find(|(path, known)| {
        roots.iter().any(|(_, root)| root == path) && !is_same_folder(known, &path_from_text(path), true)
    })?;
    Some(path_from_text(&replaced.0))
}

/// Two folders whose files are moved under two locks must not share any.
fn check_overlap(ours: &Path, theirs: &Path) -> Result<(), FileError> {
    if ours.starts_with(theirs) || theirs.starts_with(ours) {
        return Err(FileError::RootTaken { root: ours.to_owned(), other: theirs.to_owned() });
    }
    Ok(())
}

impl Looking<'_> {
    /// The further roots of a project, by name.
    pub fn other_roots(&self, project: ProjectId) -> Result<Vec<FurtherRoot>, StoreError> {
        let Some(record) = self.queries().folder(FolderId::of_project(project))? else {
            return Ok(Vec::new());
        };
        let identities = record.root_identities.unwrap_or_default();
        let others = record.roots.into_iter().skip(1).map(|(name, path)| {
            let identity = identities.iter().find(|(known, _)| *known == path).map(|(_, known)| *known);
            FurtherRoot { name, path: path_from_text(&path), identity }
        });
        Ok(others.collect())
    }
}
