//! An undo can name its take: it affects only that take, wherever its files are.

use retake_model::command::CommandError;
use retake_model::entry::EntryVersion;
use retake_model::id::TakeId;
use retake_model::operation::Actor;
use retake_timeline::{
    Caller, ChangeError, ChangeOutcome, Command, FileError, Goal, InsertPosition, MoveOptions, PlanOutcome,
    PlanRequest, Preview, Scope, Unit, WorkingCopy,
};
use retake_workspace::snapshot::{Options, Workspace};

use crate::support::FileWorld;

const UNDO: Goal = Goal::Undo(Unit::Turn, 1);
const REDO: Goal = Goal::Redo(Unit::Turn, 1);

/// A thread with two takes, the first of which is active. Each created its own file.
struct TwoTakes {
    world: FileWorld,
    main: TakeId,
    other: TakeId,
}

impl TwoTakes {
    fn new() -> Self {
        let world = FileWorld::new();
        world.write("shared", "as it was\n");
        world.record_changes();
        world.world.say("User", "first");
        let main = world.world.state().active;
        world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
        let other = world.world.state().active;
        world.agent(|world| world.write("of-other", "theirs\n"));
        world.change(Command::Switch { take: main });
        world.agent(|world| world.write("of-main", "ours\n"));
        Self { world, main, other }
    }

    fn say(&self, take: TakeId, text: &str) -> ChangeOutcome {
        let entry = EntryVersion::from_text("User", text, self.world.world.timeline.now());
        self.world.world.done(Command::AddEntries {
            take,
            at: InsertPosition::End,
            entries: vec![entry.into()],
        })
    }

    fn go(&self, take: TakeId, goal: Goal, scope: Scope) -> Result<PlanOutcome, FileError> {
        let world = &self.world.world;
        let (options, move_options) = (Options::default(), MoveOptions { scope, ..MoveOptions::default() });
        let place = (Some(&options), Some(take));
        world.timeline.perform(world.thread, PlanRequest::Move(goal), Caller::human(), move_options, place)
    }

    fn preview(&self, take: TakeId, goal: Goal) -> Result<Preview, FileError> {
        let world = &self.world.world;
        let (options, request) = (Options::default(), PlanRequest::Move(goal));
        let place = (Some(&options), Some(take));
        let plan =
            world.timeline.plan(world.thread, request, Caller::human(), MoveOptions::default(), place)?;
        Ok(plan.into_preview())
    }

    fn texts(&self, take: TakeId) -> Vec<String> {
        let (world, reader) = (&self.world.world, self.world.world.read());
        let take = world.state().take(&reader.queries(), take).expect("readable").expect("a take");
        world.texts_of(&take)
    }

    fn files(&self) -> Vec<String> {
        self.world.files().into_keys().collect()
    }
}

#[test]
fn a_change_of_an_inactive_take_is_undone_only_there() {
    let takes = TwoTakes::new();
    let added = takes.say(takes.other, "beside");
    assert!(added.undoable && added.take == Some(takes.other), "{added:?}");
    let preview = takes.preview(takes.other, UNDO).expect("a preview");
    assert_eq!((preview.entries_before, preview.entries_after), (2, 1));
    assert!(preview.files.is_none() && preview.folder.is_none(), "{preview:?}");
    let undone = takes.go(takes.other, UNDO, Scope::Both).expect("an undo").moved.expect("a move");
    assert!(undone.can_redo, "{undone:?}");
    assert_eq!(takes.texts(takes.other), ["first"]);
    assert_eq!(
        (takes.texts(takes.main), takes.files()),
        (vec!["first".to_owned()], vec!["of-main".to_owned(), "shared".to_owned()])
    );
    let reader = takes.world.world.read();
    let status =
        |take| reader.history(takes.world.world.thread).in_take(take).undo_status().expect("a status");
    assert!(status(Some(takes.other)).can_redo && !status(None).can_redo);
    drop(reader);
    takes.go(takes.other, REDO, Scope::Both).expect("a redo");
    assert_eq!(takes.texts(takes.other), ["first", "beside"]);
}

#[test]
fn a_change_with_files_of_a_take_without_a_folder_is_refused_and_a_switch_brings_its_files() {
    let takes = TwoTakes::new();
    let version = takes.world.world.read().head(takes.world.world.thread).expect("a head").operation.version;
    for scope in [Scope::Both, Scope::Files] {
        let refused = takes.go(takes.other, UNDO, scope);
        let refused = refused.expect_err("its files are in no folder").to_string();
        assert!(refused.contains("take switch") && refused.contains("worktree"), "{refused}");
    }
    let refused = takes.preview(takes.other, UNDO).expect_err("a preview says the same").to_string();
    assert!(refused.contains("take switch"), "{refused}");
    let head = takes.world.world.read().head(takes.world.world.thread).expect("a head").operation.version;
    assert_eq!((head, takes.files()), (version, vec!["of-main".to_owned(), "shared".to_owned()]));
    takes.world.change(Command::Switch { take: takes.other });
    assert_eq!(takes.files(), ["of-other", "shared"]);
    takes.world.change(Command::Switch { take: takes.main });
    takes.go(takes.other, UNDO, Scope::Conversation).expect("the conversation alone");
    assert_eq!(takes.files(), ["of-main", "shared"]);
}

#[test]
fn an_undo_that_names_a_take_with_a_worktree_changes_the_files_there() {
    let takes = TwoTakes::new();
    let (world, folder) = (&takes.world, tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("worktree");
    let thread = world.world.thread;
    let opened =
        world.working_copy.open_worktree(thread, takes.other, &path, &Caller::human()).expect("a worktree");
    let known = world.world.read().worktrees().at(&opened.path).expect("a reader").expect("a known worktree");
    let workspace = Workspace::of(&opened.path).expect("a folder");
    let worktree = WorkingCopy::at_worktree(world.world.timeline.clone(), &known, workspace);
    std::fs::write(path.join("there"), "of the worktree\n").expect("a file");
    worktree.record_as_caller(thread, Caller { actor: Actor::Agent, ..Caller::human() }).expect("a record");
    takes.say(takes.other, "beside");
    let executed = takes.go(takes.other, Goal::Undo(Unit::Turn, 2), Scope::Both).expect("an undo");
    assert_eq!(takes.texts(takes.other), ["first"]);
    assert!(!path.join("there").exists() && executed.files.is_some(), "{executed:?}");
    assert_eq!(takes.files(), ["of-main", "shared"]);
}

#[test]
fn the_active_take_can_be_named_and_an_unknown_one_is_refused() {
    let takes = TwoTakes::new();
    takes.say(takes.main, "here");
    takes.go(takes.main, UNDO, Scope::Conversation).expect("an undo");
    assert_eq!(takes.texts(takes.main), ["first"]);
    let nobody = takes.go(TakeId::from_bytes([7; 16]), UNDO, Scope::Both);
    assert!(
        matches!(nobody, Err(FileError::Change(ChangeError::Refused(CommandError::NoSuchTake)))),
        "{nobody:?}"
    );
}

#[test]
fn an_undo_does_not_remove_the_take_that_it_names() {
    let takes = TwoTakes::new();
    let world = &takes.world.world;
    takes.world.change(Command::Switch { take: takes.other });
    takes.world.change(Command::Switch { take: takes.main });
    let version = world.read().head(world.thread).expect("a head").operation.version;
    let undone = takes.go(takes.other, Goal::Undo(Unit::Operation, 100), Scope::Conversation);
    assert!(undone.is_ok(), "{undone:?}");
    assert!(world.read().head(world.thread).expect("a head").operation.version == version + 1);
    assert!(world.state().active == takes.main && world.state().takes.len() == 2);
    let again = takes.go(takes.other, UNDO, Scope::Conversation);
    assert!(matches!(again, Err(FileError::Change(ChangeError::NothingToUndo))), "{again:?}");
}

#[test]
fn a_jump_in_another_take_to_a_version_from_before_the_take_is_refused() {
    let takes = TwoTakes::new();
    takes.say(takes.other, "a note");
    let head = || takes.world.world.read().head(takes.world.world.thread).expect("a head").operation.version;
    let before = head();
    let jump = |version| takes.go(takes.other, Goal::Jump(version), Scope::Conversation);
    let refused = jump(1).expect_err("the take did not exist");
    let FileError::Change(ChangeError::NoSuchTakeThen { asked: 1, first, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(jump(first - 1).is_err());
    assert_eq!(head(), before, "nothing was done");
    jump(first).expect("the take's first version");
    assert!(takes.preview(takes.other, Goal::Jump(1)).is_err());
}
