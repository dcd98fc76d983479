//! Whether the commit that a thread started from is checked out.

use retake_model::id::{TakeId, ThreadId};
use retake_timeline::Timeline;
use retake_workspace::git;

use crate::turn::TurnError;

/// How much of a commit's name is shown.
const SHORT: usize = 12;

/// Refuses unless the commit that a thread started from is checked out in the folder that turns of the take run in. Retake
/// never writes to a repository, so the error names the command that returns there.
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
