//! No crate passes another one on: the table of who may use whom holds for paths through re-exports too.
//!
//! A dependency that a crate re-exports as a whole, by module or with a glob is reachable for every dependent, without a
//! line in any manifest. A crate may re-export single items of another one: those are part of its own API.

use std::collections::HashMap;
use std::path::Path;

use super::{Violation, folder_name};

/// Crates that may use only one module of another crate. The agent, the server and the studio need the runtime database;
/// everything else in the store is reached through the timeline.
const PARTS: &[(&str, &str, &str)] = &[
    ("agent", "retake_store", "runtime"),
    ("api", "retake_store", "runtime"),
    ("studio", "retake_store", "runtime"),
];

/// A public `use` names items: no glob, no crate of ours, no module of one.
pub(crate) fn reexports(path: &Path, text: &str) -> Vec<Violation> {
    let declarations: Vec<(bool, Vec<Leaf>)> = declarations(text);
    // Names that a private `use` of this file gives to a path.
    let names: HashMap<&str, &[String]> = declarations
        .iter()
        .filter(|(public, _)| !public)
        .flat_map(|(_, leaves)| leaves)
        .filter_map(|leaf| Some((leaf.name()?, leaf.path.as_slice())))
        .collect();
    let public = declarations.iter().filter(|(public, _)| *public).flat_map(|(_, leaves)| leaves);
    public
        .filter(|leaf| {
            let root = leaf.path.first().map_or("", String::as_str);
            // `use retake_store as base; pub use base;` passes on the same crate.
            let full: Vec<&String> = match names.get(root) {
                Some(target) => target.iter().chain(leaf.path.iter().skip(1)).collect(),
                None => leaf.path.iter().collect(),
            };
            let last = full.last().map_or("", |segment| segment.as_str());
            last == "*" || (full.first().is_some_and(|root| is_ours(root)) && !is_item(last))
        })
        .map(|leaf| format!("{}: re-export single items, not `{}`", path.display(), leaf.path.join("::")))
        .collect()
}

/// Sources name only the allowed part of a crate. `manifest` is the manifest of their crate.
pub(crate) fn parts(manifest: &Path, path: &Path, text: &str) -> Vec<Violation> {
    let own = folder_name(manifest);
    PARTS
        .iter()
        .filter(|(user, _, _)| *user == own)
        .flat_map(|(_, used, part)| {
            let allowed = format!("::{part}::");
            text.match_indices(used)
                .filter(move |(start, _)| !text[start + used.len()..].starts_with(&allowed))
                .map(move |_| format!("{}: `{own}` may use only `{used}::{part}`", path.display()))
        })
        .collect()
}

/// One path of a `use` declaration.
struct Leaf {
    path: Vec<String>,
    alias: Option<String>,
}

impl Leaf {
    /// The name in this file; `None` for a glob.
    fn name(&self) -> Option<&str> {
        let last = self.path.last().map(String::as_str);
        self.alias.as_deref().or(last).filter(|name| *name != "*")
    }
}

fn is_ours(root: &str) -> bool {
    root.starts_with("retake_")
}

/// Types, traits and constants begin with a capital letter; modules and crates do not.
fn is_item(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// The `use` and `extern crate` declarations of a file, and whether they are public.
fn declarations(text: &str) -> Vec<(bool, Vec<Leaf>)> {
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = lines.join(" ");
    ["use ", "extern crate "]
        .iter()
        .flat_map(|keyword| code.match_indices(keyword))
        .filter(|(start, _)| code[..*start].chars().next_back().is_none_or(|before| " ;{}]".contains(before)))
        .filter_map(|(start, keyword)| {
            let before = code[..start].trim_end();
            let (tree, _) = code[start + keyword.len()..].split_once(';')?;
            Some((before.ends_with("pub"), leaves(&[], tree)))
        })
        .collect()
}

/// The paths of a tree such as `a::{b, c::{self, d as e}, f::*}`.
fn leaves(prefix: &[String], tree: &str) -> Vec<Leaf> {
    let tree = tree.trim().trim_start_matches("::");
    if let Some(list) = tree.strip_prefix('{') {
        let list = list.strip_suffix('}').unwrap_or(list);
        return split_list(list).into_iter().flat_map(|branch| leaves(prefix, branch)).collect();
    }
    let whole = |segment: &str| {
        let own = (segment != "self" || prefix.is_empty()).then(|| segment.to_owned());
        prefix.iter().cloned().chain(own).collect::<Vec<String>>()
    };
    match tree.split_once("::") {
        Some((segment, rest)) => leaves(&whole(segment.trim()), rest),
        None if tree.is_empty() => vec![],
        None => {
            let (segment, alias) = tree.split_once(" as ").map_or((tree, None), |(a, b)| (a, Some(b)));
            vec![Leaf { path: whole(segment.trim()), alias: alias.map(|alias| alias.trim().to_owned()) }]
        }
    }
}

/// Splits at the commas outside of braces.
fn split_list(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (index, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&list[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    found.push(&list[start..]);
    found
}

#[cfg(test)]
mod controls {
    use super::*;

    #[test]
    fn reexported_crates_are_caught() {
        for bad in [
            "pub use retake_store as store;",
            "pub use retake_store;",
            "pub use ::retake_store;",
            "    pub use retake_store::{self as base, Store};",
            "pub mod store { pub use retake_store::*; }",
            "pub use retake_model::{command::*, history::Unit};",
            "pub use retake_model::{\n    command::{self},\n    history::Unit,\n};",
            "pub use retake_store::runtime;",
            "pub extern crate retake_store;",
            "extern crate retake_store as base;\npub use base as store;",
            "use retake_store as base;\npub use base;",
            "use retake_store::runtime;\npub use runtime as turns;",
            "use retake_store as base;\npub use base::runtime;",
            "pub use read::*; // the whole folder",
        ] {
            assert_eq!(reexports(Path::new("crates/timeline/src/lib.rs"), bad).len(), 1, "{bad}");
        }
        for good in [
            "use retake_store as store;",
            "pub(crate) use retake_store::runtime;",
            "pub use retake_store::{Store, StoreError as Error};",
            "pub use retake_store::runtime::{RuntimeDatabase, TraceFilter};",
            "pub use read::reader::Reader;\npub use transfer::import;",
            "// pub use retake_store as store;",
            "use std::fs;\nuse retake_model::id::*;",
        ] {
            assert_eq!(
                reexports(Path::new("crates/timeline/src/lib.rs"), good),
                Vec::<Violation>::new(),
                "{good}"
            );
        }
    }

    #[test]
    fn other_parts_of_a_crate_are_caught() {
        let check = |name: &str, text: &str| {
            parts(&Path::new("crates").join(name).join("Cargo.toml"), Path::new("some.rs"), text).len()
        };
        for (name, text, wrong) in [
            ("agent", "use retake_store::runtime::{RuntimeDatabase, TurnLease};", 0),
            ("agent", "use retake_store::Store;", 1),
            ("agent", "use retake_store::{runtime::RuntimeDatabase, Store};", 1),
            ("api", "fn f(store: &retake_store::Store) -> retake_store::runtime::RequestState {}", 1),
            ("studio", "use retake_store as base;", 1),
            ("timeline", "use retake_store::Store;", 0),
        ] {
            assert_eq!(check(name, text), wrong, "{name}: {text}");
        }
    }
}
