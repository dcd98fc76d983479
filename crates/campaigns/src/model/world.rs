//! All threads of the model, and the requests to them.

use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::Actor;
use retake_timeline::{Command, Unit};

use super::fault::ModelFault;
use super::log::{Event, HistoryWalk, ReferenceThread, WalkResult};
use super::names;
use super::observe::visibility;
use super::plain::{PlainTake, PlainThread};
use super::reference::{CommandContext, ExpectedRefusal, IdSource, apply, promote};
use super::shared::SharedSettings;

/// The longest typing pause within one undo step.
pub const TYPING_PAUSE: i64 = 2000;

/// The complete reference model.
#[derive(Debug)]
pub struct World {
    /// All threads, including retired ones.
    pub threads: Vec<ReferenceThread>,
    /// The current time.
    pub now: i64,
    /// The undo depth.
    pub depth: Option<usize>,
    /// The injected fault.
    pub fault: Option<ModelFault>,
    /// Shared settings.
    pub shared: SharedSettings,
    turns: u64,
}

/// The author and context of a request.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The author.
    pub actor: Actor,
    /// The number of its turn.
    pub turn: Option<u64>,
    /// The expected version.
    pub expected: Option<usize>,
    /// The take whose worktree an undo, redo or jump runs in; `None` for the active take.
    pub worktree: Option<TakeId>,
}

impl World {
    /// A model without threads.
    pub fn new(depth: Option<usize>, fault: Option<ModelFault>) -> Self {
        // Turn numbers that callers choose are smaller.
        Self { threads: Vec::new(), now: 0, depth, fault, shared: SharedSettings::default(), turns: 1 << 32 }
    }

    /// Finds a thread.
    pub fn find(&self, id: ThreadId) -> Option<usize> {
        self.threads.iter().rposition(|thread| thread.id == id)
    }

    /// The title of a new thread.
    pub fn title_for_new(&self, asked: Option<&str>) -> Result<String, ExpectedRefusal> {
        let Some(asked) = asked else {
            let mut number = 1;
            while self.taken(&format!("Thread {number}"), None) {
                number += 1;
            }
            return Ok(format!("Thread {number}"));
        };
        let title = names::meaning(asked).ok_or(ExpectedRefusal::Name)?;
        if self.taken(&title, None) { Err(ExpectedRefusal::TitleTaken) } else { Ok(title) }
    }

    /// Adds a new thread.
    pub fn create(&mut self, id: ThreadId, take: TakeId, title: String, private: bool, turn: Option<u64>) {
        let first = PlainTake {
            id: take,
            name: "main".to_owned(),
            created: self.now,
            entries: Vec::new(),
            draft: String::new(),
            attached: Vec::new(),
            files: [Vec::new(), Vec::new(), Vec::new()],
            parent: None,
            fork_point: None,
            sent: None,
            running: None,
        };
        let picture = PlainThread {
            title,
            tags: Vec::new(),
            pinned: false,
            visibility: "Organization".to_owned(),
            private,
            shared_with_support: false,
            roles: names::ROLES.iter().map(|role| (*role).to_owned()).collect(),
            settings: names::default_settings(),
            takes: vec![first],
            active: take,
            deleted: None,
            parent: None,
        };
        let turn = self.turn(turn);
        self.threads.push(ReferenceThread::new(id, picture, turn, self.now));
    }

    /// Applies a command; returns whether anything changed.
    pub fn change(
        &mut self,
        index: usize,
        command: &Command,
        asking: &RequestContext,
        learn: &mut dyn IdSource,
    ) -> Result<bool, ExpectedRefusal> {
        self.expect(index, asking)?;
        let thread = &self.threads[index];
        let before = thread.picture();
        if before.deleted.is_some() && !matches!(command, Command::Restore | Command::Delete) {
            return Err(ExpectedRefusal::ThreadDeleted);
        }
        if let Command::Rename { title } = command {
            let title = names::meaning(title).ok_or(ExpectedRefusal::Name)?;
            if self.taken(&title, Some(index)) {
                return Err(ExpectedRefusal::TitleTaken);
            }
        }
        if matches!(command, Command::Delete) && before.deleted.is_none() && self.is_last(index) {
            return Err(ExpectedRefusal::LastThread);
        }
        let roles = match self.fault {
            Some(ModelFault::DraftsIgnoreSharedRoles) => before.roles.clone(),
            _ => self.roles_of(index),
        };
        // The settings of a turn are a step of the thread in that turn.
        let settings = settings_of_turn(command);
        let mut around = CommandContext { now: self.now, learn, fault: self.fault, roles: &roles };
        let set = match settings {
            [] => None,
            values => Some(apply(before, &Command::Set { values: values.to_vec() }, &mut around)?),
        };
        let after = apply(set.as_ref().unwrap_or(before), command, &mut around)?;
        self.shared.record(thread.id, command, &after);
        if let Some(set) = set.filter(|set| set != before) {
            let mistaken = self.fault == Some(ModelFault::UndoKeepsTheSettingsOfATurn);
            let turn = self.turn(asking.turn.filter(|_| !mistaken));
            self.threads[index].change(set, Event::Change, None, (turn, self.now), self.fault);
        }
        let thread = &self.threads[index];
        if let Command::Share { visibility: who, private, shared_with_support } = command {
            let before = thread.marks.clone();
            let visible = who.map_or(before.0.clone(), visibility);
            let marks = (visible, private.unwrap_or(before.1), shared_with_support.unwrap_or(before.2));
            if marks == before {
                return Ok(false);
            }
            self.threads[index].marks = marks;
        }
        let thread = &self.threads[index];
        if matches!(command, Command::Save { .. } | Command::Share { .. }) {
            let turn = self.turn(asking.turn);
            self.threads[index].note(turn, self.now);
            return Ok(true);
        }
        if after == *thread.picture() {
            return Ok(false);
        }
        let event = match command {
            Command::SetDraft { take, .. } => Event::Typed(*take, asking.actor.clone()),
            Command::Delete => Event::Archived,
            Command::Restore => Event::Restored,
            Command::Branch { .. } | Command::Fork { .. } => Event::Made,
            Command::Reset => Event::Reset,
            _ => Event::Change,
        };
        let owner = owner(command);
        let running = self.running(index, owner);
        // A turn includes all changes of its take.
        let turn = if owner.is_some() { running.or(asking.turn) } else { asking.turn.or(running) };
        let turn = turn.or_else(|| self.joins(index, &event));
        let turn = match turn {
            Some(turn) => turn,
            None => self.turn(None),
        };
        self.threads[index].change(after, event, owner, (turn, self.now), self.fault);
        Ok(true)
    }

    /// Promotes a take, with an id that the real implementation generated.
    pub fn promote(
        &mut self,
        index: usize,
        take: TakeId,
        title: Option<&str>,
        asking: &RequestContext,
        into: ThreadId,
    ) -> Result<(), ExpectedRefusal> {
        self.expect(index, asking)?;
        let thread = &self.threads[index];
        if thread.picture().deleted.is_some() {
            return Err(ExpectedRefusal::ThreadDeleted);
        }
        let (source, mut promoted) = promote(thread.picture(), thread.id, take, title)?;
        (promoted.visibility, promoted.private, promoted.shared_with_support) = thread.marks.clone();
        if self.taken(&promoted.title, None) {
            return Err(ExpectedRefusal::TitleTaken);
        }
        let running = self.running(index, None);
        let (turn, other) = (self.turn(asking.turn.or(running)), self.turn(asking.turn));
        self.threads[index].change(source, Event::Promoted(into), None, (turn, self.now), self.fault);
        self.threads.push(ReferenceThread::new(into, promoted, other, self.now));
        Ok(())
    }

    /// Undoes steps; returns the other threads that changed.
    pub fn undo(
        &mut self,
        index: usize,
        unit: Unit,
        steps: u64,
        asking: &RequestContext,
    ) -> Result<Vec<ThreadId>, ExpectedRefusal> {
        let mut also = Vec::new();
        let way = self.walk(index, unit, steps, asking, true)?;
        if self.fault != Some(ModelFault::UndoKeepsThePromotedThread) {
            also.extend(self.follow(index, &way, asking));
        }
        let turn = self.turn(asking.turn);
        self.threads[index].add_move(way, turn, self.now);
        if self.fault == Some(ModelFault::UndoRestoresSharing) {
            self.threads[index].marks = self.threads[index].picture().marks();
        }
        Ok(also)
    }

    /// Redoes steps.
    pub fn redo(
        &mut self,
        index: usize,
        unit: Unit,
        steps: u64,
        asking: &RequestContext,
    ) -> Result<Vec<ThreadId>, ExpectedRefusal> {
        let way = self.walk(index, unit, steps, asking, false)?;
        let also = self.follow(index, &way, asking);
        let turn = self.turn(asking.turn);
        self.threads[index].add_move(way, turn, self.now);
        Ok(also)
    }

    fn walk(
        &self,
        index: usize,
        unit: Unit,
        steps: u64,
        asking: &RequestContext,
        back: bool,
    ) -> Result<WalkResult, ExpectedRefusal> {
        self.expect(index, asking)?;
        let thread = &self.threads[index];
        let mut reached = None;
        for count in 1..=steps {
            // Tries each number of steps from the start: steps beyond the target must not count.
            let mut walk = HistoryWalk::new(thread, asking.worktree, self.fault);
            let gone = (0..count).all(|_| walk.step(unit, back));
            let refused = if !gone {
                if back { ExpectedRefusal::NothingToUndo } else { ExpectedRefusal::NothingToRedo }
            } else if back && self.depth.is_some_and(|depth| walk.turns_ahead() > depth) {
                ExpectedRefusal::TooDeep
            } else {
                reached = Some(walk);
                continue;
            };
            if reached.is_none() {
                return Err(refused);
            }
            break;
        }
        Ok(reached.expect("at least one step is asked for").end())
    }

    /// Jumps to a version; returns the other threads that changed, or `None` if nothing changed.
    pub fn jump(
        &mut self,
        index: usize,
        version: usize,
        asking: &RequestContext,
    ) -> Result<Option<Vec<ThreadId>>, ExpectedRefusal> {
        self.expect(index, asking)?;
        let mut walk = HistoryWalk::new(&self.threads[index], asking.worktree, self.fault);
        walk.jump(version)?;
        let way = walk.end();
        if !way.moved {
            return Ok(None);
        }
        let also = self.follow(index, &way, asking);
        let turn = self.turn(asking.turn);
        self.threads[index].add_move(way, turn, self.now);
        Ok(Some(also))
    }

    fn expect(&self, index: usize, asking: &RequestContext) -> Result<(), ExpectedRefusal> {
        let stale = asking.expected.is_some_and(|version| version != self.threads[index].version());
        if stale && self.fault != Some(ModelFault::StaleCallersAreAccepted) {
            Err(ExpectedRefusal::Conflict)
        } else {
            Ok(())
        }
    }

    /// Whether every other thread is archived.
    fn is_last(&self, index: usize) -> bool {
        let in_use =
            |(other, thread): (usize, &ReferenceThread)| other != index && thread.picture().deleted.is_none();
        !self.threads.iter().enumerate().any(in_use)
    }

    /// The running turn of a take, or of the active one for a step of the thread.
    fn running(&self, index: usize, owner: Option<TakeId>) -> Option<u64> {
        let thread = &self.threads[index];
        let picture = thread.picture();
        let take = owner.unwrap_or(picture.active);
        // In the middle of a turn that was undone in part, nothing runs.
        let at = thread.chain(thread.version(), Some(take));
        let undone = at.position != at.tip && self.fault != Some(ModelFault::ChangesJoinUndoneTurns);
        picture.take(take).and_then(|take| take.running).filter(|_| !undone)
    }

    fn turn(&mut self, asked: Option<u64>) -> u64 {
        self.turns += 1;
        asked.unwrap_or(self.turns)
    }

    fn taken(&self, title: &str, except: Option<usize>) -> bool {
        self.threads.iter().enumerate().any(|(index, thread)| {
            Some(index) != except && thread.picture().deleted.is_none() && thread.picture().title == title
        })
    }

    /// The typing turn that a draft change joins.
    fn joins(&self, index: usize, event: &Event) -> Option<u64> {
        let Event::Typed(take, _) = event else { return None };
        let thread = &self.threads[index];
        let at = thread.chain(thread.version(), Some(*take));
        if at.position == 0
            || at.position != at.since
            || self.fault == Some(ModelFault::DraftChangesStaySeparate)
        {
            return None;
        }
        let last = thread.at(at.position);
        let joins = last.event == *event && (0..TYPING_PAUSE).contains(&(self.now - last.time));
        joins.then_some(last.turn)
    }

    /// Archives or restores promoted threads with their promotion, unless they were changed.
    fn follow(&mut self, index: usize, way: &WalkResult, asking: &RequestContext) -> Vec<ThreadId> {
        let thread = &self.threads[index];
        let to = way.chains.get(&None).map_or(0, |at| at.position);
        let (before, after) = (thread.path(thread.chain(thread.version(), None).position), thread.path(to));
        let mut crossed = Vec::new();
        for (version, moment) in (1..).zip(&thread.log) {
            // Moves are separate events, so each promotion is handled once.
            let Event::Promoted(into) = moment.event else { continue };
            match (before.contains(&version), after.contains(&version)) {
                (true, false) => crossed.push((into, Event::Archived)),
                (false, true) => crossed.push((into, Event::Restored)),
                _ => {}
            }
        }
        let mut also = Vec::new();
        for (id, event) in crossed {
            let Some(other) = self.find(id) else { continue };
            let picture = self.threads[other].picture();
            let away = event == Event::Archived;
            if !self.threads[other].untouched() || picture.deleted.is_none() != away {
                continue;
            }
            let after = PlainThread { deleted: away.then_some(self.now), ..picture.clone() };
            let turn = self.turn(asking.turn);
            self.threads[other].change(after, event, None, (turn, self.now), None);
            also.push(id);
        }
        also
    }
}

/// The settings of a step of a turn.
fn settings_of_turn(command: &Command) -> &[(String, String)] {
    match command {
        Command::StartTurn { start, .. } => &start.settings,
        Command::AdvanceTurn { advance, .. } => &advance.settings,
        _ => &[],
    }
}

/// The take whose step a command is.
pub fn owner(command: &Command) -> Option<TakeId> {
    match command {
        Command::AddEntries { take, .. }
        | Command::SendDraft { take, .. }
        | Command::EditEntry { take, .. }
        | Command::RewriteEntry { take, .. }
        | Command::ChangeRole { take, .. }
        | Command::DeleteEntries { take, .. }
        | Command::ReplaceEntries { take, .. }
        | Command::Truncate { take, .. }
        | Command::Clear { take }
        | Command::SetDraft { take, .. }
        | Command::Attach { take, .. }
        | Command::Detach { take, .. }
        | Command::ClearDraft { take }
        | Command::SetFiles { take, .. }
        | Command::StartTurn { take, .. }
        | Command::AdvanceTurn { take, .. }
        | Command::Merge { into: take, .. }
        | Command::RecordSend { take, .. } => Some(*take),
        _ => None,
    }
}
