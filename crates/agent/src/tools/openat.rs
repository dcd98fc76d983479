//! Opens files below a folder by descriptor.
//!
//! ```text
//!   to read    root ──openat2, beneath──► file        symlinks may be followed below the root
//!   to write   root ──► src ──► deep ──► the folder   name by name, without following symlinks
//! ```
//!
//! A folder that is concurrently replaced by a symlink is either already open, and stays the same folder, or
//! is not opened. Pipes and devices are detected before opening, because opening one may block or have
//! effects.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::path::{FileName, TreePath};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::tool_context::ToolPath;

/// Why a path could not be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("{0} does not exist.")]
    Missing(String),
    #[error("{0} is a folder. Use `list` to see what is in it.")]
    Folder(String),
    #[error("{0} is not a folder.")]
    NotAFolder(String),
    #[error("{0} is a pipe, a socket or a device, which tools do not open.")]
    Special(String),
    #[error("{0} is a symbolic link that leads out of the project folder, or to nothing.")]
    Link(String),
    #[error("{0} is reached through a symbolic link. Tools do not write through links.")]
    WriteThroughLink(String),
    #[error("Permission to open {0} is denied.")]
    Denied(String),
    #[error("{path} cannot be opened: {errno}.")]
    Other { path: String, errno: Errno },
}

impl OpenError {
    pub(super) fn new(path: &dyn std::fmt::Display, errno: Errno) -> Self {
        let path = path.to_string();
        match errno {
            Errno::NOENT => Self::Missing(path),
            Errno::NOTDIR => Self::NotAFolder(path),
            Errno::ISDIR => Self::Folder(path),
            Errno::LOOP | Errno::XDEV => Self::Link(path),
            Errno::ACCESS | Errno::PERM => Self::Denied(path),
            errno => Self::Other { path, errno },
        }
    }
}

/// Policy for symlinks that stay below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymlinkPolicy {
    Follow,
    /// For tools with denied paths, because a symlink could be another name for one.
    Refuse,
}

/// A file open for reading.
pub(super) struct OpenedFile {
    pub(super) file: File,
    pub(super) stat: Stat,
}

/// Opens a regular file for reading.
pub(super) fn file(root: impl AsFd, path: &TreePath, links: SymlinkPolicy) -> Result<OpenedFile, OpenError> {
    let root = root.as_fd();
    let failed = |errno| OpenError::new(path, errno);
    let looked = open(root, path, OFlags::PATH, links).map_err(failed)?;
    let ordinary = |descriptor: &OwnedFd| {
        let stat = rustix::fs::fstat(descriptor).map_err(failed)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(stat),
            FileType::Directory => Err(OpenError::Folder(path.to_string())),
            // Without following symlinks, the symlink itself was opened.
            FileType::Symlink => Err(OpenError::Link(path.to_string())),
            _ => Err(OpenError::Special(path.to_string())),
        }
    };
    ordinary(&looked)?;
    // NONBLOCK, in case it was replaced by a pipe since.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let descriptor = open(root, path, flags, links).map_err(failed)?;
    let stat = ordinary(&descriptor)?;
    Ok(OpenedFile { file: File::from(descriptor), stat })
}

/// Opens a folder for reading.
pub(super) fn folder(
    root: impl AsFd,
    tool_path: &ToolPath,
    links: SymlinkPolicy,
) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match tool_path {
        ToolPath::Root => rustix::fs::openat(root, ".", flags | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| OpenError::new(&".", errno)),
        ToolPath::Below(path) => {
            open(root.as_fd(), path, flags, links).map_err(|errno| OpenError::new(path, errno))
        }
    }
}

/// Opens the parent folder of a path for writing, and creates missing folders.
pub(super) fn make_parents(root: impl AsFd, path: &TreePath) -> Result<OwnedFd, OpenError> {
    let failed = |errno| match errno {
        Errno::LOOP => OpenError::WriteThroughLink(path.to_string()),
        errno => OpenError::new(path, errno),
    };
    let mut here = folder(&root, &ToolPath::Root, SymlinkPolicy::Refuse)?;
    for name in path.parents() {
        here = match step(here.as_fd(), name) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&here, name.bytes(), Mode::from_raw_mode(0o777)) {
                    // Sync the new name: a file in the folder is only as durable as the name.
                    Ok(()) => rustix::fs::fsync(&here).map_err(failed)?,
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed(errno)),
                }
                step(here.as_fd(), name)
            }
            other => other,
        }
        .map_err(failed)?;
    }
    Ok(here)
}

/// Opens a subfolder by name, without following symlinks.
pub(super) fn step(above: BorrowedFd<'_>, name: &FileName) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(above, name.bytes(), flags, Mode::empty()) {
        // The system reports a symlink as "not a folder"; distinguish it for the error message.
        Err(Errno::NOTDIR) if is_link(above, name) => Err(Errno::LOOP),
        other => other,
    }
}

/// The metadata of a name, without following symlinks.
pub(super) fn look(above: BorrowedFd<'_>, name: &FileName) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(above, name.bytes(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_link(above: BorrowedFd<'_>, name: &FileName) -> bool {
    look(above, name)
        .is_ok_and(|stat| stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink))
}

/// Opens a path below the root, following symlinks only if the system can confine them.
fn open(
    root: BorrowedFd<'_>,
    path: &TreePath,
    flags: OFlags,
    links: SymlinkPolicy,
) -> Result<OwnedFd, Errno> {
    if links == SymlinkPolicy::Refuse {
        return open_stepwise(root, path, flags | OFlags::CLOEXEC);
    }
    match open_resolved(root, path, flags | OFlags::CLOEXEC) {
        // Old kernels and seccomp filters return either error.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => open_stepwise(root, path, flags | OFlags::CLOEXEC),
        other => other,
    }
}

#[cfg(target_os = "linux")]
fn open_resolved(root: BorrowedFd<'_>, path: &TreePath, flags: OFlags) -> Result<OwnedFd, Errno> {
    /// openat2 fails with EAGAIN for a symlink with `..` during concurrent renames. The limit prevents an
    /// endless loop.
    const ATTEMPTS: usize = 16;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match rustix::fs::openat2(root, path.bytes().as_slice(), flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if attempt < ATTEMPTS => {}
            other => return other,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn open_resolved(_: BorrowedFd<'_>, _: &TreePath, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Opens name by name, without following symlinks.
fn open_stepwise(root: BorrowedFd<'_>, path: &TreePath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut above: Option<OwnedFd> = None;
    for name in path.parents() {
        above = Some(step(above.as_ref().map_or(root, AsFd::as_fd), name)?);
    }
    let above = above.as_ref().map_or(root, AsFd::as_fd);
    rustix::fs::openat(above, path.name().bytes(), flags | OFlags::NOFOLLOW, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use retake_workspace::apply::OpenRoot;

    use super::*;

    #[test]
    fn links_are_followed_only_inside_the_folder() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let root = place.path().join("root");
        fs::create_dir_all(root.join("deep/er")).expect("a folder");
        fs::write(place.path().join("secret"), "secret").expect("a file");
        fs::write(root.join("deep/er/file"), "inside").expect("a file");
        symlink("deep/er/file", root.join("good")).expect("a link");
        symlink("../deep/er", root.join("deep/up")).expect("a link");
        symlink("../secret", root.join("out")).expect("a link");
        symlink("/etc/passwd", root.join("absolute")).expect("a link");
        symlink("loop", root.join("loop")).expect("a link");
        symlink("/proc/self/root/etc/passwd", root.join("magic")).expect("a link");
        let opened = OpenRoot::open(&root).expect("a folder");

        let check = |path: &str, resolved: bool, stepwise: bool| {
            let path = TreePath::new(path.as_bytes()).expect("a path");
            assert_eq!(file(&opened, &path, SymlinkPolicy::Follow).is_ok(), resolved, "{path}");
            assert_eq!(file(&opened, &path, SymlinkPolicy::Refuse).is_ok(), stepwise, "{path} without links");
            let by_steps = open_stepwise(opened.as_fd(), &path, OFlags::RDONLY);
            assert_eq!(by_steps.is_ok(), stepwise, "{path} step by step");
        };
        let kernel_resolves = cfg!(target_os = "linux");
        check("deep/er/file", true, true);
        check("good", kernel_resolves, false);
        check("deep/up/file", kernel_resolves, false);
        for outside in ["out", "absolute", "loop", "magic", "missing", "deep/er/file/x"] {
            check(outside, false, false);
        }
    }

    #[test]
    fn folders_are_created_without_following_links() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let root = place.path().join("root");
        fs::create_dir_all(root.join("real")).expect("a folder");
        fs::create_dir(place.path().join("outside")).expect("a folder");
        symlink("../outside", root.join("out")).expect("a link");
        symlink("real", root.join("in")).expect("a link");
        fs::write(root.join("file"), "").expect("a file");
        let opened = OpenRoot::open(&root).expect("a folder");

        let check = |path: &str, expected: bool| {
            let path = TreePath::new(path.as_bytes()).expect("a path");
            assert_eq!(make_parents(&opened, &path).is_ok(), expected, "{path}");
        };
        check("a/b/c/file", true);
        check("real/file", true);
        check("file", true);
        for refused in ["out/file", "out/new/file", "in/file", "file/file"] {
            check(refused, false);
        }
        assert!(root.join("a/b/c").is_dir());
        assert_eq!(fs::read_dir(place.path().join("outside")).expect("a folder").count(), 0);
    }
}
