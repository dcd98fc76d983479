//! Differences between two lists, found by comparing the content ids of nodes from the top down.
//!
//! At each level the two sides are two runs of content ids. Ids that both have in the same order are shared,
//! including everything below them, and are never opened; the rest are gaps. The nodes in a gap are opened,
//! which gives two shorter runs of the level below, until the runs are cells. The taller list is first
//! expanded down to the level of the other.
//!
//! ```text
//!   old  [ A  B  C  D ]      gap: B against X        then the children of B against those of X,
//!   new  [ A  X  C  D ]      A, C, D never opened    then the cells
//! ```

use similar::{Algorithm, DiffTag, capture_diff_slices_by_key};

use super::List;
use super::cell::Cell;
use super::chunk::Item;
use super::node::{Child, Node, damaged, open, open_root};
use crate::object::{ObjectError, Objects};

/// A range where two lists differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<C> {
    /// Start of the removed cells in the old list.
    pub old_start: u64,
    /// Start of the added cells in the new list.
    pub new_start: u64,
    /// Cells of the old list that the new list does not have there.
    pub removed: Vec<C>,
    /// Cells of the new list that the old list does not have there.
    pub added: Vec<C>,
}

impl<C: Cell> List<C> {
    /// The hunks between two lists, in order; no two hunks touch.
    pub fn diff<O: Objects + ?Sized>(
        objects: &O,
        old: &Self,
        new: &Self,
    ) -> Result<Vec<Hunk<C>>, ObjectError> {
        if old == new {
            return Ok(Vec::new());
        }
        let (mut old_level, mut old_nodes) = top(objects, old)?;
        let (mut new_level, mut new_nodes) = top(objects, new)?;
        while old_level > new_level {
            old_nodes = open_all::<C, Child, O>(objects, &old_nodes, old_level)?;
            old_level -= 1;
        }
        while new_level > old_level {
            new_nodes = open_all::<C, Child, O>(objects, &new_nodes, new_level)?;
            new_level -= 1;
        }
        let mut gaps = vec![Gap { old_start: 0, new_start: 0, old: old_nodes, new: new_nodes }];
        for level in (1..=old_level).rev() {
            gaps = below::<C, Child, O>(objects, gaps, level)?;
        }
        let gaps = below::<C, C, O>(objects, gaps, 0)?.into_iter().flat_map(Gap::narrowed::<C>);
        Ok(joined(gaps))
    }
}

/// Two runs of items of one level at the same position in the two lists.
struct Gap<T> {
    old_start: u64,
    new_start: u64,
    old: Vec<T>,
    new: Vec<T>,
}

/// The root of a list as a run of one node, and its level.
fn top<C: Cell, O: Objects + ?Sized>(objects: &O, list: &List<C>) -> Result<(u8, Vec<Child>), ObjectError> {
    let Some(root) = list.root else {
        return Ok((0, Vec::new()));
    };
    let node: Node<C> = open_root(objects, list, root)?;
    Ok((node.level(), vec![node.summary(root)]))
}

fn open_all<C: Cell, T: Item<C>, O: Objects + ?Sized>(
    objects: &O,
    nodes: &[Child],
    level: u8,
) -> Result<Vec<T>, ObjectError> {
    let mut items = Vec::new();
    for node in nodes {
        items.extend(T::of_node(open(objects, node, level)?).ok_or_else(|| damaged::<C>(node.id))?);
    }
    Ok(items)
}

/// Narrows the gaps between nodes of `level` to gaps one level down.
fn below<C: Cell, T: Item<C>, O: Objects + ?Sized>(
    objects: &O,
    gaps: Vec<Gap<Child>>,
    level: u8,
) -> Result<Vec<Gap<T>>, ObjectError> {
    gaps.into_iter()
        .flat_map(Gap::narrowed::<C>)
        .map(|gap| {
            Ok(Gap {
                old_start: gap.old_start,
                new_start: gap.new_start,
                old: open_all(objects, &gap.old, level)?,
                new: open_all(objects, &gap.new, level)?,
            })
        })
        .collect()
}

impl<T> Gap<T> {
    /// Splits this gap into the parts that differ.
    fn narrowed<C: Cell>(self) -> Vec<Self>
    where
        T: Item<C>,
    {
        // Most gaps are one changed item among equal ones. This detects them without hashing.
        let same = |(old, new): &(&T, &T)| old == new;
        let prefix = self.old.iter().zip(&self.new).take_while(same).count();
        let (old, new) = (&self.old[prefix..], &self.new[prefix..]);
        let suffix = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
        let (old, new) = (&old[..old.len() - suffix], &new[..new.len() - suffix]);

        let mut old_start = self.old_start + cells_in::<C, T>(&self.old[..prefix]);
        let mut new_start = self.new_start + cells_in::<C, T>(&self.new[..prefix]);
        let mut gaps = Vec::new();
        let identity = |item: &T| minicbor::to_vec(item).expect("encoding into memory cannot fail");
        for operation in capture_diff_slices_by_key(Algorithm::Myers, old, new, identity) {
            let (tag, old_range, new_range) = operation.as_tag_tuple();
            let gap =
                Self { old_start, new_start, old: old[old_range].to_vec(), new: new[new_range].to_vec() };
            old_start += cells_in::<C, T>(&gap.old);
            new_start += cells_in::<C, T>(&gap.new);
            if tag != DiffTag::Equal {
                gaps.push(gap);
            }
        }
        gaps
    }
}

fn cells_in<C: Cell, T: Item<C>>(items: &[T]) -> u64 {
    items.iter().map(Item::count).sum()
}

/// Converts gaps between cells to hunks and joins gaps that touch.
fn joined<C>(gaps: impl Iterator<Item = Gap<C>>) -> Vec<Hunk<C>> {
    let mut hunks: Vec<Hunk<C>> = Vec::new();
    for Gap { old_start, new_start, old, new } in gaps {
        match hunks.last_mut() {
            Some(hunk)
                if hunk.old_start + hunk.removed.len() as u64 == old_start
                    && hunk.new_start + hunk.added.len() as u64 == new_start =>
            {
                hunk.removed.extend(old);
                hunk.added.extend(new);
            }
            _ => hunks.push(Hunk { old_start, new_start, removed: old, added: new }),
        }
    }
    hunks
}
