//! Measures undo and redo of a turn that wrote many files.
//!
//! `cargo run --release -p retake-timeline --example undo_speed [FILES]…`
//!
//! Measures each number of files for new files in one folder, edits of them, and new folders with one file each. The
//! time per file should not depend on the number.
//!
//! The last two columns compare undo and redo with a bare loop that leaves the same files in the same durable state, in
//! the same run on the same file system: it writes every file beside its path, syncs the file system once, renames and
//! deletes. It checks nothing and cannot be repeated after a crash. Ratios depend less on what else runs than times do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use retake_model::operation::Actor;
use retake_timeline::{Caller, Goal, MoveOptions, NewThread, Rules, Timeline, Unit, WorkingCopy};
use retake_workspace::snapshot::Workspace;

fn main() {
    let mut counts: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![1_000, 10_000];
    }
    println!(
        "{:>8}  {:<22} {:>9} {:>9} {:>9} {:>12} {:>12}",
        "files", "turn", "record", "undo", "redo", "undo / bare", "redo / bare"
    );
    for count in counts {
        let place = tempfile::tempdir_in(".").expect("a temporary folder on this disk");
        let root = place.path().join("project");
        std::fs::create_dir_all(&root).expect("it is ours");
        let timeline = Timeline::open(&place.path().join("store"), Rules::default()).expect("a store");
        let project = timeline.project(&root).expect("a project").id;
        let thread =
            timeline.create_thread(NewThread::in_project(project), Caller::human()).expect("a thread").thread;
        let working_copy = WorkingCopy::at(timeline, project, Workspace::of(&root).expect("a workspace"));
        working_copy.record_changes(thread, Caller::human()).expect("a first snapshot");
        let turns: [(&str, &dyn Fn(usize)); 3] = [
            ("new files, one folder", &|number| {
                write(&root.join(format!("many/{number}.txt")), "new", number);
            }),
            ("edits, one folder", &|number| {
                write(&root.join(format!("many/{number}.txt")), "edited", number);
            }),
            ("new folders", &|number| write(&root.join(format!("folder-{number}/file.txt")), "new", number)),
        ];
        for (name, work) in turns {
            (0..count).for_each(work);
            let agent = Caller { actor: Actor::Agent, ..Caller::human() };
            let record = time(|| drop(working_copy.record_as_caller(thread, agent).expect("a change")));
            let go = |goal| {
                time(|| {
                    drop(
                        working_copy
                            .go(thread, goal, Caller::human(), MoveOptions::default())
                            .expect("a move"),
                    );
                })
            };
            let bare = Bare { folder: place.path().join("bare"), count, new_folders: name == "new folders" };
            let replaces = name.starts_with("edits");
            bare.write("before");
            let bare_undo = time(|| if replaces { bare.replace() } else { bare.remove() });
            let undo = go(Goal::Undo(Unit::Turn, 1));
            let redo = go(Goal::Redo(Unit::Turn, 1));
            let bare_redo = time(|| bare.replace());
            std::fs::remove_dir_all(&bare.folder).expect("it is ours");
            let ratio =
                |time: Duration, bare: Duration| format!("{:.1}", time.as_secs_f64() / bare.as_secs_f64());
            println!(
                "{count:>8}  {name:<22} {:>9} {:>9} {:>9} {:>12} {:>12}",
                text(record),
                text(undo),
                text(redo),
                ratio(undo, bare_undo),
                ratio(redo, bare_redo)
            );
        }
    }
}

/// The same number of files, moved by a bare loop.
struct Bare {
    folder: PathBuf,
    count: usize,
    /// Whether each file has a folder of its own.
    new_folders: bool,
}

impl Bare {
    fn path(&self, number: usize) -> PathBuf {
        let folder =
            if self.new_folders { format!("folder-{number}/file.txt") } else { format!("many/{number}.txt") };
        self.folder.join(folder)
    }

    fn write(&self, word: &str) {
        (0..self.count).for_each(|number| write(&self.path(number), word, number));
    }

    fn remove(&self) {
        for number in 0..self.count {
            let path = self.path(number);
            std::fs::remove_file(&path).expect("it is ours");
            if self.new_folders {
                std::fs::remove_dir(path.parent().expect("a folder")).expect("it is empty");
            }
        }
        self.sync();
    }

    fn replace(&self) {
        let new = self.folder.join("new");
        std::fs::create_dir_all(&new).expect("it is ours");
        for number in 0..self.count {
            write(&new.join(number.to_string()), "after", number);
        }
        self.sync();
        for number in 0..self.count {
            let path = self.path(number);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is ours");
            std::fs::rename(new.join(number.to_string()), path).expect("it is ours");
        }
        self.sync();
    }

    fn sync(&self) {
        let synced = std::process::Command::new("sync").arg("-f").arg(&self.folder).status();
        assert!(synced.is_ok_and(|status| status.success()), "the file system was not synced");
    }
}

fn write(path: &Path, word: &str, number: usize) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is ours");
    std::fs::write(path, format!("{word} {number}\n").repeat(20)).expect("enough disk space");
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn text(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
