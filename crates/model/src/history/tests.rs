//! Tests chains on short hand-written logs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::convert::Infallible;

use super::*;

/// A log that records the active take after each operation.
struct Steps {
    all: Vec<LogStep>,
    active: Vec<TakeId>,
    worktrees: BTreeSet<TakeId>,
    reads: Cell<usize>,
}

impl OperationLog for Steps {
    type Error = Infallible;

    fn step(&self, version: Version) -> Result<LogStep, Infallible> {
        self.reads.set(self.reads.get() + 1);
        Ok(self.all[version as usize - 1].clone())
    }

    fn active(&self, version: Version) -> Result<TakeId, Infallible> {
        Ok(self.active[version as usize - 1])
    }
}

const A: TakeId = TakeId::from_bytes([1; 16]);
const B: TakeId = TakeId::from_bytes([2; 16]);

impl Steps {
    fn new() -> Self {
        let first = LogStep {
            place: FIRST,
            turn: turn(0),
            chains: None,
            is_not_undoable: false,
            created_take: None,
            resets_takes: false,
            changes_project_files: false,
            touched_take: None,
        };
        Self { all: vec![first], active: vec![A], worktrees: BTreeSet::new(), reads: Cell::new(0) }
    }

    fn head(&self) -> Version {
        self.all.len() as Version
    }

    fn push(&mut self, linked: (Provenance, Chains), number: u8, is_not_undoable: bool, active: TakeId) {
        let (place, chains) = (linked.0, Some(linked.1));
        let step = LogStep {
            place,
            turn: turn(number),
            chains,
            is_not_undoable,
            created_take: None,
            resets_takes: false,
            changes_project_files: false,
            touched_take: None,
        };
        self.all.push(step);
        self.active.push(active);
    }

    fn now_active(&self) -> TakeId {
        *self.active.last().expect("the log starts with one operation")
    }

    fn change(&mut self, take: Option<TakeId>, number: u8) -> Version {
        let Ok(linked) = link_change(self, self.head(), take);
        self.push(linked, number, false, self.now_active());
        self.head()
    }

    /// Adds a step of the thread that switches the active take.
    fn switch(&mut self, to: TakeId, number: u8) -> Version {
        let Ok(linked) = link_change(self, self.head(), None);
        self.push(linked, number, false, to);
        self.head()
    }

    fn cursor(&self, worktree: Option<TakeId>) -> HistoryCursor {
        let view = HistoryView {
            take: worktree.unwrap_or_else(|| self.now_active()),
            worktree: worktree.is_some(),
            worktrees: self.worktrees.clone(),
        };
        let Ok(cursor) = HistoryCursor::new(self, self.head(), view);
        cursor
    }

    /// Publishes the move; returns the newest change in effect after it.
    fn go(&mut self, worktree: Option<TakeId>, mut cursor: HistoryCursor) -> Version {
        let (Ok(moves), Ok(position)) = (cursor.moves(self), cursor.position(self));
        let Ok(linked) = link_move(self, self.head(), cursor.view(), moves);
        let active = if worktree.is_some() { self.now_active() } else { cursor.view() };
        self.push(linked, 255, true, active);
        position
    }

    fn undo_in(&mut self, worktree: Option<TakeId>) -> Option<Version> {
        let mut cursor = self.cursor(worktree);
        let Ok(moved) = cursor.undo(self, Unit::Turn);
        moved.then(|| self.go(worktree, cursor))
    }

    fn redo_in(&mut self, worktree: Option<TakeId>) -> Option<Version> {
        let mut cursor = self.cursor(worktree);
        let Ok(moved) = cursor.redo(self, Unit::Turn);
        moved.then(|| self.go(worktree, cursor))
    }

    fn undo(&mut self) -> Option<Version> {
        self.undo_in(None)
    }

    fn redo(&mut self) -> Option<Version> {
        self.redo_in(None)
    }

    fn jump(&mut self, version: Version) -> Version {
        let mut cursor = self.cursor(None);
        let Ok(()) = cursor.jump(self, version);
        self.go(None, cursor)
    }

    fn done(&self, change: Version) -> bool {
        let Ok(done) = is_done(self, self.head(), change);
        done
    }
}

fn turn(number: u8) -> TurnId {
    TurnId::from_bytes([number; 16])
}

#[test]
fn operations_of_a_turn_move_together() {
    let mut log = Steps::new();
    for number in [1, 2, 2, 2, 3] {
        log.change(Some(A), number); // versions 2 to 6
    }
    assert_eq!(log.undo(), Some(5));
    assert_eq!(log.undo(), Some(2));
    assert_eq!(log.undo(), Some(1));
    assert_eq!(log.undo(), None);
    assert_eq!(log.redo(), Some(2));
    assert_eq!(log.redo(), Some(5));
    assert_eq!(log.redo(), Some(6));
    assert_eq!(log.redo(), None);
}

#[test]
fn turn_interleaved_with_another_take_is_one_undo() {
    let mut log = Steps::new();
    log.worktrees.insert(B);
    let started = log.change(Some(A), 1);
    let theirs = log.change(Some(B), 2);
    let ended = log.change(Some(A), 1);
    let theirs_too = log.change(Some(B), 2);
    assert_eq!(log.undo(), Some(1));
    assert_eq!([started, ended].map(|change| log.done(change)), [false, false]);
    assert_eq!([theirs, theirs_too].map(|change| log.done(change)), [true, true]);
    assert_eq!(log.undo(), None, "what others did is not this take's to undo");
    assert_eq!(log.redo(), Some(ended));
    assert!(log.done(started) && log.done(ended));
}

#[test]
fn undo_in_a_worktree_leaves_the_project_unchanged() {
    let mut log = Steps::new();
    log.worktrees.insert(B);
    let project = log.change(Some(A), 1);
    let own = log.change(Some(B), 2);
    let project_too = log.change(Some(A), 1);
    assert_eq!(log.undo_in(Some(B)), Some(1));
    assert!(!log.done(own) && log.done(project) && log.done(project_too));
    let renamed = log.change(None, 3);
    assert_eq!(log.undo_in(Some(B)), Some(1), "a step of the thread is everyone's");
    assert!(!log.done(renamed) && log.done(project_too));
    assert_eq!(log.redo_in(Some(B)), Some(renamed));
}

#[test]
fn turn_interleaved_with_thread_steps_is_one_undo() {
    let mut log = Steps::new();
    let started = log.change(Some(A), 1);
    let renamed = log.change(None, 2);
    let ended = log.change(Some(A), 1);
    log.undo();
    assert!(!log.done(started) && !log.done(ended) && log.done(renamed));
    log.undo();
    assert!(!log.done(renamed));
    assert_eq!(log.redo(), Some(renamed), "what was taken back last comes first");
    assert!(log.done(renamed) && !log.done(started));
    assert_eq!(log.redo(), Some(ended));
    assert!(log.done(ended) && log.done(started));
}

#[test]
fn thread_step_moves_with_its_part_of_a_resumed_turn() {
    let mut log = Steps::new();
    let (started, branched, failed) = (log.change(Some(A), 1), log.change(None, 1), log.change(Some(A), 1));
    let (edited, resumed) = (log.change(Some(A), 2), log.change(Some(A), 1));
    assert_eq!(log.undo(), Some(edited));
    assert!(log.done(branched) && log.done(failed), "the first part of the turn is all there");
    assert_eq!([log.undo(), log.undo(), log.undo()], [Some(failed), Some(1), None]);
    assert!(!log.done(branched) && !log.done(started));
    assert_eq!([log.redo(), log.redo(), log.redo()], [Some(failed), Some(edited), Some(resumed)]);
    assert!(log.done(branched));

    let mut log = Steps::new();
    let (started, edited) = (log.change(Some(A), 1), log.change(Some(A), 2));
    let (resumed, branched, ended) = (log.change(Some(A), 1), log.change(None, 1), log.change(Some(A), 1));
    assert_eq!([log.undo(), log.undo(), log.undo()], [Some(edited), Some(started), Some(1)]);
    assert_eq!(log.redo(), Some(started));
    assert!(!log.done(branched), "it was made after the edit, and so it is made again after it");
    assert_eq!([log.redo(), log.redo(), log.redo()], [Some(edited), Some(ended), None]);
    assert!(log.done(resumed) && log.done(branched));
}

#[test]
fn undo_follows_the_take_across_a_switch() {
    let mut log = Steps::new();
    log.change(Some(A), 1); // 2
    log.switch(B, 2); // 3
    log.change(Some(B), 3); // 4
    log.switch(A, 4); // 5
    log.change(Some(A), 5); // 6
    for (position, active) in [(5, A), (4, B), (3, B), (2, A), (1, A)] {
        assert_eq!(log.undo(), Some(position));
        assert_eq!(log.now_active(), active);
    }
    assert_eq!(log.undo(), None);
    for (position, active) in [(2, A), (3, B), (4, B), (5, A), (6, A)] {
        assert_eq!((log.redo(), log.now_active()), (Some(position), active));
    }
    // The same with one jump.
    assert_eq!(log.jump(2), 2);
    assert_eq!((log.now_active(), log.done(4), log.done(6)), (A, false, false));
    assert_eq!(log.redo(), Some(3));
    assert_eq!(log.jump(6), 6);
    assert_eq!((2..=6).map(|change| log.done(change)).collect::<Vec<_>>(), [true; 5]);
    assert_eq!(log.redo(), None);
}

#[test]
fn change_clears_redo_and_undone_steps_remain_reachable_by_jump() {
    let mut log = Steps::new();
    log.change(Some(A), 1); // 2
    log.change(Some(A), 2); // 3
    assert_eq!(log.undo(), Some(2)); // operation 4
    log.change(Some(A), 3); // 5
    assert_eq!(log.redo(), None);
    assert_eq!(log.jump(3), 3); // operation 6
    assert_eq!(log.redo(), None);
    assert_eq!(log.undo(), Some(2));
    assert_eq!(log.redo(), Some(3));
    assert_eq!(log.jump(1), 1);
    assert_eq!(log.redo(), Some(2), "a jump back keeps what lies ahead");
    assert_eq!(log.redo(), Some(3));
    assert_eq!(log.jump(5), 5);
    assert_eq!(log.redo(), None);
    assert_eq!(log.undo(), Some(2));
    log.change(None, 4);
    assert_eq!(log.redo(), None, "a step of the thread clears redo too");
}

#[test]
fn changes_of_another_take_do_not_clear_redo() {
    let mut log = Steps::new();
    log.worktrees.insert(B);
    let own = log.change(Some(A), 1);
    log.undo();
    log.change(Some(B), 2);
    assert_eq!(log.redo(), Some(own));
}

#[test]
fn logs_without_chains_form_one_chain() {
    let mut log = Steps::new();
    for version in 2..=4 {
        let Ok(place) = place_of_change(&log, version - 1, version);
        let first = log.all[0].clone();
        log.all.push(LogStep { place, turn: turn(version as u8), ..first });
        log.active.push(A);
    }
    log.change(Some(A), 5); // 5
    for position in [4, 3, 2, 1] {
        assert_eq!(log.undo(), Some(position));
    }
    assert_eq!(log.undo(), None);
    for position in [2, 3, 4, 5] {
        assert_eq!(log.redo(), Some(position));
    }
}

#[test]
fn undo_among_a_hundred_thousand_changes_takes_few_reads() {
    let mut log = Steps::new();
    for number in 0..100_000u32 {
        log.change(Some(A), (number % 250) as u8 + 1);
    }
    log.worktrees.insert(B);
    log.change(Some(B), 1);
    log.reads.set(0);
    assert_eq!(log.undo(), Some(100_000));
    assert_eq!(log.redo(), Some(100_001));
    assert!(log.reads.get() < 300, "{} reads", log.reads.get());
}

#[test]
fn single_redos_revert_single_undos_despite_moves_elsewhere() {
    let mut log = Steps::new();
    let made = log.change(Some(A), 1);
    let renamed = log.change(None, 2);
    let message = log.change(Some(A), 3);
    let tagged = log.change(None, 4);
    for _ in 0..4 {
        log.undo();
    }
    let again: Vec<_> = (0..4).filter_map(|_| log.redo()).collect();
    assert_eq!(again, [made, renamed, message, tagged]);
    assert_eq!(log.redo(), None);
}

#[test]
fn one_redo_reverts_an_undo_although_its_take_moved_elsewhere() {
    let mut log = Steps::new();
    let message = log.change(Some(A), 1);
    log.worktrees.insert(A);
    let switched = log.switch(B, 2);
    log.undo_in(Some(A));
    log.worktrees.clear();
    assert!(!log.done(message));
    log.undo();
    assert!(!log.done(switched));
    log.redo();
    assert!(
        log.done(switched) && !log.done(message),
        "the switch, and not what was undone in the other folder"
    );
}

/// Switches away from B, adds two steps to B, then switches back and adds one more.
fn a_take_that_goes_on_while_another_is_active() -> Steps {
    let mut log = Steps::new();
    log.change(Some(A), 1); // 2
    log.switch(B, 2); // 3
    log.switch(A, 3); // 4
    log.change(Some(B), 4); // 5
    log.change(Some(B), 5); // 6
    log
}

#[test]
fn jump_back_and_forth_restores_the_takes_on_the_way() {
    for target in 1..=6 {
        let mut log = a_take_that_goes_on_while_another_is_active();
        log.jump(target);
        log.jump(6);
        let done: Vec<Version> = (2..=6).filter(|version| log.done(*version)).collect();
        assert_eq!((done, log.now_active()), (vec![2, 3, 4, 5, 6], A), "by way of {target}");
    }
}

#[test]
fn redo_repeats_all_steps_of_one_undo_across_a_switch() {
    for returns in [false, true] {
        let mut log = a_take_that_goes_on_while_another_is_active();
        let mut all = vec![6, 5, 4, 3, 2];
        if returns {
            log.switch(B, 6); // 7
            log.change(Some(B), 7); // 8
            all = vec![8, 7, 4, 6, 5, 3, 2];
        }
        let (head, active) = (log.head(), log.now_active());
        let steps = all.len();
        for count in 1..=steps {
            let mut cursor = log.cursor(None);
            for _ in 0..count {
                let Ok(true) = cursor.undo(&log, Unit::Turn) else { panic!("{count} steps back") };
            }
            let undone: Vec<Version> = cursor.route().iter().map(|step| step.version()).collect();
            log.go(None, cursor);
            let mut cursor = log.cursor(None);
            let mut made = Vec::new();
            while let Ok(true) = cursor.redo(&log, Unit::Turn) {}
            made.extend(cursor.route().iter().map(|step| step.version()));
            log.go(None, cursor);
            made.reverse();
            assert_eq!(made, undone, "{count} of {steps}");
            assert!((2..=head).all(|version| log.done(version)));
            assert_eq!(log.now_active(), active);
        }
    }
}
