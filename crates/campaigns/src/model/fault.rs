//! Injected faults, each of which a run must detect.
//!
//! The faults are in the model, so that the real crates need no test build. For the control this makes no difference:
//! it tests whether the comparison detects them.

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFault {
    /// Deleting an entry also deletes the next one.
    DeleteRemovesTheNextEntry,
    /// A branch shares one entry too few.
    BranchSharesTooFew,
    /// Merging a take adds no entry.
    MergeAddsNothing,
    /// Keeping a take leaves one of its alternatives.
    KeepLeavesAnAlternative,
    /// A reset does not clear drafts.
    ResetKeepsDrafts,
    /// A reset clears shared prompts.
    ResetClearsSharedPrompts,
    /// A draft is sent with a role of its own thread.
    DraftsIgnoreSharedRoles,
    /// Clearing a draft keeps its images.
    ClearKeepsPictures,
    /// A fork does not copy the images of the message.
    ForkOmitsPictures,
    /// A change after an undo does not end redo.
    RedoSurvivesAChange,
    /// An undo of a turn only undoes one operation.
    UndoSplitsTurns,
    /// An undo in one take undoes changes of another.
    UndoReachesOtherTakes,
    /// An undo of a turn does not undo its settings.
    UndoKeepsTheSettingsOfATurn,
    /// Every draft change is a separate step.
    DraftChangesStaySeparate,
    /// A change in the middle of a turn that was undone in part joins that turn.
    ChangesJoinUndoneTurns,
    /// Redo ignores the order of steps when one move undid several chains.
    RedoIgnoresTheOrder,
    /// A redo continues to the end of a turn, although the undo started inside it.
    RedoGoesBeyondTheUndo,
    /// A jump does not move takes that it passes.
    JumpIgnoresPassedTakes,
    /// A jump back ends redo.
    JumpEndsRedo,
    /// A stale caller is accepted.
    StaleCallersAreAccepted,
    /// An undo restores the old visibility.
    UndoRestoresSharing,
    /// Undoing a promotion does not archive the new thread.
    UndoKeepsThePromotedThread,
    /// An old version is recorded wrongly.
    AnOldVersionIsWrong,
}

impl ModelFault {
    /// Every variant.
    pub const ALL: [Self; 23] = [
        Self::DeleteRemovesTheNextEntry,
        Self::BranchSharesTooFew,
        Self::MergeAddsNothing,
        Self::KeepLeavesAnAlternative,
        Self::ResetKeepsDrafts,
        Self::ResetClearsSharedPrompts,
        Self::DraftsIgnoreSharedRoles,
        Self::ClearKeepsPictures,
        Self::ForkOmitsPictures,
        Self::RedoSurvivesAChange,
        Self::UndoSplitsTurns,
        Self::UndoReachesOtherTakes,
        Self::UndoKeepsTheSettingsOfATurn,
        Self::DraftChangesStaySeparate,
        Self::ChangesJoinUndoneTurns,
        Self::RedoIgnoresTheOrder,
        Self::RedoGoesBeyondTheUndo,
        Self::JumpIgnoresPassedTakes,
        Self::JumpEndsRedo,
        Self::StaleCallersAreAccepted,
        Self::UndoRestoresSharing,
        Self::UndoKeepsThePromotedThread,
        Self::AnOldVersionIsWrong,
    ];
}
