//! Projects and workspace status.

use std::path::Path;

use retake_model::id::{ProjectId, TakeId, ThreadId, TurnId};
use retake_model::time::Timestamp;
use retake_model::turn::RunningTurn;
use retake_surface::named_folder;
use retake_timeline::{FolderStatus, ForgottenProject, KnownProject, Reader, WorkingCopy, Worktree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{MAX_PAGE, Page, invalid_cursor, limit};
use crate::endpoint::{Answer, Call, Endpoint, NoPath, NoQuery, delete, get, post};
use crate::problem::Problem;
use crate::service::{GitStatus, Service};

const GROUP: &str = "Projects and workspaces";

/// Maximum changed paths in the status of a workspace.
const MAX_PATHS: usize = 500;

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        get("/v1/projects", list).about(GROUP, "List projects", "Most recently used first."),
        post("/v1/projects", make).unversioned().about(
            GROUP,
            "Add a project",
            "Returns the project of the folder or of the nearest known folder above it, and otherwise creates one. Changes no \
             files. With `init`, the folder itself becomes a project even if one above it is. Home folders, `/` and system \
             folders are refused.",
        ),
        get("/v1/projects/{project}", show).about(
            GROUP,
            "Show a project",
            "With the git status of its folder, and its added roots.",
        ),
        delete("/v1/projects/{project}", forget).unversioned().about(
            GROUP,
            "Forget a project",
            "The folder is no longer a project; its files stay. Threads, prompts, roles and context presets are kept without a \
             folder; a project without any of these is deleted. Refused while a take of the project has a worktree or \
             something changes the folder.",
        ),
        get("/v1/workspace/status", status).about(
            GROUP,
            "Show the status of a workspace",
            "Of a project's folder or of a worktree: its git status, changes since the last snapshot, worktrees, and running \
             turns. Records nothing. While nothing changes in the folder, a repeated request reads none of its files; a `folder` \
             event announces changes.",
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
    let limit = limit(call.query.limit, 50, MAX_PAGE)?;
    let after = call.query.cursor.as_deref().map(parse_cursor).transpose()?;
    let reader = call.service.timeline.read()?;
    let mut rows = reader.queries().projects()?;
    // Ids break ties between projects used at the same time.
    rows.sort_by_key(|row| (std::cmp::Reverse(row.last_seen.millis()), row.id.to_string()));
    if let Some((seen, id)) = after {
        let behind = (std::cmp::Reverse(seen), id.to_string());
        rows.retain(|row| (std::cmp::Reverse(row.last_seen.millis()), row.id.to_string()) > behind);
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| format!("{}.{}", last.last_seen.millis(), last.id));
    let items = rows.into_iter().map(|row| KnownProject::of(&reader, row)).collect::<Result<_, _>>()?;
    Ok(Answer::of(Page { items, next }))
}

/// Parses a cursor: the last use and the id of the last project.
fn parse_cursor(cursor: &str) -> Result<(i64, ProjectId), Problem> {
    let read = || {
        let (seen, id) = cursor.split_once('.')?;
        Some((seen.parse().ok()?, id.parse().ok()?))
    };
    read().ok_or_else(invalid_cursor)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FolderBody {
    /// Absolute path of the folder.
    folder: String,
    /// Make the folder itself a project, even if one above it is.
    #[serde(default)]
    init: bool,
}

fn make(call: &Call<'_, NoPath, NoQuery, FolderBody>) -> Result<Answer<ProjectAnswer>, Problem> {
    let folder = Path::new(&call.body.folder);
    if !folder.is_absolute() {
        return Err(Problem::refused("`folder` must be an absolute path"));
    }
    let timeline = &call.service.timeline;
    let project = if call.body.init { timeline.init_project(folder) } else { timeline.project_at(folder) };
    let project = project.map_err(named_folder)?;
    Ok(Answer::of(shown(call.service, project.id)?).with_location(format!("/v1/projects/{}", project.id)))
}

#[derive(Deserialize, JsonSchema)]
struct ProjectPath {
    /// The project's id.
    project: ProjectId,
}

/// A project.
#[derive(Serialize, JsonSchema)]
struct ProjectAnswer {
    #[serde(flatten)]
    known: KnownProject,
    /// Git status of its folder; null if the folder is missing.
    git: Option<GitStatus>,
    /// Added folders whose files belong to it.
    roots: Vec<AddedRoot>,
}

/// An added folder whose files belong to a project.
#[derive(Serialize, JsonSchema)]
struct AddedRoot {
    /// Its name.
    name: String,
    /// Its path.
    path: String,
    /// Whether it exists.
    exists: bool,
}

fn forget(call: &Call<'_, ProjectPath>) -> Result<Answer<ForgottenProject>, Problem> {
    Ok(Answer::of(call.service.timeline.forget_project(call.path.project)?))
}

fn show(call: &Call<'_, ProjectPath>) -> Result<Answer<ProjectAnswer>, Problem> {
    Ok(Answer::of(shown(call.service, call.path.project)?))
}

fn shown(service: &Service, project: ProjectId) -> Result<ProjectAnswer, Problem> {
    let reader = service.timeline.read()?;
    let roots = reader.project(project).additional_roots()?.into_iter().map(|root| AddedRoot {
        exists: root.exists(),
        path: retake_workspace::folder::path_to_text(&root.path),
        name: root.name,
    });
    Ok(ProjectAnswer {
        roots: roots.collect(),
        known: known(&reader, project)?,
        git: service.projects.git_status(project),
    })
}

fn known(reader: &Reader<'_>, project: ProjectId) -> Result<KnownProject, Problem> {
    let row = reader.queries().project(project)?;
    let row = row.ok_or_else(|| Problem::not_found(format!("no project {project}")))?;
    Ok(KnownProject::of(reader, row)?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusQuery {
    /// The project; by default that of the server's folder.
    project: Option<ProjectId>,
    /// A thread of the project.
    thread: Option<ThreadId>,
    /// A take of the thread; the active one by default.
    take: Option<TakeId>,
}

/// The status of a workspace.
#[derive(Serialize, JsonSchema)]
struct WorkspaceStatus {
    /// The project.
    project: ProjectId,
    /// The thread, if the request names one.
    thread: Option<ThreadId>,
    /// The folder.
    folder: String,
    /// Whether the folder exists and still belongs to the project.
    exists: bool,
    /// Git status; null if the folder is missing.
    git: Option<GitStatus>,
    /// Captured and excluded files, and changes since the last snapshot; null on an error.
    files: Option<FolderStatus>,
    /// Why the files could not be read.
    files_error: Option<String>,
    /// Worktrees of the project, or of the thread.
    worktrees: Vec<Worktree>,
    /// Whether a turn runs in the project, or in the thread, in any process.
    running: bool,
    /// The running turns.
    turns: Vec<TurnInProject>,
}

/// A running turn.
#[derive(Serialize, JsonSchema)]
struct TurnInProject {
    /// The thread.
    thread: ThreadId,
    /// The take.
    take: TakeId,
    /// The turn.
    turn: TurnId,
    /// Start time.
    started: Timestamp,
}

fn status(call: &Call<'_, NoPath, StatusQuery>) -> Result<Answer<WorkspaceStatus>, Problem> {
    let (service, query) = (call.service, &call.query);
    let project = match (query.project, query.thread) {
        (Some(_), Some(_)) => return Err(Problem::refused("give either `thread` or `project`, not both")),
        (None, Some(thread)) => service.timeline.read()?.thread(thread)?.home,
        (Some(project), None) => service.projects.known(project)?,
        (None, None) => service.timeline.project_if_known(&service.projects.folder)?.id,
    };
    let working_copy = match (query.thread, query.take) {
        (None, Some(_)) => return Err(Problem::refused("`take` needs a `thread`")),
        (Some(thread), take) => service.working_copy_at(thread, take),
        (None, None) => service.working_copy_of_project(project),
    };
    let reader = service.timeline.read()?;
    let known = reader.queries().project(project)?;
    let (git, files, files_error) = match &working_copy {
        Ok(working_copy) => {
            let (files, facts) = service.folders.status(working_copy, MAX_PATHS);
            let git = GitStatus::of_facts(working_copy.path(), facts);
            match files {
                Ok(files) => (Some(git), Some(files), None),
                Err(error) => (Some(git), None, Some(Problem::from(error).message)),
            }
        }
        // The folder may exist although its files cannot be read.
        Err(problem) => {
            let folder = service.timeline.folder_of_project(project).ok();
            (folder.map(|folder| GitStatus::at(&folder)), None, Some(problem.message.clone()))
        }
    };
    let folder =
        working_copy.as_ref().map(|working_copy| retake_workspace::folder::path_to_text(working_copy.path()));
    let turns = turns(service, &reader, project, query.thread)?;
    let worktrees = reader.worktrees().list()?.into_iter().filter(|folder| {
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

/// The running turns of a project, or of one of its threads.
fn turns(
    service: &Service,
    reader: &Reader<'_>,
    project: ProjectId,
    thread: Option<ThreadId>,
) -> Result<Vec<TurnInProject>, Problem> {
    let mut found = Vec::new();
    for (RunningTurn { thread: of, take, turn, started, .. }, runs) in
        service.timeline.store().running_turns(&service.runtime_database)?
    {
        let here = thread.is_none_or(|thread| thread == of)
            && reader.queries().thread(of)?.is_some_and(|row| row.home == project);
        if runs && here {
            found.push(TurnInProject { thread: of, take, turn, started });
        }
    }
    Ok(found)
}

impl Service {
    fn working_copy_of_project(&self, project: ProjectId) -> Result<WorkingCopy, Problem> {
        let options = self.agent.setup.files.as_ref().ok_or_else(super::file_common::files_disabled)?;
        Ok(WorkingCopy::of_project(&self.timeline, project, options)?)
    }
}
