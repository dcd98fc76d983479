//! Attributes changes in a folder in which something is running.
//!
//! ```text
//!   nothing runs                          the user
//!   `write` and `edit` run                the paths in their calls are theirs; the rest as if they did not run
//!   one command or shell tool runs        that run
//!   several run at once                   shared: the author is unknown, and an undo asks first
//!   it was killed before it recorded      that run, but shared: the user may have made the change since
//! ```

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::id::TurnId;
use retake_model::intent::FolderRun;
use retake_model::object::{Additions, load};
use retake_model::path::RootPath;
use retake_model::replay::graft_paths;
use retake_model::sealed::{SealedFiles, sealed_of};
use retake_model::tree::{Node, Snapshot, SnapshotCursor, Tree};
use retake_store::{Queries, StoreError, WriteTransaction};

use super::report::PathReport;
use crate::clock::Clock;

/// The author of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user.
    User,
    /// A running or crashed command or tool.
    Run(FolderRun),
    /// The recording caller.
    Caller,
}

/// Changes with the same author.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) owner: Owner,
    /// Other runs that may have made them; empty if the author is certain.
    pub(super) others: Vec<FolderRun>,
    /// Whether the run was killed, so that the user may have made them since.
    pub(super) killed: bool,
    pub(super) paths: Vec<PathReport>,
}

/// Role of the recording caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorder {
    /// It made no changes itself.
    Observer,
    /// It made changes in that turn, or outside of one.
    Author(Option<TurnId>),
}

/// Divides changes among their possible authors: the user's first, the caller's last. `dead` are the runs whose process
/// has ended without recording its changes.
pub(super) fn divide(
    found: &[PathReport],
    (runs, dead): (&[FolderRun], &[TurnId]),
    recorder: Recorder,
) -> Vec<Share> {
    let is_own = |run: &&FolderRun| recorder == Recorder::Author(Some(run.turn));
    let own = runs.iter().find(is_own);
    let others: Vec<&FolderRun> = runs.iter().filter(|run| !is_own(run)).collect();
    let mut shares: Vec<Share> = Vec::new();
    for changed in found {
        let (owner, others) = owner(changed, own, &others, recorder);
        let known = shares.iter_mut().find(|share| share.owner == owner && share.others == others);
        if let Some(share) = known {
            share.paths.push(changed.clone());
        } else {
            let killed = matches!(&owner, Owner::Run(run) if dead.contains(&run.turn));
            shares.push(Share { owner, others, killed, paths: vec![changed.clone()] });
        }
    }
    shares.sort_by_key(|share| match share.owner {
        Owner::User => 0,
        Owner::Run(_) => 1,
        Owner::Caller => 2,
    });
    shares
}

fn owner(
    changed: &PathReport,
    own: Option<&FolderRun>,
    others: &[&FolderRun],
    recorder: Recorder,
) -> (Owner, Vec<FolderRun>) {
    if own.is_some_and(|own| names(own, changed)) {
        return (Owner::Caller, Vec::new());
    }
    if let Some(run) = others.iter().find(|run| names(run, changed)) {
        return (Owner::Run((*run).clone()), Vec::new());
    }
    let mut open: Vec<FolderRun> =
        others.iter().filter(|run| run.paths.is_none()).map(|run| (*run).clone()).collect();
    if recorder != Recorder::Observer && own.is_none_or(|own| own.paths.is_none()) {
        return (Owner::Caller, open);
    }
    if open.is_empty() {
        return (Owner::User, open);
    }
    let first = open.remove(0);
    (Owner::Run(first), open)
}

/// Returns whether a run names a path as its target, or a path inside a folder that was added or removed with it.
fn names(run: &FolderRun, changed: &PathReport) -> bool {
    let path = &changed.path.path;
    changed.path.root.is_empty()
        && run.paths().any(|named| {
            named == path.bytes()
                || (changed.is_folder() && named.starts_with(&[&path.bytes()[..], b"/"].concat()))
        })
}

/// The snapshot with only these changes, which are some of those between it and `last`.
pub(super) fn with_changes(
    writing: &WriteTransaction<'_>,
    (base, last): (ContentId, ContentId),
    changed: &[PathReport],
    clock: &dyn Clock,
) -> Result<ContentId, StoreError> {
    let mut additions: Additions<'_, Queries<'_>> = Additions::new(&**writing);
    let (base, last): (Snapshot, Snapshot) = (load(&additions, base)?, load(&additions, last)?);
    let mut sealed = BTreeMap::new();
    for root in &base.roots {
        let after = sealed_of(&additions, last.root(&root.name))?;
        sealed.insert(root.name.as_str(), (sealed_of(&additions, Some(root))?, after));
    }
    let (mut there, mut after) = (SnapshotCursor::new(&base), SnapshotCursor::new(&last));
    let mut paths: BTreeMap<RootPath, Option<Node>> = BTreeMap::new();
    for change in changed {
        let path = &change.path.path;
        if let Some((states, later)) = sealed.get_mut(change.path.root.as_str())
            && let (Some(state), Some(later)) = (states.get_mut(path), later.get(path))
        {
            state.clone_from(later);
            // Only a captured file is in the trees.
            if change.after.is_some() && after.get(&additions, &change.path)? != change.after {
                continue;
            }
        }
        let node = match &change.after {
            // The content of a folder has its own paths.
            Some(Node::Folder { mode, .. }) => {
                let tree = match there.get(&additions, &change.path)? {
                    Some(Node::Folder { tree, .. }) => tree,
                    _ => Tree::default().add_to(&mut additions),
                };
                Some(Node::Folder { tree, mode: *mode })
            }
            other => other.clone(),
        };
        paths.insert(change.path.clone(), node);
    }
    let mut snapshot = graft_paths(&mut additions, &base, &paths)?;
    for root in &mut snapshot.roots {
        if let Some((states, _)) = sealed.get(root.name.as_str()).filter(|_| root.sealed.is_some()) {
            root.sealed = Some(additions.add(&SealedFiles::new(states)));
        }
    }
    let id = additions.add(&snapshot);
    writing.put_contents(&additions.into_new(), clock.now())?;
    Ok(id)
}
