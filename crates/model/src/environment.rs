//! The environment of an operation: folder, program version, and git status.
//!
//! These are observations, not settings: an undo does not change which commit is checked out. So they belong
//! to operations, and the branch, commits and folders of a thread are derived from its log.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::content::{Content, Kind};

/// The environment in which an operation was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Environment {
    /// The project's folder.
    #[n(0)]
    pub workspace_root: Option<String>,
    /// The working directory of the program.
    #[n(1)]
    pub working_directory: Option<String>,
    /// The version of the program.
    #[n(2)]
    pub program_version: Option<String>,
    /// The branch that was checked out.
    #[n(3)]
    pub git_branch: Option<String>,
    /// The commit that was checked out.
    #[n(4)]
    pub git_commit: Option<String>,
    /// The remote of the repository, without credentials.
    #[n(5)]
    pub git_remote: Option<String>,
    /// Whether `git status` would list changed, staged or untracked files; `None` if unknown.
    #[n(6)]
    pub git_dirty: Option<bool>,
    /// Environment variables that affect programs here, from a short list without secrets.
    #[n(7)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
}

/// The variables to record. None of them is meant to hold a secret; no other variable is read.
pub const RECORDED_VARIABLES: [&str; 14] = [
    "CI",
    "COLORTERM",
    "CONDA_DEFAULT_ENV",
    "EDITOR",
    "LANG",
    "LC_ALL",
    "NODE_ENV",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "TERM",
    "TERM_PROGRAM",
    "TZ",
    "VIRTUAL_ENV",
    "VISUAL",
];

/// Longer values are not recorded.
const MAX_VALUE: usize = 200;

/// The variables of an environment to record. Values that are long, span lines, or look like a URL with a
/// password are skipped.
pub fn recorded_environment(variable: impl Fn(&str) -> Option<String>) -> Option<BTreeMap<String, String>> {
    let is_plain = |value: &String| {
        value.len() <= MAX_VALUE && !value.contains(['@', '=']) && !value.chars().any(char::is_control)
    };
    let found: BTreeMap<String, String> = RECORDED_VARIABLES
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), variable(name).filter(is_plain)?)))
        .collect();
    (!found.is_empty()).then_some(found)
}

impl Content for Environment {
    const KIND: Kind = Kind::Environment;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{decode, encode};

    #[test]
    fn only_listed_variables_without_secrets_are_recorded() {
        let variable = |name: &str| {
            Some(match name {
                "LANG" => "de_DE.UTF-8".to_owned(),
                "EDITOR" => "vim --token=abc".to_owned(),
                "SHELL" => "https://me:secret@example.org".to_owned(),
                "TERM" => "x".repeat(1_000),
                "TZ" => "a\nb".to_owned(),
                "ANTHROPIC_API_KEY" => unreachable!("it is not asked for"),
                _ => return None,
            })
        };
        let found = recorded_environment(variable).expect("one value is recorded");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("LANG".to_owned(), "de_DE.UTF-8".to_owned())]);
        assert_eq!(recorded_environment(|_| None), None);
    }

    #[test]
    fn old_environments_without_variables_keep_their_bytes() {
        let around = Environment { git_dirty: Some(true), ..Environment::default() };
        let bytes = encode(&around);
        assert_eq!(bytes[0], 0x87);
        assert_eq!(decode::<Environment>(&bytes), Ok(around));
    }
}
