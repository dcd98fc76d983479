//! Reads one file such that the captured content is a consistent version of it.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use retake_model::content::{ContentId, encode};
use retake_model::tree::{PART, Parts, Reason};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::SnapshotError;
use super::progress::Counter;
use super::sink::{Feed, Offered};
use super::stat::Stat;

/// How often to read a file that changes during reading.
const TRIES: u32 = 4;
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(3);

/// Outcome of reading a file.
pub(super) enum Outcome {
    /// The file did not change during reading.
    File(Stat, ContentId),
    /// Excluded.
    Left(Reason),
    /// The file no longer exists.
    Gone,
    /// No longer a regular file.
    Other,
}

/// Reads a regular file if it is on that device and not larger than the limit.
pub(super) fn read_file(
    folder: BorrowedFd<'_>,
    name: &CStr,
    (device, largest): (u64, u64),
    feed: &mut Feed<'_>,
    buffer: &mut Vec<u8>,
    counter: &Counter<'_>,
) -> Result<Outcome, SnapshotError> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE * attempt);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Outcome::Gone),
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(Outcome::Other),
            Err(error) => return unreadable(error).map(Outcome::Left),
        };
        let before = match rustix::fs::fstat(&file) {
            Ok(stat) => Stat::from(&stat),
            Err(error) => return unreadable(error).map(Outcome::Left),
        };
        if before.file_type() != FileType::RegularFile {
            return Ok(Outcome::Other);
        }
        if before.device != device {
            return Ok(Outcome::Left(Reason::Mounted));
        }
        if before.size > largest {
            return Ok(Outcome::Left(Reason::TooLarge));
        }
        let content = match read_content(&mut file, &before, feed, buffer) {
            Ok(content) => content,
            Err(ReadFailed::File(error)) => return unreadable(error).map(Outcome::Left),
            Err(ReadFailed::Store(error)) => return Err(error),
        };
        match content {
            Content::Held(content) => {
                counter.read(before.size);
                return Ok(Outcome::File(before, content));
            }
            Content::Redacted => return Ok(Outcome::Left(Reason::Secret)),
            Content::Changed => {}
        }
    }
    Ok(Outcome::Left(Reason::Changing))
}

enum Content {
    Held(ContentId),
    Redacted,
    Changed,
}

enum ReadFailed {
    File(Errno),
    Store(SnapshotError),
}

fn read_content(
    file: &mut File,
    before: &Stat,
    feed: &mut Feed<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Content, ReadFailed> {
    if before.size <= PART {
        read_up_to(file, buffer, before.size)?;
        if buffer.len() as u64 != before.size || !is_same(file, before)? {
            return Ok(Content::Changed);
        }
        let (id, offered) = feed.blob(buffer)?;
        return Ok(if offered == Offered::Redacted { Content::Redacted } else { Content::Held(id) });
    }
    let mut parts = Vec::new();
    let mut left = before.size;
    while left > 0 {
        let length = left.min(PART);
        read_up_to(file, buffer, length)?;
        if (buffer.len() as u64) < length {
            return Ok(Content::Changed);
        }
        let (id, offered) = feed.blob(buffer)?;
        if offered == Offered::Redacted {
            return Ok(Content::Redacted);
        }
        parts.push(id);
        left -= length;
    }
    if !is_same(file, before)? {
        return Ok(Content::Changed);
    }
    Ok(Content::Held(feed.parts(encode(&Parts(parts)))?))
}

/// Fills the buffer with up to `length` bytes.
fn read_up_to(file: &mut File, buffer: &mut Vec<u8>, length: u64) -> Result<(), ReadFailed> {
    buffer.clear();
    buffer.reserve(length as usize);
    let read = file.by_ref().take(length).read_to_end(buffer);
    read.map_err(|error| ReadFailed::File(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    Ok(())
}

fn is_same(file: &File, before: &Stat) -> Result<bool, ReadFailed> {
    let after = rustix::fs::fstat(file).map_err(ReadFailed::File)?;
    Ok(Stat::from(&after) == *before)
}

/// Stat of a name without following links; `None` if it does not exist.
pub(super) fn stat_at(folder: BorrowedFd<'_>, name: &CStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Stat::from(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Excludes an unreadable file. If this process lacks a resource, fails instead, because the snapshot would exclude
/// everything.
pub(super) fn unreadable(error: Errno) -> Result<Reason, SnapshotError> {
    match error {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
            Err(SnapshotError::Root { path: "the project's folder".into(), error: error.into() })
        }
        _ => Ok(Reason::Unreadable),
    }
}

impl From<retake_store::StoreError> for ReadFailed {
    fn from(error: retake_store::StoreError) -> Self {
        Self::Store(error.into())
    }
}
