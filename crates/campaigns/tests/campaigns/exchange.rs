//! Some exchanges between two machines, and the controls.

use retake_campaigns::exchange::{ExchangePlan, controls, exchange};

#[test]
fn two_machines_have_the_same_conversation_and_files_at_each_operation() {
    let plan = ExchangePlan { seed: 1, steps: 600, mistake: None };
    let done = exchange(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(done.continued > 20 && done.diverged > 5 && done.copies > 10, "{done:?}: too few for a proof");
}

#[test]
fn each_faulty_exchange_is_noticed() {
    controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}
