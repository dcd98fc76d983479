//! What a person takes for one: the steps of a turn with what was typed for it, typing in one go, undo after undo.

use retake_model::id::TakeId;
use retake_model::operation::{Actor, FileChange, OperationKind, TurnStep, Version};
use retake_timeline::HistoryItem;
use retake_words::actor;

/// An operation where it stands in the tree of changes.
pub(super) struct Step {
    pub(super) item: HistoryItem,
    /// What it was made on.
    pub(super) parent: Version,
    /// What it did to files, if it did something.
    pub(super) files: Option<FileChange>,
}

/// Operations that are one row, newest first. There is at least one.
pub(super) struct Row<'steps>(pub(super) &'steps [Step]);

/// Which operations, newest first, make a row each.
pub(super) fn rows(steps: &[Step]) -> Vec<Row<'_>> {
    steps.chunk_by(continues).map(Row).collect()
}

/// Whether an operation belongs to the row of the newer one. What undo has parted stays apart, so that the present is
/// always the newest of its row.
fn continues(newer: &Step, older: &Step) -> bool {
    use OperationKind::{Jumped, Redone, Undone};
    let (above, below) = (&newer.item, &older.item);
    match (&above.kind, &below.kind) {
        (Undone { .. }, Undone { .. }) | (Redone { .. }, Redone { .. }) | (Jumped { .. }, Jumped { .. }) => {
            true
        }
        (kind, other) if kind.moves_only() || other.moves_only() => false,
        (kind, other) => {
            (above.turn == below.turn || drafted(kind, other))
                && newer.parent == below.version
                && above.undone == below.undone
                && above.redoable == below.redoable
        }
    }
}

/// The take in which something is being typed, or pictures are put to it.
pub(super) fn drafts(kind: &OperationKind) -> Option<TakeId> {
    use OperationKind::{DraftAttached, DraftChanged, DraftCleared};
    match kind {
        DraftChanged { take } | DraftAttached { take, .. } | DraftCleared { take } => Some(*take),
        _ => None,
    }
}

/// Whether somebody goes on with a draft, or a turn began with it: who asks has typed first, and that needs no row of its
/// own.
fn drafted(newer: &OperationKind, older: &OperationKind) -> bool {
    let take = match newer {
        OperationKind::TurnAdvanced { take, step: TurnStep::Started { .. }, .. } => Some(*take),
        kind => drafts(kind),
    };
    take.is_some() && take == drafts(older)
}

impl Row<'_> {
    pub(super) fn newest(&self) -> &Step {
        &self.0[0]
    }

    pub(super) fn oldest(&self) -> &Step {
        &self.0[self.0.len() - 1]
    }

    /// Whether it is, or is a piece of, a turn of the agent's.
    pub(super) fn is_turn(&self) -> bool {
        self.0.iter().any(|step| matches!(step.item.kind, OperationKind::TurnAdvanced { .. }))
    }

    /// Who did it, or had it done.
    pub(super) fn who(&self) -> String {
        match &self.oldest().item.actor {
            // A turn that is told in pieces goes on with what its tools did.
            Actor::ToolCall { .. } if self.is_turn() => actor(&Actor::Agent),
            other => actor(other),
        }
    }

    /// How a turn stands that did not go well; nothing for others.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        match &self.newest().item.kind {
            OperationKind::TurnAdvanced { step: TurnStep::Failed { .. }, .. } => Some("failed"),
            OperationKind::TurnAdvanced { step: TurnStep::Interrupted, .. } => Some("interrupted"),
            _ => None,
        }
    }

    /// The files before the first of them that touched some, and after the last.
    pub(super) fn files(&self) -> Option<(FileChange, FileChange)> {
        let mut touched = self.0.iter().filter_map(|step| step.files);
        let last = touched.next()?;
        Some((touched.next_back().unwrap_or(last), last))
    }
}
