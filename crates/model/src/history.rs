//! Undo, redo and jump, derived from the log alone.
//!
//! Steps form *chains*: one for each take, and one for the thread (title, tags, roles, settings, reset, and
//! creating, deleting or switching takes). A chain is a tree: the parent of a change is the change of the
//! same chain that was current when it was made. Undo, redo and jump add no node; they move the *position*
//! of chains. Redo moves towards the *tip*.
//!
//! ```text
//!   log      1       2       3       4       5       6
//!   thread   1 ───────────── 3                             1 created, 3 renamed
//!   take A           2 ───────────── 4 ───── 5             after an undo in A: position 4, tip 5
//!   take B                                           6     unaffected
//! ```
//!
//! Undo in a take reverts the newest step of the take's chain and the thread's chain. It skips steps of
//! other takes and their running turns. The operations of one turn move together, even with other
//! operations between them. Redo repeats the most recently undone step first: each chain stores the move
//! that undid its next step, and the log leads to the move before that. A redo of a turn stops where that undo
//! started, even inside the turn. A move that undoes steps of several
//! chains records their order.
//!
//! A chain may have a hundred thousand changes, and redo from the far end must not cost more than an undo.
//! Each change therefore stores one distant ancestor (`jump`), chosen so that any ancestor is found in
//! O(log n) hops.
//!
//! Logs from before takes had chains form one chain: all their operations count as steps of the thread.

mod cursor;
#[cfg(test)]
mod tests;

use crate::id::{TakeId, TurnId};
use crate::operation::{
    Actor, ChainMoves, ChainPosition, Chains, Operation, OperationKind, Provenance, Version,
};
use crate::time::Timestamp;
use serde::Deserialize;

pub use cursor::{HistoryCursor, HistoryView, RouteStep};

/// The parts of an operation that the algorithms below need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogStep {
    /// Its links in its chain.
    pub place: Provenance,
    /// The turn with which it is undone.
    pub turn: TurnId,
    /// Its chain, and the positions of the others.
    pub chains: Option<Chains>,
    /// Whether undo skips it: see [`OperationKind::is_not_undoable`].
    pub is_not_undoable: bool,
    /// The take that it created.
    pub created_take: Option<TakeId>,
    /// Whether it cleared every take.
    pub resets_takes: bool,
    /// Whether it changed files in the project folder.
    pub changes_project_files: bool,
    /// The take whose entries or files it changed.
    pub touched_take: Option<TakeId>,
}

impl LogStep {
    /// Extracts the step from an operation.
    pub fn of(operation: &Operation) -> Self {
        Self {
            place: operation.place,
            turn: operation.turn,
            chains: operation.chains.clone(),
            is_not_undoable: operation.kind.is_not_undoable(),
            created_take: operation.kind.created_take(),
            resets_takes: matches!(operation.kind, OperationKind::Reset),
            changes_project_files: operation
                .files
                .is_some_and(|files| !files.worktree && files.before != files.after),
            touched_take: operation.kind.take().or(operation.files.map(|files| files.take)),
        }
    }

    /// Returns the take whose chain it belongs to; `None` for the thread's chain.
    pub fn take(&self) -> Option<TakeId> {
        self.chains.as_ref().and_then(|chains| chains.take)
    }
}

/// The log of one thread, read by operation.
pub trait OperationLog {
    /// The error of a failed read.
    type Error;
    /// Returns the operation with that version, which must exist.
    fn step(&self, version: Version) -> Result<LogStep, Self::Error>;
    /// Returns the active take after that operation.
    fn active(&self, version: Version) -> Result<TakeId, Self::Error>;
}

/// The unit of an undo or redo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// All operations of a turn.
    #[default]
    Turn,
    /// One operation.
    Operation,
}

/// The links of a thread's first operation.
pub const FIRST: Provenance = Provenance { parent: 0, depth: 0, jump: 1, position: 1, tip: 1 };

/// Returns the position of the thread's chain after an operation.
pub fn thread_position(step: &LogStep, version: Version) -> ChainPosition {
    match &step.chains {
        Some(chains) => chains.thread,
        None => ChainPosition {
            position: step.place.position,
            tip: step.place.tip,
            changed: version,
            since: version,
            undone: 0,
        },
    }
}

/// Returns the position of a take's chain after the operation with that version.
pub fn take_position<L: OperationLog>(
    log: &L,
    version: Version,
    take: TakeId,
) -> Result<ChainPosition, L::Error> {
    let mut version = version;
    while version > 0 {
        let step = log.step(version)?;
        let Some(chains) = &step.chains else { break };
        if step.is_not_undoable {
            if let Some(moved) = chains.takes.iter().find(|moved| moved.take == take) {
                return Ok(moved.at);
            }
        } else if chains.take == Some(take) {
            return Ok(ChainPosition::at(version));
        }
        version = if chains.take == Some(take) { version - 1 } else { chains.other };
    }
    Ok(ChainPosition::default())
}

/// Returns the links of a new change in that take's chain, or in the thread's.
pub fn link_change<L: OperationLog>(
    log: &L,
    head: Version,
    take: Option<TakeId>,
) -> Result<(Provenance, Chains), L::Error> {
    let version = head + 1;
    let last = log.step(head)?;
    let thread = thread_position(&last, head);
    let (at, thread) = match take {
        Some(take) => (take_position(log, head, take)?, thread),
        None => (thread, ChainPosition::at(version)),
    };
    let place = place_of_change(log, at.position, version)?;
    Ok((place, Chains { take, thread, takes: Vec::new(), other: other(&last, head, take), order: None }))
}

/// Returns the links of an operation that changes no chain, such as naming a version.
pub fn link_note<L: OperationLog>(log: &L, head: Version) -> Result<(Provenance, Chains), L::Error> {
    let last = log.step(head)?;
    let Provenance { position, tip, .. } = last.place;
    let thread = thread_position(&last, head);
    let chains =
        Chains { take: None, thread, takes: Vec::new(), other: other(&last, head, None), order: None };
    Ok((place_of_move(&last.place, position, tip), chains))
}

/// Returns the links of an operation that moves chains.
pub fn link_move<L: OperationLog>(
    log: &L,
    head: Version,
    view: TakeId,
    moves: ChainMoves,
) -> Result<(Provenance, Chains), L::Error> {
    let ChainMoves { thread, takes, order } = moves;
    let last = log.step(head)?;
    let at = match takes.iter().find(|moved| moved.take == view) {
        Some(moved) => moved.at,
        None => take_position(log, head, view)?,
    };
    let place = place_of_move(&last.place, at.position.max(thread.position), at.tip.max(thread.tip));
    let chains = Chains { take: Some(view), thread, takes, other: other(&last, head, Some(view)), order };
    Ok((place, chains))
}

/// The links of an operation, for validation.
#[derive(Clone, Debug)]
pub struct Link {
    place: Provenance,
    chains: Option<Chains>,
    role: LinkRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRole {
    /// Changes a take or the thread.
    Change(Option<TakeId>),
    /// Moves chains.
    Move,
    /// Neither.
    Note,
}

impl Link {
    /// Extracts the links from an operation.
    pub fn of(operation: &Operation) -> Self {
        let role = match operation.files {
            _ if operation.kind.moves_chains() => LinkRole::Move,
            _ if operation.kind.is_not_undoable() => LinkRole::Note,
            Some(files) if operation.kind.changes_files_only() => LinkRole::Change(Some(files.take)),
            // An export without files does not name their take, so the chain does.
            None if operation.kind.changes_files_only() => {
                LinkRole::Change(operation.chains.as_ref().and_then(|chains| chains.take))
            }
            _ => LinkRole::Change(operation.kind.take()),
        };
        Self { place: operation.place, chains: operation.chains.clone(), role }
    }

    pub(crate) fn role(&self) -> LinkRole {
        self.role
    }

    /// Whether the operation moves chains.
    pub fn is_move(&self) -> bool {
        self.role == LinkRole::Move
    }

    /// Whether the operation predates chains of takes.
    pub fn predates_chains(&self) -> bool {
        self.chains.is_none()
    }

    /// Whether these links are valid directly after `head`. For changes and notes exactly one set of links
    /// is valid; a move may lead to any reachable position.
    pub fn follows<L: OperationLog>(&self, log: &L, head: Version) -> Result<bool, L::Error> {
        if head == 0 {
            return Ok(self.place == FIRST && self.chains.is_none() && self.role == LinkRole::Change(None));
        }
        let Some(chains) = &self.chains else { return self.follows_old(log, head) };
        let expected = match self.role {
            LinkRole::Change(take) => link_change(log, head, take)?,
            LinkRole::Note => link_note(log, head)?,
            LinkRole::Move => {
                let Some(view) = chains.take else { return Ok(false) };
                if !moves_are_valid(log, head, chains)? {
                    return Ok(false);
                }
                let Chains { thread, takes, order, .. } = chains.clone();
                link_move(log, head, view, ChainMoves { thread, takes, order })?
            }
        };
        Ok((self.place, chains) == (expected.0, &expected.1))
    }

    fn follows_old<L: OperationLog>(&self, log: &L, head: Version) -> Result<bool, L::Error> {
        let last = log.step(head)?;
        // A log with chains must not return to the old format.
        if last.chains.is_some() {
            return Ok(false);
        }
        if matches!(self.role, LinkRole::Change(_)) {
            return Ok(self.place == place_of_change(log, last.place.position, head + 1)?);
        }
        let Provenance { position, tip, .. } = self.place;
        for change in [position, tip] {
            if change == 0 || change > head || log.step(change)?.is_not_undoable {
                return Ok(false);
            }
        }
        Ok(self.place == place_of_move(&last.place, position, tip))
    }
}

fn moves_are_valid<L: OperationLog>(log: &L, head: Version, chains: &Chains) -> Result<bool, L::Error> {
    let version = head + 1;
    let before = thread_position(&log.step(head)?, head);
    if chains.thread != before && !can_move_to(log, None, before, chains.thread, version)? {
        return Ok(false);
    }
    if !chains.takes.is_sorted_by(|left, right| left.take < right.take) {
        return Ok(false);
    }
    // A move cannot undo more steps than the log has.
    let runs = chains.order.iter().flatten();
    let passed = runs.clone().try_fold(0, |sum: u64, run| sum.checked_add(run.steps));
    if passed.is_none_or(|passed| passed > head) || runs.clone().any(|run| run.steps == 0) {
        return Ok(false);
    }
    for moved in &chains.takes {
        let before = take_position(log, head, moved.take)?;
        if !can_move_to(log, Some(moved.take), before, moved.at, version)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a move can bring a chain to that position.
fn can_move_to<L: OperationLog>(
    log: &L,
    take: Option<TakeId>,
    before: ChainPosition,
    at: ChainPosition,
    version: Version,
) -> Result<bool, L::Error> {
    for change in [at.position, at.tip] {
        // Only a take's chain has a position before its first step.
        if change == 0 && take.is_some() {
            continue;
        }
        if change == 0 || change >= version {
            return Ok(false);
        }
        let step = log.step(change)?;
        if step.is_not_undoable || step.take() != take {
            return Ok(false);
        }
    }
    let by_a_move = match at.undone {
        0 => true,
        undone if undone == version => at.position != at.tip,
        undone => undone >= 2 && undone < version && log.step(undone)?.is_not_undoable,
    };
    let continues = at.changed == before.changed && at.since == version;
    Ok(by_a_move && continues && contains(log, at.tip, at.position)?)
}

/// Returns the newest earlier operation that is not a change of the same chain.
fn other(last: &LogStep, head: Version, take: Option<TakeId>) -> Version {
    match &last.chains {
        Some(chains) if !last.is_not_undoable && chains.take == take => chains.other,
        _ => head,
    }
}

/// Returns the links of a change whose parent is `on`.
fn place_of_change<L: OperationLog>(log: &L, on: Version, version: Version) -> Result<Provenance, L::Error> {
    if on == 0 {
        return Ok(Provenance { parent: 0, depth: 0, jump: version, position: version, tip: version });
    }
    let parent = log.step(on)?.place;
    let near = log.step(parent.jump)?.place;
    let far = log.step(near.jump)?.place;
    // Two equal hops in a row are joined into one: the hops grow like the digits of a skew-binary number.
    let jump =
        if parent.depth.abs_diff(near.depth) == near.depth.abs_diff(far.depth) { near.jump } else { on };
    Ok(Provenance { parent: on, depth: parent.depth + 1, jump, position: version, tip: version })
}

fn place_of_move(head: &Provenance, position: Version, tip: Version) -> Provenance {
    Provenance { parent: head.position, depth: 0, jump: 0, position, tip }
}

/// Whether a change is an ancestor of a position, or the position itself. The start (0) is an ancestor of
/// every position.
pub fn contains<L: OperationLog>(log: &L, position: Version, change: Version) -> Result<bool, L::Error> {
    if change == 0 {
        return Ok(true);
    }
    if position < change {
        return Ok(false);
    }
    let depth = log.step(change)?.place.depth;
    Ok(log.step(position)?.place.depth >= depth && ancestor_at(log, position, depth)? == change)
}

/// Whether a change is in effect after the operation `head`.
pub fn is_done<L: OperationLog>(log: &L, head: Version, change: Version) -> Result<bool, L::Error> {
    let at = match log.step(change)?.take() {
        Some(take) => take_position(log, head, take)?,
        None => thread_position(&log.step(head)?, head),
    };
    contains(log, at.position, change)
}

/// Returns the number of changes from a position to a later one in the same chain.
fn steps_between<L: OperationLog>(log: &L, position: Version, later: Version) -> Result<u64, L::Error> {
    let count = |version: Version| -> Result<u64, L::Error> {
        Ok(if version == 0 { 0 } else { log.step(version)?.place.depth + 1 })
    };
    Ok(count(later)?.saturating_sub(count(position)?))
}

/// Returns the last common ancestor of two positions of a chain; 0 if there is none.
fn common<L: OperationLog>(log: &L, left: Version, right: Version) -> Result<Version, L::Error> {
    if left == 0 || right == 0 {
        return Ok(0);
    }
    let depth = log.step(left)?.place.depth.min(log.step(right)?.place.depth);
    let (mut left, mut right) = (ancestor_at(log, left, depth)?, ancestor_at(log, right, depth)?);
    while left != right {
        let (here, there) = (log.step(left)?.place, log.step(right)?.place);
        if here.depth == 0 {
            return Ok(0);
        }
        // Changes at the same depth have hops of the same length, so both sides stay level.
        (left, right) =
            if here.jump == there.jump { (here.parent, there.parent) } else { (here.jump, there.jump) };
    }
    Ok(left)
}

/// Returns the steps from one position of a chain to another.
pub fn route_between<L: OperationLog>(
    log: &L,
    from: Version,
    to: Version,
) -> Result<Vec<RouteStep>, L::Error> {
    let meeting = common(log, from, to)?;
    let back_to_meeting = |mut version: Version| -> Result<Vec<Version>, L::Error> {
        let mut passed = Vec::new();
        while version != meeting {
            passed.push(version);
            version = log.step(version)?.place.parent;
        }
        Ok(passed)
    };
    let back = back_to_meeting(from)?.into_iter().map(RouteStep::Back);
    let forward = back_to_meeting(to)?.into_iter().rev().map(RouteStep::Forward);
    Ok(back.chain(forward).collect())
}

/// Returns the next change from a position towards a tip; `None` at the tip.
fn next_on<L: OperationLog>(log: &L, position: Version, tip: Version) -> Result<Option<Version>, L::Error> {
    if position == tip {
        return Ok(None);
    }
    let depth = if position == 0 { 0 } else { log.step(position)?.place.depth + 1 };
    ancestor_at(log, tip, depth).map(Some)
}

/// Whether a new operation continues the typing of the take's last change, and is therefore undone with it.
pub fn continues_typing(
    last: &Operation,
    kind: &OperationKind,
    actor: &Actor,
    now: Timestamp,
    pause: i64,
) -> bool {
    let (OperationKind::DraftChanged { take: before }, OperationKind::DraftChanged { take: after }) =
        (&last.kind, kind)
    else {
        return false;
    };
    let elapsed = now.millis_since(last.time);
    before == after && last.actor == *actor && (0..pause).contains(&elapsed)
}

/// Returns the ancestor of `version` (or itself) at that depth.
fn ancestor_at<L: OperationLog>(log: &L, version: Version, depth: u64) -> Result<Version, L::Error> {
    let mut version = version;
    let mut place = log.step(version)?.place;
    while place.depth > depth {
        let far = log.step(place.jump)?.place;
        version = if far.depth >= depth { place.jump } else { place.parent };
        place = log.step(version)?.place;
    }
    Ok(version)
}
