//! A few hundred faults in the real program, and the controls. See `docs/testing.md` for longer runs.

use retake_campaigns::faults::{
    ErrorsPlan, KillPlan, control, errors, errors_control, kill, kill_migration, kill_redaction,
    migration_control, redaction_control,
};
use retake_campaigns::violation::caught;

#[test]
fn no_kill_and_no_power_cut_loses_what_was_acknowledged() {
    let kills = kill(KillPlan { seed: 1, points: Some(300) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 150, "{kills:?}: too few for a proof");
    assert!(kills.lossy > 0, "{kills:?}: a power cut that loses nothing is none");
}

#[test]
fn a_disk_that_reports_syncs_it_did_not_make_is_caught() {
    caught("lying syncs", control()).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn a_migration_can_be_killed_anywhere() {
    let kills = kill_migration(KillPlan { seed: 1, points: Some(60) });
    let kills = kills.unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 20 && kills.lossy > 0, "{kills:?}: too few for a proof");
}

#[test]
fn a_migration_on_a_disk_that_lies_is_caught() {
    let found = migration_control();
    caught("lying syncs in a migration", found).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn a_failing_call_is_reported_and_changes_nothing() {
    let injected =
        errors(ErrorsPlan { seed: 1, points: Some(300) }).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(injected >= 150, "{injected}: too few for a proof");
}

#[test]
fn counting_a_failure_as_a_success_is_caught() {
    caught("failures taken for successes", errors_control()).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn repeating_an_interrupted_redaction_completes_it() {
    let plan = KillPlan { seed: 1, points: Some(40) };
    let kills = kill_redaction(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.kills >= 15, "{kills:?}: too few for a proof");
}

#[test]
fn a_search_index_that_keeps_redacted_text_is_caught() {
    let found = redaction_control();
    caught("a search index that was not scrubbed", found).unwrap_or_else(|trouble| panic!("{trouble}"));
}
