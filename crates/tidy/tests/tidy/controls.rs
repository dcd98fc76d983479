//! Each rule finds a bad input.

use super::*;

/// The rule finds exactly one violation in the bad text, and none in the good one.
fn check(rule: impl Fn(&Path, &str) -> Vec<Violation>, path: &str, bad: &str, good: &str) {
    let path = Path::new(path);
    assert_eq!(rule(path, bad).len(), 1, "{bad}");
    assert_eq!(rule(path, good), Vec::<Violation>::new(), "{good}");
}

#[test]
fn layering_is_caught() {
    let good = "[dependencies]\nretake-model.workspace = true\nserde.workspace = true\n";
    check(layering, "crates/store/Cargo.toml", "[dependencies]\nretake-timeline.workspace = true\n", good);
    check(layering, "crates/hub/Cargo.toml", "[dev-dependencies]\nretake-agent.workspace = true\n", good);
    check(
        layering,
        "crates/store/Cargo.toml",
        "[target.'cfg(unix)'.dependencies]\nbase = { package = \"retake-api\", path = \"../api\" }\n",
        good,
    );
    check(layering, "crates/model/Cargo.toml", "[dependencies]\nretake = { path = \"../cli\" }\n", "");
    // Equipment of tests is used in tests only.
    let shipped = "[dependencies]\nretake-testing.workspace = true\n";
    let tested = "[dev-dependencies]\nretake-testing.workspace = true\n";
    check(layering, "crates/agent/Cargo.toml", shipped, tested);
    check(own_names, "crates/api/Cargo.toml", "[dependencies]\nbase = { package = \"retake-api\" }\n", good);
    // A crate that is not in the table.
    assert_eq!(layering(Path::new("crates/helpers/Cargo.toml"), "").len(), 1);
}

#[test]
fn test_crates_in_the_program_are_caught() {
    let good = "[dev-dependencies]\nretake-testing.workspace = true\n";
    let bad = "[dependencies]\nretake-testing.workspace = true\n";
    check(shipped, "crates/studio/Cargo.toml", bad, good);
    check(shipped, "crates/cli/Cargo.toml", bad, good);
    assert_eq!(shipped(Path::new("crates/campaigns/Cargo.toml"), bad), Vec::<Violation>::new());
}

#[test]
fn the_table_has_no_cycle() {
    // Each crate depends only on crates above it in the table.
    let layers = MAY_USE.iter().filter(|(_, uses)| *uses != ALL);
    let mut above: Vec<&str> = Vec::new();
    for (name, uses) in layers {
        assert!(uses.iter().all(|used| above.contains(used)), "{name}");
        above.push(name);
    }
}

#[test]
fn own_lints_and_versions_are_caught() {
    let path = "crates/store/Cargo.toml";
    check(shared_lints, path, "[lints.rust]\n", "[lints]\nworkspace = true\n");
    check(shared_lints, path, "[lints]\nworkspace = false\n", "lints.workspace = true\n");
    let good = "[dependencies]\nserde = { workspace = true, features = [\"rc\"] }\n";
    check(shared_versions, path, "[dependencies]\nserde = \"1\"\n", good);
    check(shared_versions, path, "[build-dependencies]\nserde = { version = \"1\" }\n", good);
}

#[test]
fn long_files_are_caught() {
    check(short_file, "long.rs", &"x\n".repeat(LONGEST_FILE + 1), &"x\n".repeat(LONGEST_FILE));
}

#[test]
fn further_test_programs_are_caught() {
    for (programs, wrong) in [
        (&["crates/cli/tests/commands/main.rs", "crates/cli/tests/more.rs"][..], 1),
        (&["crates/api/tests/api/main.rs", "crates/model/tests/model/main.rs"], 0),
    ] {
        let programs: Vec<String> = programs.iter().map(|&program| program.to_owned()).collect();
        assert_eq!(one_test_program(&programs).len(), wrong, "{programs:?}");
    }
}

#[test]
fn unfinished_code_is_caught() {
    for never in NEVER {
        check(finished, "some.rs", &format!("fn main() {{\n    {never} }}\n"), "fn main() {}\n");
    }
}

#[test]
fn missing_documentation_is_caught() {
    let good = "//! The door for changes.\n";
    for bad in ["", "mod x;\n", "// A comment.\n", "/// An item.\nmod x;\n", "\n//! Late.\n"] {
        check(module_documentation, "some.rs", bad, good);
    }
}

#[test]
fn unused_dependencies_are_caught() {
    let workspace = "[workspace.dependencies]\nserde = \"1\"\nretake-model = { path = \"crates/model\" }\n";
    let used = BTreeSet::from(["serde".to_owned()]);
    let nothing = BTreeSet::new();
    for (used, planned, wrong) in [
        (&used, &[][..], 0),
        (&nothing, &[], 1),
        (&nothing, &["serde"], 0),
        // No longer planned: in use, or removed.
        (&used, &["serde"], 1),
        (&used, &["zstd"], 1),
    ] {
        assert_eq!(used_dependencies(workspace, used, planned).len(), wrong, "{used:?} {planned:?}");
    }
}
