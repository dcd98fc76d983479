//! `retake demo`.

use std::fs;

use crate::tools::support::{User, everything_below};

#[test]
fn the_tour_works_and_leaves_nothing_behind() {
    let user = User::new();
    let before = everything_below(user.folder.path());
    let reported = user.run(&["demo", "--fast"]);
    for shown in ["$ retake entry edit", "$ retake tree", "$ retake undo", "clean", "Next steps"] {
        assert!(reported.contains(shown), "{shown}: {reported}");
    }
    assert_eq!(everything_below(user.folder.path()), before);
}

#[test]
fn the_tour_can_be_kept() {
    let user = User::new();
    let answer = user.json(&["demo", "--keep"]);
    let folder = answer["folder"].as_str().expect("a folder");
    assert!(fs::metadata(format!("{folder}/store/retake.db")).is_ok(), "{folder}");
    assert!(answer["commands"].as_array().is_some_and(|commands| commands.len() > 15));
    assert!(answer["commands"][0]["output"].as_str().is_some_and(|output| output.contains("Dark mode")));
}
