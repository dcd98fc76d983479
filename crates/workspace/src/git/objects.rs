//! Reads commits: from loose objects, or from packs, also as deltas of other commits.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::read::{self, Links};

/// Larger commits are not read.
const COMMIT_LIMIT: usize = 1024 * 1024;
/// Limit on the packs to search.
const MAX_PACKS: usize = 1_000;
/// Type number of a commit in a pack.
const COMMIT: u8 = 1;
/// A delta to an object before it in the pack, and one to a named object.
const OFFSET_DELTA: u8 = 6;
const NAME_DELTA: u8 = 7;
/// The longest chain of deltas that git writes by default is 50.
const MAX_DELTAS: usize = 250;

/// The tree of a commit given by 40 hexadecimal digits.
pub(super) fn tree_of_commit(common: &Path, commit: &str) -> Option<[u8; 20]> {
    let text = Commits::of(common).read(commit)?;
    let line = text.strip_prefix(b"tree ")?.get(..41)?;
    (line[40] == b'\n').then(|| name_of(std::str::from_utf8(&line[..40]).ok()?))?
}

/// Reads the commits of a repository. Packs stay open.
pub(super) struct Commits {
    objects: PathBuf,
    /// Opened when they are needed.
    packs: Option<Vec<Pack>>,
}

struct Pack {
    index: File,
    fan: Vec<u32>,
    content: File,
}

impl Commits {
    pub(super) fn of(common: &Path) -> Self {
        Self { objects: common.join("objects"), packs: None }
    }

    /// The text of a commit given by 40 hexadecimal digits.
    pub(super) fn read(&mut self, commit: &str) -> Option<Vec<u8>> {
        let name = name_of(commit)?;
        let loose = self.objects.join(&commit[..2]).join(&commit[2..]);
        if let Some(bytes) = read::read_limited(&loose, Links::Refuse, COMMIT_LIMIT) {
            let object = decompress_to_vec_zlib_with_limit(&bytes, COMMIT_LIMIT).ok()?;
            let start = object.iter().position(|byte| *byte == 0)?;
            return object.starts_with(b"commit ").then(|| object[start + 1..].to_vec());
        }
        let packs = self.packs.get_or_insert_with(|| open_packs(&self.objects.join("pack")));
        packs.iter().find_map(|pack| pack.commit_at(pack.offset_of(&name)?, 0))
    }
}

fn open_packs(folder: &Path) -> Vec<Pack> {
    let mut packs = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().take(MAX_PACKS).flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "idx") {
            packs.extend(Pack::open(&path));
        }
    }
    packs
}

impl Pack {
    /// Opens a pack with an index of version 2.
    fn open(index: &Path) -> Option<Self> {
        let mut file = read::open(index, Links::Refuse)?;
        let mut head = [0; 8 + 1024];
        file.read_exact(&mut head).ok()?;
        if head[..8] != *b"\xfftOc\0\0\0\x02" {
            return None;
        }
        let (numbers, _) = head[8..].as_chunks::<4>();
        let fan = numbers.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        Some(Self { index: file, fan, content: read::open(&index.with_extension("pack"), Links::Refuse)? })
    }

    fn offset_of(&self, name: &[u8; 20]) -> Option<u64> {
        let first = usize::from(name[0]);
        let total = u64::from(self.fan[255]);
        let below = first.checked_sub(1).map_or(0, |before| self.fan[before]);
        let (mut low, mut high) = (u64::from(below), u64::from(self.fan[first]));
        let read_at = |at: u64, bytes: &mut [u8]| self.index.read_exact_at(bytes, at).ok();
        while low < high {
            let middle = low + (high - low) / 2;
            let mut found = [0; 20];
            read_at(1032 + 20 * middle, &mut found)?;
            match found.cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let mut offset = [0; 4];
                    read_at(1032 + 24 * total + 4 * middle, &mut offset)?;
                    let offset = u32::from_be_bytes(offset);
                    if offset & 0x8000_0000 == 0 {
                        return Some(u64::from(offset));
                    }
                    let mut far = [0; 8];
                    read_at(1032 + 28 * total + 8 * u64::from(offset & 0x7FFF_FFFF), &mut far)?;
                    return Some(u64::from_be_bytes(far));
                }
            }
        }
        None
    }

    fn commit_at(&self, offset: u64, depth: usize) -> Option<Vec<u8>> {
        if depth > MAX_DELTAS {
            return None;
        }
        // Nearly all commits are short.
        let mut bytes = vec![0; 2048];
        let read = self.content.read_at(&mut bytes, offset).ok()?;
        bytes.truncate(read);
        if let Some(found) = self.parse(&bytes, offset, depth) {
            return Some(found);
        }
        bytes.resize(COMMIT_LIMIT, 0);
        let read = self.content.read_at(&mut bytes, offset).ok()?;
        bytes.truncate(read);
        self.parse(&bytes, offset, depth)
    }

    fn parse(&self, bytes: &[u8], offset: u64, depth: usize) -> Option<Vec<u8>> {
        let kind = (bytes.first()? >> 4) & 7;
        let mut at = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
        // The next object follows; the decoder stops at the end of this one.
        let unpack = |at: usize| decompress_to_vec_zlib_with_limit(bytes.get(at..)?, COMMIT_LIMIT).ok();
        match kind {
            COMMIT => unpack(at),
            OFFSET_DELTA => {
                let mut back = 0_u64;
                loop {
                    let byte = *bytes.get(at)?;
                    back = back.checked_mul(128)? + u64::from(byte & 0x7f);
                    at += 1;
                    if byte & 0x80 == 0 {
                        break;
                    }
                    back = back.checked_add(1)?;
                }
                let delta = unpack(at)?;
                apply_delta(
                    &self.commit_at(offset.checked_sub(back).filter(|base| *base < offset)?, depth + 1)?,
                    &delta,
                )
            }
            NAME_DELTA => {
                let delta = unpack(at + 20)?;
                let base = self.offset_of(bytes.get(at..at + 20)?.try_into().ok()?)?;
                apply_delta(&self.commit_at(base, depth + 1)?, &delta)
            }
            _ => None,
        }
    }
}

/// Applies a delta: copies from the base, and new bytes.
fn apply_delta(base: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    let mut size = || -> Option<usize> {
        let (mut value, mut shift) = (0_usize, 0);
        loop {
            let byte = next(&mut delta)?;
            value |= usize::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 32)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    };
    let (base_size, result_size) = (size()?, size()?);
    if base_size != base.len() || result_size > COMMIT_LIMIT {
        return None;
    }
    let mut result = Vec::with_capacity(result_size);
    while let Some(command) = next(&mut delta) {
        if command & 0x80 == 0 {
            let (new, rest) = delta.split_at_checked(usize::from(command)).filter(|_| command > 0)?;
            result.extend_from_slice(new);
            delta = rest;
            continue;
        }
        let mut number = |bits: std::ops::Range<u32>| -> Option<usize> {
            let (mut value, first) = (0, bits.start);
            for bit in bits {
                if command & (1 << bit) != 0 {
                    value |= usize::from(next(&mut delta)?) << (8 * (bit - first));
                }
            }
            Some(value)
        };
        let (from, length) = (number(0..4)?, number(4..7)?);
        let length = if length == 0 { 0x1_0000 } else { length };
        result.extend_from_slice(base.get(from..from.checked_add(length)?)?);
        if result.len() > result_size {
            return None;
        }
    }
    (result.len() == result_size).then_some(result)
}

fn next(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn name_of(digits: &str) -> Option<[u8; 20]> {
    if digits.len() != 40 || !digits.is_ascii() {
        return None;
    }
    let mut name = [0; 20];
    for (byte, at) in name.iter_mut().zip((0..40).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(name)
}
