//! Replay: taking changes of files back, or making them again, on top of whatever is there now.
//!
//! Each change is a step from one snapshot to another, and owns only the paths that differ between the two.
//! The steps are carried over to the present files one after the other, path by path:
//!
//! ```text
//!   undo of  a ──► b  (the step from b to a)        the file is b now      ──► a
//!                                                   it is a already        ──► nothing to do
//!                                                   someone made it b'     ──► merge of a and b' over b
//!                                                   that does not merge    ──► it stays b'; a conflict, with both
//! ```
//!
//! A move straight back over another move (a redo after an undo) is exact: it brings back what that move changed, and
//! leaves alone what it left alone. What the user did to such a file in between, reverting or deleting it included, is
//! the user's change and stays:
//!
//! ```text
//!   redo of  a ──► b  after an undo that left the file alone     it is as the undo left it   ──► it stays
//!                                                                the user changed it since   ──► it stays; a conflict
//! ```
//!
//! Paths that no step touches are not touched, whoever changed them since. A path that conflicts once is left
//! alone by the steps that follow. A folder goes only when nothing is left in it, and nothing is put where
//! someone has made a file of a folder, or a folder of a file.

mod path;
mod sealed;
mod selection;
mod settle;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::content::ContentId;
use crate::merge::Labels;
use crate::object::{Additions, Objects, Unavailable, load};
use crate::path::{RootPath, TreePath};
use crate::tree::{LeftOut, Node, Reason, Snapshot, SnapshotRoot, TreeCursor, compare, differences, graft};

use selection::Selection;

/// A change of files that is to be carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The snapshot that it starts from.
    pub from: ContentId,
    /// The snapshot that it leads to.
    pub to: ContentId,
    /// Whether the two are of different folders: a sealed file stays in its folder, so that one folder's list of them
    /// says nothing about the other.
    pub between_folders: bool,
}

impl Step {
    /// A step between two snapshots of one folder.
    pub fn new(from: ContentId, to: ContentId) -> Self {
        Self { from, to, between_folders: false }
    }

    /// A step from a snapshot of one folder to a snapshot of another.
    pub fn between_folders(from: ContentId, to: ContentId) -> Self {
        Self { from, to, between_folders: true }
    }
}

/// All that is to be carried over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Steps back over the moves that led here from just where this one leads, newest first: they say the last word on every
    /// path that they touch, and, unless conflicts are to be decided, no other path changes.
    pub back: Vec<Step>,
    /// The steps for all other paths, in order.
    pub steps: Vec<Step>,
}

impl Way {
    /// Whether the step of that number is one of those that have no say where moves are gone back over.
    fn is_exact(&self, number: usize) -> bool {
        !self.back.is_empty() && number >= self.back.len()
    }
}

/// What to do with a file that two changed differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Leave the file as it is.
    #[default]
    Keep,
    /// Take the other version; what was there is in the snapshot that was taken before.
    Take,
    /// Write both versions into the file, marked; leave it as it is where it is not text.
    Mark,
}

/// What is to become of the present files.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The files as they are to be; what is new of it is in the additions.
    pub snapshot: Snapshot,
    /// Each path that a step touches, in order.
    pub paths: Vec<ReplayedPath>,
}

/// What is to become of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedPath {
    /// Which.
    pub path: RootPath,
    /// What is there.
    pub present: Option<Node>,
    /// What is to be there.
    pub wanted: Option<Node>,
    /// How that came about.
    pub how: How,
}

/// How the wanted content of a path came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It was as the step expected, or is already as the step leaves it.
    Exact,
    /// Someone had changed it since, and both changes stand.
    Merged,
    /// A step left it out on one side, so that it is not known what the step did to it; it stays as it is.
    NotHeld(Reason),
    /// Someone had changed it since in a way that does not go together.
    Conflict {
        /// What the step would have put there.
        theirs: Option<Node>,
    },
}

/// Carries steps over to the present files, in order.
pub fn replay<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    way: &Way,
    on_conflict: OnConflict,
    labels: Labels<'_>,
) -> Result<Replayed, Unavailable> {
    let mut touched: BTreeMap<RootPath, Touched> = BTreeMap::new();
    let mut unknown: BTreeMap<RootPath, Reason> = BTreeMap::new();
    // Paths that the other move left alone, and what the steps would have made of them.
    let mut passed_over: BTreeMap<RootPath, Option<Node>> = BTreeMap::new();
    for (number, step) in way.back.iter().chain(&way.steps).enumerate() {
        if number == way.back.len() {
            for touched in touched.values_mut() {
                touched.settled = true;
            }
        }
        let (from, to): (Snapshot, Snapshot) = (load(additions, step.from)?, load(additions, step.to)?);
        for root in &present.roots {
            // A root that one side does not know was not changed by the step.
            let (Some(before), Some(after)) = (from.root(&root.name), to.root(&root.name)) else { continue };
            let compared = compare(additions, Some(before), Some(after))?;
            let here = |path| RootPath { root: root.name.clone(), path };
            unknown.extend(compared.unknown.into_iter().map(|(path, reason)| (here(path), reason)));
            let mut now = TreeCursor::new(root.tree);
            // A captured file that became too large, say: what replaced it is not held, and what it was is.
            let restorable = compared.excluded.into_iter().filter(|difference| difference.before.is_none());
            let mut differences: Vec<_> = compared.known.into_iter().chain(restorable).collect();
            differences.sort_by(|left, right| left.path.cmp(&right.path));
            for difference in differences {
                // Whoever wants conflicts decided gets them decided, also those that the other move left alone.
                if way.is_exact(number) && on_conflict == OnConflict::Keep {
                    let path = here(difference.path);
                    if !touched.contains_key(&path) {
                        passed_over.insert(path, difference.after);
                    }
                    continue;
                }
                path::carry(additions, root, &mut now, &mut touched, difference, on_conflict, labels)?;
            }
        }
    }
    if let Some(newest) = way.back.first() {
        let left = load(additions, newest.from)?;
        path::report_changed(additions, present, &left, passed_over, &mut touched)?;
    }
    settle::settle(additions, present, &mut touched)?;
    let mut snapshot = with_paths(additions, present, &touched)?;
    let mut paths: Vec<ReplayedPath> = touched
        .into_iter()
        .map(|(path, touched)| ReplayedPath {
            path,
            present: touched.present,
            wanted: touched.wanted,
            how: touched.how,
        })
        .collect();
    name_excluded(additions, present, &mut paths)?;
    paths.extend(sealed::carry(additions, present, &mut snapshot, way, on_conflict)?);
    paths.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(Replayed { snapshot, paths: with_unknown(paths, unknown) })
}

/// Names the paths that the steps would leave empty, and where something stands now that is not captured: it stays.
fn name_excluded<O: Objects + ?Sized>(
    additions: &Additions<'_, O>,
    present: &Snapshot,
    paths: &mut [ReplayedPath],
) -> Result<(), Unavailable> {
    for root in &present.roots {
        let Some(id) = root.left_out else { continue };
        let left_out: LeftOut = load(additions, id)?;
        let here = paths.iter_mut().filter(|path| path.path.root == root.name);
        for path in here.filter(|path| path.present.is_none() && path.wanted.is_none()) {
            if let (How::Exact, Some(found)) = (&path.how, left_out.covering(&path.path.path.bytes())) {
                path.how = How::NotHeld(found.reason);
            }
        }
    }
    Ok(())
}

/// The paths, which are in order, and those that a step may have touched as well.
fn with_unknown(mut paths: Vec<ReplayedPath>, mut unknown: BTreeMap<RootPath, Reason>) -> Vec<ReplayedPath> {
    unknown.retain(|path, _| paths.binary_search_by(|known| known.path.cmp(path)).is_err());
    paths.extend(unknown.into_iter().map(|(path, reason)| ReplayedPath {
        path,
        present: None,
        wanted: None,
        how: How::NotHeld(reason),
    }));
    paths.sort_by(|left, right| left.path.cmp(&right.path));
    paths
}

/// The present files with some paths exactly as they are in another snapshot, and the paths that differ. No
/// path: all of them.
pub fn take_over<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    target: &Snapshot,
    only: &[RootPath],
) -> Result<Replayed, Unavailable> {
    let selection = Selection::new(only);
    let mut touched = BTreeMap::new();
    let mut unknown: BTreeMap<RootPath, Reason> = BTreeMap::new();
    for root in &present.roots {
        let Some(wanted) = target.root(&root.name) else { continue };
        let here = |path| RootPath { root: root.name.clone(), path };
        let compared = compare(additions, Some(root), Some(wanted))?;
        let unheld = compared.unknown.into_iter().map(|(path, reason)| (here(path), reason));
        unknown.extend(unheld.filter(|(path, _)| selection.covers(path) || selection.is_below(path)));
        // What is excluded now and was captured then comes back: a file that became too large, say.
        let restorable = compared.excluded.into_iter().filter(|difference| difference.before.is_none());
        for difference in compared.known.into_iter().chain(restorable) {
            let path = here(difference.path);
            // A folder on the way to what is wanted comes along if it is not there.
            let on_the_way = difference.before.is_none() && selection.is_below(&path);
            if selection.covers(&path) || on_the_way {
                let (present, wanted) = (difference.before, difference.after);
                touched.insert(path, Touched { present, wanted, how: How::Exact, settled: false });
            }
        }
    }
    settle::settle(additions, present, &mut touched)?;
    let mut snapshot = with_paths(additions, present, &touched)?;
    let mut paths: Vec<ReplayedPath> = touched
        .into_iter()
        .map(|(path, Touched { present, wanted, how, .. })| ReplayedPath { path, present, wanted, how })
        .collect();
    paths.extend(sealed::take_over(additions, present, target, &mut snapshot, &selection)?);
    paths.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(Replayed { snapshot, paths: with_unknown(paths, unknown) })
}

/// A path as the steps so far leave it.
#[derive(Clone, Debug)]
struct Touched {
    present: Option<Node>,
    wanted: Option<Node>,
    how: How,
    /// No further step is to touch it.
    settled: bool,
}

impl Touched {
    fn is_settled(&self) -> bool {
        self.settled || matches!(self.how, How::Conflict { .. })
    }
}

/// Whether two things are the same as far as one path is concerned: what is in a folder has paths of its own.
fn same(left: Option<&Node>, right: Option<&Node>) -> bool {
    match (left, right) {
        (Some(Node::Folder { mode: left, .. }), Some(Node::Folder { mode: right, .. })) => left == right,
        _ => left == right,
    }
}

/// The snapshot with what is wanted at each path.
pub fn graft_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    paths: &BTreeMap<RootPath, Option<Node>>,
) -> Result<Snapshot, Unavailable> {
    let mut roots = Vec::with_capacity(present.roots.len());
    for root in &present.roots {
        let here: BTreeMap<TreePath, Option<Node>> = paths
            .iter()
            .filter(|(path, _)| path.root == root.name)
            .map(|(path, node)| (path.path.clone(), node.clone()))
            .collect();
        if here.is_empty() {
            roots.push(root.clone());
            continue;
        }
        let tree = graft(additions, root.tree, &here)?;
        let left_out = without(additions, root.left_out, &here)?;
        roots.push(SnapshotRoot { left_out, ..counted_again(additions, root, tree)? });
    }
    Ok(Snapshot { roots })
}

/// What is excluded, without the paths where something captured stands now.
fn without<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    list_id: Option<ContentId>,
    paths: &BTreeMap<TreePath, Option<Node>>,
) -> Result<Option<ContentId>, Unavailable> {
    let Some(id) = list_id else { return Ok(None) };
    let mut excluded: LeftOut = load(additions, id)?;
    let count = excluded.0.len();
    excluded.0.retain(|excluded| {
        !TreePath::new(&excluded.path).is_ok_and(|path| paths.get(&path).is_some_and(Option::is_some))
    });
    Ok(match excluded.0.len() {
        0 => None,
        left if left == count => list_id,
        _ => Some(additions.add(&excluded)),
    })
}

/// The root with another tree, its counts carried along.
fn counted_again(
    objects: &(impl Objects + ?Sized),
    root: &SnapshotRoot,
    tree: ContentId,
) -> Result<SnapshotRoot, Unavailable> {
    let (mut files, mut bytes) = (root.files, root.bytes);
    for difference in differences(objects, Some(root.tree), Some(tree))? {
        let (gone, come) = (weight(difference.before.as_ref()), weight(difference.after.as_ref()));
        files = (files + come.0).saturating_sub(gone.0);
        bytes = (bytes + come.1).saturating_sub(gone.1);
    }
    Ok(SnapshotRoot { tree, files, bytes, ..root.clone() })
}

fn weight(node: Option<&Node>) -> (u64, u64) {
    match node {
        Some(Node::File { size, .. }) => (1, *size),
        Some(Node::Link { .. }) => (1, 0),
        Some(Node::Folder { .. }) | None => (0, 0),
    }
}

fn with_paths<O: Objects + ?Sized>(
    additions: &mut Additions<'_, O>,
    present: &Snapshot,
    touched: &BTreeMap<RootPath, Touched>,
) -> Result<Snapshot, Unavailable> {
    let mut changes = BTreeMap::new();
    for (path, touched) in touched {
        if !same(touched.present.as_ref(), touched.wanted.as_ref()) {
            changes.insert(path.clone(), settle::as_grafted(additions, touched));
        }
    }
    graft_paths(additions, present, &changes)
}
