//! Identifies a folder.
//!
//! Path, device, inode and birth time come from the file system. The mark is an extended attribute of the folder, which
//! survives renames and moves and which neither git nor the user's tools show. Marking is best effort: file systems
//! without attributes and read-only folders are not an error.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use retake_model::id::{FolderId, ID_CHARS, ProjectId};
use retake_model::project::Folder;
use rustix::fs::{CWD, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::git;

/// The attribute that names a folder's project.
pub const MARK: &str = "user.retake.project";

/// The attribute with the id of a folder that Retake filled for a take.
const WORKTREE_MARK: &str = "user.retake.worktree";

/// Facts about a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFacts {
    /// Its absolute path, without symbolic links.
    pub path: PathBuf,
    /// Device of the file system.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Birth time in nanoseconds since 1970, if the file system records it.
    pub born: Option<i64>,
    /// The project in its mark.
    pub mark: Option<ProjectId>,
    /// Remote of its git repository, without credentials.
    pub remote: Option<String>,
}

/// A folder cannot be read or marked.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder does not exist or cannot be read.
    #[error("cannot read the folder {}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The path is not a folder.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The mark could not be written, although the file system seems to allow it.
    #[error("cannot mark the folder {}", path.display())]
    Unmarkable {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Outcome of writing a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkOutcome {
    /// The folder has the mark now.
    Written,
    /// The folder already had the mark.
    Already,
    /// The folder cannot have a mark: no attributes on this file system, or no permission.
    Unsupported,
}

/// Reads the facts about a folder.
pub fn observe(path: &Path) -> Result<FolderFacts, FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: path.to_owned(), source };
    let canonical = path.canonicalize().map_err(unreadable)?;
    let metadata = canonical.metadata().map_err(unreadable)?;
    if !metadata.is_dir() {
        return Err(FolderError::NotAFolder { path: path.to_owned() });
    }
    Ok(FolderFacts {
        device: metadata.dev(),
        inode: metadata.ino(),
        born: born(&metadata),
        mark: read_mark(&canonical),
        remote: git::remote(&canonical),
        path: canonical,
    })
}

/// Identity of a folder, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device of the file system.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Birth time in nanoseconds since 1970, if the file system records it.
    pub born: Option<i64>,
}

impl Identity {
    /// Identity of a folder, without following links.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { device: metadata.dev(), inode: metadata.ino(), born: born(&metadata) })
    }
}

/// Limit on the names to read when searching for a renamed folder.
const MAX_SIBLINGS: usize = 10_000;

/// Finds a folder that was renamed within its parent.
pub fn find_renamed_sibling(path: &Path, identity: &Identity) -> Option<PathBuf> {
    let names = path.parent().and_then(|parent| std::fs::read_dir(parent).ok())?;
    let same = |name: &std::fs::DirEntry| {
        name.ino() == identity.inode
            && name.path() != path
            && Identity::of(&name.path()).is_ok_and(|found| found == *identity)
    };
    names.take(MAX_SIBLINGS).flatten().find(same).map(|name| name.path())
}

/// Renames a folder to a free name; fails with `AlreadyExists` otherwise.
pub fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot refuse to replace: create an empty folder first, which the rename may replace.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::create_dir(to)?;
            std::fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

/// Writes the mark that names the project of a folder.
pub fn mark(path: &Path, project: ProjectId) -> Result<MarkOutcome, FolderError> {
    if read_mark(path) == Some(project) {
        return Ok(MarkOutcome::Already);
    }
    match rustix::fs::setxattr(path, MARK, project.to_string().as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(MarkOutcome::Written),
        // A lack of space for attributes is no failure either: the other facts identify the folder.
        Err(
            Errno::NOTSUP
            | Errno::NOSYS
            | Errno::ROFS
            | Errno::PERM
            | Errno::ACCESS
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::TOOBIG,
        ) => Ok(MarkOutcome::Unsupported),
        Err(errno) => Err(FolderError::Unmarkable { path: path.to_owned(), source: errno.into() }),
    }
}

/// Marks the folder of a worktree; returns whether it has the mark now.
pub fn mark_worktree(path: &Path, folder: FolderId) -> bool {
    rustix::fs::setxattr(path, WORKTREE_MARK, folder.to_string().as_bytes(), XattrFlags::empty()).is_ok()
}

/// The worktree in a folder's mark.
pub fn worktree_mark(path: &Path) -> Option<FolderId> {
    read_attribute(path, WORKTREE_MARK)
}

/// Removes the mark of a project. A mark of another project stays.
pub fn unmark(path: &Path, project: ProjectId) -> Result<(), FolderError> {
    if read_mark(path) != Some(project) {
        return Ok(());
    }
    match rustix::fs::removexattr(path, MARK) {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(errno) => Err(FolderError::Unmarkable { path: path.to_owned(), source: errno.into() }),
    }
}

/// Encodes a path as text without loss: paths that are not Unicode become hexadecimal bytes.
///
/// A lossy conversion could make two folders equal.
pub fn path_to_text(path: &Path) -> String {
    use std::fmt::Write;

    match path.to_str() {
        Some(text) => text.to_owned(),
        None => path.as_os_str().as_bytes().iter().fold(BYTES.to_owned(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to memory cannot fail");
            text
        }),
    }
}

/// Decodes the text from [`path_to_text`].
pub fn path_from_text(text: &str) -> PathBuf {
    text.strip_prefix(BYTES).and_then(from_hexadecimal).map_or_else(|| PathBuf::from(text), PathBuf::from)
}

/// Prefix for paths that are not Unicode. Absolute paths start with a slash, so there is no ambiguity.
const BYTES: &str = "bytes:";

fn from_hexadecimal(text: &str) -> Option<OsString> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    rest.is_empty().then_some(OsString::from_vec(bytes?))
}

impl FolderFacts {
    /// The facts as input of the decision about projects.
    pub fn as_evidence(&self) -> Folder {
        Folder {
            path: path_to_text(&self.path),
            device: self.device,
            inode: self.inode,
            born: self.born,
            mark: self.mark,
            remote: self.remote.clone(),
        }
    }
}

fn born(metadata: &std::fs::Metadata) -> Option<i64> {
    let since = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    // Some file systems return zero for an unknown time.
    i64::try_from(since.as_nanos()).ok().filter(|nanos| *nanos > 0)
}

/// The project in the mark of a folder.
pub fn read_mark(path: &Path) -> Option<ProjectId> {
    read_attribute(path, MARK)
}

fn read_attribute<T: std::str::FromStr>(path: &Path, name: &str) -> Option<T> {
    // One byte more than an id, so that longer texts are rejected.
    let mut buffer = [0; ID_CHARS + 1];
    let length = rustix::fs::getxattr(path, name, &mut buffer).ok()?;
    str::from_utf8(&buffer[..length]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(number: u8) -> ProjectId {
        ProjectId::from_bytes([number; 16])
    }

    #[test]
    fn a_mark_stays_with_the_folder() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let first = place.path().join("first");
        let second = place.path().join("second");
        std::fs::create_dir(&first).expect("a new folder");
        let before = observe(&first).expect("a folder");
        assert_eq!(before.mark, None);
        assert_eq!(before.path.file_name(), first.file_name());

        if mark(&first, project(1)).expect("a folder") == MarkOutcome::Unsupported {
            return;
        }
        assert_eq!(mark(&first, project(1)).expect("a folder"), MarkOutcome::Already);
        std::fs::rename(&first, &second).expect("a free name");
        let after = observe(&second).expect("a folder");
        assert_eq!(after.mark, Some(project(1)));
        assert_eq!((before.device, before.inode, before.born), (after.device, after.inode, after.born));

        assert_eq!(mark(&second, project(2)).expect("a folder"), MarkOutcome::Written);
        unmark(&second, project(1)).expect("a folder");
        assert_eq!(observe(&second).expect("a folder").mark, Some(project(2)), "another's mark stays");
        unmark(&second, project(2)).expect("a folder");
        unmark(&second, project(2)).expect("a folder without a mark");
        assert_eq!(observe(&second).expect("a folder").mark, None);
    }

    #[test]
    fn an_invalid_mark_is_ignored() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let long = "0".repeat(2000);
        for text in ["", "..", "not an id", "\u{1b}[31m", &long] {
            let written = rustix::fs::setxattr(place.path(), MARK, text.as_bytes(), XattrFlags::empty());
            assert!(written.is_err() || observe(place.path()).expect("a folder").mark.is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_path_other_than_a_folder_is_refused() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("a new file");
        assert!(matches!(observe(&file), Err(FolderError::NotAFolder { .. })));
        let gone = place.path().join("gone");
        assert!(matches!(observe(&gone), Err(FolderError::Unreadable { .. })));
        assert!(matches!(mark(&gone, project(1)), Err(FolderError::Unmarkable { .. })));
    }

    #[test]
    fn a_filesystem_without_marks_is_reported() {
        // Kernel file systems accept no user attributes from anyone.
        assert_eq!(mark(Path::new("/proc/self"), project(1)).expect("no failure"), MarkOutcome::Unsupported);
    }

    #[test]
    fn every_path_has_its_own_text() {
        for bytes in [&b"/home/a"[..], b"/home/\xff", b"/home/\xfe", b"/", "/home/ü".as_bytes(), b"bytes:2f"]
        {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            if path.is_absolute() {
                assert_eq!(path_from_text(&path_to_text(&path)), path);
            }
        }
        let lossy = |byte| path_to_text(Path::new(&OsString::from_vec(vec![b'/', byte])));
        assert_ne!(lossy(0xff), lossy(0xfe));
    }
}
