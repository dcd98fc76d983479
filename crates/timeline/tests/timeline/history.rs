//! Undo, redo, jump, reset and save.

use crate::support::{PROJECT, World};
use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::settings::Settings;
use retake_model::take::{FileItem, FileList};
use retake_timeline::{
    Caller, ChangeError, Command, Goal, HistoryMove, InsertPosition, NewThread, Rules, Timeline, Unit,
};

#[test]
fn undo_then_redo_is_the_identity_for_every_kind_of_change() {
    type Make = fn(&World) -> Command;
    let commands: Vec<(&str, Make)> = vec![
        ("edit", |w| Command::EditEntry { take: w.state().active, entry: w.entry(2), text: "new".into() }),
        ("delete", |w| Command::DeleteEntries { take: w.state().active, entries: vec![w.entry(1)] }),
        ("role", |w| Command::ChangeRole {
            take: w.state().active,
            entry: w.entry(1),
            role: "Context".into(),
        }),
        ("truncate", |w| Command::Truncate { take: w.state().active, pairs: 1 }),
        ("clear", |w| Command::Clear { take: w.state().active }),
        ("branch", |w| Command::Branch { from: w.state().active, at: Some(w.entry(2)), name: None }),
        ("fork", |w| Command::Fork { from: w.state().active, at: w.entry(3), name: None }),
        ("rename take", |w| Command::RenameTake { take: w.state().active, name: "better".into() }),
        ("rename", |_| Command::Rename { title: "Other".into() }),
        ("tag", |_| Command::Tag { add: vec!["bug".into()], remove: vec![] }),
        ("pin", |_| Command::Pin { pinned: true }),
        ("roles", |_| Command::SetRoles { roles: vec!["User".into(), "Critic".into()] }),
        ("settings", |_| Command::Set { values: vec![("temperature".into(), "0.5".into())] }),
        ("draft", |w| Command::SetDraft { take: w.state().active, text: "hm".into() }),
        ("context", |w| Command::SetFiles {
            take: w.state().active,
            list: FileList::ContextFiles,
            items: vec![FileItem::new("src/lib.rs")],
        }),
        ("send", |w| Command::RecordSend {
            take: w.state().active,
            markdown: "# all".into(),
            system_prompt: "be brief".into(),
        }),
        ("delete thread", |_| Command::Delete),
        ("reset", |_| Command::Reset),
    ];
    for (name, command) in commands {
        let world = World::saying(&["one", "two", "three", "four"]);
        world.another();
        let before = world.read().head(world.thread).expect("a head").operation.after;
        let done = world.done(command(&world));
        assert!(done.changed() && done.undoable, "{name}");
        let after = world.read().head(world.thread).expect("a head").operation.after;
        assert_ne!(before, after, "{name}");
        assert!(world.undo().expect("an undo").can_redo, "{name}");
        assert_eq!(world.read().head(world.thread).expect("a head").operation.after, before, "undo {name}");
        world.redo().expect("a redo");
        assert_eq!(world.read().head(world.thread).expect("a head").operation.after, after, "redo {name}");
    }
}

#[test]
fn one_undo_restores_everything_that_a_reset_cleared() {
    let world = World::saying(&["one", "two"]);
    world.done(Command::Set { values: vec![("model".into(), "m".into()), ("top_p".into(), "0.1".into())] });
    world.done(Command::Branch { from: world.state().active, at: Some(world.entry(1)), name: None });
    world.done(Command::SetDraft { take: world.state().active, text: "draft".into() });
    let before = world.state();
    world.done(Command::Reset);
    let reader = world.read();
    assert_eq!(world.state().own_settings(&reader.queries()).expect("settings"), Settings::default());
    assert_eq!(world.take_names(), ["main", "main_take_1"], "takes stay");
    assert!(world.texts().is_empty() && world.take().draft.is_empty());
    assert_eq!(world.state().title, "Fix");
    drop(reader);
    world.undo().expect("one undo");
    assert_eq!(world.state(), before);
}

#[test]
fn a_change_clears_redo_but_jump_still_reaches_undone_versions() {
    let world = World::saying(&["one"]);
    let kept = world.say("AI", "kept").version;
    world.undo().expect("an undo");
    world.say("AI", "other");
    assert!(matches!(world.redo(), Err(ChangeError::NothingToRedo)));
    let moved = world.timeline.jump(world.thread, kept, Caller::human()).expect("a jump");
    assert_eq!(moved.position, kept);
    assert_eq!(world.texts(), ["one", "kept"]);
    let history = world.read().history(world.thread).list(None, 100).expect("a history");
    assert!(history.iter().any(|item| item.undone && !item.redoable), "the other one is listed as undone");
}

#[test]
fn history_survives_a_restart() {
    let world = World::saying(&["one", "two"]);
    world.undo().expect("an undo");
    let World { folder, timeline, thread } = world;
    drop(timeline);
    let timeline = Timeline::open(folder.path(), Rules::default()).expect("the same store");
    let moved = timeline.redo(thread, Unit::Turn, 1, Caller::human()).expect("a redo after a restart");
    assert!(!moved.can_redo && moved.can_undo);
}

#[test]
fn typing_is_one_step_per_pause() {
    // The seeded clock advances a few milliseconds per change.
    let typing = |pause: i64| {
        let world = World::with(Rules { typing_pause: pause, depth: None });
        for text in ["h", "he", "hel", "hell", "hello"] {
            world.done(Command::SetDraft { take: world.state().active, text: text.into() });
        }
        world.undo().expect("an undo");
        world.take().draft
    };
    assert_eq!(typing(10_000), "", "one burst");
    assert_eq!(typing(0), "hell", "every change a step");
}

#[test]
fn operations_of_one_turn_are_undone_together_and_can_be_undone_one_by_one() {
    let world = World::saying(&["before"]);
    let turn = retake_model::id::TurnId::from_bytes([9; 16]);
    for text in ["prompt", "answer", "tool"] {
        let entry = retake_model::entry::EntryVersion::from_text("User", text, world.timeline.now());
        let add = Command::AddEntries {
            take: world.state().active,
            at: retake_timeline::InsertPosition::End,
            entries: vec![entry.into()],
        };
        let caller = Caller { turn: Some(turn), ..Caller::human() };
        world.timeline.change(world.thread, add, caller).expect("an addition");
    }
    world.timeline.undo(world.thread, Unit::Operation, 1, Caller::human()).expect("one operation");
    assert_eq!(world.texts(), ["before", "prompt", "answer"]);
    world.redo().expect("a redo");
    world.undo().expect("a turn");
    assert_eq!(world.texts(), ["before"]);
    world.redo().expect("a turn");
    assert_eq!(world.texts().len(), 4);
}

#[test]
fn depth_limits_undo_but_not_jump() {
    let world = World::with(Rules { typing_pause: 0, depth: Some(2) });
    for text in ["one", "two", "three", "four"] {
        world.say("User", text);
    }
    world.undo().expect("the first");
    world.undo().expect("the second");
    assert!(matches!(world.undo(), Err(ChangeError::TooDeep(2))));
    world.timeline.jump(world.thread, 2, Caller::human()).expect("a jump");
    assert_eq!(world.texts(), ["one"]);
}

/// A prompt, an answer and the result of a tool in one turn.
fn turn_of_three(world: &World, name: &str) {
    let turn = retake_model::id::TurnId::generate(&mut world.timeline.fresh());
    for part in ["prompt", "answer", "tool"] {
        let text = format!("{name} {part}");
        let entry = retake_model::entry::EntryVersion::from_text("User", &text, world.timeline.now());
        let add = Command::AddEntries {
            take: world.state().active,
            at: retake_timeline::InsertPosition::End,
            entries: vec![entry.into()],
        };
        let caller = Caller { turn: Some(turn), ..Caller::human() };
        world.timeline.change(world.thread, add, caller).expect("an addition");
    }
}

#[test]
fn depth_counts_turns_and_not_their_operations() {
    let world = World::with(Rules { typing_pause: 0, depth: Some(1) });
    turn_of_three(&world, "one");
    turn_of_three(&world, "two");
    world.undo().expect("one turn is always possible");
    assert_eq!(world.texts().len(), 3);
    assert!(matches!(world.undo(), Err(ChangeError::TooDeep(1))));
    world.redo().expect("a redo");
    world.timeline.undo(world.thread, Unit::Operation, 3, Caller::human()).expect("the same turn in parts");
    assert_eq!(world.texts().len(), 3);
}

#[test]
fn a_redo_returns_to_where_the_undo_started_inside_a_turn() {
    let world = World::new();
    turn_of_three(&world, "one");
    turn_of_three(&world, "two");
    let all = world.texts();
    let back =
        |unit, steps| world.timeline.undo(world.thread, unit, steps, Caller::human()).expect("an undo");
    let starts: [&dyn Fn(); 2] = [&|| drop(back(Unit::Operation, 2)), &|| {
        drop(world.timeline.jump(world.thread, 5, Caller::human()).expect("a jump into the turn"));
    }];
    for start in starts {
        start();
        let (inside, state) = (world.texts(), world.state());
        assert_eq!(inside.len(), 4);
        for steps in 1..=2 {
            back(Unit::Turn, steps);
            for _ in 0..steps {
                world.redo().expect("a redo of the undo");
            }
            assert_eq!((world.texts(), world.state()), (inside.clone(), state.clone()), "{steps}");
        }
        back(Unit::Turn, 2);
        world.timeline.redo(world.thread, Unit::Turn, 2, Caller::human()).expect("a redo of both turns");
        assert_eq!(world.texts(), inside);
        world.redo().expect("a redo of the rest of the turn");
        assert_eq!(world.texts(), all);
        assert!(world.redo().is_err(), "nothing is left");
    }
}

#[test]
fn saving_a_version_is_not_an_undo_step() {
    let world = World::saying(&["one"]);
    world.done(Command::Save { name: "good".into() });
    let saved = world.read().history(world.thread).saved("good").expect("a reader").expect("a saved version");
    world.say("AI", "bad");
    world.undo().expect("an undo");
    world.undo().expect("an undo passes over the save");
    assert!(world.texts().is_empty());
    world.timeline.jump(world.thread, saved, Caller::human()).expect("a jump");
    assert_eq!(world.texts(), ["one"]);
}

#[test]
fn a_stale_writer_gets_the_current_version_and_changes_nothing() {
    let world = World::saying(&["one"]);
    let stale = world.read().history(world.thread).undo_status().expect("an undo status").version;
    world.say("AI", "two");
    let before = world.state();
    let edit = Command::Rename { title: "Mine".into() };
    let result = world.timeline.change(world.thread, edit.clone(), Caller::human().expecting(stale));
    let Err(ChangeError::Conflict { current, .. }) = result else { panic!("{result:?}") };
    assert_eq!(world.state(), before);
    world.timeline.change(world.thread, edit, Caller::human().expecting(current)).expect("the replay");
    assert_eq!(world.state().title, "Mine");
}

#[test]
fn undo_is_scoped_to_its_thread() {
    let world = World::saying(&["one"]);
    let new = NewThread::in_project(PROJECT);
    let other = world.timeline.create_thread(new, Caller::human()).expect("another thread").thread;
    world.timeline.change(other, Command::Pin { pinned: true }, Caller::human()).expect("a change");
    world.undo().expect("an undo");
    assert!(world.read().state(other).expect("a state").pinned);
}

#[test]
fn undoing_many_steps_is_one_operation() {
    let world = World::saying(&["one", "two", "three", "four"]);
    let before = world.read().history(world.thread).undo_status().expect("a thread");
    let undone = world.timeline.undo(world.thread, Unit::Turn, 3, Caller::human()).expect("an undo");
    assert_eq!((undone.steps, undone.done.version), (3, before.version + 1));
    assert_eq!(world.texts(), ["one"]);
    let redone = world.timeline.redo(world.thread, Unit::Turn, 2, Caller::human()).expect("a redo");
    assert_eq!((redone.steps, redone.done.version), (2, before.version + 2));
    assert_eq!(world.texts(), ["one", "two", "three"]);
    let redone = world.timeline.redo(world.thread, Unit::Turn, 9, Caller::human()).expect("a redo");
    assert_eq!((redone.steps, redone.can_redo), (1, false), "no more than there are");
    let undone = world.timeline.undo(world.thread, Unit::Turn, 99, Caller::human()).expect("an undo");
    assert_eq!((undone.steps, undone.can_undo, undone.position), (4, false, 1));
}

/// A switch away from a take that gets another entry afterwards.
fn a_take_written_to_while_another_is_active() -> World {
    let world = World::new();
    world.say("User", "one");
    let main = world.state().active;
    world.done(Command::Branch { from: main, at: None, name: Some("B".to_owned()) });
    let branch = world.state().active;
    world.done(Command::Switch { take: main });
    let note = EntryVersion::from_text("User", "a note", world.timeline.now());
    world.done(Command::AddEntries { take: branch, at: InsertPosition::End, entries: vec![note.into()] });
    world
}

fn state_of(world: &World) -> ContentId {
    world.read().head(world.thread).expect("a head").operation.after
}

fn go(world: &World, goal: Goal) -> HistoryMove {
    world.timeline.go(world.thread, goal, Caller::human()).expect("a move")
}

#[test]
fn a_jump_there_and_back_preserves_changes_of_inactive_takes() {
    let world = a_take_written_to_while_another_is_active();
    let (before, version) =
        (state_of(&world), world.read().head(world.thread).expect("a head").operation.version);
    for far in 1..version {
        go(&world, Goal::Jump(far));
        go(&world, Goal::Jump(version));
        assert_eq!(state_of(&world), before, "by way of {far}");
    }
}

#[test]
fn redo_restores_all_steps_of_one_undo_across_a_switch() {
    let world = a_take_written_to_while_another_is_active();
    let before = state_of(&world);
    for steps in 1..=4 {
        let undone = go(&world, Goal::Undo(Unit::Turn, steps));
        let redone = go(&world, Goal::Redo(Unit::Turn, steps));
        assert_eq!((undone.steps, redone.steps), (steps, steps));
        assert_eq!(state_of(&world), before, "{steps} steps");
    }
}
