//! Groups operations into rows: the steps of a turn with its draft, consecutive typing, consecutive undos.

use retake_model::id::TakeId;
use retake_model::operation::{Actor, FileChange, OperationKind, TurnStep, Version};
use retake_render::actor;
use retake_timeline::HistoryItem;

/// An operation and its position in the tree of versions.
pub(super) struct HistoryStep {
    pub(super) item: HistoryItem,
    /// Its parent version.
    pub(super) parent: Version,
    /// Its file changes, if any.
    pub(super) files: Option<FileChange>,
}

/// The operations of a row, newest first; at least one.
pub(super) struct Row<'steps>(pub(super) &'steps [HistoryStep]);

/// Groups operations, newest first, into rows.
pub(super) fn rows(steps: &[HistoryStep]) -> Vec<Row<'_>> {
    steps.chunk_by(continues).map(Row).collect()
}

/// Whether an operation belongs to the row of the newer one. Undone and current operations are never in the same row, so
/// that the current version is always the newest of its row.
fn continues(newer: &HistoryStep, older: &HistoryStep) -> bool {
    use OperationKind::{Jumped, Redone, Undone};
    let (above, below) = (&newer.item, &older.item);
    match (&above.kind, &below.kind) {
        (Undone { .. }, Undone { .. }) | (Redone { .. }, Redone { .. }) | (Jumped { .. }, Jumped { .. }) => {
            true
        }
        (kind, other) if kind.is_not_undoable() || other.is_not_undoable() => false,
        (kind, other) => {
            (above.turn == below.turn || continues_draft(kind, other))
                && newer.parent == below.version
                && above.undone == below.undone
                && above.redoable == below.redoable
        }
    }
}

/// The take whose draft the operation changes.
pub(super) fn draft_take(kind: &OperationKind) -> Option<TakeId> {
    use OperationKind::{DraftAttached, DraftChanged, DraftCleared};
    match kind {
        DraftChanged { take } | DraftAttached { take, .. } | DraftCleared { take } => Some(*take),
        _ => None,
    }
}

/// Whether an operation continues a draft or sends it as a prompt, so that typing needs no row of its own.
fn continues_draft(newer: &OperationKind, older: &OperationKind) -> bool {
    let take = match newer {
        OperationKind::TurnAdvanced { take, step: TurnStep::Started { .. }, .. } => Some(*take),
        kind => draft_take(kind),
    };
    take.is_some() && take == draft_take(older)
}

impl Row<'_> {
    pub(super) fn newest(&self) -> &HistoryStep {
        &self.0[0]
    }

    pub(super) fn oldest(&self) -> &HistoryStep {
        &self.0[self.0.len() - 1]
    }

    /// Whether it is part of a turn.
    pub(super) fn is_turn(&self) -> bool {
        self.0.iter().any(|step| matches!(step.item.kind, OperationKind::TurnAdvanced { .. }))
    }

    /// The author.
    pub(super) fn who(&self) -> String {
        match &self.oldest().item.actor {
            // A row may start in the middle of a turn, with a tool call.
            Actor::ToolCall { .. } if self.is_turn() => actor(&Actor::Agent),
            other => actor(other),
        }
    }

    /// The failure of a turn, if it failed or was interrupted.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        match &self.newest().item.kind {
            OperationKind::TurnAdvanced { step: TurnStep::Failed { .. }, .. } => Some("failed"),
            OperationKind::TurnAdvanced { step: TurnStep::Interrupted, .. } => Some("interrupted"),
            _ => None,
        }
    }

    /// The first and the last file change of the row.
    pub(super) fn files(&self) -> Option<(FileChange, FileChange)> {
        let mut touched = self.0.iter().filter_map(|step| step.files);
        let last = touched.next()?;
        Some((touched.next_back().unwrap_or(last), last))
    }
}
