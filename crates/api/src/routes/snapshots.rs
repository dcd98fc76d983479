//! Snapshots: list, take, show, restore.

use retake_model::content::ContentId;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::name::check_new_save;
use retake_model::operation::{Actor, Version};
use retake_timeline::{
    Caller, ChangeOutcome, FileReport, FilesAt, MoveOptions, PlanRequest, Preview, ReadError, RestoreOutcome,
    SnapshotSummary, ThreadFiles,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{DryRunQuery, Page, cursor, limit};
use super::file_common::PathInput;
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, get, post};
use crate::problem::Problem;
use retake_surface::page::MAX_SNAPSHOTS;

const GROUP: &str = "Files";

/// Maximum excluded paths of a snapshot in a list.
const EXCLUDED_IN_LIST: usize = 20;
/// Maximum excluded paths of one snapshot.
const EXCLUDED_IN_ONE: usize = 1000;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/snapshots", list).about(
            GROUP,
            "List snapshots",
            "Newest first: of a thread, or of all threads of a project (by default that of the server's folder). Each lists \
             the paths that it excludes.",
        ),
        post("/v1/snapshots", take).answers_created().about(
            GROUP,
            "Take a snapshot",
            "Records the changes in the thread's folder since the last snapshot: as your edits, or as those of the program \
             in `by`, which an undo reverts. `note` also saves the version under a name.",
        ),
        get("/v1/snapshots/{snapshot}", show).about(
            GROUP,
            "Show a snapshot",
            "With up to 1000 excluded paths and the reasons.",
        ),
        post("/v1/snapshots/{snapshot}/restore", restore).about(
            GROUP,
            "Restore files from a snapshot",
            "All of them, or `paths`. Always in the thread's own workspace; a snapshot of another thread is refused. \
             Records the current files first, and an undo restores them.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only snapshots of this thread.
    thread: Option<ThreadId>,
    /// Snapshots of all threads of this project; by default that of the server's folder.
    project: Option<ProjectId>,
    /// Page size: 1 to 100, 20 by default.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// A snapshot in a list.
#[derive(Serialize, JsonSchema)]
struct SnapshotItem {
    /// The thread.
    thread: ThreadId,
    #[serde(flatten)]
    at: FilesAt,
    #[serde(flatten)]
    captured: Option<SnapshotSummary>,
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<SnapshotItem>>, Problem> {
    let query = &call.query;
    let (limit, before) = (limit(query.limit, 20, MAX_SNAPSHOTS)?, cursor(query.cursor.as_deref())?);
    let reader = call.service.timeline.read()?;
    let (found, next, version) = match (query.thread, query.project) {
        (Some(_), Some(_)) => return Err(Problem::refused("give either `thread` or `project`, not both")),
        (Some(thread), None) => {
            let version = reader.thread(thread)?.summary.version;
            let (found, next) =
                page(|before, limit| reader.files(thread).of_lineage(before, limit), before, limit)?;
            (found, next, Some(version))
        }
        (None, project) => {
            let project = match project {
                Some(project) => call.service.projects.known(project)?,
                None => call.service.timeline.project_if_known(&call.service.projects.folder)?.id,
            };
            let (found, next) =
                page(|before, limit| reader.project(project).files(before, limit), before, limit)?;
            (found, next, None)
        }
    };
    let mut items = Vec::with_capacity(found.len());
    for ThreadFiles { thread, at, .. } in found {
        let captured = reader.snapshot(at.files.after).summary(EXCLUDED_IN_LIST)?;
        items.push(SnapshotItem { thread, at, captured });
    }
    Ok(Answer { body: Page { items, next }, version, location: None })
}

/// A page of snapshots, and the cursor of the next one.
fn page(
    moments: impl FnOnce(Option<i64>, usize) -> Result<Vec<ThreadFiles>, ReadError>,
    before: Option<u64>,
    limit: usize,
) -> Result<(Vec<ThreadFiles>, Option<String>), Problem> {
    let before = before.map(|before| i64::try_from(before).unwrap_or(i64::MAX));
    let mut found = moments(before, limit + 1)?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.sequence.to_string());
    Ok((found, next))
}

#[derive(Deserialize, JsonSchema)]
struct SnapshotPath {
    /// The snapshot's id.
    snapshot: ContentId,
}

fn show(call: &Call<'_, SnapshotPath>) -> Result<Answer<SnapshotSummary>, Problem> {
    let captured = call.service.timeline.read()?.snapshot(call.path.snapshot).summary(EXCLUDED_IN_ONE)?;
    Ok(Answer::of(captured.ok_or_else(|| no_snapshot(call.path.snapshot))?))
}

fn no_snapshot(id: ContentId) -> Problem {
    Problem::not_found(format!("no snapshot {id}"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SnapshotBody {
    /// The thread; by default the current thread of the server's project.
    thread: Option<ThreadId>,
    /// The take whose folder to use; the active one by default.
    take: Option<TakeId>,
    /// A name to save the version under.
    note: Option<String>,
    /// Author of the changes: `agent`, or the name of a program. By default the user.
    #[schemars(length(min = 1, max = 100))]
    by: Option<String>,
}

/// A snapshot that was taken.
#[derive(Serialize, JsonSchema)]
struct TakenSnapshot {
    /// The thread.
    thread: ThreadId,
    /// Its version now.
    version: Version,
    /// The operation that records the changes; null if there were none.
    operation: Option<ContentId>,
    /// Whether an undo reverts it; it does not revert the user's edits.
    undoable: bool,
    #[serde(flatten)]
    captured: Option<SnapshotSummary>,
    /// The changes, path by path.
    files: FileReport,
    /// The operation that saved the version.
    saved: Option<ChangeOutcome>,
}

fn take(call: &Call<'_, NoPath, NoQuery, SnapshotBody>) -> Result<Answer<TakenSnapshot>, Problem> {
    let (service, body) = (call.service, &call.body);
    let thread = service.resolve_thread(body.thread)?;
    // Check everything before anything is recorded.
    if body.by.as_ref().is_some_and(|name| !(1..=100).contains(&name.chars().count())) {
        return Err(Problem::invalid("`by` must have 1 to 100 characters"));
    }
    if let Some(note) = &body.note {
        check_new_save(note).map_err(Problem::refused)?;
    }
    let (working_copy, caller) = (service.working_copy_at(thread, body.take)?, call.caller(thread)?);
    let seen = match body.by.as_deref() {
        None => working_copy.record_changes(thread, caller.clone())?,
        Some(name) => {
            working_copy.record_as_caller(thread, Caller { actor: Actor::named(name), ..caller.clone() })?
        }
    };
    let saved = match &body.note {
        Some(note) => {
            // Another thread may have changed the folder, so that this one recorded nothing just now.
            Some(working_copy.save(thread, note.clone(), Caller { expected: None, ..caller })?)
        }
        None => None,
    };
    let version = saved.as_ref().map_or(seen.version, |saved| saved.version);
    let captured = service.timeline.read()?.snapshot(seen.snapshot).summary(EXCLUDED_IN_ONE)?;
    let taken = TakenSnapshot {
        thread,
        version,
        operation: seen.operation.as_ref().and_then(|done| done.operation),
        undoable: seen.operation.is_some_and(|done| done.undoable),
        captured,
        files: seen.files,
        saved,
    };
    Ok(Answer::at(taken, version).with_location(format!("/v1/snapshots/{}", seen.snapshot)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestoreBody {
    /// The thread; by default the current thread of the server's project.
    thread: Option<ThreadId>,
    /// The take whose folder to use; the active one by default.
    take: Option<TakeId>,
    /// Only these files and folders; all by default.
    #[serde(default)]
    paths: Vec<PathInput>,
}

/// The result of a restore, or its preview.
#[derive(Serialize, JsonSchema)]
struct RestoredOrPreview {
    #[serde(flatten)]
    restored: RestoreOutcome,
    /// Whether this is a preview: nothing was changed.
    dry_run: bool,
    /// The preview, if this is one.
    preview: Option<Preview>,
}

fn restore(
    call: &Call<'_, SnapshotPath, DryRunQuery, RestoreBody>,
) -> Result<Answer<RestoredOrPreview>, Problem> {
    let (service, body, dry_run) = (call.service, &call.body, call.query.dry_run);
    let thread = service.resolve_thread(body.thread)?;
    let only = body.paths.iter().map(PathInput::read).collect::<Result<Vec<_>, _>>()?;
    if !service.timeline.read()?.files(thread).has_snapshot(call.path.snapshot)? {
        let detail = format!("thread {thread} has no snapshot {}; nothing was changed", call.path.snapshot);
        return Err(Problem::not_found(detail));
    }
    let (working_copy, caller, move_options) =
        (service.working_copy_at(thread, body.take)?, call.caller(thread)?, MoveOptions::default());
    if dry_run {
        let request = PlanRequest::Restore { snapshot: call.path.snapshot, paths: only };
        let mut preview =
            working_copy.recover_and_plan(thread, request, caller, move_options)?.into_preview();
        let files = preview.files.take().ok_or_else(super::file_common::files_disabled)?;
        let (version, restored) = (preview.version, RestoreOutcome { done: None, files });
        return Ok(Answer::at(RestoredOrPreview { restored, dry_run, preview: Some(preview) }, version));
    }
    let restored = working_copy.restore(thread, call.path.snapshot, &only, caller, move_options)?;
    let version = match &restored.done {
        Some(done) => done.version,
        None => service.timeline.read()?.thread(thread)?.summary.version,
    };
    Ok(Answer::at(RestoredOrPreview { restored, dry_run, preview: None }, version))
}
