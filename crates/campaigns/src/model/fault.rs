//! Injected faults, each of which a run must detect.
//!
//! The faults are in the model, so that the real crates need no test build. For the control this makes no difference:
//! it tests whether the comparison detects them.

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFault {
    /// Deleting an entry also deletes the next one.
    DeleteTakesTheNext,
    /// A branch shares one entry too few.
    BranchSharesTooFew,
    /// A reset does not clear drafts.
    ResetKeepsDrafts,
    /// A reset clears shared prompts.
    ResetClearsSharedPrompts,
    /// A draft is sent with a role of its own thread.
    DraftsIgnoreSharedRoles,
    /// Clearing a draft keeps its images.
    ClearKeepsPictures,
    /// A fork does not copy the images of the message.
    ForkForgetsPictures,
    /// A change after an undo does not end redo.
    RedoSurvivesAChange,
    /// An undo of a turn only undoes one operation.
    UndoForgetsTurns,
    /// An undo in one take undoes changes of another.
    UndoReachesOtherTakes,
    /// An undo of a turn does not undo its settings.
    UndoLeavesTheSettingsOfATurn,
    /// Every draft change is a separate step.
    TypingNeverJoins,
    /// A change in the middle of a turn that was undone in part joins that turn.
    ChangesJoinUndoneTurns,
    /// Redo ignores the order of steps when one move undid several chains.
    RedoForgetsTheOrder,
    /// A redo continues to the end of a turn, although the undo started inside it.
    RedoGoesBeyondTheUndo,
    /// A jump does not move takes that it passes.
    JumpLeavesTakesItPassed,
    /// A jump back ends redo.
    JumpForgetsWhatLiesAhead,
    /// A stale caller is accepted.
    StaleCallersAreHeard,
    /// An undo restores the old visibility.
    UndoBringsOldMarks,
    /// Undoing a promotion does not archive the new thread.
    UndoLeavesThePromoted,
    /// An old version is recorded wrongly.
    AnOldVersionIsMisremembered,
}

impl ModelFault {
    /// Every variant.
    pub const ALL: [Self; 21] = [
        Self::DeleteTakesTheNext,
        Self::BranchSharesTooFew,
        Self::ResetKeepsDrafts,
        Self::ResetClearsSharedPrompts,
        Self::DraftsIgnoreSharedRoles,
        Self::ClearKeepsPictures,
        Self::ForkForgetsPictures,
        Self::RedoSurvivesAChange,
        Self::UndoForgetsTurns,
        Self::UndoReachesOtherTakes,
        Self::UndoLeavesTheSettingsOfATurn,
        Self::TypingNeverJoins,
        Self::ChangesJoinUndoneTurns,
        Self::RedoForgetsTheOrder,
        Self::RedoGoesBeyondTheUndo,
        Self::JumpLeavesTakesItPassed,
        Self::JumpForgetsWhatLiesAhead,
        Self::StaleCallersAreHeard,
        Self::UndoBringsOldMarks,
        Self::UndoLeavesThePromoted,
        Self::AnOldVersionIsMisremembered,
    ];
}
