//! A promoted thread still has its files from before the promotion: they are listed, compared and restored.

use retake_model::entry::EntryVersion;
use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_timeline::{
    Caller, Command, Goal, InsertPosition, MoveOptions, RevisionError, RevisionResolver, Scope, Unit,
};

use crate::support::FileWorld;

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);

/// The last entry of a take.
fn last_entry(world: &FileWorld, thread: ThreadId, take: TakeId) -> EntryId {
    let reader = world.world.read();
    let take = reader.state(thread).expect("a state").take(&reader.queries(), take);
    let entries = take.expect("a readable take").expect("a take").entries;
    entries.get(&reader.queries(), entries.len() - 1).expect("a list").expect("an entry").entry
}

/// `main` with a=1 and a=2, promoted while the folder has a=3 of another take; the thread that it became.
fn just_promoted() -> (FileWorld, TakeId, ThreadId) {
    let world = FileWorld::new();
    let main = world.world.state().active;
    world.agent(|world| world.write("a", "1\n"));
    world.world.say("User", "one");
    world.agent(|world| world.write("a", "2\n"));
    let branch = retake_timeline::Command::Branch { from: main, at: None, name: Some("second".to_owned()) };
    world.change(branch);
    world.agent(|world| world.write("a", "3\n"));
    let promoted = world.working_copy.promote(world.world.thread, main, None, Caller::human(), Scope::Both);
    let thread = promoted.expect("a promotion").promoted.thread;
    (world, main, thread)
}

/// The same, after the thread that the take left went on: that is no business of the new one.
fn promoted() -> (FileWorld, TakeId, ThreadId) {
    let (world, main, thread) = just_promoted();
    world.agent(|world| world.write("a", "4\n"));
    (world, main, thread)
}

#[test]
fn snapshots_from_before_a_promotion_are_listed_and_restored() {
    let (world, _, thread) = promoted();
    let source = world.world.thread;
    let reader = world.world.read();
    let listed = reader.files(thread).of_lineage(None, 100).expect("a list");
    let threads: Vec<ThreadId> = listed.iter().map(|of| of.thread).collect();
    assert_eq!(threads, [thread, source, source, source, source], "{listed:?}");
    // Pages give the same list.
    let mut paged = Vec::new();
    while let Some(next) = {
        let before = paged.last().map(|last: &retake_timeline::ThreadFiles| last.sequence);
        reader.files(thread).of_lineage(before, 1).expect("a page").pop()
    } {
        paged.push(next);
    }
    let places =
        |list: &[retake_timeline::ThreadFiles]| -> Vec<i64> { list.iter().map(|of| of.sequence).collect() };
    assert_eq!(places(&paged), places(&listed));
    let first = listed.iter().rev().find(|of| of.at.files.before != of.at.files.after).expect("a change");
    let snapshot = first.at.files.after;
    assert!(reader.files(thread).has_snapshot(snapshot).expect("a reader"));
    let beginning = &snapshot.to_string()[..12];
    assert_eq!(reader.files(thread).snapshots_beginning(beginning).expect("a reader"), [snapshot]);
    let later =
        reader.files(source).of_take(world.world.state().active).expect("files").expect("recorded files");
    assert!(
        !reader
            .files(thread)
            .of_lineage(None, 100)
            .expect("a list")
            .iter()
            .any(|of| { of.at.files.after == later })
    );
    drop(reader);
    world
        .working_copy
        .restore(thread, snapshot, &[], Caller::human(), MoveOptions::default())
        .expect("a restore");
    assert_eq!(world.read("a").as_deref(), Some("1\n"));
}

#[test]
fn file_changes_from_before_a_promotion_are_listed_in_pages() {
    let (world, _, thread) = promoted();
    world.agent_of(thread, |world| world.write("b", "5\n"));
    let reader = world.world.read();
    let all = reader.files(thread).changes(None, 100).expect("changes");
    let paths: Vec<String> = all.items.iter().map(|item| item.path.to_string()).collect();
    assert_eq!((paths.as_slice(), all.next), (["b", "a", "a", "a"].map(str::to_owned).as_slice(), None));
    let (mut paged, mut from) = (Vec::new(), None);
    loop {
        let page = reader.files(thread).changes(from, 1).expect("a page");
        paged.extend(page.items);
        match page.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    assert_eq!(paged, all.items);
}

#[test]
fn a_promoted_take_means_its_own_files_until_the_thread_records_some() {
    let (world, main, thread) = promoted();
    let timeline = &world.world.timeline;
    let named = || {
        let row = world.world.read().thread(thread).expect("a thread");
        let working_copy = &world.working_copy;
        let look = Box::new(|| {
            let seen = working_copy.record_changes(thread, Caller::human()).expect("a reader");
            Ok::<_, RevisionError>(seen.snapshot)
        });
        RevisionResolver::new(timeline, row, None, look).find("take:main").expect("a revision").snapshot
    };
    let own = world.world.read().files(thread).of_take(main).expect("files").expect("recorded files");
    assert_eq!(named(), own);
    world.working_copy.restore(thread, own, &[], Caller::human(), MoveOptions::default()).expect("a restore");
    assert_eq!(world.read("a").as_deref(), Some("2\n"));
    world.agent_of(thread, |world| world.write("a", "6\n"));
    let now = world.working_copy.record_changes(thread, Caller::human()).expect("a reader").snapshot;
    assert_eq!(named(), now, "from then on the folder counts");
}

#[test]
fn undo_of_a_promotion_keeps_a_thread_in_which_only_files_were_changed() {
    for works in [false, true] {
        let world = FileWorld::new();
        let main = world.world.state().active;
        world.agent(|world| world.write("a", "1\n"));
        let branch = retake_timeline::Command::Branch { from: main, at: None, name: None };
        world.change(branch);
        let promoted =
            world.working_copy.promote(world.world.thread, main, None, Caller::human(), Scope::Both);
        let thread = promoted.expect("a promotion").promoted.thread;
        if works {
            world.agent_of(thread, |world| world.write("b", "its work\n"));
        }
        world.undo();
        let deleted = world.world.read().state(thread).expect("a state").deleted.is_some();
        assert_eq!(deleted, !works);
    }
}

#[test]
fn a_fork_in_a_promoted_thread_keeps_later_changes_of_its_parent() {
    let world = FileWorld::new();
    let parent = world.world.thread;
    world.world.say("User", "one");
    world.agent(|world| world.write("a", "1"));
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    let branch = world.world.state().active;
    world.world.say("User", "two");
    world.agent(|world| world.write("b", "1"));
    world.change(Command::Switch { take: main });
    let entry = world.world.entry(1);
    let promoted = world.working_copy.promote(parent, branch, None, Caller::human(), Scope::Both);
    let thread = promoted.expect("a promotion").promoted.thread;
    world.agent(|world| world.write("later", "1"));
    let fork = Command::Fork { from: branch, at: entry, name: None };
    world.working_copy.change(thread, fork, Caller::human(), MoveOptions::default()).expect("a fork");
    assert_eq!(world.read("later").as_deref(), Some("1"), "the parent thread made it after the promotion");
    assert_eq!(world.read("b"), None, "the fork begins before it was made");
}

#[test]
fn the_first_branch_of_a_promoted_take_has_the_files_of_the_take() {
    for kind in ["branch", "branch at the last entry", "fork at an entry of the new thread"] {
        let (world, main, thread) = just_promoted();
        world.write("mine", "by hand\n");
        let state = || world.world.read().state(thread).expect("a state");
        let entry = EntryVersion::from_text("User", "after the promotion", world.world.timeline.now());
        let add = Command::AddEntries { take: main, at: InsertPosition::End, entries: vec![entry.into()] };
        world.world.timeline.change(thread, add, Caller::human()).expect("an entry");
        let (last, name) = (last_entry(&world, thread, main), Some("new".to_owned()));
        let branch = match kind {
            "branch" => Command::Branch { from: main, at: None, name },
            "branch at the last entry" => Command::Branch { from: main, at: Some(last), name },
            _ => Command::Fork { from: main, at: last, name },
        };
        let change =
            |command| world.working_copy.change(thread, command, Caller::human(), MoveOptions::default());
        change(branch).expect("a branch");
        let new = state().active;
        assert_eq!(world.read("a").as_deref(), Some("2\n"), "its own file, and not that of the other thread");
        assert_eq!(world.read("mine").as_deref(), Some("by hand\n"));
        world.agent_of(thread, |world| world.write("a", "7\n"));
        change(Command::Switch { take: main }).expect("a switch");
        assert_eq!(world.read("a").as_deref(), Some("2\n"), "the take that was left has its own files too");
        change(Command::Switch { take: new }).expect("a switch");
        assert_eq!(world.read("a").as_deref(), Some("7\n"));
        for expected in ["2\n", "7\n", "2\n", "3\n"] {
            world.working_copy.go(thread, UNDO, Caller::human(), MoveOptions::default()).expect("an undo");
            assert_eq!(world.read("a").as_deref(), Some(expected));
        }
    }
}
