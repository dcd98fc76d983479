//! Concurrent processes, worktrees and concurrent writers, with their controls.

use retake_campaigns::concurrent_processes::{ConcurrentPlan, KilledCommand, concurrent_processes};
use retake_campaigns::concurrent_writers::{ReplaceMethod, concurrent_writers};
use retake_campaigns::violation::caught;
use retake_campaigns::worktrees::{WorktreePlan, worktrees};

#[test]
fn what_two_processes_on_one_folder_were_told_is_there() {
    // Which commands are killed depends on timing; with this many, enough succeed.
    let plan = ConcurrentPlan { seed: 1, commands: 100, killed: KilledCommand::Unknown };
    let told = concurrent_processes(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        told.iter().all(|told| told.changes.len() > 5 && told.moves > 2),
        "{told:?}: too little for a proof"
    );
}

#[test]
fn a_killed_command_taken_for_done_is_caught() {
    let plan = ConcurrentPlan { seed: 2, commands: 60, killed: KilledCommand::Done };
    caught("kills taken for answers", concurrent_processes(plan))
        .unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn two_takes_at_once_each_agree_with_their_folder() {
    let plan = WorktreePlan { seed: 1, commands: 15, misplaced: false };
    let workers = worktrees(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        workers.iter().all(|worker| worker.changes > 3 && worker.moves > 3),
        "{workers:?}: too little for a proof"
    );
}

#[test]
fn an_undo_in_the_folder_of_another_take_is_caught() {
    let plan = WorktreePlan { seed: 2, commands: 30, misplaced: true };
    caught("undo in the wrong folder", worktrees(plan)).unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn a_folder_that_never_rests_is_recorded_and_moved_all_the_same() {
    let rested = concurrent_writers(25, ReplaceMethod::ByRename).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(rested.changes > 100, "{rested:?}: too little for a proof");
}

#[test]
fn files_that_are_replaced_in_place_are_seen_by_half() {
    caught("replaced in place", concurrent_writers(400, ReplaceMethod::InPlace))
        .unwrap_or_else(|trouble| panic!("{trouble}"));
}
