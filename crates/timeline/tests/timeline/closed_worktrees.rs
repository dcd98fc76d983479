//! Moves over switches and branches after work in a worktree that was removed: conversation and files of the new active
//! take match.

use std::collections::BTreeSet;

use retake_model::entry::EntryVersion;
use retake_model::id::{TakeId, TurnId};
use retake_model::operation::{Actor, OperationKind};
use retake_timeline::{Caller, Command, Goal, InsertPosition, MoveOptions, PlanRequest, Unit, WorkingCopy};
use retake_workspace::snapshot::Options;
use tempfile::TempDir;

use crate::support::FileWorld;

/// A thread in which every turn adds an entry and a file of the same name, so that each shows which turns are done.
struct Takes {
    files: FileWorld,
    folder: TempDir,
    main: TakeId,
    other: TakeId,
}

impl Takes {
    /// The first take with one turn, and an active branch of it.
    fn new() -> Self {
        let files = FileWorld::new();
        let folder = tempfile::tempdir().expect("a folder");
        let main = files.world.state().active;
        let new = Self { files, folder, main, other: main };
        new.turn(&new.files.working_copy, main, "a");
        let at = Some(new.files.world.entry(1));
        new.files.change(Command::Branch { from: main, at, name: None });
        let other = new.files.world.state().active;
        Self { other, ..new }
    }

    fn turn(&self, working_copy: &WorkingCopy, take: TakeId, name: &str) {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let turn = Some(TurnId::from_bytes(bytes));
        let caller = || Caller { actor: Actor::Agent, turn, ..Caller::human() };
        let world = &self.files.world;
        let entry = EntryVersion::from_text("User", name, world.timeline.now());
        let added = Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] };
        world.timeline.change(world.thread, added, caller()).expect("an entry");
        working_copy.record_changes(world.thread, Caller::human()).expect("a reader");
        std::fs::write(working_copy.path().join(name), name).expect("a file");
        working_copy.record_as_caller(world.thread, caller()).expect("a record");
    }

    /// Works in the worktree of a take, and removes it.
    fn worktree(&self, take: TakeId, work: impl FnOnce(&WorkingCopy)) {
        let (world, folder) = (&self.files.world, self.folder.path().join("tree"));
        self.files
            .working_copy
            .open_worktree(world.thread, take, &folder, &Caller::human())
            .expect("a worktree");
        let known =
            world.read().worktrees().of(world.thread, take).expect("a reader").expect("a known worktree");
        let working_copy =
            WorkingCopy::of_worktree(&world.timeline, &known, &Options::default()).expect("a working copy");
        work(&working_copy);
        working_copy.close_worktree(Caller::human(), true).expect("it is closed");
    }

    fn switch(&self, take: TakeId) {
        self.files.change(Command::Switch { take });
    }

    /// Moves and checks that the preview matches.
    fn go(&self, goal: Goal) {
        let thread = self.files.world.thread;
        let request = PlanRequest::Move(goal);
        let plan = self.files.working_copy.plan(thread, request, Caller::human(), MoveOptions::default());
        let plan = plan.expect("a plan");
        let shown = plan.preview().files.clone().expect("there are files");
        let done = plan.execute().expect("a move").files.expect("there are files");
        let paths = |report: &retake_timeline::FileReport| -> Vec<String> {
            report.paths.iter().map(|path| path.path.to_string()).collect()
        };
        assert_eq!((paths(&shown), shown.after), (paths(&done), done.after));
    }

    fn undo(&self) {
        self.go(Goal::Undo(Unit::Turn, 1));
    }

    fn redo(&self) {
        self.go(Goal::Redo(Unit::Turn, 1));
    }

    /// The turns of the active take, which must match the files.
    fn turns(&self) -> String {
        let texts: BTreeSet<String> = self.files.world.texts().into_iter().collect();
        let files: BTreeSet<String> =
            self.files.files().into_keys().filter(|name| !name.starts_with("hand")).collect();
        assert_eq!(texts, files, "conversation and files agree");
        texts.into_iter().collect::<Vec<_>>().join(" ")
    }

    fn active(&self) -> TakeId {
        self.files.world.state().active
    }
}

#[test]
fn undo_of_a_branch_brings_changes_of_a_removed_worktree() {
    let takes = Takes::new();
    takes.worktree(takes.main, |working_copy| {
        takes.turn(working_copy, takes.main, "m2");
        takes.turn(working_copy, takes.main, "m3");
        working_copy
            .go(takes.files.world.thread, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default())
            .expect("an undo");
        std::fs::write(working_copy.path().join("hand"), "edited").expect("a file");
    });
    assert_eq!(takes.turns(), "a");
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a m2"));
    assert_eq!(takes.files.read("hand").as_deref(), Some("edited"));
    takes.undo();
    assert_eq!(takes.turns(), "a", "the step of the worktree is undone here");
    takes.undo();
    assert_eq!(takes.turns(), "");
    for expected in ["a", "a m2"] {
        takes.redo();
        assert_eq!(takes.turns(), expected);
    }
    while takes.active() == takes.main {
        takes.redo();
    }
    assert_eq!(takes.turns(), "a");
    assert_eq!(takes.files.read("hand"), None);
    takes.go(Goal::Undo(Unit::Turn, 2));
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a"));
    takes.go(Goal::Redo(Unit::Turn, 2));
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.other, "a"));
}

#[test]
fn undo_of_a_switch_brings_changes_of_a_removed_worktree() {
    let takes = Takes::new();
    takes.turn(&takes.files.working_copy, takes.other, "b");
    takes.switch(takes.main);
    takes.worktree(takes.other, |working_copy| takes.turn(working_copy, takes.other, "b2"));
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.other, "a b b2"));
    takes.redo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a"));
    takes.turn(&takes.files.working_copy, takes.main, "m");
    takes.switch(takes.other);
    assert_eq!(takes.turns(), "a b b2");
    for expected in ["a m", "a", "a b b2", "a b", "a", "a", ""] {
        takes.undo();
        assert_eq!(takes.turns(), expected);
    }
}

#[test]
fn redo_of_a_switch_brings_changes_of_a_removed_worktree() {
    let takes = Takes::new();
    takes.turn(&takes.files.working_copy, takes.other, "b");
    takes.switch(takes.main);
    takes.switch(takes.other);
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a"));
    takes.worktree(takes.other, |working_copy| takes.turn(working_copy, takes.other, "b2"));
    takes.redo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.other, "a b b2"));
    takes.undo();
    assert_eq!(takes.turns(), "a b", "the newest step of the take");
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a"));
    takes.worktree(takes.other, |working_copy| {
        std::fs::write(working_copy.path().join("hand"), "edited").expect("a file");
    });
    takes.redo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.other, "a b"));
    assert_eq!(takes.files.read("hand").as_deref(), Some("edited"), "an edit is no step, and comes along");
    takes.redo();
    assert_eq!(takes.turns(), "a b b2");
}

#[test]
fn work_of_a_closed_worktree_follows_over_several_switches() {
    let takes = Takes::new();
    takes.turn(&takes.files.working_copy, takes.other, "b");
    takes.worktree(takes.main, |working_copy| takes.turn(working_copy, takes.main, "m2"));
    takes.switch(takes.main);
    takes.turn(&takes.files.working_copy, takes.main, "m3");
    takes.switch(takes.other);
    takes.worktree(takes.main, |working_copy| takes.turn(working_copy, takes.main, "m4"));
    let head = takes.files.world.read().head(takes.files.world.thread).expect("a head").operation.version;
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a m2 m3 m4"));
    for expected in ["a m2 m3", "a m2", "a b"] {
        takes.undo();
        assert_eq!(takes.turns(), expected);
    }
    // Further back the first take is active again, with its work from the worktree.
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.other, "a"));
    takes.undo();
    assert_eq!((takes.active(), takes.turns().as_str()), (takes.main, "a m2"));
    takes.go(Goal::Jump(head));
    takes.turns();
    takes.go(Goal::Jump(3));
    takes.turns();
    takes.go(Goal::Jump(head));
    takes.turns();
}

/// A deterministic random generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn files_and_conversation_agree_after_any_sequence_of_moves_switches_and_worktrees() {
    for seed in 0..seeds() {
        let (takes, mut numbers) = (Takes::new(), Numbers(seed));
        let mut story = Vec::new();
        for number in 0..14 {
            let active = takes.active();
            let idle = if active == takes.main { takes.other } else { takes.main };
            let working_copy = &takes.files.working_copy;
            let thread = takes.files.world.thread;
            let head = takes.files.world.read().head(thread).expect("a head").operation.version;
            let moved = |goal| match working_copy.plan(
                thread,
                PlanRequest::Move(goal),
                Caller::human(),
                MoveOptions::default(),
            ) {
                Ok(_) => takes.go(goal),
                Err(refused) => assert!(
                    refused.to_string().contains("othing to") || matches!(goal, Goal::Jump(_)),
                    "{refused}"
                ),
            };
            let both = takes.files.world.take_names().len() == 2;
            let chosen = numbers.below(10);
            let name = format!("{}{number}", if active == takes.main { "m" } else { "b" });
            story.push(format!("{chosen} {name}"));
            println!("seed {seed}: {story:?}");
            match chosen {
                0 | 1 => takes.turn(working_copy, active, &name),
                2 | 3 if both => takes.switch(idle),
                4 | 5 if both => takes.worktree(idle, |working_copy| {
                    let name = format!("w{number}");
                    takes.turn(working_copy, idle, &name);
                    if numbers.below(2) == 0 {
                        takes.turn(working_copy, idle, &format!("{name}x"));
                        working_copy
                            .go(thread, Goal::Undo(Unit::Turn, 1), Caller::human(), MoveOptions::default())
                            .expect("an undo");
                    }
                }),
                6 => moved(Goal::Redo(Unit::Turn, 1 + numbers.below(3))),
                7 => {
                    let version = 3 + numbers.below(head - 2);
                    let reader = takes.files.world.read();
                    let row = reader.thread(thread).expect("a thread");
                    let found = reader.queries().operation(row.number, version).expect("a read");
                    let target = found.expect("an operation");
                    // In the middle of a turn, the entry exists and the file does not yet.
                    if !matches!(target.operation.kind, OperationKind::EntriesAdded { .. }) {
                        moved(Goal::Jump(version));
                    }
                }
                _ => moved(Goal::Undo(Unit::Turn, 1 + numbers.below(3))),
            }
            println!("{}", takes.turns());
        }
    }
}

/// Number of sequences to try; more for a long search.
fn seeds() -> u64 {
    std::env::var("RETAKE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(8)
}
