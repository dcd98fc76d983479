//! Worktrees: separate folders for takes, so that several takes can be edited at the same time.

use std::path::PathBuf;

use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_timeline::{
    Caller, MoveOptions, OpenedWorktree, PlanRequest, Preview, RecordedChanges, Worktree, WorktreePreview,
};
use retake_workspace::folder::path_to_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{DryRunQuery, MAX_PAGE, Page, TakePath, cursor, limit, take_of};
use super::file_common::files_disabled;
use crate::endpoint::{Answer, Call, Endpoint, NoPath, get, post};
use crate::problem::Problem;

const GROUP: &str = "Takes";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/worktrees", list).about(GROUP, "List worktrees", ""),
        post("/v1/threads/{thread}/takes/{take}/worktree", open).answers_created().unversioned().about(
            GROUP,
            "Add a worktree for a take",
            "Creates a folder with the take's files, so that several takes can be edited at the same time. Excluded files \
             (ignored files, secrets) are not copied, and the project's folder does not change.",
        ),
        post("/v1/threads/{thread}/takes/{take}/worktree/remove", close).unversioned().about(
            GROUP,
            "Remove the worktree of a take",
            "Records its last state first. With `remove`, also deletes the recorded files from the folder; excluded files \
             stay.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only worktrees of this project.
    project: Option<ProjectId>,
    /// Only worktrees of this thread.
    thread: Option<ThreadId>,
    /// Page size: 1 to 500, 100 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// The worktree of a take.
#[derive(Serialize, JsonSchema)]
struct WorktreeItem {
    #[serde(flatten)]
    folder: Worktree,
    /// Whether the folder exists and is still the one created for the take.
    exists: bool,
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<WorktreeItem>>, Problem> {
    let query = &call.query;
    let limit = limit(query.limit, 100, MAX_PAGE)?;
    let last: Option<TakeId> = cursor(query.cursor.as_deref())?;
    let mut found = call.service.timeline.read()?.worktrees().list()?;
    found.retain(|folder| {
        query.project.is_none_or(|project| folder.project == project)
            && query.thread.is_none_or(|thread| folder.thread == thread)
            && last.is_none_or(|last| folder.take > last)
    });
    found.sort_by_key(|folder| folder.take);
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.take.to_string());
    let items = found.into_iter().map(|folder| WorktreeItem { exists: folder.exists(), folder });
    Ok(Answer::of(Page { items: items.collect(), next }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddBody {
    /// Absolute path of the folder, which must not exist. By default next to the project's folder, with the take's name
    /// appended.
    folder: Option<String>,
}

/// A worktree that was added, or the preview of one.
#[derive(Serialize, JsonSchema)]
struct AddedWorktree {
    #[serde(flatten)]
    folder: OpenedWorktree,
    /// Whether this is a preview: nothing was created.
    dry_run: bool,
    /// The preview, including changes that would be recorded first.
    preview: Option<Preview>,
}

fn open(call: &Call<'_, TakePath, DryRunQuery, AddBody>) -> Result<Answer<AddedWorktree>, Problem> {
    let (service, thread, dry_run) = (call.service, call.path.thread, call.query.dry_run);
    let options = service.agent.setup.files.as_ref().ok_or_else(files_disabled)?;
    let reader = service.timeline.read()?;
    let take = take_of(&reader, &reader.state(thread)?, Some(call.path.take))?;
    let home = reader.thread(thread)?.home;
    let folder = match &call.body.folder {
        Some(folder) => Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute()),
        None => reader.worktrees().new_folder(home, &take.name)?,
    };
    drop(reader);
    let folder = folder.ok_or_else(|| Problem::refused("`folder` must be an absolute path"))?;
    let caller = Caller { expected: None, ..call.caller(thread)? };
    let request = PlanRequest::OpenWorktree { take: take.id, folder };
    let (timeline, move_options, folder_options) =
        (&service.timeline, MoveOptions::default(), (Some(options), None));
    let (opened, preview) = if dry_run {
        let preview =
            timeline.recover_and_plan(thread, request, caller, move_options, folder_options)?.into_preview();
        (preview.opened()?, Some(preview))
    } else {
        (timeline.perform(thread, request, caller, move_options, folder_options)?.into_opened()?, None)
    };
    Ok(Answer::of(AddedWorktree { folder: opened, dry_run, preview }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveBody {
    /// Delete the recorded files from the folder.
    #[serde(default)]
    remove: bool,
}

/// A worktree that was removed, or the preview of that.
#[derive(Serialize, JsonSchema)]
struct RemovedWorktree {
    /// The take.
    take: TakeId,
    /// Path of the folder.
    path: String,
    /// Whether the folder no longer existed, or another folder was in its place. That folder is left alone, and the
    /// recorded files of the take stay.
    gone: bool,
    /// Whether the files are deleted from it.
    removed: bool,
    /// Its last state; null in a preview and if the folder was gone.
    recorded: Option<RecordedChanges>,
    /// Whether this is a preview: nothing was changed.
    dry_run: bool,
    /// The preview, including changes that would be recorded first.
    preview: Option<Preview>,
}

fn close(call: &Call<'_, TakePath, DryRunQuery, RemoveBody>) -> Result<Answer<RemovedWorktree>, Problem> {
    let (service, TakePath { thread, take }) = (call.service, &call.path);
    let options = service.agent.setup.files.as_ref().ok_or_else(files_disabled)?;
    let reader = service.timeline.read()?;
    take_of(&reader, &reader.state(*thread)?, Some(*take))?;
    let folder = reader.worktrees().of(*thread, *take)?;
    let folder = folder
        .ok_or_else(|| Problem::not_found("this take has no worktree; GET /v1/worktrees lists them"))?;
    drop(reader);
    let (path, dry_run, remove) = (path_to_text(&folder.path), call.query.dry_run, call.body.remove);
    let caller = Caller { expected: None, ..call.caller(*thread)? };
    let request = PlanRequest::CloseWorktree { folder: Box::new(folder), remove };
    let (timeline, move_options, folder_options) =
        (&service.timeline, MoveOptions::default(), (Some(options), None));
    let (recorded, gone, preview) = if dry_run {
        let preview =
            timeline.recover_and_plan(*thread, request, caller, move_options, folder_options)?.into_preview();
        let gone = matches!(preview.worktree, Some(WorktreePreview::Close { gone: true, .. }));
        (None, gone, Some(preview))
    } else {
        let closed =
            timeline.perform(*thread, request, caller, move_options, folder_options)?.into_closed()?;
        let recorded = closed.map(|closed| closed.recorded);
        let gone = recorded.is_none();
        (recorded, gone, None)
    };
    let removed = remove && !gone;
    Ok(Answer::of(RemovedWorktree { take: *take, path, gone, removed, recorded, dry_run, preview }))
}
