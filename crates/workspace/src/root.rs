//! The folder that a command is about.
//!
//! A user rarely stands in the top folder of a project. The nearest folder upwards that is already known as a
//! project, or is a work tree of git, is meant; failing both, the folder where the user stands. A known project
//! far up, such as a home folder, does not swallow the repositories below it.

use std::path::{Path, PathBuf};

use crate::git;

/// The project folder for a user who stands in `cwd`; `known` says whether a folder is a project already.
pub fn find_root(cwd: &Path, known: impl Fn(&Path) -> bool) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let work_tree = git::work_tree(&cwd);
    let meant = |folder: &&Path| known(folder) || work_tree.as_deref() == Some(*folder);
    cwd.ancestors().find(meant).map_or_else(|| cwd.clone(), Path::to_owned)
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
        check(&[&top], &repository);
    }

    #[test]
    fn a_folder_that_is_gone_is_still_named() {
        let gone = Path::new("/nowhere/at/all");
        assert_eq!(find_root(gone, |_| false), gone);
    }
}
