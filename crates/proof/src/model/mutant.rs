//! What can be wrong on purpose: one small mistake at a time, each of which a run must notice.
//!
//! The mistakes are made in the naive model, for then no test build of the real crates is needed. It makes no
//! difference to the question that a control answers, which is whether the comparison would see such a thing.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Deleting an entry takes the next one along.
    DeleteTakesTheNext,
    /// A branch shares one entry too few.
    BranchSharesTooFew,
    /// A reset leaves drafts as they are.
    ResetKeepsDrafts,
    /// A reset clears prompts that other threads share.
    ResetClearsSharedPrompts,
    /// A draft is sent in a role of the thread's own.
    DraftsIgnoreSharedRoles,
    /// What is thrown away of a draft is its text alone.
    ClearKeepsPictures,
    /// A fork types the words of the message again, and not its pictures.
    ForkForgetsPictures,
    /// A change after an undo leaves redo possible.
    RedoSurvivesAChange,
    /// An undo of a turn takes back one operation.
    UndoForgetsTurns,
    /// An undo in one take takes back what was done in another.
    UndoReachesOtherTakes,
    /// An undo of a turn leaves the settings that it brought.
    UndoLeavesTheSettingsOfATurn,
    /// Every change of a draft is a step of its own.
    TypingNeverJoins,
    /// Redo goes by version where one move took back steps of several chains.
    RedoForgetsTheOrder,
    /// A jump leaves takes as they are that it only passed.
    JumpLeavesTakesItPassed,
    /// A jump back forgets what lies ahead.
    JumpForgetsWhatLiesAhead,
    /// A stale caller is let through.
    StaleCallersAreHeard,
    /// An undo brings back who could see the thread.
    UndoBringsOldMarks,
    /// The undo of a promotion leaves the new thread in use.
    UndoLeavesThePromoted,
    /// What an old version was is remembered wrongly.
    AnOldVersionIsMisremembered,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 19] = [
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
        Self::RedoForgetsTheOrder,
        Self::JumpLeavesTakesItPassed,
        Self::JumpForgetsWhatLiesAhead,
        Self::StaleCallersAreHeard,
        Self::UndoBringsOldMarks,
        Self::UndoLeavesThePromoted,
        Self::AnOldVersionIsMisremembered,
    ];
}
