//! Decides the action for each path from what exists there.

use retake_model::tree::{Difference, Node};
use rustix::io::Errno;

use super::inspect::{Identity, PathState, inspect};
use super::walk::Walker;
use super::{ApplyError, DiskNode, ErrorClass, Outcome, Phase, Request, SkipReason, classify, path_failed};

use std::os::fd::AsFd;

/// The action at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Action {
    pub(super) removal: Removal,
    pub(super) placement: Placement,
}

/// What to remove first.
#[derive(Clone, Debug, Default)]
pub(super) enum Removal {
    #[default]
    Nothing,
    /// A file or link with this identity.
    File(Identity),
    /// A folder, which must be empty by then.
    Folder,
}

/// What to put there afterwards.
#[derive(Clone, Debug, Default)]
pub(super) enum Placement {
    #[default]
    Nothing,
    /// New content at a free path.
    New,
    /// Content that arrives with the new folder of that step.
    Within(usize),
    /// A file or link that replaces one with this identity.
    Swap(Identity),
    /// New permissions for a file with this identity.
    Mode(Identity),
    /// New permissions for a folder.
    FolderMode,
}

pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) outcomes: Vec<Option<Outcome>>,
}

impl Action {
    pub(super) fn is_noop(&self) -> bool {
        matches!((&self.removal, &self.placement), (Removal::Nothing, Placement::Nothing))
    }
}

/// Permissions of a new folder while it is filled.
pub(super) const STAGING_MODE: u16 = 0o700;

/// Returns whether the owner can fill and move a folder with that mode, so that it can be set early.
pub(super) fn is_open(mode: u16) -> bool {
    mode & STAGING_MODE == STAGING_MODE
}

pub(super) fn make_plan(request: &Request<'_>, steps: &[&Difference]) -> Result<Plan, ApplyError> {
    let mut plan =
        Plan { actions: Vec::with_capacity(steps.len()), outcomes: Vec::with_capacity(steps.len()) };
    let mut walker = Walker::new(request.root.as_fd());
    let mut top: Option<usize> = None;
    for (index, step) in steps.iter().enumerate() {
        if index % 64 == 0 {
            request.check_cancel()?;
            request.report_progress(Phase::Checking, index, steps.len());
        }
        top = top.filter(|&top| step.path.starts_with(&steps[top].path));
        let decided = match (top, &step.before, &step.after) {
            // Snapshots exclude such paths; an import or an older version may contain one.
            _ if step.path.is_repository() => Err(Outcome::Skipped(SkipReason::Repository)),
            (Some(top), None, Some(_)) => {
                Ok(Action { removal: Removal::Nothing, placement: Placement::Within(top) })
            }
            (Some(_), _, None) => Err(Outcome::Already),
            (Some(_), Some(_), Some(_)) => Err(Outcome::Kept(DiskNode::Nothing)),
            (None, ..) => match inspect_step(request, &mut walker, step) {
                Ok(seen) => decide(step, seen),
                Err(errno) => match classify(errno) {
                    ErrorClass::Skip(skip) => Err(Outcome::Skipped(skip)),
                    ErrorClass::Fatal(errno) => return Err(path_failed(&step.path, errno).into()),
                },
            },
        };
        let (action, outcome) = match decided {
            Ok(action) => (action, None),
            Err(outcome) => (Action::default(), Some(outcome)),
        };
        if matches!(action.placement, Placement::New) && step.after.as_ref().is_some_and(Node::is_folder) {
            top = Some(index);
        }
        plan.actions.push(action);
        plan.outcomes.push(outcome);
    }
    Ok(plan)
}

/// Inspects the path of a step.
pub(super) fn inspect_step(
    request: &Request<'_>,
    walker: &mut Walker<'_>,
    step: &Difference,
) -> Result<PathState, Errno> {
    let nothing = PathState { found: DiskNode::Nothing, identity: None, names: 0 };
    let folder = match walker.folder(step.path.parents()) {
        Err(Errno::NOENT) => return Ok(nothing),
        // Nothing exists below a path that is not a folder, which is fine if the target has nothing there.
        Err(Errno::NOTDIR | Errno::LOOP) if step.after.is_none() => return Ok(nothing),
        other => other?,
    };
    inspect(folder, step.path.name().bytes(), |identity| match (&step.before, request.unchanged) {
        (Some(Node::File { content, size, .. }), Some(unchanged))
            if *size == identity.size && unchanged(&step.path, identity) =>
        {
            Some(*content)
        }
        _ => None,
    })
}

/// Returns whether a crash happened after the folder was made writable and before it was removed.
fn was_opened_up(found: &DiskNode, before: Option<&Node>, after: Option<&Node>) -> bool {
    matches!((found, before), (DiskNode::Folder { mode: STAGING_MODE }, Some(Node::Folder { mode, .. })) if !is_open(*mode))
        && !after.is_some_and(Node::is_folder)
}

fn decide(step: &Difference, seen: PathState) -> Result<Action, Outcome> {
    let PathState { found, identity, names } = seen;
    let (before, after) = (step.before.as_ref(), step.after.as_ref());
    if found.matches(after) {
        return Err(Outcome::Already);
    }
    if let (DiskNode::Folder { mode: STAGING_MODE }, None, Some(Node::Folder { mode, .. })) =
        (&found, before, after)
        && !is_open(*mode)
    {
        // A crash happened between moving the folder and setting its final permissions.
        return Ok(Action { removal: Removal::Nothing, placement: Placement::FolderMode });
    }
    if !found.matches(before) && !was_opened_up(&found, before, after) {
        return Err(Outcome::Kept(found));
    }
    let out = |identity: Option<Identity>| identity.map_or(Removal::Nothing, Removal::File);
    let action = match (before, after) {
        (None, _) => Action { removal: Removal::Nothing, placement: Placement::New },
        (Some(Node::Folder { .. }), None) => {
            Action { removal: Removal::Folder, placement: Placement::Nothing }
        }
        (Some(_), None) => Action { removal: out(identity), placement: Placement::Nothing },
        (Some(Node::Folder { .. }), Some(Node::Folder { .. })) => {
            Action { removal: Removal::Nothing, placement: Placement::FolderMode }
        }
        (Some(Node::Folder { .. }), Some(_)) => {
            Action { removal: Removal::Folder, placement: Placement::New }
        }
        (Some(_), Some(Node::Folder { .. })) => Action { removal: out(identity), placement: Placement::New },
        (Some(old), Some(new)) => {
            let identity = identity.ok_or(Outcome::Skipped(SkipReason::InTheWay))?;
            let placement = if is_same_content(old, new) && names == 1 {
                Placement::Mode(identity)
            } else {
                // A file with several hard links is replaced too, so that its other names keep their permissions.
                Placement::Swap(identity)
            };
            Action { removal: Removal::Nothing, placement }
        }
    };
    Ok(action)
}

fn is_same_content(old: &Node, new: &Node) -> bool {
    match (old, new) {
        (Node::File { content, .. }, Node::File { content: other, .. }) => content == other,
        _ => false,
    }
}
