//! Concurrent processes, worktrees and concurrent writers, with their controls.

use retake_campaigns::concurrent_processes::{ConcurrentPlan, KilledCommand, concurrent_processes};
use retake_campaigns::concurrent_writers::{ReplaceMethod, concurrent_writers};
use retake_campaigns::violation::caught;
use retake_campaigns::worktrees::{WorktreePlan, worktrees};

#[test]
fn acknowledged_commands_of_two_processes_in_one_folder_are_in_the_log() {
    // Two of three commands are not killed, on any machine.
    let plan = ConcurrentPlan { seed: 1, commands: 100, killed: KilledCommand::Unknown };
    let workers = concurrent_processes(plan).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        workers[..2].iter().all(|worker| worker.changes.len() > 5 && worker.moves > 2)
            && workers[2].entries.len() > 20,
        "{workers:?}: too little for a proof"
    );
}

#[test]
fn counting_a_killed_command_as_done_is_caught() {
    let plan = ConcurrentPlan { seed: 2, commands: 60, killed: KilledCommand::Done };
    caught("kills taken for answers", concurrent_processes(plan))
        .unwrap_or_else(|trouble| panic!("{trouble}"));
}

#[test]
fn two_takes_used_concurrently_agree_with_their_folders() {
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
fn a_folder_that_changes_constantly_is_recorded_and_moved() {
    let done = concurrent_writers(25, ReplaceMethod::ByRename).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(done.changes > 100, "{done:?}: too little for a proof");
}

#[test]
fn partially_written_files_are_caught() {
    caught("replaced in place", concurrent_writers(400, ReplaceMethod::InPlace))
        .unwrap_or_else(|trouble| panic!("{trouble}"));
}
