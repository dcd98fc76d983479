//! Bounded reading of regular files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a symbolic link as last component is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file for reading; never opens anything else.
pub(super) fn open(path: &Path, links: Links) -> Option<File> {
    // Checked before opening, because opening a device can have side effects, and again afterwards, because the file
    // may have been replaced. Opened non-blocking, in case a pipe replaced it.
    let metadata = match links {
        Links::Follow => fs::metadata(path),
        Links::Refuse => fs::symlink_metadata(path),
    };
    if !metadata.ok()?.is_file() {
        return None;
    }
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Reads a regular file up to a size limit.
pub(super) fn read_limited(path: &Path, links: Links, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, links)?.take(limit as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= limit).then_some(bytes)
}

/// The first result of `visit` for a line within the limit; lines longer than `longest` are not buffered.
pub(super) fn find_line<T>(
    file: File,
    limit: u64,
    longest: usize,
    visit: impl Fn(&[u8]) -> Option<T>,
) -> Option<T> {
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(limit));
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.by_ref().take(longest as u64).read_until(b'\n', &mut line).ok()?;
        if length == 0 {
            return None;
        }
        let whole = line.pop_if(|last| *last == b'\n').is_some();
        if !whole && length == longest {
            return None;
        }
        if let Some(found) = visit(&line) {
            return Some(found);
        }
    }
}
