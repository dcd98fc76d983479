//! The test filters of nextest name tests that exist.
//!
//! A filter that matches nothing is silently ignored: a test that was renamed would run where it is too slow, or lose its
//! retry.

use std::path::Path;

use super::Violation;

/// The names in `test(…)` that occur in no path of a test. Takes the paths, such as `crates/cli/tests/commands/serve.rs::a_name`.
pub(super) fn unknown_names(path: &Path, text: &str, tests: &[String]) -> Vec<Violation> {
    let filters = text.split("test(").skip(1).map(|rest| {
        let line = rest.lines().next().unwrap_or_default();
        &line[..line.find("/)").or_else(|| line.find(')')).unwrap_or(line.len())]
    });
    filters
        .flat_map(|filter| filter.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_'))
        .filter(|name| !name.is_empty() && !tests.iter().any(|test| test.contains(name)))
        .map(|name| format!("{}: no test has `{name}` in its name", path.display()))
        .collect()
}

/// The paths of the tests in a file.
pub(super) fn tests(path: &Path, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let names = lines.iter().enumerate().filter(|(_, line)| **line == "#[test]").filter_map(|(at, _)| {
        let function = lines[at..].iter().find_map(|line| line.strip_prefix("fn "))?;
        function.split('(').next()
    });
    names.map(|name| format!("{}::{name}", path.display())).collect()
}

#[test]
fn stale_test_filters_are_caught() {
    let path = Path::new("crates/cli/tests/commands/serve.rs");
    let tests = tests(path, "#[test]\n#[ignore]\nfn a_long_test() {}\nfn no_test() {}\n");
    assert_eq!(tests, ["crates/cli/tests/commands/serve.rs::a_long_test"]);
    let check = |text: &str, wrong: usize| {
        assert_eq!(unknown_names(Path::new("nextest.toml"), text, &tests).len(), wrong, "{text}");
    };
    check("| test(/^serve::|a_long/)\n| test(a_long_test)", 0);
    check("| test(/^serve::|a_short/)", 1);
    check("| test(no_test) | test(/(^|::)(gone)::/)", 2);
}
