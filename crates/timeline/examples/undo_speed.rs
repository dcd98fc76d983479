//! Measures undo and redo of a turn that wrote many files.
//!
//! `cargo run --release -p retake-timeline --example undo_speed [FILES]…`
//!
//! Measures each number of files for new files in one folder, edits of them, and new folders with one file each. The
//! time per file should not depend on the number.

use std::path::Path;
use std::time::{Duration, Instant};

use retake_model::operation::Actor;
use retake_timeline::{Caller, Goal, MoveOptions, NewThread, Rules, Timeline, Unit, WorkingCopy};
use retake_workspace::snapshot::Workspace;

fn main() {
    let mut counts: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![1_000, 10_000];
    }
    println!("{:>8}  {:<22} {:>9} {:>9} {:>9}", "files", "turn", "record", "undo", "redo");
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
            let undo = go(Goal::Undo(Unit::Turn, 1));
            let redo = go(Goal::Redo(Unit::Turn, 1));
            println!("{count:>8}  {name:<22} {:>9} {:>9} {:>9}", text(record), text(undo), text(redo));
        }
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
