//! A few thousand requests, a few kills of the server, and the controls. See `docs/testing.md` for longer runs.

use std::time::Duration;

use retake_campaigns::api::{ApiKillPlan, FuzzPlan, UnansweredRequest, api_kill, fuzz, fuzz_controls};
use retake_campaigns::violation::caught;

/// Other tests use the same cores; the command line allows one second.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(15);

#[test]
fn no_request_causes_a_server_error_panic_or_delay_and_each_planted_fault_is_found() {
    let plan = FuzzPlan { seed: 1, requests: 3_000, lanes: 1, longest: MAX_RESPONSE_TIME, mistake: None };
    let fuzzed = fuzz(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        fuzzed.done > 500 && fuzzed.refused > 500 && fuzzed.routes_done * 2 > fuzzed.routes,
        "{fuzzed:?}: too little for a proof"
    );
    // Not in parallel with the other run: panics are counted per process.
    fuzz_controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn changes_acknowledged_by_a_killed_server_exist_exactly_once() {
    let plan = ApiKillPlan { seed: 1, kills: 5, clients: 3, cut_off: UnansweredRequest::Unknown };
    let kills = api_kill(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(kills.acknowledged > 20 && kills.cut_off > 3, "{kills:?}: too little for a proof");
}

#[test]
fn counting_unanswered_requests_as_done_is_caught() {
    let plan = ApiKillPlan { seed: 2, kills: 1, clients: 4, cut_off: UnansweredRequest::Done };
    caught("cut off, taken for done", api_kill(plan)).unwrap_or_else(|trouble| panic!("{trouble}"));
}
