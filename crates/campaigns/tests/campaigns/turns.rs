//! A few dozen turns under failures, a few dozen kills in whole turns, and the controls. See `docs/testing.md` for
//! longer runs.

use retake_campaigns::faults::KillPlan;
use retake_campaigns::turns::{TurnsPlan, controls, kill, kill_control, leftover_control, walk};
use retake_campaigns::violation::caught;

#[test]
fn turns_under_chaos_leave_nothing_apart_and_nothing_behind() {
    let plan = TurnsPlan { seed: 1, turns: 60, chaos: 30, mistake: None };
    let walked = walk(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        walked.missing().is_empty() && walked.failures > 10,
        "{walked:?}: too little for a proof: {:?}",
        walked.missing()
    );
}

#[test]
fn each_mistake_that_a_driver_could_make_is_caught() {
    controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn no_kill_in_a_turn_runs_a_command_twice_or_parts_files_from_what_was_said() {
    let kills = kill(KillPlan { seed: 1, points: Some(60) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 40 && kills.resumed > 3 && kills.closed > 3, "{kills:?}: too few for a proof");
}

#[test]
fn a_disk_that_lies_is_caught() {
    caught("syncs that lie", kill_control()).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn a_temporary_file_that_stays_is_caught() {
    let violation = caught("a temporary file that stays", leftover_control());
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains("was not removed"), "{violation}");
}
