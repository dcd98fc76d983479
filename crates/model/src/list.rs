//! An immutable list with cheap edits, forks and comparisons at any length.
//!
//! The cells of a list are split into chunks. Each chunk is stored as one node, addressed by its content. A
//! summary of each node (content id, number of cells, span of keys) is an item of the level above, which is
//! split in the same way, until one node remains: the root.
//!
//! ```text
//!   level 2                      [ A  B ]                        root: the first level of one node
//!                              ┌───┘  └────┐
//!   level 1              [ a  b  c ]     [ d  e ]                children: content id, count, span of keys
//!                       ┌──┘  │  └──┐      │  └──┐
//!   level 0          [··│] [···│] [·│]  [····│] [··]             leaves: the cells themselves
//!
//!   │ a cell whose hash marks the end of a chunk: about one in `Cell::AVERAGE`
//! ```
//!
//! A chunk boundary depends only on the cells of the chunk. So a change affects its chunk, sometimes the
//! next, and their ancestors; the old and the new list share all other nodes. Equal cells also have the same
//! root regardless of how they were written, so comparing two lists means comparing content ids and opening
//! only nodes that differ ([`diff`](List::diff)). A fork copies the content id of the root.
//!
//! Two limits make this hold for any content, even adversarial content: a chunk has at most eight times the
//! average number of cells, and never ends after its first cell, so that every level has at most half as many
//! nodes as the level below.
//!
//! All code here reads through [`Objects`] and adds new nodes to [`Additions`]. Nodes may come from another
//! machine: each is checked against its summary in the parent node, and a mismatch is reported as
//! `ObjectError::Damaged`.
//!
//! These checks do not detect nodes that refer to the same node repeatedly and so describe a list far longer
//! than its stored nodes. They also do not detect cells chosen so that chunk boundaries never realign after a
//! change, which then rewrites the rest of the list. `MAX_CELLS` bounds the work in both cases. Code that
//! imports lists uses a [`CheckedList`] to reject repeated nodes and wrong chunk boundaries.

mod cell;
mod check;
mod chunk;
mod diff;
mod node;
mod path;
mod read;
mod splice;
mod visit;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};

use crate::content::ContentId;
use crate::object::{Additions, Objects};

pub use cell::{Cell, EntryCell, TakeCell};
pub use check::{CheckedList, InvalidListError, ListDelta};
pub use diff::Hunk;
pub use node::{NodeContents, parse_node};
pub use read::{Backward, Forward};

/// Maximum number of cells of a list, about 16 million: far more than a conversation has, and few enough that
/// an imported list, which may consist of few nodes, cannot occupy a machine for long.
pub const MAX_CELLS: u64 = 1 << 24;

/// An immutable list of cells; a small value that is cheap to copy.
///
/// Two lists are equal if and only if they contain the same cells.
pub struct List<C> {
    root: Option<ContentId>,
    count: u64,
    cells: PhantomData<fn() -> C>,
}

impl<C> List<C> {
    /// The empty list.
    pub const fn empty() -> Self {
        Self { root: None, count: 0, cells: PhantomData }
    }

    /// Number of cells.
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether the list has no cells.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Content id of the root node; `None` if the list is empty.
    pub const fn root(&self) -> Option<ContentId> {
        self.root
    }

    const fn rooted(root: ContentId, count: u64) -> Self {
        Self { root: Some(root), count, cells: PhantomData }
    }
}

impl<C: Cell> List<C> {
    /// Builds a list from cells.
    pub fn from_cells<O: Objects + ?Sized>(
        additions: &mut Additions<'_, O>,
        cells: impl IntoIterator<Item = C>,
    ) -> Self {
        let mut leaves = chunk::Chunker::new(0);
        let mut count = 0;
        for cell in cells {
            leaves.push(additions, cell);
            count += 1;
        }
        let leaves = leaves.finish(additions);
        match chunk::build_levels::<C, O>(additions, 0, leaves) {
            Some(root) => Self::rooted(root, count),
            None => Self::empty(),
        }
    }
}

impl<C> Clone for List<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for List<C> {}

impl<C> PartialEq for List<C> {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root && self.count == other.count
    }
}

impl<C> Eq for List<C> {}

impl<C> Hash for List<C> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.root.hash(hasher);
    }
}

impl<C> Default for List<C> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<C> fmt::Debug for List<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("List").field("root", &self.root).field("count", &self.count).finish()
    }
}

/// Encoded as `[]` if empty, else as `[root, count]`, so that an empty list has only one form.
impl<C, Context> Encode<Context> for List<C> {
    fn encode<W: encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut Context,
    ) -> Result<(), encode::Error<W::Error>> {
        match &self.root {
            None => encoder.array(0)?.ok(),
            Some(root) => {
                encoder.array(2)?.encode_with(root, context)?.u64(self.count)?;
                Ok(())
            }
        }
    }
}

impl<'bytes, C, Context> Decode<'bytes, Context> for List<C> {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut Context) -> Result<Self, decode::Error> {
        match decoder.array()? {
            Some(0) => Ok(Self::empty()),
            Some(2) => {
                let root = decoder.decode_with(context)?;
                let count = decoder.u64()?;
                if (1..=MAX_CELLS).contains(&count) {
                    Ok(Self::rooted(root, count))
                } else {
                    Err(decode::Error::message("a list with a root has some cells, and not too many"))
                }
            }
            _ => Err(decode::Error::message("a list is a root and a count, or nothing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Encode, Decode)]
    struct Holder {
        #[n(0)]
        first: List<EntryCell>,
        #[n(1)]
        second: List<TakeCell>,
    }

    #[test]
    fn lists_can_be_fields_of_derived_structs() {
        let holder =
            Holder { first: List::empty(), second: List::rooted(ContentId::from_bytes([7; 32]), 300) };
        let bytes = minicbor::to_vec(&holder).expect("encoding into memory cannot fail");
        assert_eq!(minicbor::decode::<Holder>(&bytes).expect("just encoded"), holder);
    }

    #[test]
    fn a_root_without_cells_is_refused() {
        for count in [0, MAX_CELLS + 1, u64::MAX] {
            let list = List::<TakeCell>::rooted(ContentId::from_bytes([7; 32]), count);
            let bytes = minicbor::to_vec(list).expect("encoding into memory cannot fail");
            assert!(minicbor::decode::<List<TakeCell>>(&bytes).is_err(), "{count}");
        }
    }
}
