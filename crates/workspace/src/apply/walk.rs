//! Opens paths name by name through descriptors of folders.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::path::FileName;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens folders below an open one and caches the path to the last one, since consecutive paths mostly share it.
pub(crate) struct Walker<'top> {
    top: BorrowedFd<'top>,
    /// Path to the last folder.
    path: Vec<FileName>,
    /// Open folders on that path with their depth; the last one is the end of the path.
    open: Vec<(usize, OwnedFd)>,
}

/// Limit on open descriptors: the deepest paths have more names than a process may have descriptors.
const MAX_OPEN: usize = 32;

impl<'top> Walker<'top> {
    pub(crate) fn new(top: BorrowedFd<'top>) -> Self {
        Self { top, path: Vec::new(), open: Vec::new() }
    }

    /// Opens the folder with these names below the top.
    pub(crate) fn folder(&mut self, names: &[FileName]) -> Result<BorrowedFd<'_>, Errno> {
        let shared = self.path.iter().zip(names).take_while(|(known, name)| known == name).count();
        self.open.retain(|(depth, _)| *depth <= shared);
        let start = self.open.last().map_or(0, |(depth, _)| *depth);
        self.path.truncate(start);
        for name in &names[start..] {
            let next = open_folder(self.here(), name.bytes())?;
            self.path.push(name.clone());
            if self.open.len() == MAX_OPEN {
                // Keeps the folders nearest to the top, which most paths share.
                self.open.remove(MAX_OPEN / 2);
            }
            self.open.push((self.path.len(), next));
        }
        Ok(self.here())
    }

    /// Like `folder`, but creates missing folders. Returns how many were created.
    pub(crate) fn make(&mut self, names: &[FileName]) -> Result<usize, Errno> {
        let mut made = 0;
        for length in 1..=names.len() {
            match self.folder(&names[..length]) {
                Err(Errno::NOENT) => {}
                other => {
                    other?;
                    continue;
                }
            }
            let name = &names[length - 1];
            let above = self.folder(&names[..length - 1])?;
            rustix::fs::mkdirat(above, name.bytes(), Mode::from_raw_mode(0o700))?;
            let folder = self.folder(&names[..length])?;
            rustix::fs::fchmod(folder, Mode::from_raw_mode(DEFAULT_MODE))?;
            made += 1;
        }
        Ok(made)
    }

    /// Clears the cached path.
    pub(crate) fn forget(&mut self) {
        self.path.clear();
        self.open.clear();
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.open.last().map_or(self.top, |(_, folder)| folder.as_fd())
    }
}

/// Permissions of parent folders that no step names.
const DEFAULT_MODE: u32 = 0o755;

/// Opens a folder, but no link or file.
pub(crate) fn open_folder(above: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(above, name, flags | OFlags::RDONLY, Mode::empty()) {
        // A folder without list permission can still be passed through.
        Err(Errno::ACCESS) => rustix::fs::openat(above, name, flags | OFlags::PATH, Mode::empty()),
        other => other,
    }
}

/// Names in a folder.
pub(crate) fn names(folder: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

/// Removes an entry of our temporary folder with everything below it.
pub(crate) fn remove_all(above: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let top = match open_folder(above, name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return rustix::fs::unlinkat(above, name, AtFlags::empty()),
        other => other?,
    };
    let mut deep = 0;
    loop {
        let moved = deep;
        empty(top.as_fd(), top.as_fd(), 0, &mut deep)?;
        match rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR) {
            // Folders from deep below were moved up and are next.
            Err(Errno::NOTEMPTY) if deep > moved => {}
            other => return other,
        }
    }
}

/// Below this depth, folders are moved up instead of being entered.
const MAX_DEPTH: usize = 64;

fn empty(top: BorrowedFd<'_>, folder: BorrowedFd<'_>, depth: usize, deep: &mut usize) -> Result<(), Errno> {
    // The folder may already have its final permissions, which may not allow emptying it.
    let _ = rustix::fs::fchmod(folder, Mode::from_raw_mode(0o700));
    let mut files = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            files.push(name.to_vec());
            continue;
        }
        let inner = match open_folder(folder, name) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
                continue;
            }
            other => other?,
        };
        if depth == MAX_DEPTH {
            let _ = rustix::fs::fchmod(&inner, Mode::from_raw_mode(0o700));
            rustix::fs::renameat(folder, name, top, format!("deep-{deep}"))?;
            *deep += 1;
            continue;
        }
        empty(top, inner.as_fd(), depth + 1, deep)?;
        rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?;
    }
    unlink(folder, &files)
}

/// From this number of files on, several threads remove them.
const PARALLEL_THRESHOLD: usize = 256;
/// Removing a file is mostly waiting for the journal of the file system.
const REMOVERS: usize = 8;

fn unlink(folder: BorrowedFd<'_>, files: &[Vec<u8>]) -> Result<(), Errno> {
    let unlink = |files: &[Vec<u8>]| {
        files.iter().try_for_each(|name| rustix::fs::unlinkat(folder, name.as_slice(), AtFlags::empty()))
    };
    if files.len() < PARALLEL_THRESHOLD {
        return unlink(files);
    }
    std::thread::scope(|scope| {
        let removers: Vec<_> = files
            .chunks(files.len().div_ceil(REMOVERS))
            .map(|files| scope.spawn(move || unlink(files)))
            .collect();
        removers.into_iter().try_for_each(|remover| remover.join().unwrap_or(Err(Errno::IO)))
    })
}
