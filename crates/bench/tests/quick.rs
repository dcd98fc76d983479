//! The benchmark runs in its quick form and prints all tables.

use std::process::Command;

#[test]
fn the_quick_form_prints_the_whole_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("figures.json");
    let output = Command::new(env!("CARGO_BIN_EXE_retake-bench"))
        .args(["--quick", "--json"])
        .arg(&json)
        .arg("--folder")
        .arg(folder.path())
        .output()
        .expect("the benchmark starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for row in [
        "append",
        "edit, front",
        "insert, middle",
        "delete, end",
        "fork, end",
        "switch",
        "undo",
        "redo",
        "jump",
        "file system",
        "list of threads",
        "branches at as many entries",
        "8 writers",
        "goals reached",
        "Manual Slop",
    ] {
        assert!(text.contains(row), "no {row} in\n{text}");
    }
    let figures: serde_json::Value =
        serde_json::from_slice(&std::fs::read(json).expect("the figures were written")).expect("JSON");
    assert!(figures["figures"].as_array().is_some_and(|figures| figures.len() > 50));
    assert!(figures["verdicts"].as_array().is_some_and(|verdicts| verdicts.len() > 20));
}

#[test]
fn the_quick_form_measures_the_api_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_retake-bench"))
        .args(["--quick", "--folder"])
        .arg(folder.path())
        .arg("http")
        .output()
        .expect("the benchmark starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for row in ["bare axum handler", "with an Idempotency-Key", "list of threads", "undo", "99th percentile"]
    {
        assert!(text.contains(row), "no {row} in\n{text}");
    }
}
