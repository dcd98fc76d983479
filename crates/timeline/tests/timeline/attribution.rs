//! File changes, the log of a file, and blame.

use retake_model::operation::{Actor, OperationKind};
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::PathChangeKind;
use retake_timeline::{
    Blame, BlameError, Caller, ContentComparison, Detail, DiffOptions, FileLog, Goal, NewThread, Unit,
};

use crate::support::{FileWorld, PROJECT, World};

fn path(text: &str) -> RootPath {
    RootPath::main(TreePath::new(text.as_bytes()).expect("a path"))
}

fn log(world: &FileWorld, name: &str) -> FileLog {
    world.world.read().project(PROJECT).file_log(&path(name), None, 100).expect("a log")
}

/// A short summary of each operation, newest first.
fn described(log: &FileLog) -> Vec<String> {
    let items = log.operations.iter().map(|item| {
        let lines = item.lines.map(|lines| format!(" +{} -{}", lines.added, lines.removed));
        let from = item.from.as_ref().map(|from| format!(" from {from}"));
        let to = item.to.as_ref().map(|to| format!(" to {to}"));
        let who = who(&item.by.actor);
        format!(
            "{who} {:?} {}{}{}{}",
            item.change,
            item.path,
            from.unwrap_or_default(),
            to.unwrap_or_default(),
            lines.unwrap_or_default()
        )
    });
    items.collect()
}

fn who(actor: &Actor) -> &'static str {
    match actor {
        Actor::Human => "human",
        _ => "agent",
    }
}

fn blame(world: &FileWorld, name: &str) -> Result<Blame, BlameError> {
    let seen = world.working_copy.record_changes(world.world.thread, Caller::human()).expect("a reader");
    world.world.read().project(PROJECT).blame(&path(name), seen.snapshot, None)
}

/// Each line with its author.
fn lines(world: &FileWorld, name: &str) -> Vec<String> {
    let blame = blame(world, name).expect("lines");
    let described = blame.lines.iter().map(|line| {
        let who = line.origin.map_or("before", |origin| who(&blame.origins[origin].by.actor));
        format!("{who} {}", line.text)
    });
    described.collect()
}

#[test]
fn blame_follows_a_file_through_users_agents_renames_and_undo() {
    let root = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(root.path().join("todo.md"), "one\ntwo\nthree\nfour\nfive\n").expect("a file");
    let world = FileWorld::beside(World::new(), root);
    world.agent(|world| world.write("todo.md", "one\nTWO\nthree\nfour\nfive\n"));
    world.write("todo.md", "one\nTWO\nthree\nfour\nfive\nsix\n");
    world.agent(|world| {
        world.remove("todo.md");
        world.write("notes.md", "one\nTWO\nthree\nfour\nfive\nsix\nseven\n");
    });
    assert_eq!(
        lines(&world, "notes.md"),
        ["before one", "agent TWO", "before three", "before four", "before five", "human six", "agent seven"]
    );
    let found = log(&world, "notes.md");
    assert_eq!(
        described(&found),
        [
            "agent Renamed notes.md from todo.md +1 -0",
            "human Changed todo.md +1 -0",
            "agent Changed todo.md +1 -1",
        ]
    );
    assert!(matches!(found.operations[1].by.kind, OperationKind::ExternalEdits { .. }));
    assert!(described(&log(&world, "todo.md"))[0].starts_with("agent Removed todo.md to notes.md"));

    // An undo does not own the lines it restores.
    world.undo();
    assert_eq!(
        lines(&world, "todo.md"),
        ["before one", "agent TWO", "before three", "before four", "before five", "human six"]
    );
    world.undo();
    assert_eq!(lines(&world, "todo.md")[1], "before two");
    assert_eq!(lines(&world, "todo.md")[5], "human six");
    world.redo();
    assert_eq!(lines(&world, "todo.md")[1], "agent TWO");
}

#[test]
fn a_file_log_is_paged_and_covers_every_thread_of_the_project() {
    let world = FileWorld::new();
    let other = NewThread::in_project(PROJECT).titled("Other");
    let other = world.world.timeline.create_thread(other, Caller::human()).expect("a thread").thread;
    for number in 0..6 {
        world.write("a.txt", &format!("number {number}\n"));
        let thread = if number % 2 == 0 { world.world.thread } else { other };
        let caller = Caller { actor: Actor::Agent, ..Caller::human() };
        world.working_copy.record_as_caller(thread, caller).expect("a record");
    }
    let all = log(&world, "a.txt");
    assert_eq!(all.operations.len(), 6);
    assert_eq!(all.operations[0].by.title, "Other");
    assert_eq!(all.operations[1].by.title, "Fix");
    assert_eq!(all.next, None);
    let reader = world.world.read();
    let mut paged = Vec::new();
    let mut before = None;
    loop {
        let page = reader.project(PROJECT).file_log(&path("a.txt"), before, 2).expect("a page");
        paged.extend(page.operations);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(paged, all.operations);
    assert_eq!(log(&world, "none.txt").operations, []);
}

#[test]
fn differences_have_the_requested_detail() {
    let world = FileWorld::new();
    world.write("src/a.txt", "one\ntwo\n");
    world.write("old.bin", "a\0b");
    world.write("moved.txt", "some text\nthat moves\n");
    let before = world.agent(|_| {}).snapshot;
    world.write("src/a.txt", "one\n2\n");
    world.write("old.bin", "a\0c");
    world.remove("moved.txt");
    world.write("there/moved.txt", "some text\nthat moves\n");
    let after = world.agent(|_| {}).snapshot;
    let reader = world.world.read();
    let ask = |paths: Vec<RootPath>, detail| {
        reader
            .snapshot(before)
            .changes(after, &DiffOptions { paths, ..DiffOptions::all(detail) })
            .expect("readable files")
    };
    let all = ask(vec![], Detail::Hunks(3));
    let names: Vec<String> =
        all.files.iter().map(|file| format!("{:?} {}", file.change, file.path)).collect();
    assert_eq!(names, ["Changed old.bin", "Changed src/a.txt", "Renamed there/moved.txt"]);
    assert_eq!(all.files[0].content, ContentComparison::Binary);
    assert_eq!(all.files[1].hunks.len(), 1);
    assert_eq!(all.files[2].content, ContentComparison::Same);
    assert_eq!((all.stat.files, all.stat.lines.added, all.stat.lines.removed), (3, 1, 1));
    let one = ask(vec![path("src")], Detail::Counts);
    assert_eq!(one.files.len(), 1);
    assert!(one.files[0].hunks.is_empty() && one.files[0].lines.is_some());
    // Former names match as well as current ones.
    assert_eq!(ask(vec![path("moved.txt")], Detail::Paths).files[0].change, PathChangeKind::Renamed);
    assert_eq!(
        reader.snapshot(after).changes(after, &DiffOptions::all(Detail::Paths)).expect("a comparison").files,
        []
    );
}

#[test]
fn blame_of_content_without_lines_is_refused() {
    let world = FileWorld::new();
    world.write("a.bin", "a\0b");
    world.write("folder/file", "text");
    std::os::unix::fs::symlink("a.bin", world.path("link")).expect("a link");
    assert!(matches!(blame(&world, "a.bin"), Err(BlameError::Incomparable(_))));
    assert!(matches!(blame(&world, "folder"), Err(BlameError::NotAFile)));
    assert!(matches!(blame(&world, "link"), Err(BlameError::NotAFile)));
    assert!(matches!(blame(&world, "none"), Err(BlameError::NoSuchFile)));
}

#[test]
fn a_jump_far_back_and_forth_keeps_every_origin() {
    let world = FileWorld::new();
    let mut text = String::new();
    for number in 0..5 {
        text.extend(["line ", &number.to_string(), "\n"]);
        let text = text.clone();
        world.agent(move |world| world.write("a.txt", &text));
    }
    let expected = blame(&world, "a.txt").expect("lines");
    assert_eq!(expected.origins.len(), 5);
    world.go(Goal::Undo(Unit::Turn, 4));
    assert_eq!(blame(&world, "a.txt").expect("lines").lines, expected.lines[..1]);
    world.go(Goal::Redo(Unit::Turn, 4));
    assert_eq!(blame(&world, "a.txt").expect("lines"), expected);
}
