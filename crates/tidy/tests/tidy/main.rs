//! The rules of the repository, as ordinary tests.
//!
//! Each rule is a function from the text of a file to its violations. The tests in `repository` apply the rules to the
//! repository; those in `controls` give each rule a bad input, to prove that it can fail.

mod controls;
mod links;
mod reexports;
mod retired_names;
mod supply;
mod test_filters;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Which crates may depend on which: the table of `ARCHITECTURE.md`. Intents go down, states come up; adding a line
/// changes the design. `reexports::PARTS` limits some of them to one module.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("store", &["model"]),
    ("workspace", &["model", "store"]),
    ("timeline", &["model", "store", "workspace"]),
    ("agent", &["model", "store", "workspace", "timeline"]),
    ("sync", &["model", "store", "workspace", "timeline"]),
    ("surface", &["model", "store", "workspace", "timeline", "agent", "sync"]),
    ("api", &["model", "store", "workspace", "timeline", "agent", "sync", "surface"]),
    ("render", &["model", "timeline"]),
    ("studio", &["model", "store", "timeline", "agent", "surface", "render"]),
    ("hub", &["model", "sync"]),
    // Equipment of tests; not shipped. Other crates use it as a dev-dependency only.
    ("testing", &["model", "store", "timeline", "agent"]),
    ("cli", ALL),
    // These rules read the repository and depend on none of its crates.
    ("tidy", &[]),
    // Test campaigns over everything; not shipped.
    ("campaigns", ALL),
    // Benchmarks of everything; not shipped.
    ("bench", ALL),
];

const ALL: &[&str] = &[
    "model",
    "store",
    "workspace",
    "timeline",
    "agent",
    "sync",
    "surface",
    "render",
    "api",
    "studio",
    "hub",
    "cli",
    "testing",
    "campaigns",
];

/// Crates that no shipped crate uses, except in its tests.
const NOT_SHIPPED: &[&str] = &["tidy", "testing", "campaigns", "bench"];

/// The crate that every other one may use in its tests.
const EQUIPMENT: &str = "testing";

/// Dependencies that are not used yet. A used one must be removed from this list.
const PLANNED: &[&str] = &[];

const LONGEST_FILE: usize = 600;

/// Forbidden in every source file. A lint forbids `unsafe` too, but lints miss macros and code behind a disabled
/// feature.
const NEVER: &[&str] = &["unsafe {", "todo!(", "unimplemented!(", "dbg!("];

/// A violation, as a sentence that names the file.
type Violation = String;

/// A manifest depends only on crates that the table allows, and is listed in it.
fn layering(path: &Path, text: &str) -> Vec<Violation> {
    let crate_name = folder_name(path);
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == crate_name) else {
        return vec![format!(
            "{}: crate `{crate_name}` is not in the table of who may use whom",
            path.display()
        )];
    };
    let mut manifest = parse(path, text);
    if let Some(Value::Table(tests)) = manifest.get_mut("dev-dependencies") {
        tests.retain(|name, _| own_crate(name) != Some(EQUIPMENT));
    }
    dependencies(&manifest)
        .iter()
        .filter_map(|name| own_crate(name))
        .filter(|used| *used != crate_name && !allowed.contains(used))
        .map(|used| format!("{}: `{crate_name}` must not use `{used}`", path.display()))
        .collect()
}

/// A shipped crate uses crates for tests only in its tests.
fn shipped(path: &Path, text: &str) -> Vec<Violation> {
    let crate_name = folder_name(path);
    let mut manifest = parse(path, text);
    manifest.remove("dev-dependencies");
    if NOT_SHIPPED.contains(&crate_name) {
        return vec![];
    }
    dependencies(&manifest)
        .iter()
        .filter_map(|name| own_crate(name))
        .filter(|used| NOT_SHIPPED.contains(used))
        .map(|used| format!("{}: `{crate_name}` may use `{used}` only in its tests", path.display()))
        .collect()
}

/// A dependency on one of our crates keeps the crate's name, by which the other rules find it in sources.
fn own_names(path: &Path, text: &str) -> Vec<Violation> {
    dependency_tables(&parse(path, text))
        .into_iter()
        .flatten()
        .filter_map(|(_, value)| value.get("package").and_then(Value::as_str))
        .filter(|package| own_crate(package).is_some())
        .map(|package| format!("{}: do not rename `{package}`", path.display()))
        .collect()
}

/// A manifest inherits the lints of the workspace.
fn shared_lints(path: &Path, text: &str) -> Vec<Violation> {
    let inherits = parse(path, text)
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(Value::as_bool)
        .unwrap_or(false);
    if inherits { vec![] } else { vec![format!("{}: add `[lints] workspace = true`", path.display())] }
}

/// Every version is declared once, in the workspace.
fn shared_versions(path: &Path, text: &str) -> Vec<Violation> {
    let manifest = parse(path, text);
    dependency_tables(&manifest)
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("workspace").and_then(Value::as_bool) != Some(true))
        .map(|(name, _)| format!("{}: take `{name}` from the workspace", path.display()))
        .collect()
}

/// A file has one subject, and is short.
fn short_file(path: &Path, text: &str) -> Vec<Violation> {
    let lines = text.lines().count();
    if lines <= LONGEST_FILE {
        return vec![];
    }
    vec![format!("{}: {lines} lines; split it below {LONGEST_FILE}", path.display())]
}

/// A crate has one integration test program, because each is linked with everything it uses. Takes the paths that cargo compiles as programs.
fn one_test_program(programs: &[String]) -> Vec<Violation> {
    let mut counted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for program in programs {
        counted.entry(program.split("/tests/").next().unwrap_or_default()).or_default().push(program);
    }
    counted
        .iter()
        .filter(|(_, programs)| programs.len() > 1)
        .map(|(name, programs)| format!("{name}: make one test program of {}", programs.join(", ")))
        .collect()
}

/// No unfinished code.
fn finished(path: &Path, text: &str) -> Vec<Violation> {
    text.lines()
        .enumerate()
        .flat_map(|(index, line)| {
            NEVER.iter().filter(|never| line.contains(**never)).map(move |never| (index, never))
        })
        .map(|(index, never)| format!("{}:{}: `{never}`", path.display(), index + 1))
        .collect()
}

/// A module starts with a doc comment.
fn module_documentation(path: &Path, text: &str) -> Vec<Violation> {
    if text.starts_with("//! ") {
        vec![]
    } else {
        vec![format!("{}: begin with a `//!` that says what this is", path.display())]
    }
}

/// Every dependency of the workspace is used, except the planned ones, which must be unused.
fn used_dependencies(workspace: &str, used: &BTreeSet<String>, planned: &[&str]) -> Vec<Violation> {
    let manifest = parse(Path::new("Cargo.toml"), workspace);
    let declared = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table)
        .expect("the workspace declares dependencies");
    let unused = declared
        .keys()
        .filter(|name| {
            own_crate(name).is_none() && !used.contains(*name) && !planned.contains(&name.as_str())
        })
        .map(|name| format!("Cargo.toml: no crate uses `{name}`"));
    let stale = planned
        .iter()
        .filter(|name| used.contains(**name) || !declared.contains_key(**name))
        .map(|name| format!("crates/tidy: `{name}` is in use or gone; take it off the planned ones"));
    unused.chain(stale).collect()
}

fn parse(path: &Path, text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("{} is not TOML: {error}", path.display()))
}

fn folder_name(manifest: &Path) -> &str {
    manifest
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .expect("a manifest lies in a folder with a plain name")
}

/// The folder of one of our crates, by package name.
fn own_crate(package: &str) -> Option<&str> {
    if package == "retake" { Some("cli") } else { package.strip_prefix("retake-") }
}

/// All dependency tables of a manifest, including those for tests, builds and platforms.
fn dependency_tables(manifest: &Table) -> Vec<&Table> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let platforms = manifest.get("target").and_then(Value::as_table);
    let per_platform = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(per_platform)
        .flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind).and_then(Value::as_table)))
        .collect()
}

fn dependencies(manifest: &Table) -> BTreeSet<String> {
    dependency_tables(manifest)
        .into_iter()
        .flatten()
        // A renamed dependency is known by its package name.
        .map(|(name, value)| value.get("package").and_then(Value::as_str).unwrap_or(name).to_owned())
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

mod repository {
    use super::*;

    fn manifests() -> Vec<PathBuf> {
        let folders = fs::read_dir(root().join("crates")).expect("the workspace has crates");
        let manifests: Vec<PathBuf> = folders
            .map(|folder| folder.expect("a readable folder").path().join("Cargo.toml"))
            .filter(|manifest| manifest.exists())
            .collect();
        assert!(!manifests.is_empty(), "no manifest was found, so nothing was checked");
        manifests
    }

    /// All Rust files of our crates, or only those below one folder of each.
    fn sources(below: &str) -> Vec<PathBuf> {
        let found: Vec<PathBuf> = manifests()
            .iter()
            .filter_map(|manifest| manifest.parent())
            .flat_map(|folder| files(&folder.join(below), "rs"))
            .collect();
        assert!(!found.is_empty(), "no source was found, so nothing was checked");
        found
    }

    /// All files with this extension below a folder, if it exists.
    fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.expect("a readable entry").path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => files(&path, extension),
                false if path.extension().is_some_and(|found| found == extension) => vec![path],
                false => Vec::new(),
            })
            .collect()
    }

    fn check(paths: &[PathBuf], rule: impl Fn(&Path, &str) -> Vec<Violation>) {
        let violations: Vec<Violation> = paths
            .iter()
            .flat_map(|path| rule(path, &fs::read_to_string(path).expect("our files are text")))
            .collect();
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }

    #[test]
    fn crates_use_only_what_the_design_allows() {
        check(&manifests(), layering);
        check(&manifests(), shipped);
        check(&manifests(), own_names);
    }

    #[test]
    fn no_crate_reexports_another() {
        check(&sources("src"), reexports::reexports);
        for manifest in manifests() {
            let folder = manifest.parent().expect("a manifest is in a folder").join("src");
            let own: Vec<PathBuf> =
                sources("src").into_iter().filter(|path| path.starts_with(&folder)).collect();
            check(&own, |path, text| reexports::parts(&manifest, path, text));
        }
    }

    #[test]
    fn crates_share_lints_and_versions() {
        check(&manifests(), shared_lints);
        check(&manifests(), shared_versions);
    }

    #[test]
    fn files_are_short() {
        check(&sources(""), short_file);
    }

    #[test]
    fn crates_have_one_test_program() {
        let programs: Vec<String> = sources("tests")
            .iter()
            .map(|path| path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned())
            .filter(|path| {
                match path.split("/tests/").nth(1).map(|below| below.split('/').collect::<Vec<_>>()) {
                    Some(below) => matches!(below[..], [_] | [_, "main.rs"]),
                    None => false,
                }
            })
            .collect();
        assert!(!programs.is_empty(), "no test program was found, so nothing was checked");
        let violations = one_test_program(&programs);
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }

    #[test]
    fn no_code_is_unfinished() {
        let others: Vec<PathBuf> =
            sources("").into_iter().filter(|path| !path.ends_with("tidy/tests/tidy/main.rs")).collect();
        check(&others, finished);
    }

    #[test]
    fn retired_names_stay_retired() {
        let excluded = [
            "crates/tidy/tests/tidy/retired_names.rs",
            // The export format keeps its names: files of older versions have them.
            "crates/timeline/src/transfer/export.rs",
            "docs/export-format.md",
        ];
        let mut others = sources("");
        others.extend(files(&root().join("crates/studio/src/assets/js"), "js"));
        others.retain(|path| excluded.iter().all(|excluded| !path.ends_with(excluded)));
        check(&others, |path, text| {
            retired_names::retired(path.strip_prefix(root()).expect("below the root"), text)
        });
        let mut pages = files(&root().join("docs"), "md");
        pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root().join(page)));
        pages.retain(|path| excluded.iter().all(|excluded| !path.ends_with(excluded)));
        check(&pages, retired_names::retired_in_page);
    }

    #[test]
    fn test_filters_name_existing_tests() {
        let tests: Vec<String> = sources("")
            .iter()
            .flat_map(|path| {
                test_filters::tests(path, &fs::read_to_string(path).expect("our files are text"))
            })
            .collect();
        check(&[root().join(".config/nextest.toml")], |path, text| {
            test_filters::unknown_names(path, text, &tests)
        });
    }

    #[test]
    fn modules_have_documentation() {
        check(&sources("src"), module_documentation);
    }

    #[test]
    fn dependencies_are_used() {
        let used = manifests()
            .iter()
            .flat_map(|path| {
                dependencies(&parse(path, &fs::read_to_string(path).expect("manifests are text")))
            })
            .collect();
        let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
        let violations = used_dependencies(&workspace, &used, PLANNED);
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }
}
