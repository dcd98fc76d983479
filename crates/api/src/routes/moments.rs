//! Snapshots: the files of a thread at its moments, and going back to one of them.

use retake_model::content::ContentId;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_model::name::{Naming, check};
use retake_model::operation::{Actor, Version};
use retake_timeline::{
    Caller, Done, FileReport, FilesAt, FilesOfThread, Handling, Held, LookError, PlanRequest, Preview,
    Restored,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Ahead, Page, limit, number};
use super::file_common::PathInput;
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, get, post};
use crate::problem::Problem;

const GROUP: &str = "Files";

/// The longest page of snapshots.
const MOST_SNAPSHOTS: usize = 100;
/// How many paths that a snapshot does not hold are named in a list.
const LEFT_OUT_IN_LIST: usize = 20;
/// How many are named of one snapshot.
const LEFT_OUT_OF_ONE: usize = 1000;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/snapshots", list).about(
            GROUP,
            "List snapshots",
            "The moments at which files are known, newest first: of a thread, or of all threads of a project (that of \
             the server's folder if neither is named). Each says what it could not hold.",
        ),
        post("/v1/snapshots", take).creates().about(
            GROUP,
            "Take a snapshot now",
            "Records what was changed in the thread's folder since the last look: by hand, or by the program that `by` \
             names, and then an undo takes it back. `note` gives the moment a name.",
        ),
        get("/v1/snapshots/{snapshot}", show).about(
            GROUP,
            "Show what a snapshot holds",
            "And up to 1000 paths that it does not hold, with the reason.",
        ),
        post("/v1/snapshots/{snapshot}/restore", restore).about(
            GROUP,
            "Make files what they were in a snapshot",
            "All of them, or only some. Always in the thread's own workspace; a snapshot that is not of that thread is \
             refused. What is there now is recorded first, and an undo brings it back.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only those of this thread.
    thread: Option<ThreadId>,
    /// Those of all threads of this project; that of the server's folder if neither is named.
    project: Option<ProjectId>,
    /// How many: 1 to 100, 20 if not said.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// A moment at which files are known.
#[derive(Serialize, JsonSchema)]
struct SnapshotItem {
    /// The thread.
    thread: ThreadId,
    #[serde(flatten)]
    at: FilesAt,
    #[serde(flatten)]
    held: Option<Held>,
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<SnapshotItem>>, Problem> {
    let query = &call.query;
    let (limit, before) = (limit(query.limit, 20, MOST_SNAPSHOTS)?, number(query.cursor.as_deref())?);
    let looking = call.service.timeline.look()?;
    let (found, next, version) = match (query.thread, query.project) {
        (Some(_), Some(_)) => return Err(Problem::refused("either `thread` or `project`, not both")),
        (Some(thread), None) => {
            let version = looking.thread(thread)?.summary.version;
            let (found, next) =
                page(|before, limit| looking.files_of_lineage(thread, before, limit), before, limit)?;
            (found, next, Some(version))
        }
        (None, project) => {
            let project = match project {
                Some(project) => call.service.known_project(project)?,
                None => call.service.timeline.project_if_known(&call.service.folder)?.id,
            };
            let (found, next) =
                page(|before, limit| looking.files_of_project(project, before, limit), before, limit)?;
            (found, next, None)
        }
    };
    let mut items = Vec::with_capacity(found.len());
    for FilesOfThread { thread, at, .. } in found {
        let held = looking.held(at.files.after, LEFT_OUT_IN_LIST)?;
        items.push(SnapshotItem { thread, at, held });
    }
    Ok(Answer { body: Page { items, next }, version, location: None })
}

/// A page of moments, and where the next one begins.
fn page(
    moments: impl FnOnce(Option<i64>, usize) -> Result<Vec<FilesOfThread>, LookError>,
    before: Option<u64>,
    limit: usize,
) -> Result<(Vec<FilesOfThread>, Option<String>), Problem> {
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

fn show(call: &Call<'_, SnapshotPath>) -> Result<Answer<Held>, Problem> {
    let held = call.service.timeline.look()?.held(call.path.snapshot, LEFT_OUT_OF_ONE)?;
    Ok(Answer::of(held.ok_or_else(|| no_snapshot(call.path.snapshot))?))
}

fn no_snapshot(id: ContentId) -> Problem {
    Problem::not_found(format!("there is no snapshot {id}"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TakeBody {
    /// The thread; the current one of the server's project if none is named.
    thread: Option<ThreadId>,
    /// The take whose folder is meant; the active one if none is named.
    take: Option<TakeId>,
    /// A name for the moment.
    note: Option<String>,
    /// Who changed what changed since the last look: `agent`, or the name of a program. Someone by hand if not said.
    #[schemars(length(min = 1, max = 100))]
    by: Option<String>,
}

/// A snapshot that was taken.
#[derive(Serialize, JsonSchema)]
struct Taken {
    /// The thread.
    thread: ThreadId,
    /// Its version now.
    version: Version,
    /// The operation that records what had changed; none if nothing had.
    operation: Option<ContentId>,
    /// Whether an undo takes that back: what was changed by hand stays.
    undoable: bool,
    #[serde(flatten)]
    held: Option<Held>,
    /// What had changed, path by path.
    files: FileReport,
    /// The operation that gave the moment its name.
    saved: Option<Done>,
}

fn take(call: &Call<'_, NoPath, NoQuery, TakeBody>) -> Result<Answer<Taken>, Problem> {
    let (service, body) = (call.service, &call.body);
    let thread = service.meant_thread(body.thread)?;
    // All that can be refused is refused before anything is recorded.
    if body.by.as_ref().is_some_and(|name| !(1..=100).contains(&name.chars().count())) {
        return Err(Problem::invalid("`by` has from 1 to 100 characters"));
    }
    if let Some(note) = &body.note {
        check(Naming::Save, note).map_err(Problem::refused)?;
    }
    let (desk, caller) = (service.desk_at(thread, body.take)?, call.caller(thread)?);
    let seen = match body.by.as_deref() {
        None => desk.look(thread, caller.clone())?,
        Some(name) => desk.record(thread, Caller { actor: Actor::named(name), ..caller.clone() })?,
    };
    let saved = match &body.note {
        Some(note) => {
            // Another thread may have changed the folder, so that this one recorded nothing just now.
            Some(desk.save(thread, note.clone(), Caller { expected: None, ..caller })?)
        }
        None => None,
    };
    let version = saved.as_ref().map_or(seen.version, |saved| saved.version);
    let held = service.timeline.look()?.held(seen.snapshot, LEFT_OUT_OF_ONE)?;
    let taken = Taken {
        thread,
        version,
        operation: seen.operation.as_ref().and_then(|done| done.operation),
        undoable: seen.operation.is_some_and(|done| done.undoable),
        held,
        files: seen.files,
        saved,
    };
    Ok(Answer::at(taken, version).found_at(format!("/v1/snapshots/{}", seen.snapshot)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestoreBody {
    /// The thread; the current one of the server's project if none is named.
    thread: Option<ThreadId>,
    /// The take whose folder is meant; the active one if none is named.
    take: Option<TakeId>,
    /// Only these files and folders; all if none is named.
    #[serde(default)]
    paths: Vec<PathInput>,
}

/// What came of a restore, or would come of it.
#[derive(Serialize, JsonSchema)]
struct RestoredOrPreview {
    #[serde(flatten)]
    restored: Restored,
    /// Whether nothing was changed, and this is only what would be.
    dry_run: bool,
    /// What would be done, where nothing was.
    would: Option<Preview>,
}

fn restore(call: &Call<'_, SnapshotPath, Ahead, RestoreBody>) -> Result<Answer<RestoredOrPreview>, Problem> {
    let (service, body, dry_run) = (call.service, &call.body, call.query.dry_run);
    let thread = service.meant_thread(body.thread)?;
    let only = body.paths.iter().map(PathInput::read).collect::<Result<Vec<_>, _>>()?;
    if !service.timeline.look()?.has_snapshot(thread, call.path.snapshot)? {
        let detail = format!("thread {thread} has no snapshot {}; nothing was changed", call.path.snapshot);
        return Err(Problem::not_found(detail));
    }
    let (desk, caller, handling) =
        (service.desk_at(thread, body.take)?, call.caller(thread)?, Handling::default());
    if dry_run {
        let request = PlanRequest::Restore { snapshot: call.path.snapshot, paths: only };
        let mut would = desk.recover_and_plan(thread, request, caller, handling)?.into_preview();
        let files = would.files.take().ok_or_else(super::file_common::not_kept)?;
        let (version, restored) = (would.version, Restored { done: None, files });
        return Ok(Answer::at(RestoredOrPreview { restored, dry_run, would: Some(would) }, version));
    }
    let restored = desk.restore(thread, call.path.snapshot, &only, caller, handling)?;
    let version = match &restored.done {
        Some(done) => done.version,
        None => service.timeline.look()?.thread(thread)?.summary.version,
    };
    Ok(Answer::at(RestoredOrPreview { restored, dry_run, would: None }, version))
}
