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
fn what_was_acknowledged_is_there_once_and_in_order() {
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
    // Whether a kill falls between acknowledgement and write is random, so it gets several attempts.
    for seed in 0..5 {
        let outcome = run(&Options { seed, operations: 200, kills: 60, ..options(true) });
        match caught("early acknowledgement", outcome) {
            Ok(violation) => {
                assert!(violation.what.contains("is lost"), "{violation}");
                return;
            }
            Err(error) => eprintln!("{error}"),
        }
    }
    panic!("no early acknowledgement was ever caught");
}
