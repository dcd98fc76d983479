//! Merges of random texts, checked against invariants and against `git merge-file`.
//!
//! The two may differ only in whether they report a conflict: git picks one position for a change that has
//! several, and separates changes that meet in the same lines if the lines between them are equal. If both
//! report a clean merge, the texts must be equal.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use retake_model::merge::{MergeLabels, MergeResult, merge};

const LABELS: MergeLabels<'static> = MergeLabels { ours: "ours", theirs: "theirs" };

/// Texts of few lines of few kinds, so that most changes touch.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![Just("a\n"), Just("b\n"), Just("c\n"), Just("\n"), Just("d\r\n"), Just("e\n")];
    (prop::collection::vec(line, 0..12), prop_oneof![Just(""), Just("end")])
        .prop_map(|(lines, end)| (lines.concat() + end).into_bytes())
}

/// A text and two typical edits of it.
fn changes() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Vec<u8>)> {
    let edit = (0usize..14, 0usize..3, prop_oneof![Just(""), Just("x\n"), Just("y\nz\n"), Just("a\n")]);
    let edits = prop::collection::vec(edit, 0..3);
    let distinct =
        (3usize..14).prop_map(|count| (0..count).flat_map(|line| format!("{line}\n").into_bytes()).collect());
    let base = prop_oneof![text(), distinct];
    (base, edits.clone(), edits).prop_map(|(base, ours, theirs)| {
        let changed = |edits: Vec<(usize, usize, &str)>| {
            let mut lines: Vec<&[u8]> = base.split_inclusive(|byte| *byte == b'\n').collect();
            for (place, removed, added) in edits {
                let start = place.min(lines.len());
                let end = (start + removed).min(lines.len());
                lines.splice(start..end, added.as_bytes().split_inclusive(|byte| *byte == b'\n'));
            }
            lines.concat()
        };
        (base.clone(), changed(ours), changed(theirs))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unchanged_side_yields_the_other((base, ours, _) in changes()) {
        prop_assert_eq!(merge(&base, &ours, &base, LABELS), MergeResult::Clean(ours.clone()));
        prop_assert_eq!(merge(&base, &base, &ours, LABELS), MergeResult::Clean(ours.clone()));
        prop_assert_eq!(merge(&base, &ours, &ours, LABELS), MergeResult::Clean(ours));
    }

    #[test]
    fn the_order_of_the_sides_does_not_matter((base, ours, theirs) in changes()) {
        match (merge(&base, &ours, &theirs, LABELS), merge(&base, &theirs, &ours, LABELS)) {
            (MergeResult::Clean(one), MergeResult::Clean(other)) => prop_assert_eq!(one, other),
            (MergeResult::Conflict { count: one, .. }, MergeResult::Conflict { count: other, .. }) => {
                prop_assert_eq!(one, other);
            }
            (one, other) => prop_assert!(false, "{:?} {:?}", one, other),
        }
    }

    #[test]
    fn merge_invents_no_lines((base, ours, theirs) in (text(), text(), text())) {
        let (MergeResult::Clean(merged) | MergeResult::Conflict { marked: merged, .. }) =
            merge(&base, &ours, &theirs, LABELS) else { return Ok(()) };
        for line in merged.split(|byte| *byte == b'\n') {
            let known = [&base, &ours, &theirs].iter().any(|text| {
                text.split(|byte| *byte == b'\n').any(|other| other == line || [other, b"\r"].concat() == line)
            });
            let marker = [&b"<<<<<<<"[..], b"=======", b">>>>>>>"].iter().any(|marker| line.starts_with(marker));
            prop_assert!(known || marker, "{:?}", line.escape_ascii().to_string());
        }
    }
}

/// The merge by git: the merged text, or `None` on a conflict.
fn git(folder: &Path, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    for (name, bytes) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        std::fs::write(folder.join(name), bytes).expect("writing the file");
    }
    let output = Command::new("git")
        .args(["merge-file", "-p", "-q", "ours", "base", "theirs"])
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .expect("git is installed");
    let code = output.status.code().expect("git exits normally");
    assert!(code < 128, "git failed");
    (code == 0).then_some(output.stdout)
}

#[test]
fn clean_merges_equal_those_of_git() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let folder = std::env::temp_dir().join(format!("retake-merge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("creating the folder");
    let mut runner = TestRunner::deterministic();
    let (mut both, mut only_git, mut only_ours, mut neither) = (0, 0, 0, 0);
    let mut differing = Vec::new();
    for _ in 0..2500 {
        let (base, ours, theirs) = changes().new_tree(&mut runner).expect("a generated value").current();
        let found = match merge(&base, &ours, &theirs, LABELS) {
            MergeResult::Clean(bytes) => Some(bytes),
            MergeResult::Conflict { .. } => None,
            MergeResult::Binary => unreachable!("these are texts"),
        };
        match (found, git(&folder, &base, &ours, &theirs)) {
            (Some(found), Some(expected)) if found == expected => both += 1,
            (Some(found), Some(expected)) => differing.push((base, ours, theirs, found, expected)),
            (None, Some(_)) => only_git += 1,
            (Some(_), None) => only_ours += 1,
            (None, None) => neither += 1,
        }
    }
    std::fs::remove_dir_all(&folder).expect("removing the folder");
    println!("both clean {both}, only git {only_git}, only ours {only_ours}, both conflicts {neither}");
    for (base, ours, theirs, found, expected) in &differing {
        let show = |text: &[u8]| text.escape_ascii().to_string();
        println!(
            "base {} | ours {} | theirs {} | found {} | git {}",
            show(base),
            show(ours),
            show(theirs),
            show(found),
            show(expected)
        );
    }
    assert!(differing.is_empty(), "{} differ", differing.len());
    assert!(both > 500 && neither > 100, "the texts must bring up both");
    // More conflicts than git are fine, but not so many that merging becomes useless.
    assert!(only_git * 10 < both, "{only_git} conflicts that git does not see, {both} clean");
}
