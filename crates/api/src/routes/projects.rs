//! Projects: the folders that are known here, and how one of them stands now.

use std::path::Path;

use retake_model::id::{ProjectId, TakeId, ThreadId, TurnId};
use retake_model::time::Timestamp;
use retake_model::turn::RunningTurn;
use retake_timeline::{ApartFolder, Desk, ForgottenProject, Glance, KnownProject, Looking, ProjectError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{MOST, Page, limit, not_a_cursor};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, delete, get, post};
use crate::problem::Problem;
use crate::service::{GitNow, Service};

const GROUP: &str = "Projects and workspaces";

/// How many changed paths the status of a workspace names.
const PATHS_SHOWN: usize = 500;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/projects", list).about(GROUP, "List projects", "The most lately seen first."),
        post("/v1/projects", make).unversioned().about(
            GROUP,
            "Make a folder known",
            "Answers the project that the folder, or the nearest known folder above it, is. A folder that is new becomes \
             a project of its own; no file in it is touched. With `init`, the folder itself becomes a project, whatever is \
             above it. A home folder, `/` and system folders are refused.",
        ),
        get("/v1/projects/{project}", show).about(
            GROUP,
            "Show a project",
            "With what git says of its folder now, and its further roots.",
        ),
        delete("/v1/projects/{project}", forget).unversioned().about(
            GROUP,
            "Forget which folder a project is in",
            "The folder is no project any more, and its files stay as they are. Threads of the project are kept without a \
             folder, and so are prompts, roles and context presets; a project without any of these is forgotten altogether. Refused while a take of the project has a folder \
             of its own, or something is being done to the folder.",
        ),
        get("/v1/workspace/status", status).about(
            GROUP,
            "How a workspace stands",
            "The folder of a project, of a thread's project, or of a take that has one for itself: what git says of it, \
             what was changed in it since the last snapshot, which takes have folders of their own, and which turns run. \
             Nothing is recorded.",
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Page size: 1 to 500, 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

fn list(call: &Call<'_, NoPath, ListQuery>) -> Result<Answer<Page<KnownProject>>, Problem> {
    let limit = limit(call.query.limit, 50, MOST)?;
    let after = call.query.cursor.as_deref().map(place).transpose()?;
    let looking = call.service.timeline.look()?;
    let mut rows = looking.queries().projects()?;
    // The identity decides between projects that were seen in the same moment.
    rows.sort_by_key(|row| (std::cmp::Reverse(row.last_seen.millis()), row.id.to_string()));
    if let Some((seen, id)) = after {
        let behind = (std::cmp::Reverse(seen), id.to_string());
        rows.retain(|row| (std::cmp::Reverse(row.last_seen.millis()), row.id.to_string()) > behind);
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| format!("{}.{}", last.last_seen.millis(), last.id));
    let items = rows.into_iter().map(|row| looking.known_project(row)).collect::<Result<_, _>>()?;
    Ok(Answer::of(Page { items, next }))
}

/// A place in the list: when the last project was seen, and which it was.
fn place(cursor: &str) -> Result<(i64, ProjectId), Problem> {
    let read = || {
        let (seen, id) = cursor.split_once('.')?;
        Some((seen.parse().ok()?, id.parse().ok()?))
    };
    read().ok_or_else(not_a_cursor)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FolderBody {
    /// The folder, from the root of the file system on.
    folder: String,
    /// Whether the folder itself is to be a project, even if one above it is.
    #[serde(default)]
    init: bool,
}

fn make(call: &Call<'_, NoPath, NoQuery, FolderBody>) -> Result<Answer<ProjectShown>, Problem> {
    let folder = Path::new(&call.body.folder);
    if !folder.is_absolute() {
        return Err(Problem::refused(
            "`folder` must begin with a slash: the server's own folder is not meant",
        ));
    }
    let timeline = &call.service.timeline;
    let project = if call.body.init { timeline.init_project(folder) } else { timeline.project_at(folder) };
    let project = project.map_err(|error| match error {
        // Here the request names the folder.
        ProjectError::Folder(error) => Problem::not_found(error),
        other => other.into(),
    })?;
    Ok(Answer::of(shown(call.service, project.id)?).found_at(format!("/v1/projects/{}", project.id)))
}

#[derive(Deserialize, JsonSchema)]
struct ProjectPath {
    /// The project's id.
    project: ProjectId,
}

/// A project.
#[derive(Serialize, JsonSchema)]
struct ProjectShown {
    #[serde(flatten)]
    known: KnownProject,
    /// What git says of its folder now; none if the folder is not there.
    git: Option<GitNow>,
    /// Further folders whose files belong to it.
    roots: Vec<FurtherRoot>,
}

/// A further folder whose files belong to a project.
#[derive(Serialize, JsonSchema)]
struct FurtherRoot {
    /// What it is called.
    name: String,
    /// Where it is.
    path: String,
    /// Whether it is there.
    exists: bool,
}

fn forget(call: &Call<'_, ProjectPath>) -> Result<Answer<ForgottenProject>, Problem> {
    Ok(Answer::of(call.service.timeline.forget_project(call.path.project)?))
}

fn show(call: &Call<'_, ProjectPath>) -> Result<Answer<ProjectShown>, Problem> {
    Ok(Answer::of(shown(call.service, call.path.project)?))
}

fn shown(service: &Service, project: ProjectId) -> Result<ProjectShown, Problem> {
    let looking = service.timeline.look()?;
    let roots = looking.other_roots(project)?.into_iter().map(|root| FurtherRoot {
        exists: root.is_there(),
        path: retake_timeline::workspace::folder::path_to_text(&root.path),
        name: root.name,
    });
    Ok(ProjectShown {
        roots: roots.collect(),
        known: known(&looking, project)?,
        git: service.git_now(project),
    })
}

fn known(looking: &Looking<'_>, project: ProjectId) -> Result<KnownProject, Problem> {
    let row = looking.queries().project(project)?;
    let row = row.ok_or_else(|| Problem::not_found(format!("there is no project {project}")))?;
    Ok(looking.known_project(row)?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusQuery {
    /// The project; that of the server's folder if neither it nor a thread is named.
    project: Option<ProjectId>,
    /// A thread of the project.
    thread: Option<ThreadId>,
    /// A take of the thread; the active one by default.
    take: Option<TakeId>,
}

/// How a workspace stands.
#[derive(Serialize, JsonSchema)]
struct WorkspaceStatus {
    /// The project.
    project: ProjectId,
    /// The thread, if one was named.
    thread: Option<ThreadId>,
    /// The folder.
    folder: String,
    /// Whether the folder is there, and still the project's.
    exists: bool,
    /// What git says of it now; none if it is not there.
    git: Option<GitNow>,
    /// What is in it, and what was changed since the last snapshot; none if that could not be seen.
    files: Option<Glance>,
    /// Why the files could not be looked at.
    files_error: Option<String>,
    /// Takes of the project, or of the thread, that have a folder of their own.
    worktrees: Vec<ApartFolder>,
    /// Whether a turn runs in the project, or in the thread, in whatever program.
    running: bool,
    /// The turns that run.
    turns: Vec<TurnHere>,
}

/// A turn that runs.
#[derive(Serialize, JsonSchema)]
struct TurnHere {
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// The turn.
    turn: TurnId,
    /// When it began.
    started: Timestamp,
}

fn status(call: &Call<'_, NoPath, StatusQuery>) -> Result<Answer<WorkspaceStatus>, Problem> {
    let (service, query) = (call.service, &call.query);
    let project = match (query.project, query.thread) {
        (Some(_), Some(_)) => return Err(Problem::refused("either `thread` or `project`, not both")),
        (None, Some(thread)) => service.timeline.look()?.thread(thread)?.home,
        (Some(project), None) => service.known_project(project)?,
        (None, None) => service.timeline.project_if_known(&service.folder)?.id,
    };
    let desk = match (query.thread, query.take) {
        (None, Some(_)) => return Err(Problem::refused("a take is one of a thread: name that too")),
        (Some(thread), take) => service.desk_at(thread, take),
        (None, None) => service.desk_of_project(project),
    };
    let looking = service.timeline.look()?;
    let known = looking.queries().project(project)?;
    let (git, files, files_error) = match &desk {
        Ok(desk) => {
            let (files, files_error) = match desk.glance(PATHS_SHOWN) {
                Ok(files) => (Some(files), None),
                Err(error) => (None, Some(Problem::from(error).detail)),
            };
            (Some(GitNow::at(desk.path())), files, files_error)
        }
        // The folder may be there all the same, and only its files be out of sight.
        Err(problem) => {
            let folder = service.timeline.folder_of_project(project).ok();
            (folder.map(|folder| GitNow::at(&folder)), None, Some(problem.detail.clone()))
        }
    };
    let folder = desk.as_ref().map(|desk| retake_timeline::workspace::folder::path_to_text(desk.path()));
    let turns = turns(service, &looking, project, query.thread)?;
    let worktrees = looking.apart_folders()?.into_iter().filter(|folder| {
        folder.project == project && query.thread.is_none_or(|thread| thread == folder.thread)
    });
    let status = WorkspaceStatus {
        project,
        thread: query.thread,
        folder: folder.unwrap_or_else(|_| known.map(|row| row.path).unwrap_or_default()),
        exists: git.is_some(),
        git,
        files,
        files_error,
        worktrees: worktrees.collect(),
        running: !turns.is_empty(),
        turns,
    };
    Ok(Answer::of(status))
}

/// The turns that run in a project, or in one of its threads.
fn turns(
    service: &Service,
    looking: &Looking<'_>,
    project: ProjectId,
    thread: Option<ThreadId>,
) -> Result<Vec<TurnHere>, Problem> {
    let mut found = Vec::new();
    for (RunningTurn { thread: of, take, turn, started, .. }, runs) in
        service.timeline.store().running(&service.ledger)?
    {
        let here = thread.is_none_or(|thread| thread == of)
            && looking.queries().thread(of)?.is_some_and(|row| row.home == project);
        if runs && here {
            found.push(TurnHere { thread: of, take, turn, started });
        }
    }
    Ok(found)
}

impl Service {
    /// The folder of a project with its files.
    fn desk_of_project(&self, project: ProjectId) -> Result<Desk, Problem> {
        let options = self.setup.files.as_ref().ok_or_else(super::file_common::not_kept)?;
        Ok(Desk::of_project(&self.timeline, project, options)?)
    }
}
