//! Ignore rules of the folders from the top of the repository down.
//!
//! The deepest matching file decides; in one folder `.retakeignore` comes before `.ignore` before
//! `.gitignore`. Files are read by descriptor and only their text is parsed: no git configuration is read,
//! and no program runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use retake_model::path::FileName;
use retake_workspace::pattern;
use retake_workspace::root::find_root;
use rustix::fs::{FileType, Mode, OFlags};

/// Ignore files in order of precedence.
const IGNORE_FILES: [&str; 4] = [".retakeignore", ".ignore", ".gitignore", ".git/info/exclude"];
/// Larger ignore files are not read.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// A stack of the rules from the top of the repository down.
#[derive(Default)]
pub(super) struct IgnoreRules {
    levels: Vec<Vec<Gitignore>>,
    /// Path from the top of the repository to the root.
    above: Vec<Vec<u8>>,
}

impl IgnoreRules {
    /// Reads the rules of the folders above a root inside a repository.
    pub(super) fn above(root: &Path) -> Self {
        let mut rules = Self::default();
        let mut folder = find_root(root, |_| false);
        let Ok(way) = root.strip_prefix(folder.clone()) else { return rules };
        for name in way {
            match rustix::fs::open(&folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
                Ok(opened) => rules.enter(opened.as_fd()),
                Err(_) => rules.enter_unread(),
            }
            rules.above.push(name.as_encoded_bytes().to_vec());
            folder.push(name);
        }
        rules
    }

    /// Pushes the rules of a folder.
    pub(super) fn enter(&mut self, folder: BorrowedFd<'_>) {
        self.levels.push(IGNORE_FILES.iter().filter_map(|name| matcher(folder, name)).collect());
    }

    /// Pushes a folder without readable rules.
    pub(super) fn enter_unread(&mut self) {
        self.levels.push(Vec::new());
    }

    /// Pops the last folder.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether a path in the last folder is ignored; `names` is the path from the root.
    pub(super) fn ignores(&self, names: &[FileName], kind: FileType) -> bool {
        let above = self.above.iter().map(Vec::as_slice);
        let whole: Vec<&[u8]> = above.chain(names.iter().map(FileName::bytes)).collect();
        for (depth, matchers) in self.levels.iter().enumerate().rev() {
            if matchers.is_empty() {
                continue;
            }
            let way = whole[depth..].join(&b'/');
            let way = Path::new(OsStr::from_bytes(&way));
            for matcher in matchers {
                match matcher.matched(way, kind == FileType::Directory) {
                    Match::None => {}
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                }
            }
        }
        false
    }
}

/// Parses an ignore file, if it exists and is a regular file.
fn matcher(folder: BorrowedFd<'_>, name: &str) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&descriptor).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(descriptor).take(MAX_IGNORE_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&bytes).lines() {
        // Skip invalid patterns, as git does.
        if pattern::check(line).is_ok() {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().ok().filter(|matcher| !matcher.is_empty())
}
