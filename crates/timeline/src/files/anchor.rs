//! Finds the git commit that a take is based on.

use retake_model::environment::Environment;
use retake_model::history::take_position;
use retake_model::id::TakeId;
use retake_model::object::load;
use retake_model::operation::Version;
use retake_store::{Queries, StoreError, WriteTransaction};

use crate::write::change::Head;
use crate::{Caller, ChangeError, Command};

/// Limit on the steps of a take to search; the steps of one program all have a commit, or none has.
const COMMIT_STEPS: usize = 64;

/// The git commit for a new take: from the last change of its source take, else the anchor of that take, else where the
/// thread was last used or the caller is.
pub(crate) fn commit_of(
    writing: &WriteTransaction<'_>,
    at: &Head,
    command: &Command,
    caller: &Caller,
) -> Result<Option<String>, ChangeError> {
    let (Command::Branch { from, .. } | Command::Fork { from, .. } | Command::Retry { from, .. }) = command
    else {
        return Ok(None);
    };
    let recorded = recorded_commit(writing, at.row.number, at.last.operation.version, *from)?;
    if recorded.is_some() {
        return Ok(recorded);
    }
    if let Some(commit) = at.state.take(&**writing, *from)?.and_then(|take| take.git_commit) {
        return Ok(Some(commit));
    }
    let seen = [Some(&at.row.summary.last_seen), caller.environment.as_ref()];
    Ok(seen.into_iter().flatten().find_map(|seen| seen.git_commit.clone()))
}

/// The git commit that was checked out at the last change of a take, up to a version of the thread.
pub(crate) fn recorded_commit(
    queries: &Queries<'_>,
    number: i64,
    head: Version,
    take: TakeId,
) -> Result<Option<String>, StoreError> {
    let mut version = take_position(&queries.log(number), head, take)?.position;
    for _ in 0..COMMIT_STEPS {
        let Some(found) = queries.operation(number, version)? else { break };
        if let Some(id) = found.operation.environment {
            let seen: Environment = load(queries, id)?;
            if seen.git_commit.is_some() {
                return Ok(seen.git_commit);
            }
        }
        version = found.operation.place.parent;
    }
    Ok(None)
}
