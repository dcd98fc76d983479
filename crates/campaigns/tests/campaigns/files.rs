//! A few hundred faults while the real program moves files, and the controls. See `docs/testing.md` for longer runs.

use retake_campaigns::faults::{ErrorsPlan, KillPlan};
use retake_campaigns::files::{
    Program, denied_removals, errors, errors_control, kill, kill_control, removal_control, rules_control,
    sealed, sealed_control,
};
use retake_campaigns::violation::caught;

#[test]
fn after_any_kill_conversation_and_files_agree() {
    let kills = kill(KillPlan { seed: 1, points: Some(60) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 80, "{kills:?}: too few for a proof");
}

#[test]
fn moving_files_before_storing_the_intent_is_caught() {
    let mistaken = Program { path: env!("CARGO_BIN_EXE_campaigns").into(), first: &["wrong-order"] };
    let violation = caught("files before the intent", kill_control(mistaken));
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains("split"), "{violation}");
}

#[test]
fn forgetting_a_folder_before_removing_it_is_caught() {
    let mistaken = Program { path: env!("CARGO_BIN_EXE_campaigns").into(), first: &["wrong-order"] };
    let violation = caught("a folder forgotten before it is removed", removal_control(mistaken));
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains("remove") && violation.what.contains("split"), "{violation}");
}

#[test]
fn a_failing_call_leaves_files_and_conversation_as_they_were() {
    let done = errors(ErrorsPlan { seed: 1, points: Some(60) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(done.injected >= 80 && done.failed >= 20, "{done:?}: too few for a proof");
}

#[test]
fn a_worktree_remains_with_all_files_if_one_cannot_be_deleted() {
    let refused = denied_removals().unwrap_or_else(|failed| panic!("{failed}"));
    assert!(refused >= 3, "{refused} refusals: too few for a proof");
}

#[test]
fn counting_a_failed_move_as_a_success_is_caught() {
    caught("failures taken for successes", errors_control()).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn secret_and_ignored_files_are_restored_after_any_kill() {
    let kills = sealed(KillPlan { seed: 1, points: Some(60) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 40, "{kills:?}: too few for a proof");
}

#[test]
fn sealed_files_without_their_key_are_caught() {
    let violation = caught("sealed files without their key", sealed_control());
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains(".env"), "{violation}");
}

#[test]
fn changed_ignore_rules_without_the_key_are_caught() {
    let violation = caught("changed ignore rules without the key", rules_control());
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains("ignore rules"), "{violation}");
}
