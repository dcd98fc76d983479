//! Large files in chunks whose boundaries depend on their content, so that an edit stores the chunks around it.
//!
//! ```text
//!   bytes        ─────────────│────────│──────────────────│─────     a boundary: the hash of the last 64 bytes
//!                      │          │            │             │        has a certain form
//!   level 0      [ blob, length   blob, length   blob, length … ]     nodes of a list, divided like the lists of entries
//!                      └──────────────┬──────────────┘
//!   level 1      [ node, length   node, length … ]                    up to one node: the top
//! ```
//!
//! A file of more than [`MAX_WHOLE`] bytes has both: its content id, which is the same whether or not it is stored in
//! chunks (files compare equal across versions of Retake), and the id of the top node, below which its bytes are.
//! Reading checks the bytes against the content id.
//!
//! Nodes may come from another machine. Each states the number of bytes below every item, and an item that differs is
//! damaged, so a few nodes that refer to one another repeatedly are no longer than the tree says.

use std::ops::Range;
use std::sync::Arc;

use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

use super::{Node, PART};
use crate::boundary;
use crate::content::{self, Content, ContentHasher, ContentId, Kind};
use crate::object::{ObjectError, Objects, load};

/// Larger files are stored in chunks.
pub const MAX_WHOLE: u64 = 64 * 1024;
/// Maximum size of a chunk.
const MAX_CHUNK: usize = 64 * 1024;
/// Minimum size of a chunk, except for the last.
const MIN_CHUNK: usize = 4 * 1024;
/// Up to this size a boundary is rarer, from here on more frequent, so that most chunks have about this size.
const AVERAGE_CHUNK: usize = 16 * 1024;
/// Bits of the rolling hash that are zero at a boundary of a chunk below and above the average size.
const RARE: u64 = ones(16);
const FREQUENT: u64 = ones(12);
/// Average number of items of a node, at every level.
const AVERAGE: u64 = 32;
/// Every level has at most half the nodes of the level below, so no file needs more levels than this.
const MAX_LEVEL: u8 = 40;
/// Larger files are not captured, so that a few nodes of another machine that refer to one another cannot claim more.
pub const MAX_FILE: u64 = 1 << 40;

/// The number with that many high bits; those of the hash depend on the last 64 bytes.
const fn ones(bits: u32) -> u64 {
    u64::MAX << (64 - bits)
}

/// A random number for each byte. They are part of the format: other numbers give other chunks.
const GEAR: [u64; 256] = {
    let mut table = [0; 256];
    let mut state: u64 = 0;
    let mut byte = 0;
    while byte < 256 {
        // SplitMix64, from zero.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[byte] = mixed ^ (mixed >> 31);
        byte += 1;
    }
    table
};

/// Divides a stream of bytes into chunks.
#[derive(Debug, Default)]
pub struct Chunker {
    /// The beginning of a chunk whose end has not arrived yet.
    open: Vec<u8>,
    hash: u64,
}

impl Chunker {
    /// Takes the next bytes, and passes each complete chunk to `each`.
    pub fn push<E>(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = self.boundary(bytes) {
            let (chunk, rest) = bytes.split_at(end);
            if self.open.is_empty() {
                each(chunk)?;
            } else {
                self.open.extend_from_slice(chunk);
                each(&self.open)?;
                self.open.clear();
            }
            self.hash = 0;
            bytes = rest;
        }
        self.open.extend_from_slice(bytes);
        Ok(())
    }

    /// Passes the last chunk to `each`.
    pub fn finish<E>(self, each: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.open.is_empty() { Ok(()) } else { each(&self.open) }
    }

    /// Where the open chunk ends in these bytes. Otherwise the hash covers them.
    fn boundary(&mut self, bytes: &[u8]) -> Option<usize> {
        let before = self.open.len();
        let mut hash = self.hash;
        let mut scan = |range: Range<usize>, mask: u64| {
            let (start, end) = (range.start.max(before), range.end.min(before + bytes.len()));
            let slice = bytes.get(start - before..end.max(start) - before).unwrap_or_default();
            let found = slice.iter().position(|byte| {
                hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
                hash & mask == 0
            });
            found.map(|found| start - before + found + 1)
        };
        let found = scan(MIN_CHUNK..AVERAGE_CHUNK, RARE).or_else(|| scan(AVERAGE_CHUNK..MAX_CHUNK, FREQUENT));
        self.hash = hash;
        found.or_else(|| (before + bytes.len() >= MAX_CHUNK).then(|| MAX_CHUNK - before))
    }
}

/// A node of the list of chunks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    level: u8,
    items: Vec<Chunk>,
}

/// A chunk, or a node of the level below, with the number of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Chunk {
    /// Its content id.
    #[n(0)]
    pub id: ContentId,
    /// Number of bytes.
    #[n(1)]
    pub bytes: u64,
}

impl Chunks {
    /// Encodes the nodes above these chunks. `add` returns the id of a node; the last is that of the top node, which is
    /// returned.
    pub fn encode_nodes<E>(
        chunks: Vec<Chunk>,
        add: &mut impl FnMut(Vec<u8>) -> Result<ContentId, E>,
    ) -> Result<ContentId, E> {
        let mut items = chunks;
        for level in 0.. {
            let nodes = boundary::chunks(&items, AVERAGE, ends_node);
            let nodes = nodes.map(|items| {
                let node = Self { level, items: items.to_vec() };
                Ok(Chunk { id: add(content::encode(&node))?, bytes: node.bytes() })
            });
            items = nodes.collect::<Result<_, _>>()?;
            if let [top] = items[..] {
                return Ok(top.id);
            }
        }
        unreachable!("every level has at most half the nodes of the level below")
    }

    /// Number of bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        // Saturating, because an adversarial node may claim any number; such a sum is over the limit.
        self.items.iter().fold(0, |sum, item| sum.saturating_add(item.bytes))
    }

    /// The kind of the items.
    pub fn kind_of_items(&self) -> Kind {
        if self.level == 0 { Kind::Blob } else { Kind::Chunks }
    }

    /// The chunks, or the nodes of the level below.
    pub fn items(&self) -> &[Chunk] {
        &self.items
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    /// Whether the node could be part of a file, judged by its own bytes only.
    fn is_sound(&self) -> bool {
        let most = if self.level == 0 { MAX_CHUNK as u64 } else { MAX_FILE };
        self.level <= MAX_LEVEL
            && (1..=boundary::max_items(AVERAGE)).contains(&self.items.len())
            && self.items.iter().all(|item| (1..=most).contains(&item.bytes))
            && self.bytes() <= MAX_FILE
    }
}

fn ends_node(item: &Chunk) -> bool {
    boundary::hash_ends_chunk(item.id.bytes(), AVERAGE)
}

/// Reads the chunks of a file that overlap a range, in order. Stops if `each` fails.
pub(super) fn each_chunk<E: From<ObjectError>>(
    objects: &(impl Objects + ?Sized),
    top: ContentId,
    size: u64,
    range: &Range<u64>,
    each: &mut impl FnMut(u64, Arc<[u8]>) -> Result<(), E>,
) -> Result<(), E> {
    each_item(objects, top, size, range, &mut |start, item| {
        let bytes = objects.bytes(Kind::Blob, item.id)?;
        if bytes.len() as u64 != item.bytes {
            return Err(damaged(Kind::Blob, item.id).into());
        }
        each(start, bytes)
    })
}

/// Reads the nodes above the chunks that overlap a range, in order. Stops if `each` fails.
fn each_item<E: From<ObjectError>>(
    objects: &(impl Objects + ?Sized),
    top: ContentId,
    size: u64,
    range: &Range<u64>,
    each: &mut impl FnMut(u64, Chunk) -> Result<(), E>,
) -> Result<(), E> {
    let node: Chunks = load(objects, top)?;
    if node.bytes() != size {
        return Err(damaged(Kind::Chunks, top).into());
    }
    let mut start = 0;
    let mut open = vec![(node.level, node.items.into_iter())];
    while let Some((level, items)) = open.last_mut() {
        let Some(item) = items.next() else {
            open.pop();
            continue;
        };
        if start >= range.end {
            break;
        }
        if start + item.bytes <= range.start {
            start += item.bytes;
        } else if *level == 0 {
            each(start, item)?;
            start += item.bytes;
        } else {
            let below: Chunks = load(objects, item.id)?;
            if below.level + 1 != *level || below.bytes() != item.bytes {
                return Err(damaged(Kind::Chunks, item.id).into());
            }
            open.push((below.level, below.items.into_iter()));
        }
    }
    Ok(())
}

/// The chunks of a file with their ranges of bytes; none if it is not stored in chunks. Reads only the nodes.
pub fn chunk_ranges(
    objects: &(impl Objects + ?Sized),
    node: &Node,
) -> Result<Vec<(ContentId, Range<u64>)>, ObjectError> {
    let Node::File { size, chunks: Some(top), .. } = node else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    each_item(objects, *top, *size, &(0..*size), &mut |start, item| {
        found.push((item.id, start..start + item.bytes));
        Ok::<_, ObjectError>(())
    })?;
    Ok(found)
}

fn damaged(kind: Kind, id: ContentId) -> ObjectError {
    ObjectError::Damaged { kind, id }
}

/// Computes the content id of a file from its bytes, piece by piece: of a blob, or of [`super::Parts`] beyond [`PART`].
#[derive(Debug)]
pub struct FileHasher {
    parts: Vec<ContentId>,
    part: ContentHasher,
    left: u64,
}

impl Default for FileHasher {
    fn default() -> Self {
        Self { parts: Vec::new(), part: ContentHasher::new(Kind::Blob), left: PART }
    }
}

impl FileHasher {
    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                self.end_part();
            }
            let (now, rest) = bytes.split_at(bytes.len().min(self.left as usize));
            self.part.update(now);
            self.left -= now.len() as u64;
            bytes = rest;
        }
    }

    /// The content id of all bytes.
    pub fn finish(mut self) -> ContentId {
        self.end_part();
        match self.parts[..] {
            [only] => only,
            _ => ContentId::of(Kind::Parts, &content::encode(&super::Parts(self.parts))),
        }
    }

    fn end_part(&mut self) {
        let part = std::mem::replace(&mut self.part, ContentHasher::new(Kind::Blob));
        self.parts.push(part.finish());
        self.left = PART;
    }
}

impl Content for Chunks {
    const KIND: Kind = Kind::Chunks;
}

impl Encode<()> for Chunks {
    fn encode<W: encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut (),
    ) -> Result<(), encode::Error<W::Error>> {
        encoder.array(2)?.u8(self.level)?;
        self.items.encode(encoder, context)
    }
}

impl<'bytes> Decode<'bytes, ()> for Chunks {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut ()) -> Result<Self, decode::Error> {
        if decoder.array()? != Some(2) {
            return Err(decode::Error::message("a node is a level and its items"));
        }
        let node = Self { level: decoder.u8()?, items: decoder.decode_with(context)? };
        if node.is_sound() { Ok(node) } else { Err(decode::Error::message("no file has such a node")) }
    }
}
