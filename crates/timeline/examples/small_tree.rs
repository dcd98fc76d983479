//! Measures a whole cycle in a small folder: a snapshot of an agent's change, and its undo.
//!
//! `cargo run --release -p retake-timeline --example small_tree [FILES]`
//!
//! For comparison, measures a lower bound in the same run: as many durable 4 KB writes as the cycle has commits and
//! file syncs.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use retake_model::operation::Actor;
use retake_timeline::{Caller, Goal, MoveOptions, NewThread, Rules, Timeline, Unit, WorkingCopy};
use retake_workspace::snapshot::Workspace;

const ROUNDS: usize = 40;
/// Commits per cycle: the recorded change, the intent, the operation.
const COMMITS: u32 = 3;
/// Syncs of the folder's file system while one file moves.
const FILE_SYNCS: u32 = 2;

fn main() {
    let files: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(300);
    let place = tempfile::tempdir_in(".").expect("a temporary folder on this disk");
    let root = place.path().join("project");
    for number in 0..files {
        let path = root.join(format!("folder{}/file{number}.txt", number % 20));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is ours");
        std::fs::write(path, format!("file {number}\n").repeat(200)).expect("it is ours");
    }
    let timeline = Timeline::open(&place.path().join("store"), Rules::default()).expect("a store");
    let project = timeline.project(&root).expect("a project").id;
    let thread =
        timeline.create_thread(NewThread::in_project(project), Caller::human()).expect("a thread").thread;
    let working_copy = WorkingCopy::at(timeline, project, Workspace::of(&root).expect("a workspace"));
    working_copy.record_changes(thread, Caller::human()).expect("a first snapshot");
    let probe = File::create(place.path().join("probe")).expect("a file");

    let (mut snapshots, mut undos, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        floors.push(time(|| {
            for _ in 0..COMMITS + FILE_SYNCS {
                probe.write_all_at(&[7; 4096], 0).expect("enough disk space");
                probe.sync_data().expect("it syncs");
            }
        }));
        let path = root.join(format!("folder3/file{}.txt", 3 + 20 * (round % 10)));
        let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("a file");
        writeln!(file, "round {round}").expect("enough disk space");
        drop(file);
        let agent = Caller { actor: Actor::Agent, ..Caller::human() };
        snapshots.push(time(|| drop(working_copy.record_as_caller(thread, agent).expect("a change"))));
        let undo = Goal::Undo(Unit::Turn, 1);
        undos.push(time(|| {
            drop(working_copy.go(thread, undo, Caller::human(), MoveOptions::default()).expect("an undo"));
        }));
    }
    let (snapshot, undo, floor) = (median(snapshots), median(undos), median(floors));
    let beyond = (snapshot + undo).saturating_sub(floor);
    println!(
        "{files} files: snapshot {snapshot:.1?}, undo {undo:.1?}, floor {floor:.1?}; beyond it {beyond:.1?} (goal: under 15 ms)"
    );
}

fn time(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
