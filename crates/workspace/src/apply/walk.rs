//! The way to a path: name by name, by descriptors, through folders only.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::path::FileName;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens folders below one that is held open, and remembers the way to the last one: paths that follow each
/// other mostly share it.
pub(crate) struct Walker<'top> {
    top: BorrowedFd<'top>,
    /// The way to the last folder.
    way: Vec<FileName>,
    /// Folders on the way that are open, by how many names they are down; the last is the end of the way.
    open: Vec<(usize, OwnedFd)>,
}

/// So many folders of a way are kept open at most: the deepest paths have more names than a process may have
/// descriptors.
const MOST_OPEN: usize = 32;

impl<'top> Walker<'top> {
    pub(crate) fn new(top: BorrowedFd<'top>) -> Self {
        Self { top, way: Vec::new(), open: Vec::new() }
    }

    /// The folder with these names below the top.
    pub(crate) fn folder(&mut self, names: &[FileName]) -> Result<BorrowedFd<'_>, Errno> {
        let shared = self.way.iter().zip(names).take_while(|(known, name)| known == name).count();
        self.open.retain(|(depth, _)| *depth <= shared);
        let start = self.open.last().map_or(0, |(depth, _)| *depth);
        self.way.truncate(start);
        for name in &names[start..] {
            let next = open_folder(self.here(), name.bytes())?;
            self.way.push(name.clone());
            if self.open.len() == MOST_OPEN {
                // The nearest to the top are the ones that paths come back to.
                self.open.remove(MOST_OPEN / 2);
            }
            self.open.push((self.way.len(), next));
        }
        Ok(self.here())
    }

    /// The same, with folders made where there is nothing; tells how many of the names had to be made.
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
            rustix::fs::fchmod(folder, Mode::from_raw_mode(USUAL_MODE))?;
            made += 1;
        }
        Ok(made)
    }

    /// Forgets the way, so that the next path is walked anew.
    pub(crate) fn forget(&mut self) {
        self.way.clear();
        self.open.clear();
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.open.last().map_or(self.top, |(_, folder)| folder.as_fd())
    }
}

/// The permissions of folders that are made only because something stands below them.
const USUAL_MODE: u32 = 0o755;

/// Opens the folder with that name, and nothing else: no link, no file.
pub(crate) fn open_folder(above: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(above, name, flags | OFlags::RDONLY, Mode::empty()) {
        // One that may be passed through and not be listed is still a way.
        Err(Errno::ACCESS) => rustix::fs::openat(above, name, flags | OFlags::PATH, Mode::empty()),
        other => other,
    }
}

/// The names in a folder.
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

/// Removes whatever stands under a name in a folder of ours, with all that is in it.
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
            // Folders from far below were moved up, and are next.
            Err(Errno::NOTEMPTY) if deep > moved => {}
            other => return other,
        }
    }
}

/// Deeper than this, folders are moved up instead of being gone down into.
const DEEP: usize = 64;

fn empty(top: BorrowedFd<'_>, folder: BorrowedFd<'_>, depth: usize, deep: &mut usize) -> Result<(), Errno> {
    // Folders of ours may have been given their last permissions already, which may not allow to empty them.
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
        if depth == DEEP {
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

/// From so many files on, several threads remove them.
const MANY: usize = 256;
/// Removing a file is mostly waiting for the journal of the file system.
const REMOVERS: usize = 8;

fn unlink(folder: BorrowedFd<'_>, files: &[Vec<u8>]) -> Result<(), Errno> {
    let unlink = |files: &[Vec<u8>]| {
        files.iter().try_for_each(|name| rustix::fs::unlinkat(folder, name.as_slice(), AtFlags::empty()))
    };
    if files.len() < MANY {
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
