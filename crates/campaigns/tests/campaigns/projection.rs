//! A few thousand histories for every provider, and the control. See `docs/testing.md` for longer runs.

use retake_campaigns::projection::{bind, broken, project, unbound};
use retake_campaigns::violation::caught;
use retake_testing::projection::campaign::Mistake;

#[test]
fn every_request_follows_the_rules_of_its_provider() {
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

#[test]
fn every_bound_thought_is_sent_where_it_was_made() {
    let done = bind(1, 200).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(done.histories == 200 && done.sent > 400 && done.changes > 150, "{done:?}: too few for a proof");
}

#[test]
fn mistakes_with_bound_thoughts_are_caught() {
    for mistake in [Mistake::ForgetPrefix, Mistake::LeaveOneOut, Mistake::LeaveAllOut] {
        caught("bound thoughts", unbound(7, mistake)).unwrap_or_else(|trouble| panic!("{trouble}"));
    }
}
