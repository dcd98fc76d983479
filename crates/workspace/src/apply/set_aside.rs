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
    put_aside(root, EntryLocation { folder, name }, name).map(Some)
}

/// Renames an entry to the first free name for what was at `name`, in the same folder.
pub(super) fn put_aside(root: &OpenRoot, entry: EntryLocation<'_>, name: &[u8]) -> Result<Vec<u8>, Errno> {
    for aside in aside_names(name) {
        match root.renames.put(entry, EntryLocation { folder: entry.folder, name: &aside }) {
            Ok(()) => return Ok(aside),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

fn aside_names(name: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let stem = name[..name.len().min(MAX_NAME - SUFFIX.len() - 5)].to_vec();
    (1..=MAX_TRIES).map(move |number| {
        let suffix = if number == 1 { SUFFIX.to_owned() } else { format!("{SUFFIX}-{number}") };
        [&stem[..], suffix.as_bytes()].concat()
    })
}

/// The path to which a move would rename the entry at a path; `None` if there is none, or none that it could rename.
pub fn aside_path(root: &OpenRoot, path: &TreePath) -> Option<String> {
    let mut walker = Walker::new(root.as_fd());
    let folder = walker.folder(path.parents()).ok()?;
    let exists = |name: &[u8]| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if !exists(path.name().bytes()) {
        return None;
    }
    let aside = aside_names(path.name().bytes()).find(|name| !exists(name))?;
    Some(beside(path, &aside))
}

/// The text of another name in the folder of a path.
pub(super) fn beside(path: &TreePath, name: &[u8]) -> String {
    let folder = path.parent().map(|folder| format!("{folder}/")).unwrap_or_default();
    format!("{folder}{}", String::from_utf8_lossy(name))
}

impl AsideFiles {
    /// Paths of the files after the move, for the report.
    pub fn into_leftovers(self) -> impl Iterator<Item = Leftover> {
        self.0.into_iter().map(|(path, name)| Leftover { file: beside(&path, &name), path: Some(path) })
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
