//! Reads one file such that the captured content is a consistent version of it.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::tree::{Chunk, Chunker, Chunks, ExclusionReason, MAX_FILE, MAX_WHOLE, Node, PART, Parts};
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

/// The content of a file, and where it is stored if it is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileContent {
    pub(super) id: ContentId,
    /// The list of its chunks.
    pub(super) chunks: Option<ContentId>,
}

impl FileContent {
    /// The node of the file.
    pub(super) fn node(self, stat: &Stat) -> Node {
        let Self { id, chunks } = self;
        Node::File { content: id, size: stat.size, mode: stat.permissions(), chunks }
    }
}

/// Outcome of reading a file.
pub(super) enum ReadOutcome {
    /// The file did not change during reading.
    File(Stat, FileContent),
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
        if before.size > largest.min(MAX_FILE) {
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
    Stored(FileContent),
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
    if before.size <= MAX_WHOLE {
        read_up_to(file, buffer, before.size)?;
        if buffer.len() as u64 != before.size || !is_same(file, before)? {
            return Ok(Content::Changed);
        }
        let (id, offered) = writer.blob(buffer)?;
        return Ok(if offered == BlobOutcome::Redacted {
            Content::Redacted
        } else {
            Content::Stored(FileContent { id, chunks: None })
        });
    }
    read_chunks(file, before, writer, buffer)
}

/// Reads a large file, part by part, and stores it in chunks.
fn read_chunks(
    file: &mut File,
    before: &Stat,
    writer: &mut SinkWriter<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Content, ReadFileError> {
    let (mut parts, mut chunks) = (Vec::new(), Vec::new());
    let mut redacted = false;
    let mut chunker = Chunker::default();
    let mut each = |writer: &mut SinkWriter<'_>, chunk: &[u8]| {
        let (id, offered) = writer.blob(chunk)?;
        redacted |= offered == BlobOutcome::Redacted;
        chunks.push(Chunk { id, bytes: chunk.len() as u64 });
        Ok::<_, ReadFileError>(())
    };
    let mut left = before.size;
    while left > 0 {
        let length = left.min(PART);
        read_up_to(file, buffer, length)?;
        if (buffer.len() as u64) < length {
            return Ok(Content::Changed);
        }
        let part = ContentId::of(Kind::Blob, buffer);
        // Older versions stored it as a blob, which may have been destroyed on purpose.
        if writer.is_redacted(part) {
            return Ok(Content::Redacted);
        }
        parts.push(part);
        chunker.push(buffer, &mut |chunk| each(writer, chunk))?;
        left -= length;
    }
    chunker.finish(&mut |chunk| each(writer, chunk))?;
    if redacted {
        return Ok(Content::Redacted);
    }
    if !is_same(file, before)? {
        return Ok(Content::Changed);
    }
    let id = match parts[..] {
        [only] => only,
        _ => ContentId::of(Kind::Parts, &encode(&Parts(parts))),
    };
    let chunks = Chunks::encode_nodes(chunks, &mut |node| writer.chunks(node))?;
    Ok(Content::Stored(FileContent { id, chunks: Some(chunks) }))
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
