//! Reads the tree id of a commit, from a loose object or a pack.
//!
//! Only commits are read, and no deltas: git rarely stores commits as deltas, and for those the answer is unknown.

use std::fs;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::read::{self, Links};

/// Larger commits are not read.
const COMMIT_LIMIT: usize = 1024 * 1024;
/// Limit on the packs to search.
const MAX_PACKS: usize = 1_000;
/// Type number of a commit in a pack.
const COMMIT: u8 = 1;

/// The tree of a commit given by 40 hexadecimal digits.
pub(super) fn tree_of_commit(common: &Path, commit: &str) -> Option<[u8; 20]> {
    let name = name_of(commit)?;
    let objects = common.join("objects");
    let loose = objects.join(&commit[..2]).join(&commit[2..]);
    let text = match read::read_limited(&loose, Links::Refuse, COMMIT_LIMIT) {
        Some(bytes) => {
            let object = decompress_to_vec_zlib_with_limit(&bytes, COMMIT_LIMIT).ok()?;
            let start = object.iter().position(|byte| *byte == 0)?;
            object.starts_with(b"commit ").then(|| object[start + 1..].to_vec())?
        }
        None => packed(&objects.join("pack"), &name)?,
    };
    let line = text.strip_prefix(b"tree ")?.get(..41)?;
    (line[40] == b'\n').then(|| name_of(std::str::from_utf8(&line[..40]).ok()?))?
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

fn packed(folder: &Path, name: &[u8; 20]) -> Option<Vec<u8>> {
    for entry in fs::read_dir(folder).ok()?.take(MAX_PACKS).flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        let Some(offset) = read::open(&path, Links::Refuse).and_then(|index| offset_in(index, name)) else {
            continue;
        };
        return in_pack(read::open(&path.with_extension("pack"), Links::Refuse)?, offset);
    }
    None
}

/// Offset of an object, from the index of a pack (version 2).
fn offset_in(mut index: File, name: &[u8; 20]) -> Option<u64> {
    let mut head = [0; 8 + 1024];
    index.read_exact(&mut head).ok()?;
    if head[..8] != *b"\xfftOc\0\0\0\x02" {
        return None;
    }
    let fan = |at: usize| {
        let bytes = head.get(8 + 4 * at..12 + 4 * at)?;
        Some(u64::from(u32::from_be_bytes(bytes.try_into().ok()?)))
    };
    let first = usize::from(name[0]);
    let total = fan(255)?;
    let (mut low, mut high) = (if first == 0 { 0 } else { fan(first - 1)? }, fan(first)?);
    let mut read_at = |at: u64, bytes: &mut [u8]| {
        index.seek(SeekFrom::Start(at)).ok()?;
        index.read_exact(bytes).ok()
    };
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

fn in_pack(mut pack: File, offset: u64) -> Option<Vec<u8>> {
    pack.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    pack.take(COMMIT_LIMIT as u64).read_to_end(&mut bytes).ok()?;
    let kind = (bytes.first()? >> 4) & 7;
    let header = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    if kind != COMMIT {
        return None;
    }
    // The next object follows; the decoder stops at the end of this one.
    decompress_to_vec_zlib_with_limit(&bytes[header + 1..], COMMIT_LIMIT).ok()
}
