//! The names in a folder.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::read::stat_at;

/// A name, and whether it is a folder.
pub(super) struct ListedName {
    pub(super) name: CString,
    pub(super) is_folder: bool,
}

/// All names in a folder, sorted by their bytes.
pub(super) fn list(folder: BorrowedFd<'_>) -> Result<Vec<ListedName>, Errno> {
    // Opened again: the folder may have been opened by path only, and a listing has a position.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let reader = rustix::fs::openat(folder, c".", flags, Mode::empty())?;
    let mut buffer = vec![MaybeUninit::uninit(); 32 * 1024];
    let mut listing = RawDir::new(&reader, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => is_folder(folder, name),
            _ => false,
        };
        names.push(ListedName { name: name.to_owned(), is_folder });
    }
    names.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(names)
}

/// For file systems whose listings have no file type.
fn is_folder(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    matches!(stat_at(folder, name), Ok(Some(stat)) if stat.file_type() == FileType::Directory)
}
