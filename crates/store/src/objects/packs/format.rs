//! The frame format: blobs compressed together, readable without an index.
//!
//! ```text
//!   sign │ blobs │ raw │ packed │ check │ length of each blob … │ bytes
//!    4       4      4      4        8       4 each                  packed as zstd, or raw if that is no shorter
//! ```
//!
//! With an index the checksum is redundant, because every blob is checked against its name. It serves to rebuild the
//! index, when the names are computed from the bytes.

use std::cell::RefCell;

use retake_model::content::{ContentId, Kind};
use zstd::bulk::{Compressor, Decompressor};

/// The header of a pack file.
pub(super) const FILE_HEADER: &[u8; 16] = b"retake pack 1\n\0\0";
/// The bytes before the lengths.
pub(super) const HEADER_BYTES: usize = 24;
/// The first bytes of a frame.
pub(super) const FRAME_MAGIC: &[u8; 4] = b"rtk\x01";
/// The fastest level, which achieves most of the possible compression on text.
const LEVEL: i32 = 1;
/// Limits the size, so that damage cannot exhaust memory.
const MAX_FRAME: usize = 64 * 1024 * 1024;

thread_local! {
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

#[derive(Clone, Debug)]
pub(super) struct FrameHeader {
    pub(super) blobs: usize,
    raw: usize,
    packed: usize,
    check: [u8; 8],
}

impl FrameHeader {
    /// Parses the header at the start of these bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let number = |at: usize| {
            let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_le_bytes(four) as usize
        };
        let head = Self {
            blobs: number(4),
            raw: number(8),
            packed: number(12),
            check: std::array::from_fn(|index| bytes[16 + index]),
        };
        let sensible = bytes.starts_with(FRAME_MAGIC)
            && head.blobs <= MAX_FRAME
            && head.raw <= MAX_FRAME
            && head.packed <= head.raw;
        sensible.then_some(head)
    }

    /// The length of the whole frame.
    pub(super) fn frame_length(&self) -> usize {
        HEADER_BYTES + 4 * self.blobs + self.packed
    }

    /// The lengths of the blobs; `None` if any byte of the frame is damaged.
    fn lengths(&self, frame: &[u8]) -> Option<Vec<usize>> {
        let (head, rest) = frame.get(..self.frame_length())?.split_at(HEADER_BYTES);
        if check(&head[..16], rest) != self.check {
            return None;
        }
        let lengths = &rest[..4 * self.blobs];
        let lengths: Vec<usize> = lengths
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize)
            .collect();
        (lengths.iter().sum::<usize>() == self.raw).then_some(lengths)
    }

    /// The bytes of all blobs, concatenated; `None` if they are damaged.
    pub(super) fn unpack(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let packed = frame.get(HEADER_BYTES + 4 * self.blobs..self.frame_length())?;
        if self.packed == self.raw {
            return Some(packed.to_vec());
        }
        let unpacked = UNPACKER.with_borrow_mut(|kept| {
            if kept.is_none() {
                *kept = Decompressor::new().ok();
            }
            kept.as_mut()?.decompress(packed, self.raw).ok()
        })?;
        (unpacked.len() == self.raw).then_some(unpacked)
    }
}

/// Encodes concatenated blobs as a frame.
pub(super) fn encode(lengths: &[u32], raw: &[u8]) -> std::io::Result<Vec<u8>> {
    let packed = PACKER.with_borrow_mut(|kept| {
        let packer = match kept {
            Some(packer) => packer,
            None => kept.insert(Compressor::new(LEVEL)?),
        };
        packer.compress(raw)
    })?;
    let body = if packed.len() < raw.len() { &packed[..] } else { raw };
    let mut frame = Vec::with_capacity(HEADER_BYTES + 4 * lengths.len() + body.len());
    frame.extend(FRAME_MAGIC);
    for number in [lengths.len(), raw.len(), body.len()] {
        frame.extend((number as u32).to_le_bytes());
    }
    frame.extend([0; 8]);
    frame.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
    frame.extend(body);
    let check = check(&frame[..16], &frame[HEADER_BYTES..]);
    frame[16..HEADER_BYTES].copy_from_slice(&check);
    Ok(frame)
}

/// The blobs of a frame: name, offset and length; `None` if the frame is damaged.
pub(super) fn contents(frame: &[u8]) -> Option<Vec<(ContentId, u32, u32)>> {
    let head = FrameHeader::parse(frame)?;
    let lengths = head.lengths(frame)?;
    let raw = head.unpack(frame)?;
    let mut start = 0;
    let blobs = lengths.into_iter().map(|length| {
        let blob = &raw[start..start + length];
        let found = (ContentId::of(Kind::Blob, blob), start as u32, length as u32);
        start += length;
        found
    });
    Some(blobs.collect())
}

fn check(head: &[u8], rest: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    hasher.update(rest);
    let mut check = [0; 8];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_self_describing_and_detects_damage() {
        let check = |blobs: &[&[u8]]| {
            let raw = blobs.concat();
            let lengths: Vec<u32> = blobs.iter().map(|blob| blob.len() as u32).collect();
            let frame = encode(&lengths, &raw).expect("a frame");
            let names: Vec<ContentId> =
                contents(&frame).expect("an intact frame").into_iter().map(|(id, ..)| id).collect();
            let expected: Vec<ContentId> = blobs.iter().map(|blob| ContentId::of(Kind::Blob, blob)).collect();
            assert_eq!(names, expected);
            for at in 0..frame.len() {
                let mut damaged = frame.clone();
                damaged[at] ^= 0x10;
                assert!(contents(&damaged).is_none(), "byte {at}");
            }
            for short in 0..frame.len() {
                assert!(contents(&frame[..short]).is_none(), "{short} bytes");
            }
        };
        check(&[b"one"]);
        check(&[b"", b"two", b"two"]);
        check(&[&b"text that is long enough to be compressed ".repeat(20), b"short", &[7; 300]]);
    }
}
