//! The operations of a request can be found by its id, even after a crash.

use retake_model::history::link_change;
use retake_model::id::RequestId;
use retake_model::intent::Intent;
use retake_model::operation::{FileChange, Operation, OperationKind};
use retake_timeline::{Caller, Command, Goal, MoveOptions, NewThread, Unit};

use crate::support::{FileWorld, PROJECT, World};

fn asking(key: &str) -> Caller {
    Caller { request: Some(RequestId::of(key.as_bytes())), ..Caller::human() }
}

/// Thread and version of a request's operation after a sequence number.
fn found(world: &World, key: &str, after: i64) -> Option<(bool, u64)> {
    let reader = world.read();
    let found = reader.queries().operation_of_request(RequestId::of(key.as_bytes()), after);
    let operation = found.expect("a readable log")?.operation;
    Some((operation.thread == world.thread, operation.version))
}

#[test]
fn every_change_records_its_request() {
    let world = World::saying(&["one", "two"]);
    let before = world.read().queries().last_sequence().expect("a log");
    let rename = Command::Rename { title: "Other".to_owned() };
    world.timeline.change(world.thread, rename, asking("change")).expect("it is allowed");
    world.timeline.undo(world.thread, Unit::Turn, 1, asking("undo")).expect("it is allowed");
    world.timeline.redo(world.thread, Unit::Turn, 1, asking("redo")).expect("it is allowed");
    world.timeline.jump(world.thread, 2, asking("jump")).expect("it is allowed");
    world.timeline.create_thread(NewThread::in_project(PROJECT), asking("create")).expect("it is allowed");
    let after = world.read().queries().last_sequence().expect("a log");
    for (key, expected) in [
        ("change", Some((true, 4))),
        ("undo", Some((true, 5))),
        ("redo", Some((true, 6))),
        ("jump", Some((true, 7))),
        ("create", Some((false, 1))),
        ("nothing", None),
    ] {
        assert_eq!(found(&world, key, before), expected, "{key}");
        assert_eq!(found(&world, key, after), None, "{key} is not looked for in what was before");
    }
}

#[test]
fn a_promotion_is_found_by_the_thread_that_the_take_left() {
    let world = World::saying(&["one", "two"]);
    let at = world.entry(1);
    let take = world.state().active;
    world.done(Command::Fork { from: take, at, name: None });
    let forked = world.state().active;
    world.done(Command::Switch { take });
    world.timeline.promote(world.thread, forked, None, asking("promote")).expect("it is allowed");
    assert_eq!(found(&world, "promote", 0), Some((true, 6)));
    // The promoted thread changes with the undo, but is not the request's operation.
    let moved = world.timeline.undo(world.thread, Unit::Turn, 1, asking("undo")).expect("it is allowed");
    assert_eq!(moved.also.len(), 1);
    assert_eq!(found(&world, "undo", 0), Some((true, 7)));
}

#[test]
fn a_file_move_is_listed_without_earlier_manual_edits() {
    let world = FileWorld::new();
    world.write("file", "one");
    world.agent(|world| world.write("file", "two"));
    world.write("beside", "by hand");
    let moved = world.working_copy.go(
        world.world.thread,
        Goal::Undo(Unit::Turn, 1),
        asking("undo"),
        MoveOptions::default(),
    );
    let moved = moved.expect("it is possible");
    assert_eq!(world.read("file").as_deref(), Some("one"));
    let reader = world.world.read();
    let operation = reader.queries().operation_of_request(RequestId::of(b"undo"), 0).expect("a readable log");
    let operation = operation.expect("it was done").operation;
    assert!(matches!(operation.kind, OperationKind::Undone { .. }), "{:?}", operation.kind);
    assert!(operation.files.is_some());
    assert_eq!(moved.moved.expect("a move").done.version, operation.version);
}

#[test]
fn an_interrupted_move_keeps_its_request() {
    let world = FileWorld::new();
    world.write("file", "one");
    world.agent(|world| world.write("file", "two"));
    let (thread, timeline) = (world.world.thread, &world.world.timeline);
    let reader = world.world.read();
    let (row, queries) = (reader.thread(thread).expect("a thread"), reader.queries());
    let head = reader.head(thread).expect("a head");
    let folder = queries.folders().expect("readable").remove(0);
    let was = head.operation.files.expect("files");
    let files = FileChange { before: was.after, after: was.before, ..was };
    let version = head.operation.version + 1;
    let (place, chains) =
        link_change(&queries.log(row.number), head.operation.version, Some(was.take)).expect("a log");
    let operation = Operation {
        version,
        previous: Some(head.id),
        kind: OperationKind::FilesMoved { from: head.operation.version, to: 1, paths: 1 },
        place,
        chains: Some(chains),
        files: Some(files),
        last_file_operation: Some(version),
        request: Some(RequestId::of(b"cut")),
        ..head.operation
    };
    let intent = Intent { folder: folder.id, roots: folder.roots, files, operation, token: "cut".to_owned() };
    drop(reader);
    timeline.store().write(move |writing| writing.put_intent(&intent)).expect("an intent");
    assert_eq!(found(&world.world, "cut", 0), None);
    assert_eq!(timeline.recover().expect("it is finished").len(), 1);
    assert_eq!(found(&world.world, "cut", 0), Some((true, version)));
    assert_eq!(world.read("file").as_deref(), Some("one"));
}
