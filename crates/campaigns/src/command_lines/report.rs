//! Parses the file report of an answer.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

/// A path of the report, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathReport {
    pub(super) path: PathBuf,
    pub(super) outcome: String,
    pub(super) written: bool,
    pub(super) note: bool,
}

impl PathReport {
    /// Whether the path changed.
    pub(super) fn is_change(&self) -> bool {
        matches!(self.outcome.as_str(), "written" | "merged" | "removed") || self.written
    }
}

/// The paths in the file report of an answer; `None` if it has none.
pub(super) fn reported(answer: &Value) -> Option<Vec<PathReport>> {
    let paths = answer["files"]["paths"].as_array()?;
    let read = |path: &Value| PathReport {
        path: PathBuf::from(path["path"].as_str().unwrap_or_default()),
        outcome: path["outcome"].as_str().unwrap_or_default().to_owned(),
        written: path["written"].as_bool().unwrap_or(false),
        note: path["note"].is_string(),
    };
    Some(paths.iter().map(read).collect())
}

/// The paths of files that were moved aside.
pub(super) fn aside(answer: &Value) -> BTreeSet<PathBuf> {
    let paths = answer["files"]["aside"].as_array().into_iter().flatten();
    paths.filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// The undone operations, as version and kind; `None` if the list is incomplete.
pub(super) fn undone(answer: &Value) -> Option<Vec<(u64, String)>> {
    let changes = answer["changes"].as_array()?;
    if answer["count"].as_u64() != Some(changes.len() as u64) {
        return None;
    }
    let read =
        |change: &Value| Some((change["version"].as_u64()?, change["kind"]["type"].as_str()?.to_owned()));
    changes.iter().map(read).collect()
}
