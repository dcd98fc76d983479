//! Some random command lines, and the controls.

use retake_campaigns::command_lines::{CommandsPlan, commands, controls};

#[test]
fn every_command_changes_exactly_what_it_documents() {
    let plan = CommandsPlan { seed: 1, steps: 120, mistake: None };
    let done = commands(plan).unwrap_or_else(|failed| panic!("{failed}"));
    let enough = done.dry > 10 && done.elsewhere > 20 && done.undone_paths > 5 && done.overlaps > 0;
    assert!(enough, "{done:?}: too little for a proof");
}

#[test]
fn each_false_report_of_the_program_is_caught() {
    controls(1).unwrap_or_else(|trouble| panic!("{trouble}"));
}
