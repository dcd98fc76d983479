//! Reports the outcome of a move, path by path.

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::path::RootPath;
use retake_model::replay::PathOutcome;
use retake_model::tree::{Difference, Node};
use retake_workspace::apply::SkipReason;
use retake_workspace::folder::path_to_text;
use serde::Serialize;

use super::execute::FilePlan;
use super::mode_bits::{self, is_recreated};
use super::{RecoveredMove, WorkingCopy};

/// Outcome or preview of a move of files.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileReport {
    /// The snapshot before.
    pub before: ContentId,
    /// The snapshot after.
    pub after: ContentId,
    /// Whether this is a preview.
    pub preview: bool,
    /// The folder of the files, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The affected paths, sorted.
    pub paths: Vec<PathReport>,
    /// Paths of files that were moved aside: excluded files at the path of a restored one, and files of an interrupted
    /// move whose path has newer content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<String>,
    /// An interrupted move that was completed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Box<RecoveredMove>>,
    /// Files emptied by a power cut, with their outcomes; written ones have their content again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<PathReport>,
    /// Whether the files of the entry at which a new take starts are unknown, such as those from before a promotion if
    /// the parent thread is not in the store. The new take then starts with the last files of its source take.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub files_unknown: bool,
}

/// Outcome of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathReport {
    /// The path.
    #[serde(flatten)]
    pub path: RootPath,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Additional information, such as a lost permission bit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// The node afterwards.
    #[serde(skip)]
    pub after: Option<Node>,
    /// The node before.
    #[serde(skip)]
    pub before: Option<Node>,
}

/// Outcome of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FileOutcome"))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Written.
    Written,
    /// Written, merged with later changes of someone else.
    Merged,
    /// Removed.
    Removed,
    /// Already as required.
    Unchanged,
    /// Left unchanged, or written in part, because later changes of someone else conflict with it.
    Conflicted {
        /// The version that would have been written; `null` if it would have been removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        theirs: Option<ContentId>,
        /// Whether it was written nevertheless, as the caller requested.
        written: bool,
        /// Whether other changes of the path were made, without the one in conflict.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        partly: bool,
    },
    /// Left unchanged, because it changed at the last moment.
    Kept,
    /// Left unchanged for that reason.
    Skipped {
        /// The reason.
        reason: String,
    },
}

impl FileReport {
    pub(super) fn new(
        before: ContentId,
        after: ContentId,
        paths: Vec<PathReport>,
        recovered: Option<RecoveredMove>,
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

    /// Adds the folder of the files.
    #[must_use]
    pub(super) fn in_folder(self, working_copy: &WorkingCopy) -> Self {
        Self { folder: Some(path_to_text(working_copy.path())), ..self }
    }

    /// Number of paths with a matching outcome.
    pub fn count(&self, of: impl Fn(&Outcome) -> bool) -> usize {
        self.paths.iter().filter(|path| of(&path.outcome)).count()
    }

    /// Returns whether any file was or would be written or removed.
    pub fn moves_files(&self) -> bool {
        self.paths.iter().any(|path| path.outcome.moved())
    }

    /// Returns whether a path was left unchanged that should have moved.
    pub fn left_something(&self) -> bool {
        self.paths.iter().any(|path| path.outcome.left())
    }
}

impl PathReport {
    /// Returns whether both sides are folders or missing.
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
    /// Returns whether the file was written or removed.
    pub fn moved(&self) -> bool {
        match self {
            Self::Written | Self::Merged | Self::Removed => true,
            Self::Conflicted { written, partly, .. } => *written || *partly,
            Self::Unchanged | Self::Kept | Self::Skipped { .. } => false,
        }
    }

    /// Returns whether the path was left unchanged although it should have moved.
    pub fn left(&self) -> bool {
        matches!(
            self,
            Self::Conflicted { written: false, partly: false, .. } | Self::Kept | Self::Skipped { .. }
        )
    }
}

/// Note on a removed file that had replaced an excluded folder.
const FOLDER_LOST: &str = "a folder that is not captured was in its place and cannot be restored";

/// Reports of a plan, with the outcomes of its execution if given.
pub(super) fn of_plan(plan: &FilePlan, applied: Option<&BTreeMap<RootPath, Outcome>>) -> Vec<PathReport> {
    plan.replayed
        .paths
        .iter()
        .map(|planned| {
            let moves = planned.present != planned.wanted;
            let done = applied.and_then(|applied| applied.get(&planned.path));
            let outcome = match (done, &planned.how) {
                (Some(left), _) if left.left() => left.clone(),
                (_, PathOutcome::Conflict { theirs, kept }) => {
                    let theirs = theirs.as_ref().and_then(content);
                    Outcome::Conflicted { theirs, written: moves && !kept, partly: moves && *kept }
                }
                (_, PathOutcome::NotCaptured(reason)) => Outcome::Skipped {
                    reason: format!("not captured on one side of the change ({})", reason.describe()),
                },
                (_, PathOutcome::NoLongerTracked) => Outcome::Skipped {
                    reason: "its sealed bytes are no longer tracked in this folder, for example because the ignore rules changed"
                        .to_owned(),
                },
                (_, PathOutcome::ParentNotFolder) => {
                    Outcome::Skipped { reason: SkipReason::InTheWay.to_string() }
                }
                (_, PathOutcome::NoRoot) => Outcome::Skipped {
                    reason: format!("the root {} is not part of this folder", planned.path.root),
                },
                _ if !moves => Outcome::Unchanged,
                (_, PathOutcome::Merged) => Outcome::Merged,
                _ if planned.wanted.is_none() => Outcome::Removed,
                _ => Outcome::Written,
            };
            let was_folder =
                matches!(planned.how, PathOutcome::ReplacedFolder(_)) && outcome == Outcome::Removed;
            let made_anew = is_recreated(planned.present.as_ref(), planned.wanted.as_ref());
            let lost = outcome.moved() && made_anew && plan.mode_bits.contains(&planned.path);
            PathReport {
                path: planned.path.clone(),
                outcome,
                note: lost.then_some(mode_bits::MODE_BITS_LOST).or(was_folder.then_some(FOLDER_LOST)),
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
