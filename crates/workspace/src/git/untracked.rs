//! Decides whether a work tree has files that git neither tracks nor ignores.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::index::Index;
use super::read::{self, Links};
use crate::pattern;

/// Limit on the names to check, over all folders.
const MAX_NAMES: usize = 50_000;
/// Larger files are not ignore files and are not read.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Searches for an untracked file; `None` if there are too many names or if a nested repository may be one.
pub(super) fn untracked(root: &Path, common: &Path, index: &Index) -> Option<bool> {
    let mut outer = vec![Gitignore::global().0];
    outer.extend(rules(root, &common.join("info/exclude")));
    let tracked = index.entries.iter().map(|entry| entry.path.as_slice()).collect();
    let mut search = Search { root, tracked, left: MAX_NAMES, doubtful: false };
    let mut waiting: Vec<(PathBuf, Vec<Gitignore>)> = vec![(root.to_owned(), outer)];
    while let Some((folder, mut rules_above)) = waiting.pop() {
        rules_above.extend(rules(&folder, &folder.join(".gitignore")));
        if search.has_untracked(&folder, &rules_above, &mut waiting)? {
            return Some(true);
        }
    }
    (!search.doubtful).then_some(false)
}

struct Search<'index> {
    root: &'index Path,
    tracked: HashSet<&'index [u8]>,
    left: usize,
    /// Whether a doubtful entry was found.
    doubtful: bool,
}

impl Search<'_> {
    fn has_untracked(
        &mut self,
        folder: &Path,
        rules: &[Gitignore],
        waiting: &mut Vec<(PathBuf, Vec<Gitignore>)>,
    ) -> Option<bool> {
        let Ok(names) = fs::read_dir(folder) else {
            self.doubtful = true;
            return Some(false);
        };
        for entry in names.flatten() {
            self.left = self.left.checked_sub(1)?;
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let Ok(below) = path.strip_prefix(self.root) else { continue };
            let is_special = !(kind.is_dir() || kind.is_file() || kind.is_symlink());
            // Git lists neither pipes and sockets nor its own folder.
            if is_special
                || entry.file_name() == ".git"
                || self.tracked.contains(below.as_os_str().as_bytes())
            {
                continue;
            }
            if is_ignored(rules, &path, kind.is_dir()) {
                continue;
            }
            if !kind.is_dir() {
                return Some(true);
            }
            if fs::symlink_metadata(path.join(".git")).is_ok() {
                self.doubtful = true;
            } else {
                waiting.push((path, rules.to_vec()));
            }
        }
        Some(false)
    }
}

/// The rules of an ignore file, if it exists.
fn rules(folder: &Path, file: &Path) -> Option<Gitignore> {
    let bytes = read::read_limited(file, Links::Refuse, MAX_BYTES)?;
    let mut builder = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
        // Git skips invalid lines.
        if pattern::check(line).is_ok() {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().ok()
}

/// The deepest file with a matching rule decides.
fn is_ignored(rules: &[Gitignore], path: &Path, is_folder: bool) -> bool {
    let decided =
        rules.iter().rev().map(|rules| rules.matched(path, is_folder)).find(|found| !found.is_none());
    matches!(decided, Some(Match::Ignore(_)))
}
