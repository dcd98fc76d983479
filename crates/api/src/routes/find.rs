//! Finding a thread or a take by what a person types.

use retake_model::id::ProjectId;
use retake_model::summary::TakeSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::threads::{GROUP, ThreadItem};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get};
use crate::problem::Problem;

pub(super) fn all() -> Vec<Endpoint> {
    vec![get("/v1/find", find).about(
        GROUP,
        "Find a thread or a take",
        "By its whole name, or by the beginning of its id, four characters at least, as on the command line. \
         `thread/take` names a take of a thread. Where several go by it, the answer is 409 with `candidates`.",
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindQuery {
    /// What it goes by.
    q: String,
    /// The project whose threads are meant before any others; that of the server's folder if none is named.
    project: Option<ProjectId>,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
struct FoundThread {
    /// The thread.
    thread: ThreadItem,
    /// The take, if one was named.
    take: Option<TakeSummary>,
}

fn find(call: &Call<'_, NoPath, FindQuery>) -> Result<Answer<FoundThread>, Problem> {
    let (service, query) = (call.service, &call.query);
    let project = match query.project {
        Some(project) => Some(service.known_project(project)?),
        // A folder that is not known, or not there, has no threads that could be meant.
        None => service.timeline.project_if_known(&service.folder).ok().map(|project| project.id),
    };
    let found = service.timeline.look()?.find(project, &query.q)?;
    let version = found.thread.summary.version;
    let take = found.take.map(|take| take.summary);
    Ok(Answer::at(
        FoundThread { thread: ThreadItem::new(found.thread, &service.timeline.pending_moves()?), take },
        version,
    ))
}
