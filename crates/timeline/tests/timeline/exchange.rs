//! Export and import: lossless, and without trusting the file.

use std::io::Cursor;

use crate::support::{FileWorld, PROJECT, World};
use retake_model::entry::EntryVersion;
use retake_model::id::ProjectId;
use retake_timeline::{
    Caller, Command, Exporter, Goal, ImportError, ImportMode, InsertPosition, MoveOptions, NewThread, Rules,
    Timeline, WorkingCopy,
};
use retake_workspace::snapshot::Workspace;

pub(crate) fn export(timeline: &Timeline, thread: retake_model::id::ThreadId) -> Vec<u8> {
    let mut bytes = Vec::new();
    Exporter::new(&timeline.read().expect("a reader"))
        .thread(thread, &mut bytes, &mut |_, _| {})
        .expect("an export");
    bytes
}

fn grown() -> World {
    let world = World::saying(&["one", "two", "three"]);
    world.done(Command::Fork { from: world.state().active, at: world.entry(3), name: None });
    world.say("User", "another");
    world.undo().expect("an undo");
    world.done(Command::EditEntry { take: world.state().active, entry: world.entry(1), text: "uno".into() });
    world.done(Command::Save { name: "here".into() });
    world.timeline.jump(world.thread, 3, Caller::human()).expect("a jump");
    world
}

pub(crate) fn import(
    bytes: Vec<u8>,
    timeline: &Timeline,
    importing: ImportMode,
) -> Result<retake_timeline::ImportSummary, ImportError> {
    timeline.import(Cursor::new(bytes), ProjectId::from_bytes([8; 16]), importing, |_, _| {})
}

pub(crate) fn elsewhere() -> (tempfile::TempDir, Timeline) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let timeline = Timeline::open(folder.path(), Rules::default()).expect("a new store");
    (folder, timeline)
}

#[test]
fn an_imported_thread_equals_the_exported_one() {
    let world = grown();
    let bytes = export(&world.timeline, world.thread);
    let (_folder, other) = elsewhere();
    let imported = import(bytes.clone(), &other, ImportMode::Same).expect("an import");
    assert_eq!(imported.thread, world.thread);
    assert_eq!(export(&other, world.thread), bytes);
    let undone = other.undo(world.thread, retake_timeline::Unit::Turn, 1, Caller::human());
    assert!(undone.is_ok(), "history works there too");
}

#[test]
fn a_repeated_import_adds_new_operations_and_refuses_diverged_ones() {
    let world = grown();
    let early = export(&world.timeline, world.thread);
    world.say("User", "later");
    let late = export(&world.timeline, world.thread);
    let (_folder, other) = elsewhere();
    import(early.clone(), &other, ImportMode::Same).expect("an import");
    assert_eq!(import(early.clone(), &other, ImportMode::Same).expect("again").new_operations, 0);
    assert_eq!(import(late.clone(), &other, ImportMode::Same).expect("the rest").new_operations, 1);
    assert_eq!(import(early, &other, ImportMode::Same).expect("an older one").new_operations, 0);
    let (_folder, third) = elsewhere();
    let shorter = import(late.clone(), &third, ImportMode::Same).expect("an import").thread;
    third.change(shorter, Command::Pin { pinned: true }, Caller::human()).expect("a change there");
    world.say("User", "here");
    let diverged = export(&world.timeline, world.thread);
    assert!(matches!(import(diverged.clone(), &third, ImportMode::Same), Err(ImportError::Diverged { .. })));
    let copy = import(diverged, &third, ImportMode::Copy).expect("a copy");
    assert_ne!(copy.thread, world.thread);
}

#[test]
fn damaged_exports_are_refused_whole() {
    let world = grown();
    let bytes = export(&world.timeline, world.thread);
    let text = String::from_utf8(bytes.clone()).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.iter().flat_map(|line| [line, "\n"]).collect::<String>().into_bytes();
    let mut damaged = vec![Vec::new(), b"\n".to_vec(), b"{}\n".to_vec(), bytes[..bytes.len() / 2].to_vec()];
    damaged.push(joined(&lines[..lines.len() - 1]));
    damaged.push(joined(&lines[1..]));
    for index in 1..lines.len() - 1 {
        let mut without = lines.clone();
        without.remove(index);
        damaged.push(joined(&without));
        let mut swapped = lines.clone();
        swapped.swap(index, index - 1);
        damaged.push(joined(&swapped));
    }
    for position in (0..bytes.len()).step_by(bytes.len() / 200) {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1;
        damaged.push(flipped);
    }
    let (_folder, other) = elsewhere();
    for (number, bytes) in damaged.into_iter().enumerate() {
        assert!(import(bytes, &other, ImportMode::Same).is_err(), "damage {number}");
        let filter = retake_store::ThreadFilter::default();
        assert!(
            other.read().expect("a reader").threads(&filter).expect("a list").is_empty(),
            "damage {number}"
        );
    }
}

#[test]
fn an_imported_child_does_not_change_its_parents_history() {
    let world = grown();
    let (_folder, other) = elsewhere();
    import(export(&world.timeline, world.thread), &other, ImportMode::Same).expect("the parent");
    world.timeline.jump(world.thread, 6, Caller::human()).expect("a jump to where the take is");
    let take = world.named("main_take_1");
    let promoted = world.timeline.promote(world.thread, take, Some("Own".into()), Caller::human());
    let child = promoted.expect("a promotion").promoted.thread;
    import(export(&world.timeline, child), &other, ImportMode::Same).expect("the child");
    let undone = other.undo(world.thread, retake_timeline::Unit::Turn, 1, Caller::human()).expect("an undo");
    assert!(undone.also.is_empty());
    assert!(other.read().expect("a reader").state(child).expect("the child").deleted.is_none());
}

#[test]
fn an_imported_thread_reserves_its_title_in_its_project() {
    let world = grown();
    let (_folder, other) = elsewhere();
    import(export(&world.timeline, world.thread), &other, ImportMode::Same).expect("an import");
    let new = retake_timeline::NewThread::in_project(ProjectId::from_bytes([8; 16])).titled("Fix");
    let refused = other.create_thread(new, Caller::human());
    assert!(matches!(refused, Err(retake_timeline::ChangeError::TitleTaken(_))), "{refused:?}");
}

#[test]
fn a_long_history_is_imported_completely_and_quickly() {
    let world = grown();
    for number in 0..2000_u64 {
        match number % 50 {
            10 => world.done(Command::EditEntry {
                take: world.state().active,
                entry: world.entry(number / 25 + 1),
                text: format!("edited {number}"),
            }),
            20 => world.done(Command::Branch {
                from: world.state().active,
                at: Some(world.entry(2)),
                name: None,
            }),
            30 => world.done(Command::Switch { take: world.named("main") }),
            _ => world.say(if number % 2 == 0 { "User" } else { "AI" }, &format!("text {number}")),
        };
    }
    world.undo().expect("an undo");
    world.done(Command::Reset);
    world.undo().expect("an undo");
    let promoted = world.named("main_take_3");
    let promoted =
        world.timeline.promote(world.thread, promoted, None, Caller::human()).expect("a promotion");
    let (_folder, other) = elsewhere();
    for thread in [world.thread, promoted.promoted.thread] {
        let bytes = export(&world.timeline, thread);
        let started = std::time::Instant::now();
        import(bytes.clone(), &other, ImportMode::Same).expect("an import");
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
        assert_eq!(export(&other, thread), bytes);
    }
}

#[test]
fn a_copy_of_a_promoted_thread_stays_when_the_promotion_is_undone() {
    let world = grown();
    world.done(Command::Branch { from: world.state().active, at: None, name: None });
    let take = world.state().active;
    let promoted = world.timeline.promote(world.thread, take, None, Caller::human()).expect("a promotion");
    let original = promoted.promoted.thread;
    let copy = import(export(&world.timeline, original), &world.timeline, ImportMode::Copy).expect("a copy");
    world.undo().expect("an undo");
    let deleted = |thread| world.read().state(thread).expect("a state").deleted.is_some();
    assert!(deleted(original));
    assert!(!deleted(copy.thread));
}

#[test]
fn content_stored_again_after_redaction_is_exported() {
    let world = World::saying(&["secret"]);
    let cell = world.take().entries.get(&world.read().queries(), 0).expect("a list").expect("an entry");
    let entry =
        world.read().entries(world.thread, &world.take()).page(0..1).expect("a page")[0].entry.clone();
    let what = [(retake_model::content::Kind::Entry, cell.version)];
    world.timeline.store().redact(&what, world.timeline.now()).expect("a redaction");
    let gone = export(&world.timeline, world.thread);
    assert!(String::from_utf8_lossy(&gone).contains("\"redacted\""));
    let (_folder, other) = elsewhere();
    import(gone, &other, ImportMode::Same).expect("an import with a hole");
    world.done(Command::AddEntries {
        take: world.state().active,
        at: retake_timeline::InsertPosition::End,
        entries: vec![entry.into()],
    });
    let back = export(&world.timeline, world.thread);
    assert!(!String::from_utf8_lossy(&back).contains("\"redacted\""));
}

#[test]
fn continuing_a_thread_by_import_keeps_conversation_and_files_together() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    let turn = |name: &str| {
        world.world.say("User", name);
        world.agent(|world| world.write(name, name));
    };
    turn("a");
    let start = export(&world.world.timeline, world.world.thread);
    turn("b");
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    turn("c");
    let newest = export(&world.world.timeline, world.world.thread);

    // Another machine, whose folder has the initial files.
    let (_store, timeline) = elsewhere();
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = Workspace::of(folder.path()).expect("a folder");
    let (working_copy, thread) = (WorkingCopy::at(timeline.clone(), PROJECT, workspace), world.world.thread);
    let bring = |bytes| {
        let from = Cursor::new(bytes);
        timeline.import(from, PROJECT, ImportMode::Same, |_, _| {}).expect("an import")
    };
    let files = || -> Vec<String> {
        let names = std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> =
            names.map(|entry| entry.file_name().into_string().expect("text")).collect();
        names.sort();
        names
    };
    assert_eq!(bring(start).jump_to, None, "a thread that is new here");
    std::fs::write(folder.path().join("a"), "a").expect("a file");
    let other =
        timeline.create_thread(NewThread::in_project(PROJECT), Caller::human()).expect("a thread").thread;
    working_copy.record_changes(other, Caller::human()).expect("a reader");
    let before = timeline.read().expect("a reader").state(thread).expect("a state");
    let imported = bring(newest);
    let target = imported.jump_to.expect("a version to jump to");
    let after = timeline.read().expect("a reader").state(thread).expect("a state");
    assert_eq!(after.active, before.active);
    let texts = || {
        let reader = timeline.read().expect("a reader");
        let take = reader.state(thread).expect("a state").active_take(&reader.queries()).expect("a take");
        let page = reader.entries(thread, &take).page(0..take.entries.len()).expect("a page");
        page.iter().map(|view| view.entry.text()).collect::<Vec<String>>()
    };
    assert_eq!(texts(), ["a"]);
    let go = |goal| working_copy.go(thread, goal, Caller::human(), MoveOptions::default());
    go(Goal::Jump(target)).expect("a jump");
    assert_eq!(texts(), ["a", "c"]);
    assert_eq!(files(), ["c"], "the branch began at the prompt, before its file was made");
    working_copy
        .change(thread, Command::Switch { take: main }, Caller::human(), MoveOptions::default())
        .expect("a switch");
    assert_eq!(texts(), ["a", "b"]);
    assert_eq!(files(), ["a", "b"]);
}

#[test]
fn an_import_that_continues_a_take_open_in_a_worktree_is_refused() {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.world.say("User", "one");
    world.change(Command::Branch { from: main, at: None, name: None });
    let start = export(&world.world.timeline, world.world.thread);
    let note = EntryVersion::from_text("User", "two", world.world.timeline.now());
    world.change(Command::AddEntries { take: main, at: InsertPosition::End, entries: vec![note.into()] });
    let newest = export(&world.world.timeline, world.world.thread);

    let (_store, timeline) = elsewhere();
    let (folder, beside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let workspace = Workspace::of(folder.path()).expect("a folder");
    let working_copy = WorkingCopy::at(timeline.clone(), PROJECT, workspace);
    let bring = |bytes| timeline.import(Cursor::new(bytes), PROJECT, ImportMode::Same, |_, _| {});
    bring(start).expect("an import");
    let thread = world.world.thread;
    working_copy
        .open_worktree(thread, main, &beside.path().join("worktree"), &Caller::human())
        .expect("a worktree");
    let version = || timeline.read().expect("a reader").head(thread).expect("a head").operation.version;
    let before = version();
    assert!(matches!(bring(newest.clone()), Err(ImportError::Refused(_))));
    assert_eq!(version(), before, "nothing was imported");
}

#[test]
fn an_import_that_brings_the_first_files_of_a_thread_leaves_it_where_it_was() {
    let world = FileWorld::new();
    let thread = world.world.thread;
    world.world.say("User", "one");
    let start = export(&world.world.timeline, thread);
    world.world.say("User", "two");
    world.agent(|world| world.write("a", "a"));
    let newest = export(&world.world.timeline, thread);

    let (_store, timeline) = elsewhere();
    let folder = tempfile::tempdir().expect("a folder");
    let working_copy =
        WorkingCopy::at(timeline.clone(), PROJECT, Workspace::of(folder.path()).expect("a folder"));
    let bring = |bytes| timeline.import(Cursor::new(bytes), PROJECT, ImportMode::Same, |_, _| {});
    bring(start).expect("an import");
    working_copy.record_changes(thread, Caller::human()).expect("a reader");
    let target = bring(newest).expect("an import").jump_to.expect("a version to jump to");
    assert!(!folder.path().join("a").exists());
    working_copy.go(thread, Goal::Jump(target), Caller::human(), MoveOptions::default()).expect("a jump");
    assert!(folder.path().join("a").exists());
}
