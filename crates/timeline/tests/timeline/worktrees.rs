//! Worktrees, and crashes while they are created.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use retake_model::id::TakeId;
use retake_model::intent::FolderRecord;
use retake_store::StoreError;
use retake_timeline::{
    Caller, Command, FileError, MoveOptions, Plan, PlanRequest, WorkingCopy, Worktree, WorktreePreview,
};
use retake_workspace::leftover::tool_prefix;
use retake_workspace::snapshot::{Options, Workspace};

use crate::support::FileWorld;

/// A world with an inactive take that has its own file.
fn with_second_take() -> (FileWorld, TakeId) {
    let world = FileWorld::new();
    world.world.say("User", "first");
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: Some(world.world.entry(1)), name: None });
    world.agent(|world| world.write("b", "of the take\n"));
    let take = world.world.state().active;
    world.change(Command::Switch { take: main });
    (world, take)
}

#[test]
fn an_unrecorded_worktree_of_a_crash_is_adopted_with_its_changes() {
    let (world, take) = with_second_take();
    let (timeline, thread) = (&world.world.timeline, world.world.thread);
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("worktree");
    let open = || world.working_copy.open_worktree(thread, take, &folder, &Caller::human());
    let opened = open().expect("a folder");
    let whose = format!("{}\0{thread} {take} {}", folder.display(), opened.snapshot);
    let name = blake3::hash(whose.as_bytes()).to_hex();
    let mark = world.world.folder.path().join("folders").join(format!("opening-{name}"));
    assert!(!mark.exists(), "it is known now");
    // As if the record had never been written.
    let forget = || {
        let known = timeline.read().expect("a reader").worktrees().list().expect("a list").remove(0);
        timeline.forget_worktree(&known).expect("it is forgotten");
    };
    forget();
    let number =
        |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).expect("a folder");
    let text = |(device, inode)| format!("{thread} {take} {} {device} {inode}\n", opened.snapshot);

    // A folder of someone else, or of another take, blocks the path.
    let another = text(number(place.path()));
    for content in [None, Some(""), Some("something else"), Some(&another)] {
        if let Some(content) = content {
            std::fs::write(&mark, content).expect("a file");
        }
        assert!(matches!(open(), Err(FileError::PathExists(_))), "{content:?}");
        assert!(folder.join("b").exists(), "nothing was removed");
    }
    std::fs::write(&mark, text(number(&folder))).expect("a file");
    std::fs::write(folder.join("b"), "edited since\n").expect("a file");
    let request = PlanRequest::OpenWorktree { take, folder: folder.clone() };
    let shown = plan(&world, request).expect("a plan").preview().opened().expect("a worktree");
    assert_eq!(
        (shown.snapshot, shown.files),
        (opened.snapshot, 1),
        "the preview decides as the command does"
    );
    let again = open().expect("an adoption");
    assert_eq!((again.snapshot, again.files), (opened.snapshot, 1));
    assert!(!mark.exists());
    assert_eq!(std::fs::read_to_string(folder.join("b")).expect("a file"), "edited since\n");

    let known = timeline.read().expect("a reader").worktrees().list().expect("a list").remove(0);
    let working_copy =
        WorkingCopy::at_worktree(timeline.clone(), &known, Workspace::of(&folder).expect("a folder"));
    let seen = working_copy.record_changes(thread, Caller::human()).expect("a reader");
    assert_eq!(seen.files.paths.len(), 1, "what was done since is recorded: {seen:?}");
}

/// A world whose second take has a worktree, in a folder that is removed after the test.
fn with_worktree() -> (FileWorld, Worktree, tempfile::TempDir) {
    let (world, take) = with_second_take();
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().canonicalize().expect("it exists").join("tree");
    world.working_copy.open_worktree(world.world.thread, take, &folder, &Caller::human()).expect("a folder");
    let known = the_worktree(&world).expect("a known worktree");
    assert_eq!(known.path, folder);
    (world, known, place)
}

fn the_worktree(world: &FileWorld) -> Option<Worktree> {
    world.world.timeline.read().expect("a reader").worktrees().list().expect("a list").pop()
}

fn close(world: &FileWorld, folder: &Worktree) -> Result<bool, FileError> {
    let timeline = &world.world.timeline;
    let closed = timeline.close_worktree(folder, &Options::default(), Caller::human(), true)?;
    Ok(closed.is_some_and(|closed| closed.removed))
}

#[test]
fn a_folder_that_retake_did_not_fill_is_neither_recorded_nor_removed() {
    // Moved far away, with another folder in its place.
    let (world, known, place) = with_worktree();
    let far = tempfile::tempdir_in(place.path()).expect("a folder");
    std::fs::rename(&known.path, far.path().join("tree")).expect("a move");
    std::fs::create_dir(&known.path).expect("a folder");
    std::fs::write(known.path.join("mine"), "precious").expect("a file");
    assert!(matches!(
        WorkingCopy::of_worktree(&world.world.timeline, &known, &Options::default()),
        Err(FileError::WorktreeReplaced(_))
    ));
    let version = world.world.read().thread(world.world.thread).expect("a thread").summary.version;
    assert!(!close(&world, &known).expect("it is forgotten"));
    assert_eq!(std::fs::read_to_string(known.path.join("mine")).expect("a file"), "precious");
    assert!(far.path().join("tree/b").exists());
    assert!(the_worktree(&world).is_none());
    let after = world.world.read().thread(world.world.thread).expect("a thread").summary.version;
    assert_eq!(version, after, "nothing of it was recorded");

    // A link to an unrelated folder.
    let (world, known, place) = with_worktree();
    let other = place.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    std::fs::write(other.join("mine"), "precious").expect("a file");
    std::fs::remove_dir_all(&known.path).expect("a removal");
    std::os::unix::fs::symlink(&other, &known.path).expect("a link");
    assert!(!close(&world, &known).expect("it is forgotten"));
    assert!(other.join("mine").exists());

    // Control: the folder itself is removed, with all recorded files.
    let (world, known, _place) = with_worktree();
    assert!(close(&world, &known).expect("it is closed"));
    assert!(!known.path.exists());
}

#[test]
fn a_moved_worktree_is_recognised() {
    let (world, known, place) = with_worktree();
    let renamed = place.path().join("renamed");
    std::fs::rename(&known.path, &renamed).expect("a move");
    let moved = close(&world, &known).expect_err("it is elsewhere");
    assert!(matches!(&moved, FileError::WorktreeMoved { to, .. } if *to == renamed), "{moved}");
    let here = world.world.read().worktrees().at(&renamed.join("below")).expect("a reader");
    let here = here.expect("it is recognised");
    assert_eq!((here.id, &here.path), (known.id, &renamed));
    std::fs::write(renamed.join("new"), "new").expect("a file");
    let working_copy =
        WorkingCopy::of_worktree(&world.world.timeline, &here, &Options::default()).expect("a working copy");
    assert_eq!(
        working_copy.record_changes(known.thread, Caller::human()).expect("a reader").files.paths.len(),
        1
    );
    assert_eq!(the_worktree(&world).expect("a known worktree").path, renamed, "its path is up to date");
    assert!(close(&world, &here).expect("it is closed"));
    assert!(!renamed.exists());
}

#[test]
fn a_worktree_inside_another_folder_of_retake_is_refused() {
    let (world, known, place) = with_worktree();
    let take = {
        let main = world.world.state().active;
        world.change(Command::Branch { from: main, at: None, name: None });
        let take = world.world.state().active;
        world.change(Command::Switch { take: main });
        take
    };
    let store = world.world.timeline.store().folder().to_owned();
    // A project without captured files.
    let other = place.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    world.world.timeline.init_project(&other).expect("a project");
    let link = place.path().join("link");
    std::os::unix::fs::symlink(world.path(""), &link).expect("a link");
    std::os::unix::fs::symlink(place.path().join("none"), place.path().join("dangling")).expect("a link");
    for path in [
        world.path("tree"),
        world.path("missing/deep/tree"),
        link.join("missing/tree"),
        known.path.join("tree"),
        known.path.join("missing/tree"),
        store.join("tree"),
        store.join("missing/tree"),
        other.join("tree"),
        place.path().join("dangling/tree"),
        "/proc/tree".into(),
        known.path.clone(),
    ] {
        let refused = world.working_copy.open_worktree(world.world.thread, take, &path, &Caller::human());
        assert!(refused.is_err(), "{}", path.display());
        let request = PlanRequest::OpenWorktree { take, folder: path.clone() };
        let refused =
            world.working_copy.plan(world.world.thread, request, Caller::human(), MoveOptions::default());
        assert!(refused.is_err(), "{}", path.display());
    }
    assert!(!world.path("missing").exists() && !store.join("missing").exists());
    // A folder in memory works like any other.
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        let path = memory.path().join("tree");
        world
            .working_copy
            .open_worktree(world.world.thread, take, &path, &Caller::human())
            .expect("a folder");
        let known = world.world.read().worktrees().at(&path).expect("a reader").expect("a known worktree");
        assert!(close(&world, &known).expect("it is closed"));
        assert!(!path.exists());
    }
}

#[test]
fn removing_a_worktree_keeps_a_nested_one() {
    let (world, outer, _place) = with_worktree();
    let main = world.world.state().active;
    world.change(Command::Branch { from: main, at: None, name: None });
    let take = world.world.state().active;
    world.change(Command::Switch { take: main });
    let elsewhere = tempfile::tempdir().expect("a folder");
    let path = elsewhere.path().join("inner");
    world.working_copy.open_worktree(world.world.thread, take, &path, &Caller::human()).expect("a folder");
    // Nesting is rejected, but a folder can be moved.
    let inner = outer.path.join("inner");
    std::fs::rename(&path, &inner).expect("a move");
    for _ in 0..12 {
        let found = world.world.read().worktrees().at(&inner.join("below")).expect("a reader");
        assert_eq!(found.expect("a folder").take, take);
        let found = world.world.read().worktrees().at(&outer.path.join("below")).expect("a reader");
        assert_eq!(found.expect("a folder").take, outer.take);
    }
    assert!(matches!(close(&world, &outer), Err(FileError::ContainsFolder { .. })));
    let request = PlanRequest::CloseWorktree { folder: Box::new(outer.clone()), remove: true };
    assert!(matches!(plan(&world, request), Err(FileError::ContainsFolder { .. })), "so does a preview");
    assert!(inner.is_dir() && outer.path.join("b").exists());
}

fn plan(world: &FileWorld, request: PlanRequest) -> Result<Plan, FileError> {
    world.working_copy.plan(world.world.thread, request, Caller::human(), MoveOptions::default())
}

#[test]
fn a_worktree_preview_creates_nothing_and_is_executed_as_shown() {
    let (world, take) = with_second_take();
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("worktree");
    let version = || world.world.read().head(world.world.thread).expect("a head").operation.version;
    let before = version();
    world.write("mine", "by hand\n");
    let opening = plan(&world, PlanRequest::OpenWorktree { take, folder: folder.clone() }).expect("a plan");
    let preview = opening.preview();
    assert_eq!(preview.unrecorded.len(), 1, "{preview:?}");
    let shown = preview.opened().expect("a worktree");
    assert!(the_worktree(&world).is_none() && !folder.exists());
    assert_eq!(version(), before, "the hand edit is not recorded yet");
    let opened = opening.execute().expect("a worktree").into_opened().expect("it is open");
    assert_eq!((opened.path, opened.snapshot, opened.files), (shown.path, shown.snapshot, shown.files));
    assert_eq!(version(), before + 1);

    let known = the_worktree(&world).expect("a known worktree");
    std::fs::write(folder.join("late"), "at the last moment\n").expect("a file");
    let close = || PlanRequest::CloseWorktree { folder: Box::new(known.clone()), remove: true };
    let closing = plan(&world, close()).expect("a plan");
    let preview = closing.preview();
    let shown = &preview.worktree;
    assert!(matches!(shown, Some(WorktreePreview::Close { gone: false, removed: true, .. })), "{shown:?}");
    assert_eq!(preview.unrecorded.len(), 1, "{preview:?}");
    assert!(folder.join("late").exists() && the_worktree(&world).is_some());
    std::fs::write(folder.join("late"), "later still\n").expect("a file");
    assert!(matches!(closing.execute(), Err(FileError::PlanOutdated)));
    let closed = plan(&world, close()).expect("a plan").execute().expect("a close").into_closed();
    assert!(closed.expect("it is closed").is_some_and(|closed| closed.removed));
    assert!(!folder.exists() && the_worktree(&world).is_none());
}

#[test]
fn removing_a_worktree_keeps_user_folders_beside_it() {
    let (world, take) = with_second_take();
    let place = tempfile::tempdir().expect("a folder");
    let mine = place.path().join(".retake-tmp-open-tree");
    std::fs::create_dir(&mine).expect("a folder");
    std::fs::write(mine.join("mine"), "precious").expect("a file");
    let folder = place.path().join("tree");
    world
        .working_copy
        .open_worktree(world.world.thread, take, &folder, &Caller::human())
        .expect("a worktree");
    assert!(folder.join("b").exists());
    assert_eq!(std::fs::read_to_string(mine.join("mine")).expect("it stays"), "precious");
}

#[test]
fn of_two_projects_adding_a_worktree_at_one_path_one_is_refused() {
    let worlds = [with_second_take(), with_second_take()];
    let place = tempfile::tempdir().expect("a folder");
    for (number, (world, _)) in worlds.iter().enumerate() {
        // Enough files of its own that both processes work at the same time.
        for file in 0..20 {
            world.write(&format!("{number}/{file}"), "content\n");
        }
    }
    for round in 0..10 {
        let folder = place.path().join(format!("deep/{round}"));
        let barrier = std::sync::Barrier::new(2);
        let opened = std::thread::scope(|scope| {
            let opening = worlds.each_ref().map(|(world, _)| {
                let (folder, barrier) = (&folder, &barrier);
                let main = world.world.state().active;
                let command = Command::Branch { from: main, at: Some(world.world.entry(1)), name: None };
                world.change(command);
                let take = world.world.state().active;
                world.change(Command::Switch { take: main });
                scope.spawn(move || {
                    barrier.wait();
                    world.working_copy.open_worktree(world.world.thread, take, folder, &Caller::human())
                })
            });
            opening.map(|opening| opening.join().expect("no panic"))
        });
        let winner = opened.iter().position(Result::is_ok).expect("one of them has it");
        assert!(matches!(opened[1 - winner], Err(FileError::PathExists(_))), "{opened:?}");
        let (mine, other) = (folder.join(winner.to_string()), folder.join((1 - winner).to_string()));
        assert_eq!(std::fs::read_dir(mine).expect("its files").count(), 20);
        assert!(!other.exists(), "nothing of the other is in it");
        let left = std::fs::read_dir(place.path().join("deep")).expect("a folder").count();
        assert_eq!(left, round + 1, "nothing temporary is left");
    }
}

#[test]
fn the_next_command_completes_an_interrupted_removal() {
    let (world, known, place) = with_worktree();
    std::fs::write(known.path.join("c"), "more\n").expect("a file");
    let timeline = &world.world.timeline;
    let working_copy =
        WorkingCopy::of_worktree(timeline, &known, &Options::default()).expect("a working copy");
    let snapshot = working_copy.record_changes(known.thread, Caller::human()).expect("a reader").snapshot;
    let id = known.id;
    let begin = timeline.store().write(move |writing| -> Result<(), StoreError> {
        let record = writing.folder(id)?.expect("a known worktree");
        writing.put_folder(&FolderRecord { removing: Some(snapshot), ..record })
    });
    begin.expect("a write");
    std::fs::remove_file(known.path.join("b")).expect("a removable file");
    std::fs::create_dir(known.path.join(format!(".retake-tmp-close-{}-1", id.short()))).expect("a folder");
    assert!(the_worktree(&world).is_none(), "it is no take's folder any more");
    let cleaned = timeline.clean_up().expect("it is finished");
    assert_eq!(cleaned.removed.len(), 1, "{cleaned:?}");
    assert!(!known.path.exists());
    assert!(timeline.clean_up().expect("nothing is left").is_empty());

    // A partially filled temporary folder.
    let half = place.path().join(".retake-tmp-open-tree");
    std::fs::create_dir_all(half.join("deep")).expect("a folder");
    let project = retake_model::id::FolderId::of_project(world.working_copy.project());
    let note = timeline.store().folder().join("folders").join(format!("filling-{project}"));
    std::fs::write(&note, half.to_str().expect("text")).expect("a note");
    assert_eq!(timeline.clean_up().expect("it is cleared").temporary.len(), 1);
    assert!(!half.exists() && !note.exists());
    // A record that names another folder removes nothing.
    std::fs::write(&note, place.path().to_str().expect("text")).expect("a note");
    assert!(timeline.clean_up().expect("nothing is done").is_empty());
    assert!(place.path().is_dir());
}

#[test]
fn a_recorded_temporary_file_is_removed_once_its_tool_died() {
    let world = FileWorld::new();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
    let left = world.path(&format!("{}1", tool_prefix(child.id())));
    std::fs::write(&left, "half").expect("a file");
    world.record_changes();
    assert!(left.exists(), "its process runs");
    child.kill().expect("a writable file");
    child.wait().expect("it ends");
    assert!(world.record_changes().operation.is_none());
    assert!(!left.exists(), "nothing else had to change");
}

#[test]
fn temporary_files_of_killed_tools_are_removed_by_the_next_snapshot() {
    let world = FileWorld::new();
    world.write("a", "one\n");
    world.record_changes();
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    let (dead, alive) = (tool_prefix(child.id()), tool_prefix(std::process::id()));
    child.wait().expect("it ends");
    std::fs::create_dir(world.path("below")).expect("a folder");
    let (dead, alive) = (world.path(&format!("below/{dead}1")), world.path(&format!("{alive}1")));
    for path in [&dead, &alive] {
        std::fs::write(path, "half").expect("a file");
    }
    let seen = world.record_changes();
    assert!(seen.files.paths.iter().all(|path| !path.path.to_string().contains("retake-tmp")), "{seen:?}");
    assert!(!dead.exists(), "its process has ended");
    assert!(alive.exists(), "its process runs");
    std::fs::remove_file(alive).expect("a writable file");
}
