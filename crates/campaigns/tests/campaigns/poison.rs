//! After a failed sync nothing more is written until the store is opened again.

use std::num::NonZeroU64;
use std::path::Path;
use std::process::Command;

use retake_campaigns::scratch::ScratchDir;
use retake_campaigns::shim::{CallClass, Faults, InjectedError, Repeat, Report, Shim};
use retake_store::ThreadFilter;
use retake_timeline::{Rules, Timeline};

/// The outcomes of six commits with a failing sync, and whether it failed.
fn commits(store: &Path, counted: &Path, failing: u64) -> (Vec<String>, bool) {
    let shim = Shim::build().expect("a C compiler");
    let mut command = Command::new(env!("CARGO_BIN_EXE_campaigns"));
    command.arg("commits").arg(store).arg("6");
    let once = Repeat::Consecutive(NonZeroU64::MIN);
    let faults = Faults::under(store).counted_in(counted).only(CallClass::Sync);
    faults.fail_at(failing, InjectedError::BrokenDisk, once).attach(&shim, &mut command);
    let output = command.output().expect("the program runs");
    let lines = String::from_utf8(output.stdout).expect("text");
    let report = Report::read(counted).expect("a report");
    (lines.lines().map(str::to_owned).collect(), report.faults > 0)
}

fn entries(store: &Path) -> u64 {
    let timeline = Timeline::open(store, Rules::default()).expect("the store opens");
    assert!(timeline.store().verify(&mut |_| {}).expect("readable").problems.is_empty());
    let rows = timeline.read().expect("a look").threads(&ThreadFilter::default()).expect("a list");
    rows.first().map_or(0, |row| row.summary.active.entries)
}

#[test]
fn a_failed_sync_stops_the_writer_until_the_store_is_opened_again() {
    let scratch = ScratchDir::new().expect("a folder");
    let (store, counted) = (scratch.path().join("store"), scratch.path().join("count"));
    std::fs::create_dir(&store).expect("a new folder");
    let (text, struck) = commits(&store, &counted, 1_000_000);
    assert!(!struck && text.iter().all(|line| line == "done"), "{text:?}");
    let mut stopped = 0;
    for failing in 1..20 {
        let before = entries(&store);
        let (text, struck) = commits(&store, &counted, failing);
        let done = text.iter().filter(|line| *line == "done").count() as u64;
        let after = entries(&store);
        if !struck {
            break;
        }
        match text.iter().position(|line| line != "done") {
            // The sync belonged to an operation that can be repeated later, such as a checkpoint.
            None => assert_eq!(after, before + done),
            Some(first) => {
                stopped += 1;
                assert_eq!(text[first], "unsure", "{text:?}");
                assert!(text[first + 1..].iter().all(|line| line == "poisoned"), "{text:?}");
                assert!(
                    (before + done..=before + done + 1).contains(&after),
                    "{text:?}: {before} then {after}"
                );
            }
        }
    }
    assert!(stopped >= 3, "only {stopped} commits were struck");
}
