//! Reads objects of a repository: loose, packed, and packed as a difference from another object (a delta).
//!
//! ```text
//!   objects/ab/cdef…              one object, compressed
//!   objects/pack/pack-X.idx       sorted ids ──► offsets in pack-X.pack
//!   objects/info/alternates       folders of objects of other repositories
//! ```
//!
//! Everything has a limit, because a repository may be hostile. An object that cannot be read is unknown.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};

use super::read::{self, Links};

/// The id of an object.
pub(super) type ObjectId = [u8; 20];

/// Larger objects are not read; files are never read.
const OBJECT_LIMIT: usize = 64 * 1024 * 1024;
/// Limit on the packs to search.
const MAX_PACKS: usize = 1_000;
/// Limit on the other repositories whose objects are used.
const MAX_ALTERNATES: usize = 32;
/// Git makes chains of at most 4,095 deltas, and of 50 unless told otherwise.
const MAX_DELTAS: usize = 4_096;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    /// Its number in a pack.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
            Self::Tag => 4,
        }
    }

    fn all() -> [Self; 4] {
        [Self::Commit, Self::Tree, Self::Blob, Self::Tag]
    }
}

/// The objects of a repository.
pub(super) struct ObjectDatabase {
    folders: Vec<PathBuf>,
    packs: Vec<Pack>,
}

/// A pack with the table that precedes its sorted ids.
struct Pack {
    index: File,
    fan: Vec<u32>,
    path: PathBuf,
}

impl ObjectDatabase {
    /// Opens the objects of a repository, given by its common folder.
    pub(super) fn open(common: &Path) -> Self {
        let mut folders = vec![common.join("objects")];
        let mut known: HashSet<PathBuf> = folders.iter().cloned().collect();
        let mut next = 0;
        while next < folders.len() && folders.len() < MAX_ALTERNATES {
            let found = alternates(&folders[next]);
            folders.extend(found.into_iter().filter(|folder| known.insert(folder.clone())));
            next += 1;
        }
        let packs = folders.iter().flat_map(|folder| packs(&folder.join("pack"))).take(MAX_PACKS).collect();
        Self { folders, packs }
    }

    /// Whether the object exists.
    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.packs.iter().any(|pack| pack.offset(id).is_some())
            || self.folders.iter().any(|folder| fs::symlink_metadata(loose(folder, id)).is_ok())
    }

    /// Reads an object; `None` if it is missing, too large or malformed.
    pub(super) fn read(&self, id: &ObjectId) -> Option<(ObjectKind, Vec<u8>)> {
        for folder in &self.folders {
            if let Some(bytes) = read::read_limited(&loose(folder, id), Links::Refuse, OBJECT_LIMIT) {
                return read_loose(&bytes);
            }
        }
        let (pack, offset) = self.packs.iter().find_map(|pack| Some((pack, pack.offset(id)?)))?;
        pack.read(offset)
    }

    /// The tree of a commit.
    pub(super) fn tree_of_commit(&self, commit: &ObjectId) -> Option<ObjectId> {
        let (ObjectKind::Commit, text) = self.read(commit)? else { return None };
        let line = text.strip_prefix(b"tree ")?.get(..41)?;
        (line[40] == b'\n').then(|| id_of(std::str::from_utf8(&line[..40]).ok()?))?
    }
}

/// An id from 40 hexadecimal digits.
pub(super) fn id_of(digits: &str) -> Option<ObjectId> {
    if digits.len() != 40 || !digits.is_ascii() {
        return None;
    }
    let mut id = [0; 20];
    for (byte, at) in id.iter_mut().zip((0..40).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(id)
}

/// An id as 40 hexadecimal digits.
pub(super) fn digits_of(id: &ObjectId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn loose(objects: &Path, id: &ObjectId) -> PathBuf {
    let digits = digits_of(id);
    objects.join(&digits[..2]).join(&digits[2..])
}

fn read_loose(bytes: &[u8]) -> Option<(ObjectKind, Vec<u8>)> {
    let mut object = decompress_to_vec_zlib_with_limit(bytes, OBJECT_LIMIT).ok()?;
    let start = object.iter().take(64).position(|byte| *byte == 0)?;
    let name = object[..start].split(|byte| *byte == b' ').next()?;
    let kind = ObjectKind::all().into_iter().find(|kind| kind.name().as_bytes() == name)?;
    object.drain(..=start);
    Some((kind, object))
}

/// Folders of objects of other repositories.
fn alternates(objects: &Path) -> Vec<PathBuf> {
    let Some(text) = read::read_limited(&objects.join("info/alternates"), Links::Refuse, 64 * 1024) else {
        return Vec::new();
    };
    let lines = text.split(|byte| *byte == b'\n');
    let paths = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    paths.map(|line| objects.join(OsStr::from_bytes(line))).take(MAX_ALTERNATES).collect()
}

fn packs(folder: &Path) -> Vec<Pack> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let indexes = entries.take(4 * MAX_PACKS).flatten().map(|entry| entry.path());
    indexes
        .filter(|path| path.extension().is_some_and(|extension| extension == "idx"))
        .filter_map(|path| Pack::open(&path))
        .collect()
}

impl Pack {
    /// Opens the index of a pack (version 2).
    fn open(path: &Path) -> Option<Self> {
        let index = read::open(path, Links::Refuse)?;
        let mut head = [0; 8 + 1024];
        index.read_exact_at(&mut head, 0).ok()?;
        if head[..8] != *b"\xfftOc\0\0\0\x02" {
            return None;
        }
        let fan = head[8..]
            .chunks_exact(4)
            .map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        Some(Self { index, fan: fan.collect(), path: path.with_extension("pack") })
    }

    /// Reads an object: goes back to the object that is stored whole, then applies the deltas.
    fn read(&self, offset: u64) -> Option<(ObjectKind, Vec<u8>)> {
        let mut file = read::open(&self.path, Links::Refuse)?;
        let mut deltas: Vec<Vec<u8>> = Vec::new();
        let mut at = offset;
        let mut left = OBJECT_LIMIT;
        let (kind, mut bytes) = loop {
            let (number, base, content) = packed_object(&mut file, at)?;
            left = left.checked_sub(content.len())?;
            match (base, ObjectKind::all().into_iter().find(|kind| kind.number() == number)) {
                (None, Some(kind)) => break (kind, content),
                (None, None) => return None,
                (Some(Base::Before(distance)), _) => {
                    at = at.checked_sub(distance).filter(|_| distance > 0)?;
                }
                // A pack is complete by itself; a cycle ends at the limit of deltas.
                (Some(Base::Id(id)), _) => at = self.offset(&id)?,
            }
            deltas.push(content);
            if deltas.len() > MAX_DELTAS {
                return None;
            }
        };
        for delta in deltas.iter().rev() {
            bytes = apply(&bytes, delta)?;
        }
        Some((kind, bytes))
    }

    /// Offset of an object in the pack.
    fn offset(&self, id: &ObjectId) -> Option<u64> {
        let first = usize::from(id[0]);
        let total = u64::from(self.fan[255]);
        let before = if first == 0 { 0 } else { self.fan[first - 1] };
        let (mut low, mut high) = (u64::from(before), u64::from(self.fan[first]));
        while low < high {
            let middle = low + (high - low) / 2;
            let mut found = [0; 20];
            self.index.read_exact_at(&mut found, 1032 + 20 * middle).ok()?;
            match found.cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let mut offset = [0; 4];
                    self.index.read_exact_at(&mut offset, 1032 + 24 * total + 4 * middle).ok()?;
                    let offset = u32::from_be_bytes(offset);
                    if offset & 0x8000_0000 == 0 {
                        return Some(u64::from(offset));
                    }
                    let mut far = [0; 8];
                    let place = 1032 + 28 * total + 8 * u64::from(offset & 0x7FFF_FFFF);
                    self.index.read_exact_at(&mut far, place).ok()?;
                    return Some(u64::from_be_bytes(far));
                }
            }
        }
        None
    }
}

/// The object that a delta refers to.
enum Base {
    /// It is stored this many bytes before.
    Before(u64),
    Id(ObjectId),
}

/// Reads the type number, the base and the content of an object in a pack.
fn packed_object(pack: &mut File, offset: u64) -> Option<(u8, Option<Base>, Vec<u8>)> {
    pack.seek(SeekFrom::Start(offset)).ok()?;
    let mut reader = BufReader::with_capacity(8 * 1024, pack);
    let mut byte = read_byte(&mut reader)?;
    let number = (byte >> 4) & 7;
    let mut size = usize::from(byte & 15);
    let mut shift = 4;
    while byte & 0x80 != 0 {
        byte = read_byte(&mut reader)?;
        size |= usize::from(byte & 0x7F).checked_shl(shift).filter(|_| shift < 40)?;
        shift += 7;
    }
    let base = match number {
        6 => Some(Base::Before(read_distance(&mut reader)?)),
        7 => {
            let mut id = [0; 20];
            reader.read_exact(&mut id).ok()?;
            Some(Base::Id(id))
        }
        _ => None,
    };
    Some((number, base, inflate_exactly(&mut reader, size)?))
}

fn read_byte(reader: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

/// Git's encoding of the distance to a base: big-endian groups of seven bits, each continued group plus one.
fn read_distance(reader: &mut impl Read) -> Option<u64> {
    let mut byte = read_byte(reader)?;
    let mut distance = u64::from(byte & 0x7F);
    while byte & 0x80 != 0 {
        byte = read_byte(reader)?;
        distance = distance.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7F))?;
    }
    Some(distance)
}

/// Decompresses an object of a known size; the next object follows it.
fn inflate_exactly(reader: &mut impl Read, size: usize) -> Option<Vec<u8>> {
    if size > OBJECT_LIMIT {
        return None;
    }
    let mut state = InflateState::new_boxed(DataFormat::Zlib);
    let mut content = Vec::new();
    let (mut input, mut output) = ([0; 8 * 1024], vec![0; 32 * 1024]);
    loop {
        let length = reader.read(&mut input).ok()?;
        let mut rest = &input[..length];
        loop {
            let result = inflate(&mut state, rest, &mut output, MZFlush::None);
            content.extend_from_slice(&output[..result.bytes_written]);
            rest = &rest[result.bytes_consumed..];
            match result.status {
                _ if content.len() > size => return None,
                Ok(MZStatus::StreamEnd) => return (content.len() == size).then_some(content),
                Ok(_) if result.bytes_written > 0 || result.bytes_consumed > 0 => {}
                // No progress without more input.
                _ if rest.is_empty() && length > 0 => break,
                _ => return None,
            }
        }
    }
}

/// Applies a delta: pieces copied from the base, and new ones.
fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut delta = delta;
    if read_size(&mut delta)? != base.len() {
        return None;
    }
    let size = read_size(&mut delta)?;
    if size > OBJECT_LIMIT {
        return None;
    }
    let mut result = Vec::with_capacity(size);
    while let Some((&order, rest)) = delta.split_first() {
        delta = rest;
        let piece = if order & 0x80 != 0 {
            let mut field = |bits: std::ops::Range<u32>| -> Option<usize> {
                let mut value = 0;
                for (place, bit) in bits.enumerate() {
                    if order & (1 << bit) != 0 {
                        value |= usize::from(read_byte(&mut delta)?) << (8 * place);
                    }
                }
                Some(value)
            };
            let start = field(0..4)?;
            let length = field(4..7)?;
            let length = if length == 0 { 0x10000 } else { length };
            base.get(start..start.checked_add(length)?)?
        } else {
            let (piece, rest) = delta.split_at_checked(usize::from(order)).filter(|_| order > 0)?;
            delta = rest;
            piece
        };
        if result.len() + piece.len() > size {
            return None;
        }
        result.extend_from_slice(piece);
    }
    (result.len() == size).then_some(result)
}

/// A size at the start of a delta: little-endian groups of seven bits.
fn read_size(delta: &mut &[u8]) -> Option<usize> {
    let (mut size, mut shift) = (0_usize, 0);
    loop {
        let byte = read_byte(delta)?;
        size |= usize::from(byte & 0x7F).checked_shl(shift).filter(|_| shift < 40)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_copy_and_insert() {
        let check = |base: &[u8], delta: &[u8], expected: Option<&[u8]>| {
            assert_eq!(apply(base, delta).as_deref(), expected, "{delta:?}");
        };
        // Sizes 6 and 5, then a copy of 3 bytes from 1, then two new bytes.
        check(b"abcdef", &[6, 5, 0x91, 1, 3, 2, b'x', b'y'], Some(b"bcdxy"));
        check(b"abcdef", &[6, 0], Some(b""));
        for wrong in [
            &[7, 5, 0x91, 1, 3, 2, b'x', b'y'][..],
            &[6, 4, 0x91, 1, 3, 2, b'x', b'y'],
            &[6, 3, 0x91, 4, 3],
            &[6, 1, 0],
            &[6, 2, 2, b'x'],
            &[6],
            &[],
        ] {
            check(b"abcdef", wrong, None);
        }
    }

    #[test]
    fn ids_are_written_as_they_are_read() {
        let digits = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        assert_eq!(digits_of(&id_of(digits).expect("an id")), digits);
        for wrong in ["", "e69d", &"g".repeat(40), &"é".repeat(20)] {
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
    }
}
