//! The bytes of a stat cache: a table of folders, then what is in each.

use std::ffi::CStr;

use retake_model::content::ContentId;
use retake_model::tree::Reason;

use crate::snapshot::rules::Fingerprint;
use crate::snapshot::stat::Stat;

/// One folder, the last time.
#[derive(Clone, Debug)]
pub(in crate::snapshot) struct Folder {
    /// Without its size, which says nothing.
    pub(in crate::snapshot) stat: Stat,
    /// Whether its stamps can be relied on.
    pub(in crate::snapshot) settled: bool,
    /// What it held.
    pub(in crate::snapshot) tree: ContentId,
    /// The rules around it.
    pub(in crate::snapshot) outer: Fingerprint,
    /// The rules for what is in it.
    pub(in crate::snapshot) rules: Fingerprint,
    /// The stamps of its ignore files; all zero if it has none.
    pub(in crate::snapshot) stamp: Fingerprint,
    /// Where its entries begin.
    at: usize,
    count: usize,
}

/// What stood under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snapshot) enum Remembered<'cache> {
    File {
        stat: Stat,
        settled: bool,
        content: ContentId,
    },
    Link {
        stat: Stat,
        settled: bool,
        target: &'cache [u8],
    },
    Folder {
        index: u32,
    },
    /// Left out; by its name alone, or by what it was.
    Left {
        reason: Reason,
        by_name: bool,
    },
}

impl Remembered<'_> {
    /// Why it is not held, or not all of it.
    pub(in crate::snapshot) fn left(&self) -> Option<Reason> {
        match self {
            Self::Left { reason, .. } => Some(*reason),
            Self::File { stat, .. } if stat.has_special_bits() => Some(Reason::ModeBits),
            Self::File { .. } | Self::Link { .. } | Self::Folder { .. } => None,
        }
    }
}

/// The length of a folder in the table.
const FOLDER: usize = 8 + 8 + 8 + 4 + 1 + 32 + 16 + 16 + 16 + 4 + 4;

/// A cache that is being written.
#[derive(Default)]
pub(in crate::snapshot) struct Written {
    table: Vec<u8>,
    entries: Vec<u8>,
    folders: u32,
    begun: usize,
    count: u32,
}

impl Written {
    /// Adds what stands under a name of the folder that is added next.
    pub(in crate::snapshot) fn entry(&mut self, name: &CStr, entry: &Remembered<'_>) {
        let bytes = &mut self.entries;
        self.count += 1;
        bytes.extend((name.to_bytes().len() as u16).to_le_bytes());
        bytes.extend(name.to_bytes_with_nul());
        match entry {
            Remembered::File { stat, settled, content } => {
                bytes.push(u8::from(*settled));
                put_stat(bytes, stat);
                bytes.extend(content.bytes());
            }
            Remembered::Link { stat, settled, target } => {
                bytes.push(2 | u8::from(*settled));
                put_stat(bytes, stat);
                bytes.extend((target.len() as u32).to_le_bytes());
                bytes.extend(*target);
            }
            Remembered::Folder { index } => {
                bytes.push(4);
                bytes.extend(index.to_le_bytes());
            }
            Remembered::Left { reason, by_name } => {
                bytes.push(6 | u8::from(*by_name));
                bytes.push(*reason as u8);
            }
        }
    }

    /// Ends a folder. Folders come in the order of their numbers.
    pub(in crate::snapshot) fn folder(&mut self, folder: &Folder) {
        let bytes = &mut self.table;
        for number in [folder.stat.inode, folder.stat.modified as u64, folder.stat.changed as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(folder.stat.mode.to_le_bytes());
        bytes.push(u8::from(folder.settled));
        bytes.extend(folder.tree.bytes());
        for fingerprint in [&folder.outer, &folder.rules, &folder.stamp] {
            bytes.extend(fingerprint);
        }
        bytes.extend((self.begun as u32).to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        self.begun = self.entries.len();
        self.count = 0;
        self.folders += 1;
    }

    /// The bytes, and how many folders they hold; nothing if there is too much for the form.
    pub(in crate::snapshot) fn finish(mut self) -> Option<(Vec<u8>, u32)> {
        u32::try_from(self.entries.len()).ok()?;
        self.table.append(&mut self.entries);
        Some((self.table, self.folders))
    }
}

impl Folder {
    /// A folder that is about to be written.
    pub(in crate::snapshot) fn new(
        stat: Stat,
        settled: bool,
        tree: ContentId,
        [outer, rules, stamp]: [Fingerprint; 3],
    ) -> Self {
        Self { stat, settled, tree, outer, rules, stamp, at: 0, count: 0 }
    }

    /// The same folder, its bytes being that much further on.
    pub(super) fn moved(self, by: usize) -> Self {
        Self { at: self.at + by, ..self }
    }
}

/// The table of folders.
pub(super) fn folders(body: &[u8], count: u32, device: u64) -> Option<Vec<Folder>> {
    let table = (count as usize).checked_mul(FOLDER)?;
    let mut bytes = Bytes(body.get(..table)?);
    (0..count)
        .map(|_| {
            let stat = Stat {
                device,
                inode: bytes.number()?,
                size: 0,
                modified: bytes.number()? as i64,
                changed: bytes.number()? as i64,
                mode: bytes.short()?,
            };
            Some(Folder {
                stat,
                settled: bytes.byte()? == 1,
                tree: ContentId::from_bytes(*bytes.array()?),
                outer: *bytes.array()?,
                rules: *bytes.array()?,
                stamp: *bytes.array()?,
                at: table + bytes.short()? as usize,
                count: bytes.short()? as usize,
            })
        })
        .collect()
}

/// The entries of a folder.
pub(super) fn entries<'cache>(
    body: &'cache [u8],
    folder: &Folder,
    device: u64,
) -> Option<Vec<(&'cache CStr, Remembered<'cache>)>> {
    let mut bytes = Bytes(body.get(folder.at..)?);
    let mut entries = Vec::with_capacity(folder.count.min(body.len()));
    for _ in 0..folder.count {
        let length = usize::from(u16::from_le_bytes(*bytes.array()?));
        let name = CStr::from_bytes_with_nul(bytes.take(length + 1)?).ok()?;
        let sign = bytes.byte()?;
        let entry = match sign & !1 {
            0 => Remembered::File {
                stat: bytes.stat(device)?,
                settled: sign & 1 == 1,
                content: ContentId::from_bytes(*bytes.array()?),
            },
            2 => {
                let stat = bytes.stat(device)?;
                let length = bytes.short()? as usize;
                Remembered::Link { stat, settled: sign & 1 == 1, target: bytes.take(length)? }
            }
            4 => Remembered::Folder { index: bytes.short()? },
            6 => Remembered::Left { reason: reason(bytes.byte()?)?, by_name: sign & 1 == 1 },
            _ => return None,
        };
        entries.push((name, entry));
    }
    Some(entries)
}

fn put_stat(bytes: &mut Vec<u8>, stat: &Stat) {
    for number in [stat.inode, stat.size, stat.modified as u64, stat.changed as u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(stat.mode.to_le_bytes());
}

fn reason(number: u8) -> Option<Reason> {
    use Reason::{
        BadName, Changing, Ignored, ModeBits, Mounted, OtherProject, Repository, Secret, Special, TooLarge,
        Unreadable,
    };
    let of_paths =
        [Ignored, Secret, TooLarge, Special, Unreadable, Changing, Repository, BadName, Mounted, ModeBits];
    of_paths.into_iter().chain([OtherProject]).find(|reason| *reason as u8 == number)
}

/// Bytes that are read from the front.
struct Bytes<'cache>(&'cache [u8]);

impl<'cache> Bytes<'cache> {
    fn take(&mut self, length: usize) -> Option<&'cache [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Option<&'cache [u8; LENGTH]> {
        self.take(LENGTH)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn short(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn stat(&mut self, device: u64) -> Option<Stat> {
        Some(Stat {
            device,
            inode: self.number()?,
            size: self.number()?,
            modified: self.number()? as i64,
            changed: self.number()? as i64,
            mode: self.short()?,
        })
    }
}
