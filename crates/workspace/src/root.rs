//! Finds the project folder of a command.
//!
//! Users often work below the top folder of a project. The command applies to the nearest parent that is a known
//! project or a git work tree, or else to the current folder. A known project further up does not include repositories
//! below it, and a home or system folder never stands for the folders below it, even if it is a known project or a work
//! tree.

use std::path::{Path, PathBuf};

use crate::git;
use crate::snapshot::check_folder;

/// The project folder for the working directory `cwd`; `known` returns whether a folder is a project.
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
    let is_root =
        |folder: &&Path| (known(folder) || work_tree.as_deref() == Some(*folder)) && suitable(folder);
    cwd.ancestors().find(is_root).map_or_else(|| cwd.clone(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_nearest_project_or_work_tree_or_the_folder() {
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

        // A home folder that is a repository, whether it is a known project or not.
        for known in [&[][..], &[&repository], &[&top, &repository]] {
            let suitable = |folder: &Path| folder != repository && folder != top;
            let found = find_suitable_root(&deep, |folder| known.contains(&&folder.to_owned()), suitable);
            assert_eq!(found, deep, "{known:?}");
        }
    }

    #[test]
    fn the_root_of_a_missing_folder_is_found() {
        let gone = Path::new("/nowhere/at/all");
        assert_eq!(find_root(gone, |_| false), gone);
    }
}
