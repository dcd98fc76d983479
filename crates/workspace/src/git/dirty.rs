//! Whether tracked files are as the index has them.
//!
//! By their stamps, as git does it; where those cannot tell (they differ and the size does not, or the file is as
//! young as the index), by the content. No filter is run for that: in a repository that configures one, or
//! changes the ends of lines, content that differs says nothing.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::index::{self, Entry, Mark};
use super::locate::Repository;
use super::read::{self, Links};
use super::sha1;

/// Bytes of files that are read at most, all together.
const READ: u64 = 16 * 1024 * 1024;
const CONFIG_LIMIT: usize = 1024 * 1024;

const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;

/// What is known of one entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    Differs,
    Unknown,
}

/// Looks at every tracked file, until one differs.
pub(super) fn dirty(repository: &Repository) -> Option<bool> {
    let root = repository.root.as_deref()?;
    let config = read::whole(&repository.common.join("config"), Links::Follow, CONFIG_LIMIT)?;
    let config = config.to_ascii_lowercase();
    let says = |word: &[u8]| config.windows(word.len()).any(|part| part == word);
    // Each of these changes what a difference means; none is common enough to be worth its rules here.
    let others: [&[u8]; 6] =
        [b"objectformat", b"worktree", b"filemode = false", b"autocrlf", b"eol", b"[filter"];
    if others.into_iter().any(says) {
        return None;
    }
    let index = index::read(&repository.git)?;
    if index.entries.iter().any(|entry| entry.path.ends_with(b".gitattributes")) {
        return None;
    }
    let mut looking = Looking { root, written: index.written, left: READ, folders: HashSet::new() };
    let mut known = index.is_tree;
    for entry in &index.entries {
        match looking.look(entry) {
            State::Differs => return Some(true),
            State::Same => {}
            State::Unknown => known = false,
        }
    }
    known.then_some(false)
}

struct Looking<'repository> {
    root: &'repository Path,
    written: (u32, u32),
    left: u64,
    /// Folders that are known to be some, and no links.
    folders: HashSet<Vec<u8>>,
}

impl Looking<'_> {
    fn look(&mut self, entry: &Entry) -> State {
        let is_strange = |part: &[u8]| matches!(part, b"" | b"." | b".." | b".git");
        if entry.path.split(|byte| *byte == b'/').any(is_strange) {
            return State::Unknown;
        }
        match entry.mark {
            Mark::Skipped => return State::Unknown,
            Mark::Unmerged | Mark::Intended => return State::Differs,
            Mark::Assumed => return State::Same,
            Mark::None => {}
        }
        if !matches!(entry.mode & KIND, FILE | LINK) {
            // Another repository inside, or a folder of which not all is checked out.
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
        // Git writes a size of zero to say that it could not be sure itself.
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
            read::whole(path, Links::Refuse, size as usize)
        };
        match bytes {
            Some(bytes) if sha1::blob(&bytes) == entry.name => State::Same,
            Some(_) => State::Differs,
            None => State::Unknown,
        }
    }

    /// Whether the way to a path leads through folders only: git does not look through a link.
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
