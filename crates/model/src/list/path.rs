//! A place in a list: the branches from the root down to one node.
//!
//! ```text
//!   step 0        [ A  B* ]            * the child that was taken
//!   step 1        [ d  e*  f ]         below the last step: the node that the path leads to
//! ```

use super::List;
use super::cell::Cell;
use super::node::{Child, Node, open, open_root};
use crate::content::ContentId;
use crate::object::{Objects, Unavailable};

/// The road to one node; the node itself is not kept here.
#[derive(Clone)]
pub(super) struct Path {
    root: ContentId,
    steps: Vec<Step>,
}

/// One branch on the road, and which of its children the road takes.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) level: u8,
    pub(super) children: Vec<Child>,
    pub(super) taken: usize,
}

impl Step {
    fn child(&self) -> &Child {
        &self.children[self.taken]
    }

    fn is_last(&self) -> bool {
        self.taken + 1 == self.children.len()
    }
}

impl Path {
    /// The road to the leaf that holds `position`, that leaf, and the offset of the position in it. A
    /// position beyond the end leads to the end of the last leaf. None if the list is empty.
    pub(super) fn to<C: Cell>(
        objects: &(impl Objects + ?Sized),
        list: &List<C>,
        position: u64,
    ) -> Result<Option<(Self, Vec<C>, usize)>, Unavailable> {
        let Some(root) = list.root else { return Ok(None) };
        let mut path = Self { root, steps: Vec::new() };
        let mut node = open_root(objects, list, root)?;
        let mut offset = position;
        loop {
            match node {
                Node::Leaf(cells) => {
                    let offset = usize::try_from(offset).map_or(cells.len(), |at| at.min(cells.len()));
                    return Ok(Some((path, cells, offset)));
                }
                Node::Branch(branch) => {
                    let mut taken = 0;
                    while taken + 1 < branch.children.len() && offset >= branch.children[taken].count {
                        offset -= branch.children[taken].count;
                        taken += 1;
                    }
                    node = open(objects, &branch.children[taken], branch.level - 1)?;
                    path.steps.push(Step { level: branch.level, children: branch.children, taken });
                }
            }
        }
    }

    /// The name of the node that the path leads to.
    pub(super) fn id(&self) -> ContentId {
        self.steps.last().map_or(self.root, |step| step.child().id)
    }

    /// Whether no node of the same level is before this one.
    pub(super) fn is_first(&self) -> bool {
        self.steps.iter().all(|step| step.taken == 0)
    }

    /// Whether no node of the same level is after this one.
    pub(super) fn is_last(&self) -> bool {
        self.steps.iter().all(Step::is_last)
    }

    /// Leads to the branch above, and gives that branch. None at the root.
    pub(super) fn up(&mut self) -> Option<Step> {
        self.steps.pop()
    }

    /// Leads to the next node of the same level, and gives that node. None, and nothing changes, at the last.
    pub(super) fn forward<C: Cell>(
        &mut self,
        objects: &(impl Objects + ?Sized),
    ) -> Result<Option<Node<C>>, Unavailable> {
        let Some(turn) = self.steps.iter().rposition(|step| !step.is_last()) else {
            return Ok(None);
        };
        self.steps[turn].taken += 1;
        self.descend(objects, turn, |_| 0).map(Some)
    }

    /// Leads to the previous node of the same level, and gives that node. None, and nothing changes, at the
    /// first.
    pub(super) fn backward<C: Cell>(
        &mut self,
        objects: &(impl Objects + ?Sized),
    ) -> Result<Option<Node<C>>, Unavailable> {
        let Some(turn) = self.steps.iter().rposition(|step| step.taken > 0) else {
            return Ok(None);
        };
        self.steps[turn].taken -= 1;
        self.descend(objects, turn, |children| children.len() - 1).map(Some)
    }

    /// Walks down again from the step that turned, as deep as before.
    fn descend<C: Cell>(
        &mut self,
        objects: &(impl Objects + ?Sized),
        turn: usize,
        take: impl Fn(&[Child]) -> usize,
    ) -> Result<Node<C>, Unavailable> {
        let depth = self.steps.len();
        self.steps.truncate(turn + 1);
        loop {
            let step = self.steps.last().expect("the step that turned is still there");
            let node = open(objects, step.child(), step.level - 1)?;
            match node {
                Node::Branch(branch) if self.steps.len() < depth => {
                    let taken = take(&branch.children);
                    self.steps.push(Step { level: branch.level, children: branch.children, taken });
                }
                node => return Ok(node),
            }
        }
    }
}
