//! Moves aside files that block the return of a captured file and that have no copy in the store: files over the size
//! limit, pipes, unreadable files.
//!
//! ```text
//!   data.bin   too large, created by the turn that is undone   ──►   data.bin.retake-aside
//!   data.bin   restored from the store
//! ```

use std::os::fd::AsFd;

use retake_model::path::TreePath;
use retake_model::tree::Difference;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::inspect::inspect;
use super::rename::EntryLocation;
use super::walk::Walker;
use super::{ApplyError, Leftover, OpenRoot, path_failed};

/// Suffix of files that were moved aside.
const SUFFIX: &str = ".retake-aside";
/// Maximum length of a file name.
const MAX_NAME: usize = 255;
/// Number of names to try.
const MAX_TRIES: usize = 1_000;

/// Files that were moved aside.
#[must_use]
#[derive(Debug, Default)]
pub struct AsideFiles(Vec<(TreePath, Vec<u8>)>);

/// Moves aside whatever exists at these paths and is not the wanted content. It stays in its folder.
pub fn set_aside(root: &OpenRoot, steps: &[&Difference]) -> Result<AsideFiles, ApplyError> {
    let mut moved = AsideFiles::default();
    for step in steps {
        match move_one(root, step) {
            Ok(name) => moved.0.extend(name.map(|name| (step.path.clone(), name))),
            Err(errno) => {
                let not_put_back = moved.put_back(root);
                return Err(ApplyError { cause: path_failed(&step.path, errno), not_put_back });
            }
        }
    }
    Ok(moved)
}

fn move_one(root: &OpenRoot, step: &Difference) -> Result<Option<Vec<u8>>, Errno> {
    let mut walker = Walker::new(root.as_fd());
    let folder = match walker.folder(step.path.parents()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        other => other?,
    };
    let name = step.path.name().bytes();
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        // A folder never blocks files inside it.
        Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_dir() => return Ok(None),
        other => drop(other?),
    }
    // An unreadable file is not the wanted one. After a crash, the restored file may already be there.
    if inspect(folder, name, |_| None).is_ok_and(|seen| seen.found.matches(step.after.as_ref())) {
        return Ok(None);
    }
    let stem = &name[..name.len().min(MAX_NAME - SUFFIX.len() - 5)];
    for number in 1..=MAX_TRIES {
        let suffix = if number == 1 { SUFFIX.to_owned() } else { format!("{SUFFIX}-{number}") };
        let aside = [stem, suffix.as_bytes()].concat();
        match root.renames.put(EntryLocation { folder, name }, EntryLocation { folder, name: &aside }) {
            Ok(()) => return Ok(Some(aside)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

impl AsideFiles {
    /// Paths of the files after the move, for the report.
    pub fn into_leftovers(self) -> impl Iterator<Item = Leftover> {
        self.0.into_iter().map(|(path, name)| {
            let folder = path.parent().map(|folder| format!("{folder}/")).unwrap_or_default();
            Leftover { file: format!("{folder}{}", String::from_utf8_lossy(&name)), path: Some(path) }
        })
    }

    /// Moves the files back. Returns the paths where that failed.
    pub fn put_back(self, root: &OpenRoot) -> Vec<TreePath> {
        let mut walker = Walker::new(root.as_fd());
        let mut stuck = Vec::new();
        for (path, aside) in self.0 {
            let put = walker.folder(path.parents()).and_then(|folder| {
                let place = EntryLocation { folder, name: path.name().bytes() };
                root.renames.put(EntryLocation { folder, name: &aside }, place)
            });
            if put.is_err() {
                stuck.push(path);
            }
        }
        stuck
    }
}
