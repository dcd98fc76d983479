//! The folder that a command is about.
//!
//! A user rarely stands in the top folder of a project. The nearest folder upwards that is already known as a
//! project is meant; failing that, the work tree of git; failing that, the folder where the user stands.

use std::path::{Path, PathBuf};

use crate::git;

/// The project folder for a user who stands in `cwd`; `known` says whether a folder is a project already.
pub fn find_root(cwd: &Path, known: impl Fn(&Path) -> bool) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    if let Some(project) = cwd.ancestors().find(|ancestor| known(ancestor)) {
        return project.to_owned();
    }
    git::work_tree(&cwd).unwrap_or(cwd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_project_then_the_work_tree_then_here() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let top = place.path().canonicalize().expect("it exists");
        let deep = top.join("repository/source/deep");
        std::fs::create_dir_all(&deep).expect("a new folder");
        let repository = top.join("repository");

        let check = |known: &[&Path], expected: &Path| {
            assert_eq!(find_root(&deep, |folder| known.contains(&folder)), expected, "{known:?}");
        };
        check(&[], &deep);
        check(&[&top], &top);
        check(&[&top, &repository], &repository);

        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(repository.join(".git").join(folder)).expect("a new folder");
        }
        std::fs::write(repository.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a new file");
        check(&[], &repository);
        check(&[&deep], &deep);
    }

    #[test]
    fn a_folder_that_is_gone_is_still_named() {
        let gone = Path::new("/nowhere/at/all");
        assert_eq!(find_root(gone, |_| false), gone);
    }
}
