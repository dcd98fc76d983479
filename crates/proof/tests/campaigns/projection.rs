//! A few thousand histories for every provider, and the control. See `docs/testing.md` for longer runs.

use retake_proof::projection::{broken, project};
use retake_proof::violation::caught;

#[test]
fn every_request_keeps_its_providers_rules() {
    let done = project(1, 400).unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!((done.histories, done.requests), (400, 1_600));
    assert!(done.mutants > 1_000, "{done:?}: too few for a proof");
}

#[test]
fn a_careless_encoder_is_caught() {
    for seed in [1, 1_000, 2_000] {
        caught("histories sent as they are", broken(seed)).unwrap_or_else(|trouble| panic!("{trouble}"));
    }
}
