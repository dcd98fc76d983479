//! Eight processes on one store, some killed; and the control.

use retake_campaigns::processes::{Options, run};
use retake_campaigns::violation::caught;

fn options(early: bool) -> Options {
    Options {
        program: env!("CARGO_BIN_EXE_campaigns").into(),
        seed: 5,
        processes: 8,
        operations: 60,
        kills: 20,
        early,
    }
}

#[test]
fn acknowledged_operations_exist_once_and_in_order() {
    match run(&options(false)) {
        Ok(summary) => {
            assert!(summary.acknowledged > 300, "{summary:?}");
            assert!(summary.kills > 0 && summary.reads > 0, "nothing happened: {summary:?}");
        }
        Err(failed) => panic!("{failed}"),
    }
}

#[test]
fn a_worker_that_acknowledges_too_early_is_caught() {
    let violation = caught("early acknowledgement", run(&options(true)));
    let violation = violation.unwrap_or_else(|trouble| panic!("{trouble}"));
    assert!(violation.what.contains("is lost"), "{violation}");
}
