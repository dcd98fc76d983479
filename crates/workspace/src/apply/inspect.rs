//! Inspects what exists at a path.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use retake_model::content::{ContentId, Kind, encode};
use retake_model::tree::{PART, Parts};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::DiskNode;

/// File attributes that reveal most writes without reading the file. Two writes within the same instant may leave them
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device of the file system.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u16,
    /// Time of the last write: seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// Time of the last change of any attribute.
    pub changed: (i64, i64),
}

/// What exists at a path, with the identity of the file.
#[derive(Clone, Debug)]
pub(super) struct PathState {
    pub(super) found: DiskNode,
    pub(super) identity: Option<Identity>,
    pub(super) names: u64,
}

/// Inspects a name in a folder and reads the file if necessary. `known` may provide the content without reading.
pub(super) fn inspect(
    folder: BorrowedFd<'_>,
    name: &[u8],
    known: impl Fn(&Identity) -> Option<ContentId>,
) -> Result<PathState, Errno> {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(PathState { found: DiskNode::Nothing, identity: None, names: 0 }),
        Err(errno) => return Err(errno),
    };
    let identity = Identity::of(&stat);
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => DiskNode::Folder { mode: identity.mode },
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            DiskNode::Link { target: target.into_bytes() }
        }
        FileType::RegularFile => {
            if let Some(content) = known(&identity) {
                DiskNode::File { content, size: identity.size, mode: identity.mode }
            } else {
                return read(folder, name);
            }
        }
        _ => DiskNode::Special,
    };
    Ok(PathState { found, identity: Some(identity), names: stat.st_nlink })
}

/// Returns whether the attributes still match. The change time is not compared, since a rename updates it.
pub(super) fn is_still(folder: BorrowedFd<'_>, name: &[u8], seen: &Identity) -> Result<bool, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Identity { changed: seen.changed, ..Identity::of(&stat) } == *seen),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mode: (stat.st_mode & 0o777) as u16,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Returns whether the file was written so recently that another write might leave the same time.
    pub(super) fn may_be_stale(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(self.modified.0) < 3
    }
}

fn read(folder: BorrowedFd<'_>, name: &[u8]) -> Result<PathState, Errno> {
    // Do not block if a pipe replaced the file.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let identity = Identity::of(&stat);
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(PathState { found: DiskNode::Special, identity: Some(identity), names: 1 });
    }
    let (content, size) = content_of(file.as_fd(), identity.size)?;
    let found = DiskNode::File { content, size, mode: identity.mode };
    Ok(PathState { found, identity: Some(identity), names: stat.st_nlink })
}

/// Id and length of the remaining bytes of a file. The expected size is only a hint for the buffer.
pub fn content_of(file: BorrowedFd<'_>, expected: u64) -> Result<(ContentId, u64), Errno> {
    let mut buffer = vec![0; expected.saturating_add(1).min(PART) as usize];
    let mut parts = Vec::new();
    let mut size = 0;
    loop {
        let filled = fill(file, &mut buffer)?;
        if filled > 0 || parts.is_empty() {
            parts.push(ContentId::of(Kind::Blob, &buffer[..filled]));
        }
        size += filled as u64;
        if filled < PART as usize {
            break;
        }
    }
    match parts[..] {
        [only] => Ok((only, size)),
        _ => Ok((ContentId::of(Kind::Parts, &encode(&Parts(parts))), size)),
    }
}

/// Reads one part, or up to the end of the file. The buffer grows if the file is longer than expected.
fn fill(file: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < PART as usize {
        if filled == buffer.len() {
            buffer.resize((buffer.len() * 2).clamp(4096, PART as usize), 0);
        }
        match rustix::io::read(file, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}
