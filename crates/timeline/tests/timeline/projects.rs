//! Projects are identified by more than their path.

use std::fs;
use std::process::Command;

use retake_model::id::ProjectId;
use retake_timeline::{
    Caller, Command as Change, FileError, Goal, MoveOptions, NewThread, PlanRequest, ProjectChange, Rules,
    Timeline, Unit, WorkingCopy,
};
use retake_workspace::snapshot::{OpenError, Options, Workspace};

struct TestFolder {
    folder: tempfile::TempDir,
    timeline: Timeline,
}

impl TestFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("project")).expect("a new folder");
        let timeline = Timeline::open(&folder.path().join("home"), Rules::default()).expect("a new store");
        Self { folder, timeline }
    }

    fn project(&self, name: &str) -> retake_timeline::Project {
        self.timeline.project(&self.folder.path().join(name)).expect("a folder")
    }
}

#[test]
fn a_renamed_folder_keeps_its_project() {
    let place = TestFolder::new();
    let before = place.project("project");
    assert_eq!(before.folder_change, ProjectChange::New);
    assert_eq!(place.project("project").folder_change, ProjectChange::Nothing);
    fs::rename(place.folder.path().join("project"), place.folder.path().join("renamed")).expect("a rename");
    let after = place.project("renamed");
    assert_eq!(after.id, before.id);
    assert!(matches!(after.folder_change, ProjectChange::Moved { .. }));
}

#[test]
fn a_project_moved_below_another_one_keeps_its_identity() {
    let place = TestFolder::new();
    let outer = place.project("project");
    let path = |name: &str| place.folder.path().join(name);
    fs::create_dir_all(path("project/inner/deep")).expect("a new folder");
    fs::create_dir(path("alone")).expect("a new folder");
    let inner = place.timeline.init_project(&path("project/inner")).expect("a project");
    let alone = place.project("alone");
    assert_ne!(inner.id, outer.id);

    fs::rename(path("project/inner"), path("project/renamed")).expect("a rename");
    fs::rename(path("alone"), path("project/alone")).expect("a rename");
    for (folder, project) in
        [("project/renamed/deep", &inner), ("project/renamed", &inner), ("project/alone", &alone)]
    {
        assert_eq!(place.project(folder).id, project.id, "{folder}");
    }
    // A copy is not recognised as the original, and belongs to the project above it.
    let copied = Command::new("cp").arg("-a").args([path("project/renamed"), path("project/copy")]).status();
    assert!(copied.expect("cp").success());
    assert_eq!(place.project("project/copy").id, outer.id);
}

#[test]
fn reading_a_new_folder_creates_nothing() {
    let place = TestFolder::new();
    let folder = place.folder.path().join("project");
    place.timeline.project_if_known(&folder).expect("a folder");
    assert!(place.timeline.read().expect("a reader").queries().projects().expect("a list").is_empty());
    let known = place.project("project");
    assert_eq!(place.timeline.project_if_known(&folder).expect("a folder").id, known.id);
}

#[test]
fn a_copied_folder_is_another_project() {
    let place = TestFolder::new();
    let before = place.project("project");
    let (from, to) = (place.folder.path().join("project"), place.folder.path().join("copy"));
    assert!(Command::new("cp").arg("-a").args([&from, &to]).status().expect("cp").success());
    assert_ne!(place.project("copy").id, before.id);
    assert_eq!(place.project("project").id, before.id);
}

#[test]
fn a_copy_of_a_renamed_project_does_not_take_over_its_identity() {
    for copy_at in ["copy", "elsewhere/copy", "project"] {
        let place = TestFolder::new();
        let before = place.project("project");
        let at = |name: &str| place.folder.path().join(name);
        fs::create_dir(at("elsewhere")).expect("a new folder");
        fs::rename(at("project"), at("renamed")).expect("a rename");
        let copied = Command::new("cp").arg("-a").args([at("renamed"), at(copy_at)]).status();
        assert!(copied.expect("cp").success());
        // The copy is opened first, when only the file system distinguishes the two.
        let copy = place.project(copy_at);
        assert_ne!(copy.id, before.id, "{copy_at}");
        let original = place.project("renamed");
        assert_eq!(original.id, before.id, "{copy_at}");
        assert!(matches!(original.folder_change, ProjectChange::Moved { .. }), "{copy_at}: {original:?}");
        assert_eq!(place.project(copy_at).id, copy.id, "{copy_at}");
    }
}

#[test]
fn a_new_folder_at_an_old_path_is_another_project_that_can_adopt_the_old_one() {
    let place = TestFolder::new();
    let before = place.project("project");
    fs::remove_dir(place.folder.path().join("project")).expect("a removal");
    fs::create_dir(place.folder.path().join("other")).expect("another folder, which may reuse the number");
    fs::create_dir(place.folder.path().join("project")).expect("a new folder");
    let after = place.project("project");
    assert_ne!(after.id, before.id);
    assert_ne!(place.project("other").id, before.id);
    let adopted = place.timeline.adopt(&place.folder.path().join("project"), before.id).expect("an adoption");
    assert!(adopted.displaced.is_none(), "a project without threads leaves nothing: {adopted:?}");
    let adopted = adopted.project;
    assert_eq!(adopted.id, before.id);
    assert_eq!(place.project("project").id, before.id);
}

#[test]
fn adopting_a_project_names_the_threads_that_were_here() {
    let place = TestFolder::new();
    fs::create_dir(place.folder.path().join("other")).expect("a new folder");
    let (here, other) = (place.project("project"), place.project("other"));
    for project in [&here, &other] {
        place.timeline.create_thread(NewThread::in_project(project.id), Caller::human()).expect("a thread");
    }
    let folder = place.folder.path().join("project");
    let adopted = place.timeline.adopt(&folder, other.id).expect("an adoption");
    let displaced = adopted.displaced.expect("the project that was here");
    assert_eq!((displaced.id, displaced.threads), (here.id, 1));
    assert_eq!(place.project("project").id, other.id);
    assert_eq!(place.project("other").folder_change, ProjectChange::New, "not a copy: the former folder");
    let back = place.timeline.adopt(&folder, here.id).expect("an adoption");
    assert_eq!(back.displaced.map(|displaced| displaced.id), Some(other.id));
}

#[test]
fn a_subfolder_belongs_to_the_project_above_it() {
    let place = TestFolder::new();
    let above = place.project("project");
    fs::create_dir_all(place.folder.path().join("project/src/deep")).expect("new folders");
    assert_eq!(place.project("project/src/deep").id, above.id);
}

#[test]
fn processes_opening_a_new_folder_concurrently_agree_on_its_project() {
    let place = TestFolder::new();
    let folder = place.folder.path().join("project");
    let home = place.folder.path().join("home");
    let meet = || {
        let timeline = Timeline::open(&home, Rules::default()).expect("the store");
        timeline.project(&folder).expect("a folder").id
    };
    let ids: std::collections::HashSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(meet)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
}

#[test]
fn the_working_copy_of_a_project_is_its_own_folder() {
    let place = TestFolder::new();
    let project = place.project("project");
    let folder = place.folder.path().join("project").canonicalize().expect("a folder");
    let working_copy = |id: ProjectId| WorkingCopy::of_project(&place.timeline, id, &Options::default());
    let further = place.folder.path().join("further");
    fs::create_dir(&further).expect("a new folder");
    let workspace = Workspace::open(&folder, &[("further".to_owned(), further)], Options::default());
    let with_root = WorkingCopy::at(place.timeline.clone(), project.id, workspace.expect("two folders"));
    with_root.store_roots(Some("further")).expect("they are kept");

    let found = working_copy(project.id).expect("a working copy");
    assert_eq!((found.path(), found.project(), found.worktree()), (folder.as_path(), project.id, None));
    let thread = place.timeline.create_thread(NewThread::in_project(project.id), Caller::human());
    let thread = thread.expect("a thread").thread;
    found.record_changes(thread, Caller::human()).expect("a first snapshot");
    fs::write(place.folder.path().join("further/new.txt"), "new\n").expect("a file");
    let seen = found.record_changes(thread, Caller::human()).expect("a reader");
    assert_eq!(seen.files.paths.len(), 1, "{seen:?}");
    assert!(seen.files.paths[0].path.to_string().contains("new.txt"), "the further root is one of its own");

    let away = |found: Result<WorkingCopy, FileError>| matches!(found, Err(FileError::ProjectFolderMissing(path)) if path == folder);
    let nobody = ProjectId::generate(&mut place.timeline.fresh());
    assert!(matches!(working_copy(nobody), Err(FileError::NoSuchProject(id)) if id == nobody));
    fs::rename(&folder, place.folder.path().join("renamed")).expect("a rename");
    assert!(away(working_copy(project.id)), "it is gone");
    // Another folder at its path must not receive its files.
    fs::create_dir(&folder).expect("a new folder");
    assert!(away(working_copy(project.id)), "it is another");
    place.project("renamed");
    assert!(working_copy(project.id).is_ok(), "it was seen where it is now");
}

#[test]
fn the_working_copy_of_a_take_is_the_folder_of_its_files() {
    let place = TestFolder::new();
    let project = place.project("project");
    let options = Options::default();
    let thread = place.timeline.create_thread(NewThread::in_project(project.id), Caller::human());
    let thread = thread.expect("a thread").thread;
    let main = place.timeline.read().expect("a reader").state(thread).expect("a state").active;
    let branch = Change::Branch { from: main, at: None, name: Some("other".to_owned()) };
    place.timeline.change(thread, branch, Caller::human()).expect("a branch");
    let other = place.timeline.read().expect("a reader").state(thread).expect("a state").active;
    let of = |take| WorkingCopy::of_take(&place.timeline, thread, take, &options).expect("a working copy");
    let home = place.folder.path().join("project").canonicalize().expect("a folder");
    assert_eq!((of(main).path(), of(other).path()), (home.as_path(), home.as_path()));
    let worktree = place.folder.path().join("worktree");
    of(main).open_worktree(thread, main, &worktree, &Caller::human()).expect("a folder");
    let worktree = worktree.canonicalize().expect("a folder");
    assert_eq!((of(main).path(), of(other).path()), (worktree.as_path(), home.as_path()));
    assert_eq!(of(main).worktree().map(|worktree| worktree.take), Some(main));
}

#[test]
fn only_a_missing_folder_lets_a_thread_without_files_go_without_one() {
    let place = TestFolder::new();
    let project = place.project("project");
    let thread = place.timeline.create_thread(NewThread::in_project(project.id), Caller::human());
    let thread = thread.expect("a thread").thread;
    let branch = |name: &str, options: &Options| {
        let from = place.timeline.read().expect("a reader").state(thread).expect("a state").active;
        let command = Change::Branch { from, at: None, name: Some(name.to_owned()) };
        let request = PlanRequest::Change(command);
        place.timeline.perform(
            thread,
            request,
            Caller::human(),
            MoveOptions::default(),
            (Some(options), None),
        )
    };
    // An error in the configuration is not a missing folder.
    let wrong = Options { exclude: vec!["[z-a]".to_owned()], ..Options::default() };
    let refused = branch("first", &wrong);
    assert!(matches!(refused, Err(FileError::Open(OpenError::Pattern { .. }))), "{refused:?}");
    place.timeline.forget_project(project.id).expect("it is forgotten");
    let done = branch("second", &Options::default()).expect("a thread without files needs no folder");
    assert!(done.files.is_none());
    let undo = PlanRequest::Move(Goal::Undo(Unit::Turn, 1));
    let options = Options::default();
    let undone =
        place.timeline.perform(thread, undo, Caller::human(), MoveOptions::default(), (Some(&options), None));
    assert!(undone.expect("an undo").files.is_none());
}
