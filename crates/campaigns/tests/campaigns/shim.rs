//! Tests of the fault library with a small program.

use std::fs;
use std::num::NonZeroU64;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use retake_campaigns::shim::{CallClass, Faults, InjectedError, KillMode, Repeat, Report, Shim};
use tempfile::TempDir;

const KILLED: i32 = 9;

fn shim() -> &'static Shim {
    static SHIM: OnceLock<Shim> = OnceLock::new();
    SHIM.get_or_init(|| Shim::build().expect("a C compiler"))
}

fn victim() -> &'static Path {
    static VICTIM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = VICTIM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join("victim");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/victim.c");
        let status = Command::new("cc").arg("-pthread").arg("-o").arg(&program).arg(source).status();
        assert!(status.expect("a C compiler").success());
        (folder, program)
    });
    program
}

/// A folder for the program, and a file for the counts.
struct ScratchDir {
    place: TempDir,
}

struct Outcome {
    /// Acknowledged steps, and the error that ended them.
    text: String,
    signal: Option<i32>,
    code: Option<i32>,
    report: Report,
}

impl ScratchDir {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(place.path().join("root")).expect("a new folder");
        Self { place }
    }

    fn with(name: &str, content: &str) -> Self {
        let scratch = Self::new();
        fs::write(scratch.path(name), content).expect("a new file");
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("root").join(name)
    }

    fn faults(&self) -> Faults {
        Faults::under(self.path("")).counted_in(self.place.path().join("count"))
    }

    fn run(&self, faults: &Faults, steps: &str) -> Outcome {
        let mut command = Command::new(victim());
        command.args(steps.split_whitespace()).current_dir(self.path(""));
        let output = faults.attach(shim(), &mut command).output().expect("the victim starts");
        Outcome {
            text: String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" "),
            signal: output.status.signal(),
            code: output.status.code(),
            report: Report::read(&self.place.path().join("count")).expect("a report"),
        }
    }

    #[track_caller]
    fn holds(&self, name: &str, expected: &str) {
        let bytes = fs::read(self.path(name)).expect("a file");
        assert_eq!(String::from_utf8_lossy(&bytes), expected, "content of {name}");
    }
}

#[test]
fn shim_counts_calls() {
    for (steps, calls) in [
        // Appending opens and writes.
        ("w:a:one", 2),
        ("w:a:one s:a", 3),
        ("o:a:one r:a:b u:b", 4),
        ("w:a:one p:a:two t:a:1", 4),
        ("w:a:one c:a:b", 4),
        ("w:../outside:one", 0),
        ("w:../root/inside:one", 2),
        ("w:./inside:one", 2),
        ("r:../nothing:x", 1),
        // Calls that move files: each counts once, besides those that create the file.
        ("w:a:one m:a:600", 3),
        ("w:a:one M:a:600 D:folder", 4),
        ("w:a:one w:b:two y:a:b", 5),
        ("d:folder l:link:target", 2),
        ("w:a:one f:a", 3),
        ("w:a:one a:a", 3),
        ("w:a:one k:a:b", 4),
        ("x:8", 808),
    ] {
        let scratch = ScratchDir::new();
        let outcome = scratch.run(&scratch.faults(), steps);
        let expected = Report { calls, faults: 0, lost: 0, untracked: 0 };
        assert_eq!(outcome.report, expected, "{steps}");
    }
}

#[test]
fn shim_counts_one_class_of_calls() {
    for (class, calls) in
        [(CallClass::Write, 2), (CallClass::Sync, 1), (CallClass::Name, 1), (CallClass::Open, 3)]
    {
        let scratch = ScratchDir::new();
        let outcome = scratch.run(&scratch.faults().only(class), "w:a:one w:a:two s:a r:a:b");
        assert_eq!((outcome.report.calls, outcome.code), (calls, Some(0)), "{class:?}");
    }
}

#[test]
fn a_kill_preserves_earlier_writes() {
    let all = ["1", "2", "3", "4"];
    for call in 1..=4_usize {
        let scratch = ScratchDir::with("a", "");
        let faults = scratch.faults().only(CallClass::Write).die_at(call as u64, KillMode::Kill);
        let outcome = scratch.run(&faults, "w:a:1 w:a:2 w:a:3 w:a:4");
        assert_eq!(outcome.signal, Some(KILLED));
        assert_eq!(outcome.text, all[..call - 1].join(" "));
        assert_eq!((outcome.report.calls, outcome.report.faults), (call as u64, 1));
        scratch.holds("a", &all[..call - 1].concat());
    }
    let scratch = ScratchDir::new();
    let outcome = scratch.run(&scratch.faults().die_at(99, KillMode::Kill), "w:a:1");
    assert_eq!((outcome.code, outcome.report.faults), (Some(0), 0), "too late to matter");
}

#[test]
fn half_of_a_torn_write_reaches_the_disk() {
    let scratch = ScratchDir::with("a", "....");
    let faults = scratch.faults().only(CallClass::Write).die_at(2, KillMode::Torn);
    assert_eq!(scratch.run(&faults, "w:a:1234 w:a:5678").signal, Some(KILLED));
    scratch.holds("a", "....123456");
}

#[test]
fn a_power_cut_loses_unsynced_writes() {
    // The power is cut at the last step.
    for (what, before, steps, after) in [
        ("an append", "old", "w:a:lost u:a", "old"),
        ("an append after a sync", "old", "w:a:kept s:a w:a:lost u:a", "oldkept"),
        ("an overwrite", "old", "p:a:new u:a", "old"),
        ("a longer overwrite", "old", "p:a:longer u:a", "old"),
        ("two overwrites and a sync between", "old", "p:a:new s:a p:a:xx u:a", "new"),
        ("a truncation", "old", "t:a:1 u:a", "old"),
        ("a truncation and an append", "old", "t:a:1 w:a:lost u:a", "old"),
        ("an extension", "old", "t:a:9 u:a", "old"),
        ("a file made anew", "old", "o:a:new u:a", "old"),
        ("a file made anew and synced", "old", "o:a:new s:a u:a", "new"),
        ("the sync of another file", "old", "w:a:lost w:b:x s:b u:a", "old"),
        ("a copy over it", "old", "w:b:newer c:b:a u:a", "old"),
        ("a rename before the sync", "old", "o:b:new r:b:a u:a", ""),
        ("a rename after the sync", "old", "o:b:new s:b r:b:a u:a", "new"),
    ] {
        let scratch = ScratchDir::with("a", before);
        let counted = ScratchDir::with("a", before);
        let last = counted.run(&counted.faults(), steps).report.calls;
        let outcome = scratch.run(&scratch.faults().die_at(last, KillMode::Cut), steps);
        assert_eq!((outcome.signal, outcome.report.untracked), (Some(KILLED), 0), "{what}");
        let content = fs::read_to_string(scratch.path("a")).expect("a file");
        assert_eq!(content, after, "{what}");
    }
}

#[test]
fn half_of_the_last_write_may_overtake_the_rest() {
    let scratch = ScratchDir::with("a", "old");
    let faults = scratch.faults().only(CallClass::Write).die_at(2, KillMode::TornCut);
    scratch.run(&faults, "w:a:1234 p:a:NEW!");
    scratch.holds("a", "NEd");
}

#[test]
fn memory_mapped_files_of_sqlite_are_lost_in_a_power_cut() {
    let scratch = ScratchDir::new();
    scratch.run(&scratch.faults().die_at(3, KillMode::Cut), "w:a-shm:x u:a-shm");
    assert!(!scratch.path("a-shm").exists());
}

#[test]
fn a_power_cut_with_ignored_syncs_loses_everything() {
    let steps = "w:a:one s:a w:a:two s:a u:nothing";
    let scratch = ScratchDir::with("a", "");
    let outcome = scratch.run(&scratch.faults().lying_syncs().die_at(7, KillMode::Cut), steps);
    assert_eq!((outcome.signal, &*outcome.text, outcome.report.lost), (Some(KILLED), "1 2 3 4", 2));
    scratch.holds("a", "");
    // Without a cut, skipped syncs are harmless: the system keeps the data of a killed process.
    let scratch = ScratchDir::with("a", "");
    scratch.run(&scratch.faults().lying_syncs().die_at(7, KillMode::Kill), steps);
    scratch.holds("a", "onetwo");
}

#[test]
fn a_power_cut_at_the_end_preserves_the_exit_code() {
    for (steps, code) in [("w:a:kept s:a w:a:lost", 0), ("w:a:kept s:a w:a:lost e:3", 3)] {
        let scratch = ScratchDir::with("a", "");
        let outcome = scratch.run(&scratch.faults().cut_at_exit(), steps);
        assert_eq!((outcome.code, outcome.report.faults), (Some(code), 1));
        scratch.holds("a", "kept");
        let scratch = ScratchDir::with("a", "");
        scratch.run(&scratch.faults().cut_at_exit().lying_syncs(), steps);
        scratch.holds("a", "");
    }
}

#[test]
fn a_chosen_call_fails_with_the_chosen_error() {
    let twice = Repeat::Consecutive(NonZeroU64::new(2).expect("not zero"));
    let once = Repeat::Consecutive(NonZeroU64::MIN);
    for (failure, class, times, text) in [
        (InjectedError::DiskFull, CallClass::Write, once, "1 ENOSPC"),
        (InjectedError::OverQuota, CallClass::Write, Repeat::Forever, "1 EDQUOT"),
        (InjectedError::OutOfHandles, CallClass::Open, twice, "1 EMFILE"),
        (InjectedError::Forbidden, CallClass::Open, once, "1 EACCES"),
    ] {
        let scratch = ScratchDir::with("a", "");
        let outcome = scratch.run(&scratch.faults().only(class).fail_at(2, failure, times), "w:a:1 w:a:2");
        assert_eq!((&*outcome.text, outcome.report.faults), (text, 1));
        scratch.holds("a", "1");
    }
    let scratch = ScratchDir::with("a", "");
    let faults =
        scratch.faults().only(CallClass::Sync).fail_at(1, InjectedError::BrokenDisk, once).cut_at_exit();
    assert_eq!(scratch.run(&faults, "w:a:1 s:a").text, "1 EIO");
    scratch.holds("a", "");
}

#[test]
fn a_chosen_write_can_be_short() {
    let scratch = ScratchDir::with("a", "");
    let outcome = scratch.run(&scratch.faults().only(CallClass::Write).short_at(1), "w:a:1234");
    assert_eq!((&*outcome.text, outcome.report.faults), ("EAGAIN", 1));
    scratch.holds("a", "12");
}

#[test]
fn invalid_settings_of_the_shim_are_refused() {
    let scratch = ScratchDir::new();
    let zero = scratch.faults().die_at(0, KillMode::Kill);
    let mut command = Command::new(victim());
    let output = zero.attach(shim(), &mut command).output().expect("the victim starts");
    assert_eq!(output.status.code(), Some(97));
    assert!(String::from_utf8_lossy(&output.stderr).contains("FAULTS_KILL_AT"));
    let gone = Faults::under(scratch.path("gone"));
    let output = gone.attach(shim(), &mut Command::new(victim())).output().expect("the victim starts");
    assert_eq!(output.status.code(), Some(97));
}

#[test]
fn several_processes_can_build_the_shim_concurrently() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| Shim::build_in(folder.path()).expect("a C compiler"));
        }
    });
    let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1, "one library and nothing unfinished: {names:?}");
}
