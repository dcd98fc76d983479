//! The reference model: a hundred thousand steps over four seeds, and every control.

use retake_campaigns::model::fault::ModelFault;
use retake_campaigns::model::{Options, run};
use retake_campaigns::violation::caught;

const STEPS: u64 = 25_000;

#[track_caller]
fn agrees(seed: u64) {
    match run(Options { seed, steps: STEPS, fault: None }) {
        Ok(summary) => {
            // A run that refuses everything, or never goes back, would agree as well.
            assert!(summary.refused < STEPS / 2, "{summary:?}");
            assert!(summary.conflicts > STEPS / 100, "{summary:?}");
            assert!(summary.identities > STEPS / 100, "{summary:?}");
            assert!(summary.versions > STEPS / 2, "{summary:?}");
        }
        Err(failed) => panic!("{failed}"),
    }
}

#[test]
fn the_timeline_agrees_with_a_naive_model_1() {
    agrees(101);
}

#[test]
fn the_timeline_agrees_with_a_naive_model_2() {
    agrees(102);
}

#[test]
fn the_timeline_agrees_with_a_naive_model_3() {
    agrees(103);
}

#[test]
fn the_timeline_agrees_with_a_naive_model_4() {
    agrees(104);
}

#[test]
fn every_small_mistake_is_caught() {
    for mutant in ModelFault::ALL {
        let outcome = run(Options { seed: 3, steps: 20_000, fault: Some(mutant) });
        if let Err(error) = caught(&format!("{mutant:?}"), outcome) {
            panic!("{error}");
        }
    }
}

#[test]
fn the_same_seed_generates_the_same_steps() {
    let options = Options { seed: 9, steps: 300, fault: None };
    let outcomes = [run(options), run(options)].map(|outcome| outcome.expect("the two agree"));
    assert_eq!(outcomes[0], outcomes[1]);
}
