//! Undo, redo and jump, worked out from the log alone.
//!
//! Steps form *chains*: one for each take, and one for the thread itself (title, tags, roles, settings, takes made,
//! removed or switched, reset). A chain is a tree: the parent of a change is the change of the same chain that was
//! current when it was made. Undo, redo and jump make no node; they move the *position* of chains. The *tip* is where
//! redo leads.
//!
//! ```text
//!   log      1       2       3       4       5       6
//!   thread   1 ───────────── 3                             1 created, 3 renamed
//!   take A           2 ───────────── 4 ───── 5             after an undo in A: position 4, tip 5
//!   take B                                           6     untouched by it
//! ```
//!
//! In a take, undo takes back the newest step of the take's chain and the thread's: steps of other takes are passed over, and
//! so are their running turns. The operations of one turn go together, whatever lies between them. Redo makes first what was
//! taken back last; each chain knows the move that took back its next step, and finds the one before in the log. A move that
//! took back steps of several chains has written down in which order.
//!
//! A chain may have a hundred thousand changes, and redo from the far end must cost no more than an undo, so
//! each change also knows one far ancestor (`jump`), placed such that any ancestor is found in O(log n) hops.
//!
//! Logs from before takes had chains are one chain: all their operations count as steps of the thread.

mod cursor;
#[cfg(test)]
mod tests;

use crate::id::{TakeId, TurnId};
use crate::operation::{Actor, ChainMoves, ChainPosition, Chains, Operation, OperationKind, Place, Version};
use crate::time::Timestamp;

pub use cursor::{Cursor, RouteStep, View};

/// What the walks below need to know of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it stands in its chain.
    pub place: Place,
    /// What it is undone with.
    pub turn: TurnId,
    /// Its chain, and where the others are.
    pub chains: Option<Chains>,
    /// Whether it is no step of undo: see [`OperationKind::moves_only`].
    pub moves_only: bool,
    /// The take that it made.
    pub made: Option<TakeId>,
    /// Whether it emptied every take.
    pub resets: bool,
    /// Whether it changed files in the project's folder.
    pub in_project: bool,
    /// The take that it changed, or whose files.
    pub worked_in: Option<TakeId>,
}

impl Step {
    /// What is needed of an operation.
    pub fn of(operation: &Operation) -> Self {
        Self {
            place: operation.place,
            turn: operation.turn,
            chains: operation.chains.clone(),
            moves_only: operation.kind.moves_only(),
            made: operation.kind.made(),
            resets: matches!(operation.kind, OperationKind::Reset),
            in_project: operation.files.is_some_and(|files| !files.apart && files.before != files.after),
            worked_in: operation.kind.take().or(operation.files.map(|files| files.take)),
        }
    }

    /// The take whose step it is; `None` for the thread's.
    pub fn take(&self) -> Option<TakeId> {
        self.chains.as_ref().and_then(|chains| chains.take)
    }
}

/// The log of one thread, read one operation at a time.
pub trait Log {
    /// Why an operation could not be read.
    type Error;
    /// The operation with that version, which must exist.
    fn step(&self, version: Version) -> Result<Step, Self::Error>;
    /// The active take after that operation.
    fn active(&self, version: Version) -> Result<TakeId, Self::Error>;
}

/// How much one undo or redo moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// All operations of a turn.
    Turn,
    /// One operation.
    Operation,
}

/// Where the first operation of a thread stands.
pub const FIRST: Place = Place { parent: 0, depth: 0, jump: 1, position: 1, tip: 1 };

/// Where the thread's own chain is after an operation.
pub fn thread_position(step: &Step, version: Version) -> ChainPosition {
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

/// Where the chain of a take is after the operation with that version.
pub fn take_position<L: Log>(log: &L, version: Version, take: TakeId) -> Result<ChainPosition, L::Error> {
    let mut version = version;
    while version > 0 {
        let step = log.step(version)?;
        let Some(chains) = &step.chains else { break };
        if step.moves_only {
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

/// Where a new change stands: a step of that take, or of the thread.
pub fn link_change<L: Log>(
    log: &L,
    head: Version,
    take: Option<TakeId>,
) -> Result<(Place, Chains), L::Error> {
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

/// Where an operation stands that changes nothing in any chain, such as a name for a version.
pub fn link_note<L: Log>(log: &L, head: Version) -> Result<(Place, Chains), L::Error> {
    let last = log.step(head)?;
    let Place { position, tip, .. } = last.place;
    let thread = thread_position(&last, head);
    let chains =
        Chains { take: None, thread, takes: Vec::new(), other: other(&last, head, None), order: None };
    Ok((place_of_move(&last.place, position, tip), chains))
}

/// Where an operation stands that moves chains.
pub fn link_move<L: Log>(
    log: &L,
    head: Version,
    view: TakeId,
    moves: ChainMoves,
) -> Result<(Place, Chains), L::Error> {
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

/// How an operation is linked into the log, for checking.
#[derive(Clone, Debug)]
pub struct Link {
    place: Place,
    chains: Option<Chains>,
    role: LinkRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkRole {
    /// It changes a take, or the thread.
    Change(Option<TakeId>),
    /// It moves chains.
    Move,
    /// It does neither.
    Note,
}

impl Link {
    /// What an operation says of itself.
    pub fn of(operation: &Operation) -> Self {
        let role = match operation.files {
            _ if operation.kind.moves_chains() => LinkRole::Move,
            _ if operation.kind.moves_only() => LinkRole::Note,
            Some(files) if operation.kind.changes_files_only() => LinkRole::Change(Some(files.take)),
            // An export without files does not say whose they were.
            None if operation.kind.changes_files_only() => {
                LinkRole::Change(operation.chains.as_ref().and_then(|chains| chains.take))
            }
            _ => LinkRole::Change(operation.kind.take()),
        };
        Self { place: operation.place, chains: operation.chains.clone(), role }
    }

    /// Whether it moves chains.
    pub fn is_move(&self) -> bool {
        self.role == LinkRole::Move
    }

    /// Whether it is in a log from before takes had chains.
    pub fn is_old(&self) -> bool {
        self.chains.is_none()
    }

    /// Whether the operation stands where one of its kind may stand in the log that it follows: changes and notes in
    /// exactly one way, moves wherever their chains can be.
    pub fn follows<L: Log>(&self, log: &L, head: Version) -> Result<bool, L::Error> {
        if head == 0 {
            return Ok(self.place == FIRST && self.chains.is_none() && self.role == LinkRole::Change(None));
        }
        let Some(chains) = &self.chains else { return self.follows_old(log, head) };
        let expected = match self.role {
            LinkRole::Change(take) => link_change(log, head, take)?,
            LinkRole::Note => link_note(log, head)?,
            LinkRole::Move => {
                let Some(view) = chains.take else { return Ok(false) };
                if !moves_are_sound(log, head, chains)? {
                    return Ok(false);
                }
                let Chains { thread, takes, order, .. } = chains.clone();
                link_move(log, head, view, ChainMoves { thread, takes, order })?
            }
        };
        Ok((self.place, chains) == (expected.0, &expected.1))
    }

    fn follows_old<L: Log>(&self, log: &L, head: Version) -> Result<bool, L::Error> {
        let last = log.step(head)?;
        // Once takes have chains, the log goes on with them.
        if last.chains.is_some() {
            return Ok(false);
        }
        if matches!(self.role, LinkRole::Change(_)) {
            return Ok(self.place == place_of_change(log, last.place.position, head + 1)?);
        }
        let Place { position, tip, .. } = self.place;
        for change in [position, tip] {
            if change == 0 || change > head || log.step(change)?.moves_only {
                return Ok(false);
            }
        }
        Ok(self.place == place_of_move(&last.place, position, tip))
    }
}

fn moves_are_sound<L: Log>(log: &L, head: Version, chains: &Chains) -> Result<bool, L::Error> {
    let version = head + 1;
    let before = thread_position(&log.step(head)?, head);
    if chains.thread != before && !can_be(log, None, before, chains.thread, version)? {
        return Ok(false);
    }
    if !chains.takes.is_sorted_by(|left, right| left.take < right.take) {
        return Ok(false);
    }
    // No step is taken back twice.
    let runs = chains.order.iter().flatten();
    let passed = runs.clone().try_fold(0, |sum: u64, run| sum.checked_add(run.steps));
    if passed.is_none_or(|passed| passed > head) || runs.clone().any(|run| run.steps == 0) {
        return Ok(false);
    }
    for moved in &chains.takes {
        let before = take_position(log, head, moved.take)?;
        if !can_be(log, Some(moved.take), before, moved.at, version)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a move can bring a chain there.
fn can_be<L: Log>(
    log: &L,
    take: Option<TakeId>,
    before: ChainPosition,
    at: ChainPosition,
    version: Version,
) -> Result<bool, L::Error> {
    for change in [at.position, at.tip] {
        // Only the chain of a take has a position before its first step.
        if change == 0 && take.is_some() {
            continue;
        }
        if change == 0 || change >= version {
            return Ok(false);
        }
        let step = log.step(change)?;
        if step.moves_only || step.take() != take {
            return Ok(false);
        }
    }
    let by_a_move = match at.undone {
        0 => true,
        undone if undone == version => at.position != at.tip,
        undone => undone >= 2 && undone < version && log.step(undone)?.moves_only,
    };
    let continues = at.changed == before.changed && at.since == version;
    Ok(by_a_move && continues && contains(log, at.tip, at.position)?)
}

/// The newest earlier operation that is not a change of the same chain.
fn other(last: &Step, head: Version, take: Option<TakeId>) -> Version {
    match &last.chains {
        Some(chains) if !last.moves_only && chains.take == take => chains.other,
        _ => head,
    }
}

/// Where a change stands that is made on another one of its chain.
fn place_of_change<L: Log>(log: &L, on: Version, version: Version) -> Result<Place, L::Error> {
    if on == 0 {
        return Ok(Place { parent: 0, depth: 0, jump: version, position: version, tip: version });
    }
    let parent = log.step(on)?.place;
    let near = log.step(parent.jump)?.place;
    let far = log.step(near.jump)?.place;
    // Two equal hops in a row are joined into one: the hops grow like the digits of a skew-binary number.
    let jump =
        if parent.depth.abs_diff(near.depth) == near.depth.abs_diff(far.depth) { near.jump } else { on };
    Ok(Place { parent: on, depth: parent.depth + 1, jump, position: version, tip: version })
}

fn place_of_move(head: &Place, position: Version, tip: Version) -> Place {
    Place { parent: head.position, depth: 0, jump: 0, position, tip }
}

/// Whether the change at a position of a chain came about by way of another one; everything did by way of none.
pub fn contains<L: Log>(log: &L, position: Version, change: Version) -> Result<bool, L::Error> {
    if change == 0 {
        return Ok(true);
    }
    if position < change {
        return Ok(false);
    }
    let depth = log.step(change)?.place.depth;
    Ok(log.step(position)?.place.depth >= depth && ancestor_at(log, position, depth)? == change)
}

/// Whether a change is done, in the log up to an operation.
pub fn is_done<L: Log>(log: &L, head: Version, change: Version) -> Result<bool, L::Error> {
    let at = match log.step(change)?.take() {
        Some(take) => take_position(log, head, take)?,
        None => thread_position(&log.step(head)?, head),
    };
    contains(log, at.position, change)
}

/// How many changes lie between a position of a chain and the tip that redo would lead back to.
fn distance<L: Log>(log: &L, at: ChainPosition) -> Result<u64, L::Error> {
    steps_between(log, at.position, at.tip)
}

/// How many changes of a chain lead from a position to a later one.
fn steps_between<L: Log>(log: &L, position: Version, later: Version) -> Result<u64, L::Error> {
    let count = |version: Version| -> Result<u64, L::Error> {
        Ok(if version == 0 { 0 } else { log.step(version)?.place.depth + 1 })
    };
    Ok(count(later)?.saturating_sub(count(position)?))
}

/// The last change that the ways to two positions of a chain have in common; 0 if there is none.
fn common<L: Log>(log: &L, left: Version, right: Version) -> Result<Version, L::Error> {
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
        // Changes of one depth have hops of one length, so both sides stay level.
        (left, right) =
            if here.jump == there.jump { (here.parent, there.parent) } else { (here.jump, there.jump) };
    }
    Ok(left)
}

/// The steps that lead from one position of a chain to another.
pub fn route_between<L: Log>(log: &L, from: Version, to: Version) -> Result<Vec<RouteStep>, L::Error> {
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

/// The change after a position of a chain, on the way to a tip; `None` at the tip.
fn next_on<L: Log>(log: &L, position: Version, tip: Version) -> Result<Option<Version>, L::Error> {
    if position == tip {
        return Ok(None);
    }
    let depth = if position == 0 { 0 } else { log.step(position)?.place.depth + 1 };
    ancestor_at(log, tip, depth).map(Some)
}

/// Whether a new operation continues the typing that the last change of its take recorded, and so is undone with it.
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

/// The ancestor of `version` (or itself) at that depth.
fn ancestor_at<L: Log>(log: &L, version: Version, depth: u64) -> Result<Version, L::Error> {
    let mut version = version;
    let mut place = log.step(version)?.place;
    while place.depth > depth {
        let far = log.step(place.jump)?.place;
        version = if far.depth >= depth { place.jump } else { place.parent };
        place = log.step(version)?.place;
    }
    Ok(version)
}
