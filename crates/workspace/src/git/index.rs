//! Parses the index of a work tree: tracked files with their stamps when git last read them.
//!
//! Supports versions 2 to 4, with a size limit. An index with anything unknown (a split or sparse index, a required
//! extension) counts as unreadable.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::read::{self, Links};

/// Larger indexes are not read, since each entry costs a `stat`.
const MAX_ENTRIES: u32 = 20_000;
/// Far more than this number of entries takes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Hash of the index at its end.
const TRAILER: usize = 20;

pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
    /// Seconds and nanoseconds at which it was written.
    pub(super) written: (u32, u32),
}

pub(super) struct Entry {
    pub(super) path: Vec<u8>,
    pub(super) changed: (u32, u32),
    pub(super) modified: (u32, u32),
    pub(super) inode: u32,
    pub(super) mode: u32,
    pub(super) size: u32,
    pub(super) name: [u8; 20],
    pub(super) mark: EntryFlag,
}

/// Flags of an entry; the strongest if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryFlag {
    None,
    /// Not checked out.
    Skipped,
    /// In conflict.
    Unmerged,
    /// Intended to be added.
    Intended,
    /// Assumed unchanged by the user.
    Assumed,
}

/// Reads the index of a git folder; `None` if it cannot be parsed. A repository without one tracks no file.
pub(super) fn read(git: &Path) -> Option<Index> {
    let path = git.join("index");
    if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Some(Index { entries: Vec::new(), written: (0, 0) });
    }
    let file = read::open(&path, Links::Refuse)?;
    let metadata = file.metadata().ok()?;
    if metadata.len() > MAX_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let mut index = parse(&bytes)?;
    index.written = (metadata.mtime() as u32, metadata.mtime_nsec() as u32);
    Some(index)
}

fn parse(bytes: &[u8]) -> Option<Index> {
    let end = bytes.len().checked_sub(TRAILER)?;
    let mut bytes = Bytes { all: &bytes[..end], at: 0 };
    if bytes.take(4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (bytes.number()?, bytes.number()?);
    if !(2..=4).contains(&version) || count > MAX_ENTRIES {
        return None;
    }
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let before = entries.last().map_or(&[][..], |entry| &entry.path);
        let entry = bytes.entry(version, before)?;
        entries.push(entry);
    }
    while bytes.at < end {
        let sign = bytes.take(4)?;
        let length = bytes.number()? as usize;
        bytes.take(length)?;
        if !sign[0].is_ascii_uppercase() {
            // A required extension changes the meaning of the entries.
            return None;
        }
    }
    Some(Index { entries, written: (0, 0) })
}

struct Bytes<'index> {
    all: &'index [u8],
    at: usize,
}

impl<'index> Bytes<'index> {
    fn take(&mut self, length: usize) -> Option<&'index [u8]> {
        let taken = self.all.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn until_zero(&mut self) -> Option<&'index [u8]> {
        let length = self.all.get(self.at..)?.iter().position(|byte| *byte == 0)?;
        let taken = self.take(length)?;
        self.at += 1;
        Some(taken)
    }

    fn entry(&mut self, version: u32, before: &[u8]) -> Option<Entry> {
        let start = self.at;
        let changed = (self.number()?, self.number()?);
        let modified = (self.number()?, self.number()?);
        let [_device, inode, mode, _user, _group, size] =
            [self.number()?, self.number()?, self.number()?, self.number()?, self.number()?, self.number()?];
        let name = self.take(20)?.try_into().ok()?;
        let flags = self.short()?;
        let further = if flags & 0x4000 == 0 {
            0
        } else if version >= 3 {
            self.short()?
        } else {
            return None;
        };
        let path = if version == 4 {
            let dropped = self.variable()?;
            let mut path = before[..before.len().checked_sub(dropped)?].to_vec();
            path.extend(self.until_zero()?);
            path
        } else {
            let path = self.until_zero()?.to_vec();
            // Padded to a multiple of eight, with at least one zero.
            self.at = start + (self.at - start).next_multiple_of(8);
            path
        };
        let mark = if further & 0x4000 != 0 {
            EntryFlag::Skipped
        } else if flags & 0x3000 != 0 {
            EntryFlag::Unmerged
        } else if further & 0x2000 != 0 {
            EntryFlag::Intended
        } else if flags & 0x8000 != 0 {
            EntryFlag::Assumed
        } else {
            EntryFlag::None
        };
        Some(Entry { path, changed, modified, inode, mode, size, name, mark })
    }

    /// A variable-length number, as in packs.
    fn variable(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7F);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7F))?;
        }
        Some(value)
    }
}
