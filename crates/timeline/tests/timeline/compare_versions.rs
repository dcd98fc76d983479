//! Differences between two versions, in both directions.

use retake_model::take::{FileItem, FileList};
use retake_timeline::{Command, VersionComparison};

use crate::support::World;

/// Each difference as a line.
fn lines(differing: &VersionComparison) -> Vec<String> {
    let entries = differing.entries.iter().map(|entry| {
        let text = |version: &Option<retake_model::entry::EntryVersion>| {
            version
                .as_ref()
                .map_or_else(|| "-".to_owned(), |version| format!("{} {}", version.role, version.text()))
        };
        format!("{}: {} > {}", entry.number, text(&entry.before), text(&entry.after))
    });
    let fields =
        differing.fields.iter().map(|field| format!("{}: {} > {}", field.name, field.before, field.after));
    let came = differing.takes_added.iter().map(|name| format!("+take {name}"));
    let went = differing.takes_removed.iter().map(|name| format!("-take {name}"));
    entries.chain(fields).chain(came).chain(went).collect()
}

#[test]
fn every_kind_of_change_is_compared_in_both_directions() {
    type Make = fn(&World) -> Command;
    let check = |make: Make, forth: &[&str], back: &[&str]| {
        let world = World::saying(&["one", "two", "three"]);
        world.another();
        let before = world.read().thread(world.thread).expect("a thread").summary.version;
        world.done(make(&world));
        let between = |from, to| {
            lines(&world.read().history(world.thread).compare([from, to], 10).expect("a comparison"))
        };
        assert_eq!(between(before, before + 1), forth);
        assert_eq!(between(before + 1, before), back);
        assert_eq!(between(before, before), Vec::<String>::new());
    };
    check(
        |w| Command::EditEntry { take: w.state().active, entry: w.entry(2), text: "new".into() },
        &["2: AI two > AI new"],
        &["2: AI new > AI two"],
    );
    check(
        |w| Command::DeleteEntries { take: w.state().active, entries: vec![w.entry(1)] },
        &["1: User one > -"],
        &["1: - > User one"],
    );
    check(
        |w| Command::ChangeRole { take: w.state().active, entry: w.entry(3), role: "Context".into() },
        &["3: User three > Context three"],
        &["3: Context three > User three"],
    );
    check(
        |w| Command::Clear { take: w.state().active },
        &["1: User one > -", "2: AI two > -", "3: User three > -"],
        &["1: - > User one", "2: - > AI two", "3: - > User three"],
    );
    check(
        |w| Command::Branch { from: w.state().active, at: Some(w.entry(2)), name: Some("other".into()) },
        &["3: User three > -", "take: main > other", "+take other"],
        &["3: - > User three", "take: other > main", "-take other"],
    );
    check(
        |w| Command::RenameTake { take: w.state().active, name: "better".into() },
        &["take: main > better"],
        &["take: better > main"],
    );
    check(|_| Command::Rename { title: "Other".into() }, &["title: Fix > Other"], &["title: Other > Fix"]);
    check(
        |_| Command::Set {
            values: vec![("temperature".into(), "0.5".into()), ("model".into(), "big".into())],
        },
        &["temperature:  > 0.5", "model:  > big"],
        &["temperature: 0.5 > ", "model: big > "],
    );
    check(
        |w| Command::SetDraft { take: w.state().active, text: "hm".into() },
        &["draft:  > hm"],
        &["draft: hm > "],
    );
    check(
        |w| Command::SetFiles {
            take: w.state().active,
            list: FileList::ContextFiles,
            items: vec![FileItem::new("a"), FileItem::new("b")],
        },
        &["context_files:  > a\nb"],
        &["context_files: a\nb > "],
    );
    check(|_| Command::Share { visibility: None, private: Some(true), shared_with_support: None }, &[], &[]);
    check(|_| Command::Delete, &["deleted: no > yes"], &["deleted: yes > no"]);
}

#[test]
fn a_comparison_lists_some_entries_and_counts_all() {
    let texts: Vec<String> = (0..300).map(|number| format!("text {number}")).collect();
    let world = World::saying(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let version = world.read().thread(world.thread).expect("a thread").summary.version;
    let comparison = world.read().history(world.thread).compare([1, version], 5).expect("a comparison");
    assert_eq!((comparison.entries.len(), comparison.entries_added), (5, 300));
    assert_eq!((comparison.entries_removed, comparison.entries_changed), (0, 0));
    assert_eq!(
        comparison.entries[0].after.as_ref().map(retake_model::entry::EntryVersion::text).as_deref(),
        Some("text 0")
    );
}

#[test]
fn a_version_that_does_not_exist_is_refused() {
    let world = World::saying(&["one"]);
    assert!(world.read().history(world.thread).compare([1, 99], 5).is_err());
}
