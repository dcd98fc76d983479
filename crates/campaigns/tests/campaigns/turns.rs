//! A few dozen turns under failures, a few dozen kills in whole turns, and the controls. See `docs/testing.md` for
//! longer runs.

use retake_campaigns::faults::KillPlan;
use retake_campaigns::turns::{TurnsPlan, controls, kill, kill_control, leftover_control, walk};
use retake_campaigns::violation::caught;

#[test]
fn turns_under_chaos_keep_conversation_and_files_together_and_leave_no_leftovers() {
    let plan = TurnsPlan { seed: 1, turns: 60, chaos: 30, mistake: None };
    let walked = walk(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        walked.missing().is_empty() && walked.failures > 10,
        "{walked:?}: too little for a proof: {:?}",
        walked.missing()
    );
}

#[test]
fn each_planted_mistake_of_the_driver_is_caught() {
    controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn after_a_kill_in_a_turn_no_command_runs_twice_and_files_agree() {
    let kills = kill(KillPlan { seed: 1, points: Some(60) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 40 && kills.resumed > 3 && kills.closed > 3, "{kills:?}: too few for a proof");
}

#[test]
fn a_disk_that_reports_syncs_it_did_not_make_is_caught() {
    caught("syncs that lie", kill_control()).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn a_leftover_temporary_file_is_caught() {
    let violation = caught("a temporary file that stays", leftover_control());
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains("was not removed"), "{violation}");
}
