//! Entries: editing, inserting, deleting and changing roles preserve all other fields.

use crate::support::World;
use retake_model::command::CommandError;
use retake_model::entry::{EntryVersion, Fields, from_json};
use retake_model::id::EntryId;
use retake_timeline::{ChangeError, Command, InsertPosition, NewEntry};

#[test]
fn an_edit_keeps_role_time_usage_thinking_and_unknown_fields() {
    let world = World::saying(&["one"]);
    let text =
        r#"{"role":"AI","content":"<think>hm</think>wrong","usage":{"input":3,"output":4},"ticket":[1.0]}"#;
    let entry = from_json(text, "User", world.timeline.now()).expect("an entry");
    let take = world.state().active;
    world.done(Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.clone().into()] });
    world.done(Command::EditEntry { take, entry: world.entry(2), text: "right".into() });
    let (_, edited) = world
        .read()
        .entries(world.thread, &world.take())
        .get(world.entry(2))
        .expect("readable")
        .expect("the entry");
    assert_eq!(edited.text(), "right");
    assert!(edited.edited.is_some());
    let expected = EntryVersion { edited: edited.edited, blocks: edited.blocks.clone(), ..entry };
    assert_eq!(edited, expected);
    assert_eq!(edited.blocks.len(), 2, "the thinking is still there");
}

#[test]
fn entries_can_be_inserted_anywhere() {
    let world = World::saying(&["b", "d"]);
    let take = world.state().active;
    let put = |at, text: &str| {
        let entry = EntryVersion::from_text("User", text, world.timeline.now());
        world.done(Command::AddEntries { take, at, entries: vec![entry.into()] });
    };
    let (b, d) = (world.entry(1), world.entry(2));
    put(InsertPosition::Before(b), "a");
    put(InsertPosition::After(b), "c");
    put(InsertPosition::After(d), "e");
    put(InsertPosition::Start, "0");
    put(InsertPosition::End, "f");
    assert_eq!(world.texts(), ["0", "a", "b", "c", "d", "e", "f"]);
}

#[test]
fn deleting_twice_is_harmless() {
    let world = World::saying(&["one", "two"]);
    let delete = Command::DeleteEntries { take: world.state().active, entries: vec![world.entry(1)] };
    assert!(world.done(delete.clone()).changed());
    assert!(!world.done(delete).changed());
    assert_eq!(world.texts(), ["two"]);
}

#[test]
fn adding_an_entry_can_be_retried_safely() {
    let world = World::new();
    let id = EntryId::from_bytes([5; 16]);
    let version = EntryVersion::from_text("User", "once", world.timeline.now());
    let take = world.state().active;
    let add = Command::AddEntries {
        take,
        at: InsertPosition::End,
        entries: vec![NewEntry { id: Some(id), ..version.into() }],
    };
    world.done(add.clone());
    let again = world.change(add);
    assert!(
        matches!(again, Err(ChangeError::Refused(CommandError::EntryExists(found))) if found == id),
        "{again:?}"
    );
    assert_eq!(world.texts(), ["once"]);
}

#[test]
fn truncating_keeps_the_last_exchanges_whole() {
    fn check(pairs: u64, expected: &[&str]) {
        let world = World::saying(&["q1", "a1", "q2", "a2", "q3", "a3"]);
        world.say("Tool", "t3");
        world.done(Command::Truncate { take: world.state().active, pairs });
        assert_eq!(world.texts(), expected, "{pairs} pairs");
    }
    check(0, &[]);
    check(1, &["q3", "a3", "t3"]);
    check(2, &["q2", "a2", "q3", "a3", "t3"]);
    check(9, &["q1", "a1", "q2", "a2", "q3", "a3", "t3"]);
}

#[test]
fn a_change_without_effect_publishes_no_operation() {
    let world = World::saying(&["one"]);
    let take = world.state().active;
    let version = world.read().history(world.thread).undo_status().expect("an undo status").version;
    for command in [
        Command::EditEntry { take, entry: world.entry(1), text: "one".into() },
        Command::ChangeRole { take, entry: world.entry(1), role: "User".into() },
        Command::Truncate { take, pairs: 5 },
        Command::Switch { take },
        Command::RenameTake { take, name: "main".into() },
        Command::Rename { title: "Fix".into() },
        Command::Tag { add: vec![], remove: vec!["nothing".into()] },
        Command::Pin { pinned: false },
        Command::Restore,
        Command::SetDraft { take, text: String::new() },
        Command::Set { values: vec![("temperature".into(), String::new())] },
    ] {
        let done = world.done(command.clone());
        assert!(!done.changed() && done.version == version, "{command:?}");
    }
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let world = World::saying(&["one"]);
    let take = world.state().active;
    let before = world.state();
    for command in [
        Command::ChangeRole { take, entry: world.entry(1), role: " ".into() },
        Command::ChangeRole { take, entry: world.entry(1), role: "\u{1b}[2J".into() },
        Command::Rename { title: "a\nb".into() },
        Command::Rename { title: "x".repeat(1000) },
        Command::Tag { add: vec!["two words".into()], remove: vec![] },
        Command::RenameTake { take, name: "a/b".into() },
        Command::Set { values: vec![("temperature".into(), "hot".into())] },
        Command::Set { values: vec![("nonsense".into(), "1".into())] },
        Command::SetDraft { take, text: "x".repeat(5 << 20) },
        Command::EditEntry { take, entry: EntryId::from_bytes([1; 16]), text: "x".into() },
        Command::EditEntry { take, entry: world.entry(1), text: "x".repeat(65 << 20) },
    ] {
        assert!(world.change(command).is_err());
        assert_eq!(world.state(), before);
    }
}

#[test]
fn an_entry_without_its_picture_is_refused() {
    use retake_model::content::{ContentId, Kind};
    use retake_model::entry::Block;
    let world = World::saying(&["look:"]);
    let bytes = b"not really a picture".to_vec();
    let blob = ContentId::of(Kind::Blob, &bytes);
    let mut version = EntryVersion::from_text("User", "here", world.timeline.now());
    version.blocks.push(Block::Image { media: "image/png".into(), blob, extra: Fields::default() });
    let take = world.state().active;
    let add = |blobs| Command::AddEntries {
        take,
        at: InsertPosition::End,
        entries: vec![NewEntry { blobs, ..version.clone().into() }],
    };
    let refused = world.change(add(Vec::new()));
    assert!(matches!(refused, Err(ChangeError::Refused(CommandError::NoSuchPicture(id))) if id == blob));
    world.done(add(vec![bytes]));
    assert!(world.timeline.store().verify(&mut |_| {}).expect("readable").problems.is_empty());
}
