//! Decides whether a work tree has changes: in tracked files, in the index, or as untracked files.
//!
//! Tracked files are compared by their stamps, like git does; where those cannot decide (they differ but the size does
//! not, or the file is as new as the index), by content. No filter runs: in a repository with filters or line ending
//! conversion, different content proves nothing.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::config::{self, Variable};
use super::index::{self, Entry, EntryFlag};
use super::locate::Repository;
use super::read::{self, Links};
use super::refs::Head;
use super::{sha1, staged, untracked};

/// Limit on the bytes to read, over all files.
const READ_BUDGET: u64 = 16 * 1024 * 1024;

const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;

/// Comparison result of one entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    Differs,
    Unknown,
}

/// Compares until something differs.
pub(super) fn dirty(repository: &Repository, head: &Head) -> Option<bool> {
    let root = repository.root.as_deref()?;
    let rules = Comparison::of(&config::variables(&config::text(&repository.common)?))?;
    let index = index::read(&repository.git)?;
    let has_attributes = index.entries.iter().any(|entry| entry.path.ends_with(b".gitattributes"));
    let mut known = true;
    if rules.by_content && !has_attributes {
        let mut check =
            IndexCheck { root, written: index.written, left: READ_BUDGET, folders: HashSet::new() };
        for entry in &index.entries {
            match check.check_entry(entry) {
                State::Differs => return Some(true),
                State::Same => {}
                State::Unknown => known = false,
            }
        }
    } else {
        known = false;
    }
    match staged::staged(repository, head, &index) {
        Some(true) => return Some(true),
        Some(false) => {}
        None => known = false,
    }
    match untracked::untracked(root, &repository.common, &index) {
        Some(true) if rules.knows_ignored => return Some(true),
        Some(false) => {}
        Some(true) | None => known = false,
    }
    known.then_some(false)
}

/// How far this repository's configuration allows comparing files.
struct Comparison {
    /// Whether different content means a change: no filter or line ending conversion is configured.
    by_content: bool,
    /// Whether all ignore files are known.
    knows_ignored: bool,
}

impl Comparison {
    /// `None` if not even the index can be compared.
    fn of(variables: &[Variable]) -> Option<Self> {
        let mut comparison = Self { by_content: true, knows_ignored: true };
        for Variable { section, key, value, .. } in variables {
            match (section.as_str(), key.as_str()) {
                ("extensions", "objectformat") | ("core", "worktree") => return None,
                ("core", "eol") | ("filter", _) => comparison.by_content = false,
                ("core", "autocrlf") if !is_off(value) => comparison.by_content = false,
                ("core", "filemode") if is_off(value) => comparison.by_content = false,
                ("core", "excludesfile") | ("include" | "includeif", _) => comparison.knows_ignored = false,
                _ => {}
            }
        }
        Some(comparison)
    }
}

fn is_off(value: &str) -> bool {
    ["false", "off", "no", "0"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

struct IndexCheck<'repository> {
    root: &'repository Path,
    written: (u32, u32),
    left: u64,
    /// Paths known to be folders, not links.
    folders: HashSet<Vec<u8>>,
}

impl IndexCheck<'_> {
    fn check_entry(&mut self, entry: &Entry) -> State {
        let is_strange = |part: &[u8]| matches!(part, b"" | b"." | b".." | b".git");
        if entry.path.split(|byte| *byte == b'/').any(is_strange) {
            return State::Unknown;
        }
        match entry.mark {
            EntryFlag::Skipped => return State::Unknown,
            EntryFlag::Unmerged | EntryFlag::Intended => return State::Differs,
            EntryFlag::Assumed => return State::Same,
            EntryFlag::None => {}
        }
        if !matches!(entry.mode & KIND, FILE | LINK) {
            // A nested repository, or a folder that is only partly checked out.
            return State::Unknown;
        }
        if !self.is_below_folders(&entry.path) {
            return State::Differs;
        }
        let path = self.root.join(std::ffi::OsStr::from_bytes(&entry.path));
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return State::Differs,
            Err(_) => return State::Unknown,
        };
        let is_executable = |mode: u32| mode & 0o100 != 0;
        if metadata.mode() & KIND != entry.mode & KIND
            || (entry.mode & KIND == FILE && is_executable(metadata.mode()) != is_executable(entry.mode))
        {
            return State::Differs;
        }
        // Git writes a size of zero if it could not be sure itself.
        if metadata.size() as u32 != entry.size && entry.size != 0 {
            return State::Differs;
        }
        let is_same = metadata.size() as u32 == entry.size
            && (metadata.mtime() as u32, metadata.mtime_nsec() as u32) == entry.modified
            && (metadata.ctime() as u32, metadata.ctime_nsec() as u32) == entry.changed
            && metadata.ino() as u32 == entry.inode;
        if is_same && entry.modified < self.written {
            return State::Same;
        }
        self.compare(entry, &path, metadata.size())
    }

    fn compare(&mut self, entry: &Entry, path: &Path, size: u64) -> State {
        let Some(left) = self.left.checked_sub(size) else { return State::Unknown };
        self.left = left;
        let bytes = if entry.mode & KIND == LINK {
            fs::read_link(path).ok().map(|target| target.into_os_string().into_vec())
        } else {
            read::read_limited(path, Links::Refuse, size as usize)
        };
        match bytes {
            Some(bytes) if sha1::blob(&bytes) == entry.name => State::Same,
            Some(_) => State::Differs,
            None => State::Unknown,
        }
    }

    /// Returns whether all parents of a path are folders: git does not follow links.
    fn is_below_folders(&mut self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for at in slashes {
            let folder = &path[..at];
            if self.folders.contains(folder) {
                continue;
            }
            let path = self.root.join(std::ffi::OsStr::from_bytes(folder));
            if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
                return false;
            }
            self.folders.insert(folder.to_vec());
        }
        true
    }
}
