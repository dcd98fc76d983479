//! A few thousand random edits, and the controls.

use retake_campaigns::edits::{EditsPlan, controls, walk};

#[test]
fn every_file_has_the_content_that_the_model_predicts() {
    let walked =
        walk(EditsPlan { seed: 1, steps: 1_500, mistake: None }).unwrap_or_else(|failed| panic!("{failed}"));
    let enough = walked.moves > 300 && walked.merged > 50 && walked.splits > 60;
    assert!(enough, "{walked:?}: too few for a proof");
}

#[test]
fn each_mistake_of_the_model_is_noticed() {
    controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}
