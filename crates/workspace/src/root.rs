//! The folder that a command is about.
//!
//! A user rarely stands in the top folder of a project. The nearest folder upwards that is already known as a
//! project, or is a work tree of git, is meant; failing both, the folder where the user stands. A known project
//! far up does not swallow the repositories below it, and a home folder or one of the system never stands for what is
//! below it, even if it is known as a project or is a work tree.

use std::path::{Path, PathBuf};

use crate::git;
use crate::snapshot::check_folder;

/// The project folder for a user who stands in `cwd`; `known` says whether a folder is a project already.
pub fn find_root(cwd: &Path, known: impl Fn(&Path) -> bool) -> PathBuf {
    find_suitable_root(cwd, known, |folder| check_folder(folder).is_ok())
}

fn find_suitable_root(
    cwd: &Path,
    known: impl Fn(&Path) -> bool,
    suitable: impl Fn(&Path) -> bool,
) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let work_tree = git::work_tree(&cwd);
    let meant = |folder: &&Path| (known(folder) || work_tree.as_deref() == Some(*folder)) && suitable(folder);
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

        // A home folder with a repository of its own, known as a project or not.
        for known in [&[][..], &[&repository], &[&top, &repository]] {
            let suitable = |folder: &Path| folder != repository && folder != top;
            let found = find_suitable_root(&deep, |folder| known.contains(&&folder.to_owned()), suitable);
            assert_eq!(found, deep, "{known:?}");
        }
    }

    #[test]
    fn a_folder_that_is_gone_is_still_named() {
        let gone = Path::new("/nowhere/at/all");
        assert_eq!(find_root(gone, |_| false), gone);
    }
}
