//! Finds a thread or a take by a name that a user types.

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
        "By its full name or by a prefix of its id of at least four characters, as on the command line. \
         `thread/take` names a take of a thread. An ambiguous name returns 409 with `candidates`.",
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindQuery {
    /// The name, or a prefix of the id.
    q: String,
    /// The project to search first; by default that of the server's folder.
    project: Option<ProjectId>,
}

/// The thread or take that was found.
#[derive(Serialize, JsonSchema)]
struct FindAnswer {
    /// The thread.
    thread: ThreadItem,
    /// The take, if the name contains one.
    take: Option<TakeSummary>,
}

fn find(call: &Call<'_, NoPath, FindQuery>) -> Result<Answer<FindAnswer>, Problem> {
    let (service, query) = (call.service, &call.query);
    let project = match query.project {
        Some(project) => Some(service.projects.known(project)?),
        // An unknown or missing folder has no threads to prefer.
        None => service.timeline.project_if_known(&service.projects.folder).ok().map(|project| project.id),
    };
    let found = service.timeline.read()?.find().thread(project, &query.q)?;
    let version = found.thread.summary.version;
    let take = found.take.map(|take| take.summary);
    Ok(Answer::at(
        FindAnswer { thread: ThreadItem::new(found.thread, &service.timeline.pending_moves()?), take },
        version,
    ))
}
