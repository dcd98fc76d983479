//! Damaged bytes are detected or harmless, never shown as valid content.

use std::collections::BTreeMap;

use retake_campaigns::flips::{Options, forged, survey};
use retake_campaigns::violation::caught;

/// Unprotected data, which damage can change undetected: search columns, display settings, folder identities, and the
/// columns that lists are sorted and joined by. Conversations must never be added here.
const UNGUARDED: &[&str] = &[
    "Branch",
    "Commit",
    "Directory",
    "Tag",
    "projects",
    "shown",
    "threads",
    "threads of the project",
    "threads tagged",
    "tree",
];

#[track_caller]
fn conversations_are_never_shown_wrong(seed: u64) {
    let (summary, violations) = survey(Options { seed, points: 100, misplaced: false }).expect("a campaign");
    let guarded: BTreeMap<_, _> =
        summary.wrong.iter().filter(|(thing, _)| !UNGUARDED.contains(&thing.as_str())).collect();
    assert!(guarded.is_empty(), "{guarded:?}: {violations:#?}");
    assert!(violations.iter().all(|violation| !violation.what.contains("a panic")), "{violations:#?}");
    assert_eq!(
        (summary.older, summary.unnamed),
        (0, 0),
        "verify must name what reading does not: {violations:#?}"
    );
    assert!(summary.noticed > 0 && summary.whole > 0, "nothing happened: {summary:?}");
    for violation in violations {
        eprintln!("{violation}");
    }
}

#[test]
fn damage_is_detected_or_harmless_1() {
    conversations_are_never_shown_wrong(11);
}

#[test]
fn damage_is_detected_or_harmless_2() {
    conversations_are_never_shown_wrong(12);
}

#[test]
fn damage_is_detected_or_harmless_3() {
    conversations_are_never_shown_wrong(13);
}

#[test]
fn a_forged_row_is_reported() {
    if let Err(error) = caught("forged title", forged(1)) {
        panic!("{error}");
    }
}
