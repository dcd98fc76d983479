//! Folders of their own for takes, so that several are alive at once.

use std::path::PathBuf;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_timeline::workspace::folder::path_to_text;
use retake_timeline::{
    ApartFolder, Caller, Handling, OpenedApart, PlanRequest, Preview, Seen, WorktreePreview,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Ahead, MOST, Page, TakePath, id, limit, take_of};
use super::file_common::not_kept;
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get, post};
use crate::problem::Problem;

const GROUP: &str = "Takes";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/apart", list).about(GROUP, "List folders that takes have for themselves", ""),
        post("/v1/threads/{thread}/takes/{take}/open", open).creates().unversioned().about(
            GROUP,
            "Give a take a folder of its own",
            "Filled with the take's files, so that several takes are alive at once. What is not held (ignored files, \
             secrets) does not come along; the project's folder is not touched.",
        ),
        post("/v1/threads/{thread}/takes/{take}/close", close).unversioned().about(
            GROUP,
            "End a take's own folder",
            "Its last state is recorded first. With `remove`, the files that are recorded are removed from it; whatever is \
             not held stays.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only takes of this project.
    project: Option<ProjectId>,
    /// Only takes of this thread.
    thread: Option<ThreadId>,
    /// How many: 1 to 500, 100 if not said.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// A folder that a take has for itself.
#[derive(Serialize, JsonSchema)]
struct Apart {
    #[serde(flatten)]
    folder: ApartFolder,
    /// Whether it is there, and still the folder that was filled for the take.
    exists: bool,
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<Apart>>, Problem> {
    let query = &call.query;
    let limit = limit(query.limit, 100, MOST)?;
    let last: Option<TakeId> = id(query.cursor.as_deref())?;
    let mut found = call.service.timeline.look()?.apart_folders()?;
    found.retain(|folder| {
        query.project.is_none_or(|project| folder.project == project)
            && query.thread.is_none_or(|thread| folder.thread == thread)
            && last.is_none_or(|last| folder.take > last)
    });
    found.sort_by_key(|folder| folder.take);
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.take.to_string());
    let items = found.into_iter().map(|folder| Apart { exists: folder.is_there(), folder });
    Ok(Answer::of(Page { items: items.collect(), next }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenBody {
    /// The folder, from the root of the file system on; beside the project's, with the take's name added, if none is
    /// named. It must not be there yet.
    folder: Option<String>,
}

/// A take that was given a folder, or would be.
#[derive(Serialize, JsonSchema)]
struct Opened {
    #[serde(flatten)]
    folder: OpenedApart,
    /// Whether nothing was made, and this is only what would be.
    dry_run: bool,
    /// What would be recorded first, where nothing was made.
    would: Option<Preview>,
}

fn open(call: &Call<'_, TakePath, Ahead, OpenBody>) -> Result<Answer<Opened>, Problem> {
    let (service, thread, dry_run) = (call.service, call.path.thread, call.query.dry_run);
    let options = service.setup.files.as_ref().ok_or_else(not_kept)?;
    let looking = service.timeline.look()?;
    let take = take_of(&looking, &looking.state(thread)?, Some(call.path.take))?;
    let home = looking.thread(thread)?.home;
    let folder = match &call.body.folder {
        Some(folder) => Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute()),
        None => looking.folder_beside(home, &take.name)?,
    };
    drop(looking);
    let folder = folder.ok_or_else(|| Problem::refused("name a `folder` that begins with a slash"))?;
    let caller = Caller { expected: None, ..call.caller(thread)? };
    let request = PlanRequest::OpenWorktree { take: take.id, folder };
    let (timeline, handling, place) = (&service.timeline, Handling::default(), (Some(options), None));
    let (opened, would) = if dry_run {
        let would = timeline.recover_and_plan(thread, request, caller, handling, place)?.into_preview();
        (would.opened()?, Some(would))
    } else {
        (timeline.perform(thread, request, caller, handling, place)?.into_opened()?, None)
    };
    Ok(Answer::of(Opened { folder: opened, dry_run, would }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseBody {
    /// Whether the files that are recorded are removed from the folder.
    #[serde(default)]
    remove: bool,
}

/// A take whose folder was given up, or would be.
#[derive(Serialize, JsonSchema)]
struct Closed {
    /// The take.
    take: TakeId,
    /// Where the folder is, or was.
    path: String,
    /// Whether the folder was gone already, or another was in its place, which is left as it is: what was recorded of
    /// its files is kept.
    gone: bool,
    /// Whether the files were removed from it, or would be.
    removed: bool,
    /// Its last state; none where nothing was done, or the folder was gone.
    seen: Option<Seen>,
    /// Whether nothing was changed, and this is only what would be.
    dry_run: bool,
    /// What would be recorded first, where nothing was done.
    would: Option<Preview>,
}

fn close(call: &Call<'_, TakePath, Ahead, CloseBody>) -> Result<Answer<Closed>, Problem> {
    let (service, TakePath { thread, take }) = (call.service, &call.path);
    let options = service.setup.files.as_ref().ok_or_else(not_kept)?;
    let looking = service.timeline.look()?;
    take_of(&looking, &looking.state(*thread)?, Some(*take))?;
    let folder = looking.apart_folder_of(*thread, *take)?;
    let folder = folder.ok_or_else(|| Problem::not_found("this take has no folder of its own"))?;
    drop(looking);
    let (path, dry_run, remove) = (path_to_text(&folder.path), call.query.dry_run, call.body.remove);
    let caller = Caller { expected: None, ..call.caller(*thread)? };
    let request = PlanRequest::CloseWorktree { folder: Box::new(folder), remove };
    let (timeline, handling, place) = (&service.timeline, Handling::default(), (Some(options), None));
    let (seen, gone, would) = if dry_run {
        let would = timeline.recover_and_plan(*thread, request, caller, handling, place)?.into_preview();
        let gone = matches!(would.worktree, Some(WorktreePreview::Close { gone: true, .. }));
        (None, gone, Some(would))
    } else {
        let closed = timeline.perform(*thread, request, caller, handling, place)?.into_closed()?;
        let seen = closed.map(|closed| closed.seen);
        let gone = seen.is_none();
        (seen, gone, None)
    };
    let removed = remove && !gone;
    Ok(Answer::of(Closed { take: *take, path, gone, removed, seen, dry_run, would }))
}
