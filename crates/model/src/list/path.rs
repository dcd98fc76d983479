//! A position in a list: the branches from the root down to one node.
//!
//! ```text
//!   step 0        [ A  B* ]            * the child that the path follows
//!   step 1        [ d  e*  f ]         below the last step: the node at the end of the path
//! ```

use super::List;
use super::cell::Cell;
use super::node::{Child, Node, open, open_root};
use crate::content::ContentId;
use crate::object::{ObjectError, Objects};

/// The path to one node, without the node itself.
#[derive(Clone)]
pub(super) struct NodePath {
    root: ContentId,
    steps: Vec<PathStep>,
}

/// One branch on the path, and the index of the child that the path follows.
#[derive(Clone)]
pub(super) struct PathStep {
    pub(super) level: u8,
    pub(super) children: Vec<Child>,
    pub(super) taken: usize,
}

impl PathStep {
    fn child(&self) -> &Child {
        &self.children[self.taken]
    }

    fn is_last(&self) -> bool {
        self.taken + 1 == self.children.len()
    }
}

impl NodePath {
    /// The path to the leaf with `position`, that leaf, and the offset in it. A position beyond the end leads
    /// to the end of the last leaf. `None` if the list is empty.
    pub(super) fn to<C: Cell>(
        objects: &(impl Objects + ?Sized),
        list: &List<C>,
        position: u64,
    ) -> Result<Option<(Self, Vec<C>, usize)>, ObjectError> {
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
                    path.steps.push(PathStep { level: branch.level, children: branch.children, taken });
                }
            }
        }
    }

    /// The content id of the node at the end of the path.
    pub(super) fn id(&self) -> ContentId {
        self.steps.last().map_or(self.root, |step| step.child().id)
    }

    /// Whether this is the first node of its level.
    pub(super) fn is_first(&self) -> bool {
        self.steps.iter().all(|step| step.taken == 0)
    }

    /// Whether this is the last node of its level.
    pub(super) fn is_last(&self) -> bool {
        self.steps.iter().all(PathStep::is_last)
    }

    /// Moves to the branch above and returns it. `None` at the root.
    pub(super) fn up(&mut self) -> Option<PathStep> {
        self.steps.pop()
    }

    /// Moves to the next node of the same level and returns it. At the last node, returns `None` without
    /// moving.
    pub(super) fn forward<C: Cell>(
        &mut self,
        objects: &(impl Objects + ?Sized),
    ) -> Result<Option<Node<C>>, ObjectError> {
        let Some(turn) = self.steps.iter().rposition(|step| !step.is_last()) else {
            return Ok(None);
        };
        self.steps[turn].taken += 1;
        self.descend(objects, turn, |_| 0).map(Some)
    }

    /// Moves to the previous node of the same level and returns it. At the first node, returns `None` without
    /// moving.
    pub(super) fn backward<C: Cell>(
        &mut self,
        objects: &(impl Objects + ?Sized),
    ) -> Result<Option<Node<C>>, ObjectError> {
        let Some(turn) = self.steps.iter().rposition(|step| step.taken > 0) else {
            return Ok(None);
        };
        self.steps[turn].taken -= 1;
        self.descend(objects, turn, |children| children.len() - 1).map(Some)
    }

    /// Descends again from the changed step to the previous depth.
    fn descend<C: Cell>(
        &mut self,
        objects: &(impl Objects + ?Sized),
        turn: usize,
        take: impl Fn(&[Child]) -> usize,
    ) -> Result<Node<C>, ObjectError> {
        let depth = self.steps.len();
        self.steps.truncate(turn + 1);
        loop {
            let step = self.steps.last().expect("the changed step remains");
            let node = open(objects, step.child(), step.level - 1)?;
            match node {
                Node::Branch(branch) if self.steps.len() < depth => {
                    let taken = take(&branch.children);
                    self.steps.push(PathStep { level: branch.level, children: branch.children, taken });
                }
                node => return Ok(node),
            }
        }
    }
}
