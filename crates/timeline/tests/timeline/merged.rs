//! Merging a take: its file changes path by path, its conclusion, and one undo for both.

use std::collections::BTreeMap;

use retake_model::id::TakeId;
use retake_model::replay::OnConflict;
use retake_timeline::{Caller, ChangeReport, Command, FileError, MoveOptions, Outcome, PlanRequest, Scope};

use crate::support::{FileWorld, outcome};

/// Two takes that went on differently: `main` is active again, and `other` changed one file that `main` changed too.
struct Fork {
    world: FileWorld,
    main: TakeId,
    other: TakeId,
}

impl Fork {
    fn new() -> Self {
        let world = FileWorld::new();
        world.write("both", "1\n2\n3\n4\n5\n6\n7\n");
        world.write("same", "as it was\n");
        world.record_changes();
        world.world.say("User", "try it");
        let main = world.world.state().active;
        world.change(Command::Branch {
            from: main,
            at: Some(world.world.entry(1)),
            name: Some("other".into()),
        });
        let other = world.world.state().active;
        world.agent(|world| {
            world.write("both", "1\n2\n3\n4\n5\n6\nseven\n");
            world.write("same", "of the other\n");
            world.write("new", "of the other\n");
        });
        world.world.say("AI", "It is the clock.");
        world.change(Command::Switch { take: main });
        Self { world, main, other }
    }

    fn merge(&self, scope: Scope, on_conflict: OnConflict) -> Result<ChangeReport, FileError> {
        let options = MoveOptions { scope, on_conflict, ..MoveOptions::default() };
        self.world.working_copy.change(self.world.world.thread, self.command(scope), Caller::human(), options)
    }

    fn command(&self, scope: Scope) -> Command {
        let world = &self.world.world;
        let (reader, state) = (world.read(), world.state());
        let take = |id| state.take(&reader.queries(), id).expect("readable").expect("a take");
        let (into, from) = (take(self.main), take(self.other));
        reader.merge(world.thread, (&into, &from), scope, world.timeline.now()).expect("a merge")
    }

    fn files(&self) -> BTreeMap<String, String> {
        self.world.files()
    }
}

#[test]
fn changes_are_merged_path_by_path_and_one_undo_takes_all_of_it_back() {
    let fork = Fork::new();
    let world = &fork.world;
    world.agent(|world| world.write("both", "one\n2\n3\n4\n5\n6\n7\n"));
    world.write("mine", "by hand\n");
    world.record_changes();
    let (before, texts) = (fork.files(), world.world.texts());
    let request = PlanRequest::Change(fork.command(Scope::Both));
    let thread = world.world.thread;
    let plan =
        world.working_copy.plan(thread, request, Caller::human(), MoveOptions::default()).expect("a plan");
    assert!(plan.into_preview().files.is_some_and(|files| files.moves_files()));
    assert_eq!(
        (fork.files(), world.world.texts()),
        (before.clone(), texts.clone()),
        "a preview changes nothing"
    );
    let merged = fork.merge(Scope::Both, OnConflict::Keep).expect("a merge");
    assert!(merged.done.is_some_and(|done| done.undoable));
    assert_eq!(world.read("both").as_deref(), Some("one\n2\n3\n4\n5\n6\nseven\n"));
    assert_eq!(world.read("new").as_deref(), Some("of the other\n"));
    assert_eq!(world.read("same").as_deref(), Some("of the other\n"));
    assert_eq!(world.read("mine").as_deref(), Some("by hand\n"));
    assert_eq!(world.world.texts()[1..], ["Conclusion of take \"other\":\n\nIt is the clock."]);
    let after = fork.files();
    world.undo();
    assert_eq!((fork.files(), world.world.texts()), (before, texts));
    world.redo();
    assert_eq!(fork.files(), after);
    let again = fork.merge(Scope::Files, OnConflict::Keep).expect("a merge");
    assert!(again.done.is_some_and(|done| !done.changed()), "there is nothing left to merge");
}

#[test]
fn a_conflict_is_reported_and_decided_by_the_option() {
    let check = |on_conflict: OnConflict, expected: &str| {
        let fork = Fork::new();
        let world = &fork.world;
        world.agent(|world| world.write("same", "of main\n"));
        let before = fork.files();
        let report = fork.merge(Scope::Files, on_conflict).expect("a merge").files.expect("files");
        let found = outcome(&report, "same");
        assert!(matches!(found, Outcome::Conflicted { .. }) || on_conflict != OnConflict::Keep, "{found:?}");
        let text = world.read("same").expect("a file");
        assert!(text.contains(expected), "{on_conflict:?}: {text}");
        assert_eq!(world.read("new").as_deref(), Some("of the other\n"), "other paths are merged");
        assert_eq!(world.world.texts().len(), 1, "no conclusion with files alone");
        world.undo();
        assert_eq!(fork.files(), before, "{on_conflict:?}");
    };
    check(OnConflict::Keep, "of main\n");
    check(OnConflict::Take, "of the other\n");
    check(OnConflict::Mark, "<<<<<<<");
}

#[test]
fn the_conversation_merges_alone_and_unrelated_takes_only_so() {
    let fork = Fork::new();
    let world = &fork.world;
    let before = fork.files();
    let merged = fork.merge(Scope::Conversation, OnConflict::Keep).expect("a merge");
    assert!(merged.done.is_some_and(|done| done.changed()));
    assert_eq!((fork.files(), world.world.texts().len()), (before, 2));
    let same = Command::Merge { into: fork.main, from: fork.main, entries: Vec::new() };
    world.world.change(same).expect_err("a take is not merged into itself");
}
