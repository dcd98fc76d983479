//! Further folders of a project: roots with names, which are looked at and moved together with its own folder.

use std::path::{Path, PathBuf};

use retake_model::id::{FolderId, ProjectId};
use retake_model::intent::FolderRecord;
use retake_store::StoreError;
use retake_workspace::folder::path_from_text;

use super::{Desk, FileError};
use crate::Looking;

impl Desk {
    /// Lets the roots of this desk be those of its project from now on, its own folder the first of them. What is
    /// in a root that is new is not a change; what was recorded of one that is left out stays in the log.
    pub fn keep_roots(&self) -> Result<(), FileError> {
        if self.apart.is_some() {
            return Err(FileError::RootsApart);
        }
        let _session = self.begin()?;
        let (folder, project, roots) = (self.folder, self.project, self.roots());
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
            })?;
            Ok(())
        })?;
        Ok(())
    }
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
    pub fn other_roots(&self, project: ProjectId) -> Result<Vec<(String, PathBuf)>, StoreError> {
        let known = self.queries().folder(FolderId::of_project(project))?;
        let others = known.map(|known| known.roots).unwrap_or_default().into_iter().skip(1);
        Ok(others.map(|(name, path)| (name, path_from_text(&path))).collect())
    }
}
