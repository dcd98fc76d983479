//! Drafts: their text and pictures.

use crate::support::World;
use retake_model::command::CommandError;
use retake_model::content::{ContentId, Kind};
use retake_model::entry::Block;
use retake_model::take::NewPicture;
use retake_timeline::{ChangeError, Command, ResetSummary, read_picture};

fn picture(name: &str) -> NewPicture {
    NewPicture::new(format!("GIF89a {name}").into_bytes()).expect("a GIF header")
}

fn id(name: &str) -> ContentId {
    picture(name).attached.picture
}

fn attached(world: &World) -> Vec<ContentId> {
    world.take().attached.iter().map(|attached| attached.picture).collect()
}

fn attach(world: &World, names: &[&str]) -> Command {
    let pictures = names.iter().map(|name| picture(name)).collect();
    Command::Attach { take: world.state().active, pictures }
}

/// The pictures and text of the last entry.
fn last(world: &World) -> (String, Vec<ContentId>) {
    let (take, look) = (world.take(), world.read());
    let entry = world.entry(take.entries.len());
    let (_, version) = look.entries(world.thread, &take).get(entry).expect("readable").expect("there");
    (version.text(), version.blocks.iter().filter_map(Block::picture).collect())
}

#[test]
fn pictures_are_part_of_the_draft() {
    let world = World::saying(&["one"]);
    let take = world.state().active;
    world.done(attach(&world, &["a", "b", "a"]));
    assert_eq!(attached(&world), [id("a"), id("b")]);
    // Pictures that are already attached stay.
    assert!(!world.done(attach(&world, &["b"])).changed());
    world.done(attach(&world, &["c"]));
    world.done(Command::SetDraft { take, text: "look".into() });
    assert_eq!(attached(&world), [id("a"), id("b"), id("c")], "typing leaves them");
    world.done(Command::Detach { take, picture: id("b") });
    assert_eq!(attached(&world), [id("a"), id("c")]);
    let refused = world.change(Command::Detach { take, picture: id("b") });
    assert!(matches!(refused, Err(ChangeError::Refused(CommandError::NotAttached(_)))));
    world.done(Command::ClearDraft { take });
    assert!(attached(&world).is_empty() && world.take().draft.is_empty());
    assert!(!world.done(Command::ClearDraft { take }).changed());
    assert!(world.timeline.store().verify(&mut |_| {}).expect("readable").problems.is_empty());
}

#[test]
fn a_draft_is_sent_with_its_pictures_and_an_undo_brings_both_back() {
    let world = World::saying(&["one"]);
    let take = world.state().active;
    world.done(Command::SetDraft { take, text: "look".into() });
    world.done(attach(&world, &["a", "b"]));
    world.done(Command::SendDraft { take, role: None });
    assert_eq!(last(&world), ("look".to_owned(), vec![id("a"), id("b")]));
    assert!(attached(&world).is_empty() && world.take().draft.is_empty());
    world.undo().expect("undone");
    assert_eq!((world.take().draft.as_str(), attached(&world)), ("look", vec![id("a"), id("b")]));
    // Without text: the entry has no text block, instead of an empty one.
    world.done(Command::SetDraft { take, text: " ".into() });
    world.done(Command::SendDraft { take, role: None });
    assert_eq!(last(&world), (String::new(), vec![id("a"), id("b")]));
    let entry = world.entry(2);
    // A fork restores the draft as it was sent.
    world.done(Command::Fork { from: take, at: entry, name: None });
    assert_eq!(attached(&world), [id("a"), id("b")]);
    assert!(world.read().history(world.thread).shows_picture(id("a")).expect("readable"));
    assert!(!world.read().history(world.thread).shows_picture(id("z")).expect("readable"));
    assert!(world.timeline.store().verify(&mut |_| {}).expect("readable").problems.is_empty());
}

#[test]
fn an_unsent_picture_is_shown_and_counted() {
    let world = World::saying(&["one"]);
    world.done(attach(&world, &["a"]));
    assert!(world.read().history(world.thread).shows_picture(id("a")).expect("readable"));
    let cleared = ResetSummary::of(&world.read(), &world.state()).expect("readable");
    assert_eq!((cleared.drafts, cleared.takes), (1, 1));
    // A take also refers to model requests, which are not pictures.
    let take = world.state().active;
    let sent = ("GIF89a prompt", "base");
    world.done(Command::RecordSend { take, markdown: sent.0.into(), system_prompt: sent.1.into() });
    let blob = ContentId::of(Kind::Blob, sent.0.as_bytes());
    assert!(!world.read().history(world.thread).shows_picture(blob).expect("readable"));
}

#[test]
fn typing_is_one_step_and_other_draft_changes_are_separate() {
    let world = World::saying(&["one"]);
    let take = world.state().active;
    let shown = || (world.take().draft, attached(&world).len());
    world.done(Command::SetDraft { take, text: "im".into() });
    world.done(Command::SetDraft { take, text: "important".into() });
    world.done(attach(&world, &["a", "b"]));
    world.done(Command::Detach { take, picture: id("a") });
    world.done(Command::ClearDraft { take });
    // All at the same time; each is still undone alone, and the typing as one step.
    for wanted in [("important", 1), ("important", 2), ("important", 0), ("", 0)] {
        world.undo().expect("undone");
        assert_eq!(shown(), (wanted.0.to_owned(), wanted.1));
    }
}

#[test]
fn a_purged_picture_is_absent() {
    let world = World::saying(&["one"]);
    world.done(attach(&world, &["a"]));
    assert!(read_picture(&world.read(), id("a")).expect("readable").is_some());
    let gone = [(Kind::Blob, id("a"))];
    world.timeline.store().redact(&gone, world.timeline.now()).expect("destroyed");
    assert_eq!(read_picture(&world.read(), id("a")).expect("readable"), None);
}

#[test]
fn too_many_pictures_are_refused() {
    let world = World::saying(&["one"]);
    let names: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let refused = world.change(attach(&world, &names));
    assert!(matches!(refused, Err(ChangeError::Refused(CommandError::TooMuch { limit: 100, .. }))));
    assert!(attached(&world).is_empty());
    world.done(attach(&world, &names[..100]));
}
