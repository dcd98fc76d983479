//! Checks that the start commit of a thread is checked out.

use retake_model::id::{TakeId, ThreadId};
use retake_timeline::Timeline;
use retake_workspace::git;

use crate::turn::TurnError;

/// Length of a short commit hash.
const SHORT_HASH_CHARS: usize = 12;

/// Refuses unless the start commit of a thread is checked out in the folder of the take. Retake never writes
/// to a repository, so the error suggests the git command.
pub fn check_start_commit(timeline: &Timeline, thread: ThreadId, take: TakeId) -> Result<(), TurnError> {
    let reader = timeline.read()?;
    let row = reader.thread(thread)?;
    let folder = match reader.worktrees().of(thread, take)? {
        Some(worktree) => worktree.path,
        None => timeline.folder_of_project(row.home)?,
    };
    let Some(start) = row.summary.first_seen.git_commit else { return Err(TurnError::NoStartCommit) };
    let now = git::observe(&folder).commit;
    if now.as_ref() == Some(&start) {
        return Ok(());
    }
    let short = |commit: &str| commit.chars().take(SHORT_HASH_CHARS).collect::<String>();
    let now = now.map_or_else(|| "no commit is".to_owned(), |now| format!("{} is", short(&now)));
    Err(TurnError::OtherCommit { short: short(&start), start, now })
}
