//! Binary format of the stat cache: a table of folders, then the entries of each.

use std::ffi::CStr;

use retake_model::content::ContentId;
use retake_model::tree::{ExcludedKind, ExclusionReason};

use crate::snapshot::read::FileContent;
use crate::snapshot::rules::Fingerprint;
use crate::snapshot::stat::Stat;

/// A cached folder.
#[derive(Clone, Debug)]
pub(in crate::snapshot) struct Folder {
    /// Without the size, which carries no information.
    pub(in crate::snapshot) stat: Stat,
    /// Whether its stamps are reliable.
    pub(in crate::snapshot) settled: bool,
    /// Its tree.
    pub(in crate::snapshot) tree: ContentId,
    /// Fingerprint of the rules of its parents.
    pub(in crate::snapshot) outer: Fingerprint,
    /// Fingerprint of the rules for its entries.
    pub(in crate::snapshot) rules: Fingerprint,
    /// Stamps of its ignore files; zero if it has none.
    pub(in crate::snapshot) stamp: Fingerprint,
    /// Offset of its entries.
    at: usize,
    count: usize,
}

/// A cached entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snapshot) enum CachedEntry<'cache> {
    File { stat: Stat, settled: bool, content: FileContent },
    Link { stat: Stat, settled: bool, target: &'cache [u8] },
    Folder { index: u32 },
    Excluded(Exclusion),
}

/// Why an entry is excluded, or captured only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snapshot) struct Exclusion {
    pub(in crate::snapshot) reason: ExclusionReason,
    /// By its name alone, rather than by its type and content.
    pub(in crate::snapshot) by_name: bool,
    pub(in crate::snapshot) kind: Option<ExcludedKind>,
}

impl Exclusion {
    /// The exclusion of a folder that was opened.
    pub(in crate::snapshot) fn of_folder(reason: ExclusionReason) -> Self {
        Self { reason, by_name: false, kind: Some(ExcludedKind::Folder) }
    }

    /// The special mode bits of a captured entry.
    pub(in crate::snapshot) fn of_mode_bits() -> Self {
        Self { reason: ExclusionReason::ModeBits, by_name: false, kind: None }
    }
}

impl CachedEntry<'_> {
    /// Why the entry is excluded, or captured only in part.
    pub(in crate::snapshot) fn exclusion(&self) -> Option<Exclusion> {
        match self {
            Self::Excluded(exclusion) => Some(*exclusion),
            Self::File { stat, .. } if stat.has_special_bits() => Some(Exclusion::of_mode_bits()),
            Self::File { .. } | Self::Link { .. } | Self::Folder { .. } => None,
        }
    }
}

/// Marks a file that is stored in chunks.
const CHUNKED: u8 = 8;
/// Marks an excluded folder, in the byte of the reason.
const FOLDER: u8 = 0x80;
/// Size of a folder in the table.
const FOLDER_BYTES: usize = 8 + 8 + 8 + 4 + 1 + 32 + 16 + 16 + 16 + 4 + 4;

/// Writes a cache.
#[derive(Default)]
pub(in crate::snapshot) struct CacheWriter {
    table: Vec<u8>,
    entries: Vec<u8>,
    folders: u32,
    begun: usize,
    count: u32,
}

impl CacheWriter {
    /// Adds an entry to the next folder.
    pub(in crate::snapshot) fn entry(&mut self, name: &CStr, entry: &CachedEntry<'_>) {
        let bytes = &mut self.entries;
        self.count += 1;
        bytes.extend((name.to_bytes().len() as u16).to_le_bytes());
        bytes.extend(name.to_bytes_with_nul());
        match entry {
            CachedEntry::File { stat, settled, content } => {
                let sign = if content.chunks.is_some() { CHUNKED } else { 0 };
                bytes.push(sign | u8::from(*settled));
                put_stat(bytes, stat);
                bytes.extend(content.id.bytes());
                bytes.extend(content.chunks.iter().flat_map(ContentId::bytes));
            }
            CachedEntry::Link { stat, settled, target } => {
                bytes.push(2 | u8::from(*settled));
                put_stat(bytes, stat);
                bytes.extend((target.len() as u32).to_le_bytes());
                bytes.extend(*target);
            }
            CachedEntry::Folder { index } => {
                bytes.push(4);
                bytes.extend(index.to_le_bytes());
            }
            CachedEntry::Excluded(Exclusion { reason, by_name, kind }) => {
                bytes.push(6 | u8::from(*by_name));
                bytes.push(*reason as u8 | if kind.is_some() { FOLDER } else { 0 });
            }
        }
    }

    /// Ends a folder. Folders must come in the order of their numbers.
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

    /// The bytes, and the number of folders; `None` if the format cannot represent them.
    pub(in crate::snapshot) fn finish(mut self) -> Option<(Vec<u8>, u32)> {
        u32::try_from(self.entries.len()).ok()?;
        self.table.append(&mut self.entries);
        Some((self.table, self.folders))
    }
}

impl Folder {
    /// A folder to be written.
    pub(in crate::snapshot) fn new(
        stat: Stat,
        settled: bool,
        tree: ContentId,
        [outer, rules, stamp]: [Fingerprint; 3],
    ) -> Self {
        Self { stat, settled, tree, outer, rules, stamp, at: 0, count: 0 }
    }
}

/// Parses the table of folders.
pub(super) fn folders(body: &[u8], count: u32, device: u64) -> Option<Vec<Folder>> {
    let table = (count as usize).checked_mul(FOLDER_BYTES)?;
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

/// Parses the entries of a folder.
pub(super) fn entries<'cache>(
    body: &'cache [u8],
    folder: &Folder,
    device: u64,
) -> Option<Vec<(&'cache CStr, CachedEntry<'cache>)>> {
    let mut bytes = Bytes(body.get(folder.at..)?);
    let mut entries = Vec::with_capacity(folder.count.min(body.len()));
    for _ in 0..folder.count {
        let length = usize::from(u16::from_le_bytes(*bytes.array()?));
        let name = CStr::from_bytes_with_nul(bytes.take(length + 1)?).ok()?;
        let sign = bytes.byte()?;
        let entry = match sign & !1 {
            kind @ (0 | CHUNKED) => {
                let (stat, settled) = (bytes.stat(device)?, sign & 1 == 1);
                let id = ContentId::from_bytes(*bytes.array()?);
                let chunks =
                    if kind == CHUNKED { Some(ContentId::from_bytes(*bytes.array()?)) } else { None };
                CachedEntry::File { stat, settled, content: FileContent { id, chunks } }
            }
            2 => {
                let stat = bytes.stat(device)?;
                let length = bytes.short()? as usize;
                CachedEntry::Link { stat, settled: sign & 1 == 1, target: bytes.take(length)? }
            }
            4 => CachedEntry::Folder { index: bytes.short()? },
            6 => {
                let byte = bytes.byte()?;
                let kind = (byte & FOLDER != 0).then_some(ExcludedKind::Folder);
                let reason = reason(byte & !FOLDER)?;
                CachedEntry::Excluded(Exclusion { reason, by_name: sign & 1 == 1, kind })
            }
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

fn reason(number: u8) -> Option<ExclusionReason> {
    use ExclusionReason::{
        Changing, Ignored, InvalidName, ModeBits, Mounted, OtherProject, Repository, Secret, Special,
        TooLarge, Unreadable,
    };
    let of_paths = [
        Ignored,
        Secret,
        TooLarge,
        Special,
        Unreadable,
        Changing,
        Repository,
        InvalidName,
        Mounted,
        ModeBits,
    ];
    of_paths.into_iter().chain([OtherProject]).find(|reason| *reason as u8 == number)
}

/// Reads bytes from the front.
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
