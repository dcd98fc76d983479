//! Damaged bytes are noticed or harmless, never shown as if they were whole.

use retake_proof::flips::{Options, forged, run};
use retake_proof::violation::caught;

#[track_caller]
fn nothing_is_shown_as_if_whole(seed: u64) {
    match run(Options { seed, points: 100 }) {
        Ok(summary) => {
            assert!(summary.noticed > 0 && summary.whole > 0, "nothing happened: {summary:?}");
        }
        Err(failed) => panic!("{failed}"),
    }
}

#[test]
fn damage_is_noticed_or_harmless_1() {
    nothing_is_shown_as_if_whole(11);
}

#[test]
fn damage_is_noticed_or_harmless_2() {
    nothing_is_shown_as_if_whole(12);
}

#[test]
fn a_forged_row_is_reported() {
    if let Err(error) = caught("forged title", forged(1)) {
        panic!("{error}");
    }
}
