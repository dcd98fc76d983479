//! Nodes: leaves with cells, and branches with children.
//!
//! A node is encoded as `[level, items]`, where level 0 is a leaf. A branch has a summary of each child;
//! opening a child checks it against that summary.

use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

use super::cell::Cell;
use super::chunk::{is_one_chunk, max_items};
use super::{List, MAX_CELLS};
use crate::content::{self, Content, ContentId, Kind, MalformedError};
use crate::object::{ObjectError, Objects, load};

/// Every level has at most half the nodes of the level below, so no list needs more levels than this.
const MAX_LEVEL: u8 = 64;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<C> {
    Leaf(Vec<C>),
    Branch(Branch),
}

/// A node whose children are nodes one level below.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Branch {
    pub(super) level: u8,
    pub(super) children: Vec<Child>,
}

/// The summary of a child in its branch.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub(super) struct Child {
    #[n(0)]
    pub(super) id: ContentId,
    /// Number of cells in all leaves below.
    #[n(1)]
    pub(super) count: u64,
    /// The smallest key prefix below.
    #[n(2)]
    pub(super) low: u64,
    /// The largest key prefix below.
    #[n(3)]
    pub(super) high: u64,
}

/// The decoded items of a node, for importers and verification, which process nodes one by one.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeContents<C> {
    /// The cells of a leaf.
    Cells(Vec<C>),
    /// The child nodes of a branch, of the same kind.
    Nodes(Vec<ContentId>),
}

/// Decodes a node and checks that the bytes are canonical and form a valid chunk.
///
/// Children are checked against their summaries when they are opened. Whether the boundary is right for the
/// position of the node is checked with the [whole list](super::CheckedList).
pub fn parse_node<C: Cell>(bytes: &[u8]) -> Result<NodeContents<C>, MalformedError> {
    let node: Node<C> = content::decode(bytes)?;
    let (contents, well_chunked) = match node {
        Node::Leaf(cells) => {
            let well_chunked = is_one_chunk::<C, C>(&cells, true);
            (NodeContents::Cells(cells), well_chunked)
        }
        Node::Branch(Branch { children, .. }) => {
            let well_chunked = is_one_chunk::<C, Child>(&children, true);
            (NodeContents::Nodes(children.iter().map(|child| child.id).collect()), well_chunked)
        }
    };
    if well_chunked { Ok(contents) } else { Err(MalformedError { kind: C::KIND }) }
}

/// The prefix of a key that spans consist of.
pub(super) fn key_start(key: &[u8; 16]) -> u64 {
    let mut start = [0; 8];
    start.copy_from_slice(&key[..8]);
    u64::from_be_bytes(start)
}

/// Opens a node of `level` and checks it against its summary in the branch above.
pub(super) fn open<C: Cell>(
    objects: &(impl Objects + ?Sized),
    child: &Child,
    level: u8,
) -> Result<Node<C>, ObjectError> {
    let node: Node<C> = load(objects, child.id)?;
    if node.level() == level && node.summary(child.id) == *child {
        Ok(node)
    } else {
        Err(damaged::<C>(child.id))
    }
}

/// Opens the root of a list that is not empty, and checks it against the list.
pub(super) fn open_root<C: Cell>(
    objects: &(impl Objects + ?Sized),
    list: &List<C>,
    root: ContentId,
) -> Result<Node<C>, ObjectError> {
    let node: Node<C> = load(objects, root)?;
    let lonely = matches!(&node, Node::Branch(branch) if branch.children.len() < 2);
    if node.summary(root).count == list.count && !lonely { Ok(node) } else { Err(damaged::<C>(root)) }
}

pub(super) fn damaged<C: Cell>(id: ContentId) -> ObjectError {
    ObjectError::Damaged { kind: C::KIND, id }
}

impl<C: Cell> Node<C> {
    pub(super) fn level(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Branch(branch) => branch.level,
        }
    }

    /// The summary of this node for the branch above.
    pub(super) fn summary(&self, id: ContentId) -> Child {
        let mut summary = Child { id, count: 0, low: u64::MAX, high: 0 };
        let mut include = |count, low: u64, high: u64| {
            // Saturating, because an adversarial node may claim any count; such a sum is over the limit.
            summary.count = summary.count.saturating_add(count);
            summary.low = summary.low.min(low);
            summary.high = summary.high.max(high);
        };
        match self {
            Self::Leaf(cells) => {
                for start in cells.iter().map(|cell| key_start(cell.key())) {
                    include(1, start, start);
                }
            }
            Self::Branch(branch) => {
                for child in &branch.children {
                    include(child.count, child.low, child.high);
                }
            }
        }
        summary
    }

    /// Whether the node could be part of a valid list, judged by its own bytes only.
    fn is_sound(&self) -> bool {
        let items = match self {
            Self::Leaf(cells) => cells.len(),
            Self::Branch(branch) => branch.children.len(),
        };
        let filled = match self {
            Self::Leaf(_) => true,
            Self::Branch(branch) => branch.children.iter().all(|child| child.count > 0),
        };
        (1..=max_items::<C>()).contains(&items)
            && filled
            && self.level() <= MAX_LEVEL
            && self.summary(ContentId::from_bytes([0; 32])).count <= MAX_CELLS
    }
}

impl<C: Cell> Content for Node<C> {
    const KIND: Kind = C::KIND;
}

impl<C: Cell> Encode<()> for Node<C> {
    fn encode<W: encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut (),
    ) -> Result<(), encode::Error<W::Error>> {
        encoder.array(2)?.u8(self.level())?;
        match self {
            Self::Leaf(cells) => cells.encode(encoder, context),
            Self::Branch(branch) => branch.children.encode(encoder, context),
        }
    }
}

impl<'bytes, C: Cell> Decode<'bytes, ()> for Node<C> {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut ()) -> Result<Self, decode::Error> {
        if decoder.array()? != Some(2) {
            return Err(decode::Error::message("a node is a level and its items"));
        }
        let node = match decoder.u8()? {
            0 => Self::Leaf(decoder.decode_with(context)?),
            level => Self::Branch(Branch { level, children: decoder.decode_with(context)? }),
        };
        if node.is_sound() { Ok(node) } else { Err(decode::Error::message("no list has such a node")) }
    }
}
