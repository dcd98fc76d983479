//! Reads one file such that the captured content is a consistent version of it.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use retake_model::content::{ContentId, encode};
use retake_model::tree::{ExclusionReason, PART, Parts};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::SnapshotError;
use super::progress::Counter;
use super::sink::{BlobOutcome, SinkWriter};
use super::stat::Stat;

/// How often to read a file that changes during reading.
const MAX_TRIES: u32 = 4;
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(3);

/// Outcome of reading a file.
pub(super) enum ReadOutcome {
    /// The file did not change during reading.
    File(Stat, ContentId),
    /// Excluded.
    Excluded(ExclusionReason),
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
    writer: &mut SinkWriter<'_>,
    buffer: &mut Vec<u8>,
    counter: &Counter<'_>,
) -> Result<ReadOutcome, SnapshotError> {
    for attempt in 0..MAX_TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE * attempt);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(ReadOutcome::Gone),
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(ReadOutcome::Other),
            Err(error) => return unreadable(error).map(ReadOutcome::Excluded),
        };
        let before = match rustix::fs::fstat(&file) {
            Ok(stat) => Stat::from(&stat),
            Err(error) => return unreadable(error).map(ReadOutcome::Excluded),
        };
        if before.file_type() != FileType::RegularFile {
            return Ok(ReadOutcome::Other);
        }
        if before.device != device {
            return Ok(ReadOutcome::Excluded(ExclusionReason::Mounted));
        }
        if before.size > largest {
            return Ok(ReadOutcome::Excluded(ExclusionReason::TooLarge));
        }
        let content = match read_content(&mut file, &before, writer, buffer) {
            Ok(content) => content,
            Err(ReadFileError::File(error)) => return unreadable(error).map(ReadOutcome::Excluded),
            Err(ReadFileError::Store(error)) => return Err(error),
        };
        match content {
            Content::Stored(content) => {
                counter.read(before.size);
                return Ok(ReadOutcome::File(before, content));
            }
            Content::Redacted => return Ok(ReadOutcome::Excluded(ExclusionReason::Secret)),
            Content::Changed => {}
        }
    }
    Ok(ReadOutcome::Excluded(ExclusionReason::Changing))
}

enum Content {
    Stored(ContentId),
    Redacted,
    Changed,
}

enum ReadFileError {
    File(Errno),
    Store(SnapshotError),
}

fn read_content(
    file: &mut File,
    before: &Stat,
    writer: &mut SinkWriter<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Content, ReadFileError> {
    if before.size <= PART {
        read_up_to(file, buffer, before.size)?;
        if buffer.len() as u64 != before.size || !is_same(file, before)? {
            return Ok(Content::Changed);
        }
        let (id, offered) = writer.blob(buffer)?;
        return Ok(if offered == BlobOutcome::Redacted { Content::Redacted } else { Content::Stored(id) });
    }
    let mut parts = Vec::new();
    let mut left = before.size;
    while left > 0 {
        let length = left.min(PART);
        read_up_to(file, buffer, length)?;
        if (buffer.len() as u64) < length {
            return Ok(Content::Changed);
        }
        let (id, offered) = writer.blob(buffer)?;
        if offered == BlobOutcome::Redacted {
            return Ok(Content::Redacted);
        }
        parts.push(id);
        left -= length;
    }
    if !is_same(file, before)? {
        return Ok(Content::Changed);
    }
    Ok(Content::Stored(writer.parts(encode(&Parts(parts)))?))
}

/// Fills the buffer with up to `length` bytes.
fn read_up_to(file: &mut File, buffer: &mut Vec<u8>, length: u64) -> Result<(), ReadFileError> {
    buffer.clear();
    buffer.reserve(length as usize);
    let read = file.by_ref().take(length).read_to_end(buffer);
    read.map_err(|error| ReadFileError::File(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    Ok(())
}

fn is_same(file: &File, before: &Stat) -> Result<bool, ReadFileError> {
    let after = rustix::fs::fstat(file).map_err(ReadFileError::File)?;
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
pub(super) fn unreadable(error: Errno) -> Result<ExclusionReason, SnapshotError> {
    match error {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
            Err(SnapshotError::Root { path: "the project's folder".into(), error: error.into() })
        }
        _ => Ok(ExclusionReason::Unreadable),
    }
}

impl From<retake_store::StoreError> for ReadFileError {
    fn from(error: retake_store::StoreError) -> Self {
        Self::Store(error.into())
    }
}
