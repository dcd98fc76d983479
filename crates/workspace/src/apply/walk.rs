//! The way to a path: name by name, by descriptors, through folders only.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use retake_model::path::FileName;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens folders below one that is held open, and remembers the way to the last one: paths that follow each
/// other mostly share it.
pub(super) struct Walker<'top> {
    top: BorrowedFd<'top>,
    way: Vec<(FileName, OwnedFd)>,
}

impl<'top> Walker<'top> {
    pub(super) fn new(top: BorrowedFd<'top>) -> Self {
        Self { top, way: Vec::new() }
    }

    /// The folder with these names below the top.
    pub(super) fn folder(&mut self, names: &[FileName]) -> Result<BorrowedFd<'_>, Errno> {
        let shared = self.way.iter().zip(names).take_while(|((known, _), name)| known == *name).count();
        self.way.truncate(shared);
        for name in &names[shared..] {
            let next = open_folder(self.here(), name.bytes())?;
            self.way.push((name.clone(), next));
        }
        Ok(self.here())
    }

    /// The same, with folders made where there is nothing; tells how many of the names had to be made.
    pub(super) fn make(&mut self, names: &[FileName]) -> Result<usize, Errno> {
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
    pub(super) fn forget(&mut self) {
        self.way.clear();
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.way.last().map_or(self.top, |(_, folder)| folder.as_fd())
    }
}

/// The permissions of folders that are made only because something stands below them.
const USUAL_MODE: u32 = 0o755;

/// Opens the folder with that name, and nothing else: no link, no file.
pub(super) fn open_folder(above: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(above, name, flags | OFlags::RDONLY, Mode::empty()) {
        // One that may be passed through and not be listed is still a way.
        Err(Errno::ACCESS) => rustix::fs::openat(above, name, flags | OFlags::PATH, Mode::empty()),
        other => other,
    }
}

/// The names in a folder.
pub(super) fn names(folder: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
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
pub(super) fn remove_all(above: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
        Ok(_) => return rustix::fs::unlinkat(above, name, AtFlags::empty()),
    }
    let folder = open_folder(above, name)?;
    // Folders of ours may have been given their last permissions already, which may not allow to empty them.
    let _ = rustix::fs::fchmod(&folder, Mode::from_raw_mode(0o700));
    for inner in names(folder.as_fd())? {
        remove_all(folder.as_fd(), &inner)?;
    }
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)
}
