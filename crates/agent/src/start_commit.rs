//! Checks that the start commit of a thread is checked out.

use retake_model::id::{TakeId, ThreadId};
use retake_timeline::Timeline;
use retake_workspace::git;

use crate::turn::TurnError;

/// Length of a short commit hash.
const SHORT: usize = 12;

/// Refuses unless the start commit of a thread is checked out in the folder of the take. Retake never writes to a
/// repository, so the error suggests the git command.
pub fn check_start_commit(timeline: &Timeline, thread: ThreadId, take: TakeId) -> Result<(), TurnError> {
    let looking = timeline.look()?;
    let row = looking.thread(thread)?;
    let folder = match looking.apart_folder_of(thread, take)? {
        Some(apart) => apart.path,
        None => timeline.folder_of_project(row.home)?,
    };
    let Some(start) = row.summary.first_seen.git_commit else { return Err(TurnError::NoStartCommit) };
    let now = git::observe(&folder).commit;
    if now.as_ref() == Some(&start) {
        return Ok(());
    }
    let short = |commit: &str| commit.chars().take(SHORT).collect::<String>();
    let now = now.map_or_else(|| "no commit is".to_owned(), |now| format!("{} is", short(&now)));
    Err(TurnError::OtherCommit { short: short(&start), start, now })
}
