//! The instructions of ten hot paths stay below their limits.
//!
//! Instruction counts are repeatable on a busy machine, so that a regression fails here and not in someone's terminal. The
//! limits leave room for other compilers. After an intended change, set each limit to 1.2 times the count that the failing
//! test prints.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The most instructions of one run, in thousands, in the build of the tests.
const LIMITS: [(&str, u64); 10] = [
    ("append", 0),
    ("edit, middle", 0),
    ("undo", 0),
    ("redo", 0),
    ("fork, middle", 0),
    ("last page", 0),
    ("list of threads", 0),
    ("search", 0),
    ("request", 0),
    ("compare folders", 0),
];

#[test]
fn hot_paths_stay_within_their_instructions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let counts = count(folder.path());
    let exceeded = exceeded(&counts, &LIMITS);
    assert!(exceeded.is_empty(), "{}\nall counts, in thousands: {counts:#?}", exceeded.join("\n"));
}

#[test]
fn a_path_above_its_limit_is_reported() {
    let counts = BTreeMap::from([("append".to_owned(), 120), ("undo".to_owned(), 10)]);
    assert_eq!(exceeded(&counts, &[("append", 120), ("undo", 10)]), Vec::<String>::new());
    let found = exceeded(&counts, &[("append", 100), ("undo", 10), ("redo", 5)]);
    assert_eq!(found, ["append: 120 thousand instructions, limit 100", "redo: not measured"]);
}

/// What exceeds its limit, and what was not measured.
fn exceeded(counts: &BTreeMap<String, u64>, limits: &[(&str, u64)]) -> Vec<String> {
    let check = |&(name, limit): &(&str, u64)| match counts.get(name) {
        None => Some(format!("{name}: not measured")),
        Some(&count) if count > limit => {
            Some(format!("{name}: {count} thousand instructions, limit {limit}"))
        }
        Some(_) => None,
    };
    limits.iter().filter_map(check).collect()
}

/// Thousands of instructions per run of each path: the median of its runs.
fn count(folder: &Path) -> BTreeMap<String, u64> {
    const REGION: &str = "*hot_paths::counted*";
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--collect-atstart=no")
        .arg(format!("--toggle-collect={REGION}"))
        .arg(format!("--dump-after={REGION}"))
        .arg(format!("--callgrind-out-file={}", folder.join("counts").display()))
        .arg(env!("CARGO_BIN_EXE_retake-bench"))
        .arg("hot-paths")
        .arg(folder.join("store"))
        .output()
        .expect("valgrind starts: `apt-get install valgrind`, or run ./check, which installs it");
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut runs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (number, name) in (1..).zip(names.lines()) {
        let dump = std::fs::read_to_string(folder.join(format!("counts.{number}")))
            .unwrap_or_else(|error| panic!("the dump of run {number} ({name}): {error}"));
        let total =
            dump.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
        let total: u64 = total.and_then(|total| total.trim().parse().ok()).expect("a dump has a total");
        assert!(total > 0, "run {number} of {name} counted nothing");
        runs.entry(name.to_owned()).or_default().push(total / 1_000);
    }
    runs.into_iter()
        .map(|(name, mut counts)| {
            counts.sort_unstable();
            (name, counts[counts.len() / 2])
        })
        .collect()
}
