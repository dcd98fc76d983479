//! Validates the location of a new worktree.
//!
//! ```text
//!   new/deep/tree        the existing part is resolved        rejected inside   the project and its roots
//!     │                    ▼                                                    the store
//!     └─ link ► /srv/x ──► /srv/x/new/deep/tree ─────────────────────────────►  other worktrees
//!                                                                               other projects, home, system
//! ```
//!
//! Nested folders would capture each other's files, and removing the outer one would remove the inner one.

use std::io;
use std::path::{Path, PathBuf};

use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::check_folder;

use super::super::{FileError, WorkingCopy};

impl WorkingCopy {
    /// Resolves the path of a new worktree, which must be free and outside of all folders of Retake.
    pub(super) fn free_location(&self, path: &Path) -> Result<PathBuf, FileError> {
        let location = self.allowed_location(path)?;
        if location.symlink_metadata().is_ok() {
            return Err(FileError::PathExists(location));
        }
        Ok(location)
    }

    /// Like `free_location`, but the path may exist.
    pub(super) fn allowed_location(&self, path: &Path) -> Result<PathBuf, FileError> {
        let location =
            resolve(path).map_err(|error| FileError::BadLocation { path: path.to_owned(), error })?;
        check_folder(&location)?;
        if self.workspace.roots().iter().any(|root| location.starts_with(&root.path)) {
            return Err(FileError::InsideProject(location));
        }
        let inside =
            |other: PathBuf, what| Err(FileError::InsideFolder { path: location.clone(), what, other });
        let store = self.timeline.store.folder();
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        if location.starts_with(&store) {
            return inside(store, "the store");
        }
        let reader = self.timeline.read()?;
        let main = &self.workspace.main().path;
        for folder in reader.queries().folders()? {
            let what = if folder.worktree.is_some() { "the worktree of a take" } else { "another project" };
            for (_, root) in &folder.roots {
                let root = path_from_text(root);
                // A project that contains this one also contains its siblings.
                if location.starts_with(&root) && (folder.worktree.is_some() || !main.starts_with(&root)) {
                    return inside(root, what);
                }
            }
        }
        // A project has no folder record before its files are first captured.
        for project in reader.queries().projects()?.into_iter().filter(|project| !project.path.is_empty()) {
            let path = path_from_text(&project.path);
            if location.starts_with(&path) && !main.starts_with(&path) {
                return inside(path, "another project");
            }
        }
        Ok(location)
    }
}

/// The absolute path, with links resolved in its existing part.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut existing = absolute.as_path();
    let mut missing = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(real) => {
                return Ok(missing.iter().rev().fold(real, |path: PathBuf, name| path.join(name)));
            }
            // A dangling link would lead somewhere once its target is created.
            Err(error) if error.kind() != io::ErrorKind::NotFound || existing.symlink_metadata().is_ok() => {
                return Err(error);
            }
            Err(error) => match (existing.file_name(), existing.parent()) {
                (Some(name), Some(parent)) => {
                    missing.push(name.to_owned());
                    existing = parent;
                }
                // `..` below a path that does not exist.
                _ => return Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_the_existing_part_of_a_path_are_resolved() {
        let place = tempfile::tempdir().expect("a folder");
        let top = place.path().canonicalize().expect("it exists");
        std::fs::create_dir_all(top.join("real/below")).expect("a folder");
        std::os::unix::fs::symlink(top.join("real"), top.join("link")).expect("a link");
        std::os::unix::fs::symlink(top.join("nowhere"), top.join("dangling")).expect("a link");
        for (path, expected) in [
            ("real/new", Some("real/new")),
            ("link/new/deep", Some("real/new/deep")),
            ("link/below/../new", Some("real/new")),
            ("none/at/all", Some("none/at/all")),
            ("dangling", None),
            ("dangling/new", None),
            ("none/../real/new", None),
        ] {
            let found = resolve(&top.join(path)).ok();
            assert_eq!(found, expected.map(|expected| top.join(expected)), "{path}");
        }
    }
}
