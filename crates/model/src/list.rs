//! An immutable list that is cheap to change, to fork and to compare, however long it is.
//!
//! The cells of a list are cut into chunks; each chunk is stored as one node, named by its content; what is
//! known of each node (name, number of cells, span of keys) is a cell of the level above, which is cut in
//! the same way, until one node is left: the root.
//!
//! ```text
//!   level 2                      [ A  B ]                        root: the first level of one node
//!                              ┌───┘  └────┐
//!   level 1              [ a  b  c ]     [ d  e ]                children: name, count, span of keys
//!                       ┌──┘  │  └──┐      │  └──┐
//!   level 0          [··│] [···│] [·│]  [····│] [··]             leaves: the cells themselves
//!
//!   │ a cell whose hash says "a chunk ends here": about one in `Cell::AVERAGE`
//! ```
//!
//! Where a chunk ends depends on the cells in it and on nothing else. So a change disturbs the chunk that it
//! falls in, sometimes the next, and their ancestors: a handful of nodes, all others are shared between the
//! old list and the new. So also the same cells have the same root however they came about, which makes
//! comparing two lists a matter of comparing names and opening only what differs ([`diff`](List::diff)). A
//! fork is a copy of the root's name.
//!
//! Two limits make this hold for any content, also for content that was made to break it: a chunk has at
//! most eight times the average number of cells, and never ends after its first cell, so that every level
//! has at most half as many nodes as the level below.
//!
//! Everything here reads through [`Objects`] and leaves new nodes in [`Additions`]. Nodes may come from
//! elsewhere: each is checked against what the node above says of it, and a contradiction is reported as
//! [`Unavailable::Damaged`](crate::object::Unavailable::Damaged).
//!
//! What such checks cannot see: nodes that refer to the same node again and again, and so describe a list far
//! longer than what is stored. Nor can they see cells that were chosen so that chunks never end together
//! again after a change, which then rewrites the rest of the list. [`MOST_CELLS`] bounds the work in both
//! cases; who takes in lists from elsewhere refuses the first, and lists that are cut elsewhere than they
//! should be, with a [`CheckedList`].

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
pub use check::{BadList, CheckedList, Turnover};
pub use diff::Hunk;
pub use node::{NodeContents, parse_node};
pub use read::{Backward, Forward};

/// The most cells that a list can have, some 16 million: far more than a conversation has, and few enough
/// that a list from elsewhere, which may be made of few nodes, cannot keep a machine busy for long.
pub const MOST_CELLS: u64 = 1 << 24;

/// An immutable list of cells; a small value that is copied freely.
///
/// Two lists are equal if and only if they hold the same cells.
pub struct List<C> {
    root: Option<ContentId>,
    count: u64,
    cells: PhantomData<fn() -> C>,
}

impl<C> List<C> {
    /// The list without cells.
    pub const fn empty() -> Self {
        Self { root: None, count: 0, cells: PhantomData }
    }

    /// How many cells there are.
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no cells.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The name of the topmost node; none if the list is empty.
    pub const fn root(&self) -> Option<ContentId> {
        self.root
    }

    /// The list of that many cells with that root.
    const fn rooted(root: ContentId, count: u64) -> Self {
        Self { root: Some(root), count, cells: PhantomData }
    }
}

impl<C: Cell> List<C> {
    /// The list of these cells.
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
        match chunk::grow::<C, O>(additions, 0, leaves) {
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

/// `[]` for the empty list, else `[root, count]`: an empty list has one form only.
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
                if (1..=MOST_CELLS).contains(&count) {
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
    fn a_list_is_a_field_of_a_derived_struct() {
        let holder =
            Holder { first: List::empty(), second: List::rooted(ContentId::from_bytes([7; 32]), 300) };
        let bytes = minicbor::to_vec(&holder).expect("encoding into memory cannot fail");
        assert_eq!(minicbor::decode::<Holder>(&bytes).expect("just encoded"), holder);
    }

    #[test]
    fn a_root_without_cells_is_refused() {
        for count in [0, MOST_CELLS + 1, u64::MAX] {
            let list = List::<TakeCell>::rooted(ContentId::from_bytes([7; 32]), count);
            let bytes = minicbor::to_vec(list).expect("encoding into memory cannot fail");
            assert!(minicbor::decode::<List<TakeCell>>(&bytes).is_err(), "{count}");
        }
    }
}
