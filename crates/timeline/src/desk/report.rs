//! What became of files, path by path.

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::path::RootPath;
use retake_model::replay::How;
use retake_model::tree::{Difference, Node};
use retake_workspace::folder::path_to_text;
use serde::Serialize;

use super::carry_out::FilePlan;
use super::mode_bits::{self, is_made_anew};
use super::{Desk, Recovered};

/// What became of files, or what would.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileReport {
    /// The snapshot before.
    pub before: ContentId,
    /// The snapshot after.
    pub after: ContentId,
    /// Whether this only says what would happen.
    pub preview: bool,
    /// The folder that they are in, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Each path that was concerned, in order.
    pub paths: Vec<PathReport>,
    /// Where files are now, from the root, that were moved aside: excluded files that stood where a captured one was
    /// restored, and files that a crash had caught on their way and whose place is taken by newer ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
    /// What an earlier crash had left unfinished, and was finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Box<Recovered>>,
    /// Files that a power cut had emptied, and what became of each: those that were written have their content back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<PathReport>,
    /// Set where the files of the entry that a new take begins at are not known here, such as those from
    /// before a promotion where the parent thread is not in the store. The new take begins with the last files of its take.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub files_unknown: bool,
}

/// What became of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathReport {
    /// Which.
    #[serde(flatten)]
    pub path: RootPath,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What else is to be known about it, such as a permission bit that was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// What is there now, or would be.
    #[serde(skip)]
    pub after: Option<Node>,
    /// What was there.
    #[serde(skip)]
    pub before: Option<Node>,
}

/// What became of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FileOutcome"))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was written.
    Written,
    /// It was written, with what someone else had changed since.
    Merged,
    /// It was removed.
    Removed,
    /// It was already as it should be.
    Unchanged,
    /// It was left as it is, because someone had changed it since in a way that does not go together.
    Conflicted {
        /// The version that would have been written; nothing, if it would have been removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        theirs: Option<ContentId>,
        /// What was written all the same, because the caller asked for it.
        written: bool,
    },
    /// It was left as it is, because it changed at the last moment.
    Kept,
    /// It was left as it is, for that reason.
    Skipped {
        /// Why.
        reason: String,
    },
}

impl FileReport {
    pub(super) fn new(
        before: ContentId,
        after: ContentId,
        paths: Vec<PathReport>,
        recovered: Option<Recovered>,
    ) -> Self {
        Self {
            before,
            after,
            preview: false,
            folder: None,
            paths,
            aside: Vec::new(),
            recovered: recovered.map(Box::new),
            emptied: Vec::new(),
            files_unknown: false,
        }
    }

    /// The same, with the folder that the files are in.
    #[must_use]
    pub(super) fn in_folder(self, desk: &Desk) -> Self {
        Self { folder: Some(path_to_text(desk.path())), ..self }
    }

    /// How many paths came out in a way.
    pub fn count(&self, of: impl Fn(&Outcome) -> bool) -> usize {
        self.paths.iter().filter(|path| of(&path.outcome)).count()
    }

    /// Whether any file was, or would be, written or removed.
    pub fn moves_files(&self) -> bool {
        self.paths.iter().any(|path| path.outcome.moved())
    }

    /// Whether something was left as it is that should have moved.
    pub fn left_something(&self) -> bool {
        self.paths.iter().any(|path| path.outcome.left())
    }
}

impl PathReport {
    /// Whether nothing but a folder was, or is, there.
    pub fn is_folder(&self) -> bool {
        let folder = |node: &Option<Node>| node.as_ref().is_none_or(Node::is_folder);
        folder(&self.before) && folder(&self.after)
    }

    pub(super) fn new(root: &str, difference: Difference, outcome: Outcome) -> Self {
        let Difference { path, before, after } = difference;
        Self { path: RootPath { root: root.to_owned(), path }, outcome, note: None, after, before }
    }
}

impl Outcome {
    /// Whether the file was written or removed.
    pub fn moved(&self) -> bool {
        matches!(self, Self::Written | Self::Merged | Self::Removed | Self::Conflicted { written: true, .. })
    }

    /// Whether it was left as it is although it should have moved.
    pub fn left(&self) -> bool {
        matches!(self, Self::Conflicted { written: false, .. } | Self::Kept | Self::Skipped { .. })
    }
}

/// What became of what was planned, where the outcome of what was applied is known by path; of a plan alone
/// otherwise.
pub(super) fn of_plan(plan: &FilePlan, applied: Option<&BTreeMap<RootPath, Outcome>>) -> Vec<PathReport> {
    plan.replayed
        .paths
        .iter()
        .map(|planned| {
            let moves = planned.present != planned.wanted;
            let done = applied.and_then(|applied| applied.get(&planned.path));
            let outcome = match (done, &planned.how) {
                (Some(left), _) if left.left() => left.clone(),
                (_, How::Conflict { theirs }) => {
                    Outcome::Conflicted { theirs: theirs.as_ref().and_then(content), written: moves }
                }
                (_, How::NotHeld(reason)) => Outcome::Skipped {
                    reason: format!("not held on one side of the change ({})", reason.words()),
                },
                _ if !moves => Outcome::Unchanged,
                (_, How::Merged) => Outcome::Merged,
                _ if planned.wanted.is_none() => Outcome::Removed,
                _ => Outcome::Written,
            };
            let made_anew = is_made_anew(planned.present.as_ref(), planned.wanted.as_ref());
            let lost = outcome.moved() && made_anew && plan.mode_bits.contains(&planned.path);
            PathReport {
                path: planned.path.clone(),
                outcome,
                note: lost.then_some(mode_bits::LOST),
                after: planned.wanted.clone(),
                before: planned.present.clone(),
            }
        })
        .collect()
}

fn content(node: &Node) -> Option<ContentId> {
    match node {
        Node::File { content, .. } => Some(*content),
        Node::Folder { tree, .. } => Some(*tree),
        Node::Link { .. } => None,
    }
}
