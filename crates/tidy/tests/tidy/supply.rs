//! The dependencies of the program: licences, versions, sources and number.
//!
//! The lists are in `deny.toml`, which `cargo deny` reads too. These tests enforce them without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use toml::{Table, Value};

use crate::{Violation, parse, root};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    license: String,
}

/// Everything that is compiled for these packages, without test dependencies, for one target, so that the result is the
/// same on every machine.
fn built(packages: &[&str]) -> BTreeSet<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--edges", "normal,build", "--target", "x86_64-unknown-linux-gnu"])
        .args(["--prefix", "none", "--format", "{p}\t{l}\t"])
        .args(packages)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: BTreeSet<Package> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(package).collect();
    assert!(!found.is_empty(), "no package was found, so nothing was checked");
    found
}

/// Parses `name v1.2.3 (source)`, a tab, the licence, a tab, and a mark for repeated lines.
fn package(line: &str) -> Option<Package> {
    let (package, rest) = line.split_once('\t')?;
    let (name, rest_of_package) = package.split_once(" v")?;
    let version = rest_of_package.split(' ').next()?;
    let license = rest.split('\t').next()?;
    Some(Package { name: name.to_owned(), version: version.to_owned(), license: license.to_owned() })
}

/// Whether an SPDX expression is satisfied by these licences. `A/B` is an old notation for `A OR B`.
fn allows(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = all_of(words, allowed);
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = one(words, allowed);
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut &[&str], allowed: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    *words = rest;
    if *first == "(" {
        let met = any_of(words, allowed);
        let closed = words.first() == Some(&")");
        *words = words.get(1..).unwrap_or_default();
        return met && closed;
    }
    if let ["WITH", exception, rest @ ..] = *words {
        *words = rest;
        return allowed.contains(&format!("{first} WITH {exception}").as_str());
    }
    allowed.contains(first)
}

fn licenses(packages: &BTreeSet<Package>, rules: &Table) -> Vec<Violation> {
    let allowed: Vec<&str> = list(rules, "licenses", "allow").iter().filter_map(Value::as_str).collect();
    packages
        .iter()
        .filter(|package| !allows(&package.license, &allowed))
        .map(|package| format!("{}: the licence `{}` is not in deny.toml", package.name, package.license))
        .collect()
}

fn bans(packages: &BTreeSet<Package>, rules: &Table) -> Vec<Violation> {
    let banned = crates(rules, "deny");
    packages
        .iter()
        .filter(|package| banned.contains(&package.name.as_str()))
        .map(|package| format!("{} is banned by deny.toml", package.name))
        .collect()
}

/// Two versions of a crate cost twice; unavoidable ones are listed, as long as needed.
fn duplicates(packages: &BTreeSet<Package>, rules: &Table) -> Vec<Violation> {
    let skipped = crates(rules, "skip");
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let is_skipped = |name: &str, version: &str| skipped.contains(&format!("{name}@{version}").as_str());
    let unlisted = versions
        .iter()
        .filter(|(name, versions)| versions.iter().filter(|version| !is_skipped(name, version)).count() > 1)
        .map(|(name, versions)| format!("{name} is built in the versions {}", versions.join(" and ")));
    let stale = skipped
        .iter()
        .filter(|skipped| {
            let name = skipped.split('@').next().unwrap_or_default();
            !versions
                .get(name)
                .is_some_and(|found| found.len() > 1 && found.iter().any(|version| is_skipped(name, version)))
        })
        .map(|skipped| format!("{skipped} is not built beside another version; take it off deny.toml"));
    unlisted.chain(stale).collect()
}

/// Everything comes from the public registry.
fn sources(lock: &Table, rules: &Table) -> Vec<Violation> {
    let allowed: Vec<String> = list(rules, "sources", "allow-registry")
        .iter()
        .filter_map(Value::as_str)
        .map(|registry| format!("registry+{registry}"))
        .collect();
    let packages = lock.get("package").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    packages
        .iter()
        .filter_map(|package| package.get("source").and_then(Value::as_str))
        .filter(|source| !allowed.iter().any(|allowed| allowed == source))
        .map(|source| format!("Cargo.lock: {source} is not a source of deny.toml"))
        .collect()
}

/// The first build must only grow on purpose.
fn size(built: usize, workspace: &Table) -> Vec<Violation> {
    let noted = workspace
        .get("workspace")
        .and_then(|workspace| workspace.get("metadata")?.get("crates-in-the-program")?.as_integer())
        .expect("Cargo.toml notes how many crates the program is built from");
    if i64::try_from(built) == Ok(noted) {
        return vec![];
    }
    vec![format!(
        "the program is built from {built} crates, not {noted}; if that is meant, change `crates-in-the-program` in Cargo.toml"
    )]
}

fn list<'a>(rules: &'a Table, table: &str, key: &str) -> &'a [Value] {
    rules.get(table).and_then(|table| table.get(key)?.as_array()).map(Vec::as_slice).unwrap_or_default()
}

/// The crates of a list of bans.
fn crates<'a>(rules: &'a Table, key: &str) -> Vec<&'a str> {
    list(rules, "bans", key).iter().filter_map(|entry| entry.get("crate")?.as_str()).collect()
}

mod repository {
    use super::*;

    fn table(name: &str) -> Table {
        let path = root().join(name);
        parse(&path, &fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    #[test]
    fn the_build_follows_deny_toml() {
        let (rules, packages) = (table("deny.toml"), built(&["--workspace", "--all-features"]));
        let violations = [
            licenses(&packages, &rules),
            bans(&packages, &rules),
            duplicates(&packages, &rules),
            sources(&table("Cargo.lock"), &rules),
        ]
        .concat();
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }

    #[test]
    fn library_crates_have_the_version_of_the_workspace() {
        let violations = packable(&table("Cargo.toml"));
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }

    #[test]
    fn the_number_of_crates_matches_cargo_toml() {
        let violations = size(built(&["--package", "retake"]).len(), &table("Cargo.toml"));
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }
}

/// `cargo package` needs the version of each crate that it packs, and the versions of all crates are the same.
fn packable(manifest: &Table) -> Vec<Violation> {
    let workspace = |name: &str| manifest["workspace"][name].as_table().expect("a table");
    let version = &workspace("package")["version"];
    let dependencies = workspace("dependencies").iter();
    dependencies
        .filter(|(name, _)| name.starts_with("retake-") && *name != "retake-testing")
        .filter(|(_, dependency)| dependency.get("version") != Some(version))
        .map(|(name, _)| format!("Cargo.toml: `{name}` needs version = {version}"))
        .collect()
}

mod controls {
    use super::*;

    #[test]
    fn a_crate_without_the_version_of_the_workspace_is_caught() {
        let violations = |dependency: &str| {
            let text = format!(
                "[workspace.package]\nversion = \"1.2.0\"\n[workspace.dependencies]\nretake-model = {dependency}"
            );
            packable(&text.parse().expect("a manifest")).len()
        };
        assert_eq!(violations("{ path = \"x\", version = \"1.2.0\" }"), 0);
        assert_eq!(violations("{ path = \"x\", version = \"1.1.0\" }"), 1);
        assert_eq!(violations("{ path = \"x\" }"), 1);
    }

    fn packages(lines: &[&str]) -> BTreeSet<Package> {
        lines.iter().map(|line| package(line).expect("a line of cargo tree")).collect()
    }

    fn rules(text: &str) -> Table {
        text.parse().expect("rules")
    }

    #[test]
    fn lines_of_cargo_tree_are_read() {
        for line in
            ["syn v2.0.1\tMIT\t", "syn v2.0.1 (proc-macro)\tMIT\t (*)", "syn v2.0.1 (/some where)\tMIT\t"]
        {
            let read = package(line).expect("a package");
            assert_eq!((&*read.name, &*read.version, &*read.license), ("syn", "2.0.1", "MIT"), "{line}");
        }
        assert!(package("").is_none());
    }

    #[test]
    fn license_expressions_are_evaluated() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        for (expression, permitted) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("(GPL-3.0 OR MIT) AND GPL-3.0", false),
            ("GPL-3.0 OR MIT AND ISC", true),
            ("GPL-3.0 AND MIT OR GPL-3.0", false),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("(MIT", false),
            ("MIT ISC", false),
        ] {
            assert_eq!(allows(expression, &allowed), permitted, "{expression}");
        }
    }

    #[test]
    fn violations_of_deny_toml_are_caught() {
        let rules = rules(
            "[licenses]\nallow = ['MIT']\n[bans]\ndeny = [{ crate = 'bad' }]\nskip = [{ crate = 'two@1.0.0' }]\n\
             [sources]\nallow-registry = ['here']",
        );
        let good = packages(&["two v1.0.0\tMIT\t", "two v2.0.0\tMIT\t"]);
        let wrong = |rule: fn(&BTreeSet<Package>, &Table) -> Vec<Violation>, line| {
            let mut packages = good.clone();
            packages.insert(package(line).expect("a package"));
            (rule(&good, &rules).len(), rule(&packages, &rules).len())
        };
        assert_eq!(wrong(licenses, "other v1.0.0\tGPL-3.0\t"), (0, 1));
        assert_eq!(wrong(bans, "bad v1.0.0\tMIT\t"), (0, 1));
        assert_eq!(wrong(duplicates, "two v3.0.0\tMIT\t"), (0, 1));
        // A listed duplicate that no longer exists.
        assert_eq!(duplicates(&packages(&["two v2.0.0\tMIT\t"]), &rules).len(), 1);
        let lock = |source: &str| format!("[[package]]\nsource = '{source}'").parse().expect("a lock file");
        assert_eq!(sources(&lock("registry+here"), &rules).len(), 0);
        assert_eq!(sources(&lock("git+elsewhere"), &rules).len(), 1);
    }

    #[test]
    fn a_growing_number_of_crates_is_caught() {
        let noted = rules("[workspace.metadata]\ncrates-in-the-program = 3");
        for (built, wrong) in [(2, 1), (3, 0), (4, 1)] {
            assert_eq!(size(built, &noted).len(), wrong, "{built}");
        }
    }
}
