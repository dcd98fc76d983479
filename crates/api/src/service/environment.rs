//! Projects, their folders, and their git status.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use retake_model::environment::{Environment, recorded_environment};
use retake_model::id::{ProjectId, ThreadId};
use retake_timeline::{Caller, ProjectError, Timeline};
use retake_workspace::folder::path_to_text;
use retake_workspace::git::{self, GitFacts};
use schemars::JsonSchema;
use serde::Serialize;

use crate::endpoint::Call;
use crate::problem::{Code, Problem};

/// Lifetime of cached git status, because running git for each change would cost more than the change.
const CACHE_LIFETIME: Duration = Duration::from_secs(2);

/// Cached folders that were not used for this long are dropped.
const CACHE_EVICTION_TIME: Duration = Duration::from_mins(5);

/// The projects of the store, with caches of their environments and of the home projects of threads.
pub(crate) struct Projects {
    timeline: Timeline,
    /// The folder of the default project.
    pub(crate) folder: PathBuf,
    environments: Mutex<HashMap<ProjectId, (Instant, Option<Environment>)>>,
    homes: Mutex<HashMap<ThreadId, (Instant, ProjectId)>>,
}

/// Maximum threads with a cached home project.
const MAX_CACHED_HOMES: usize = 10_000;

/// A folder and its git status.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GitStatus {
    /// Path of the folder.
    path: Option<String>,
    /// Branch.
    branch: Option<String>,
    /// Commit.
    head: Option<String>,
    /// Whether there are uncommitted changes.
    dirty: Option<bool>,
    /// URL of the remote.
    remote: Option<String>,
}

impl Projects {
    pub(super) fn new(timeline: Timeline, folder: PathBuf) -> Self {
        Self { timeline, folder, environments: Mutex::default(), homes: Mutex::default() }
    }

    /// The environment recorded with changes in a project; `None` if its folder is missing.
    pub(crate) fn environment(&self, project: ProjectId) -> Option<Environment> {
        let lock = || self.environments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, found)) = lock().get_mut(&project) {
            if when.elapsed() < CACHE_LIFETIME {
                return found.clone();
            }
            // Other requests use the old value while this one refreshes it.
            *when = Instant::now();
        }
        let found = self.read_environment(project);
        let mut seen = lock();
        seen.retain(|_, (when, _)| when.elapsed() < CACHE_EVICTION_TIME);
        seen.insert(project, (Instant::now(), found.clone()));
        found
    }

    /// The home project of a thread, possibly slightly outdated; used only to record the environment.
    pub(crate) fn home_of(&self, thread: ThreadId) -> Result<ProjectId, Problem> {
        let lock = || self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, home)) = lock().get(&thread)
            && when.elapsed() < CACHE_LIFETIME
        {
            return Ok(*home);
        }
        let home = self.timeline.read()?.thread(thread)?.home;
        let mut homes = lock();
        if homes.len() >= MAX_CACHED_HOMES {
            homes.clear();
        }
        homes.insert(thread, (Instant::now(), home));
        Ok(home)
    }

    fn read_environment(&self, project: ProjectId) -> Option<Environment> {
        Some(environment_at(&self.timeline.folder_of_project(project).ok()?))
    }

    /// The git status of a project's folder; `None` if the folder is missing.
    pub(crate) fn git_status(&self, project: ProjectId) -> Option<GitStatus> {
        self.environment(project).map(GitStatus::of)
    }

    /// Checks that a project exists.
    pub(crate) fn known(&self, project: ProjectId) -> Result<ProjectId, Problem> {
        match self.timeline.read()?.queries().project(project)? {
            Some(row) => Ok(row.id),
            None => Err(ProjectError::NoSuchProject(project).into()),
        }
    }

    /// The current thread of the server's project.
    pub(crate) fn current_thread(&self) -> Result<ThreadId, Problem> {
        let project = self.timeline.project_if_known(&self.folder)?;
        let none = "the server's project has no current thread; give `thread`";
        let thread = project.current.ok_or_else(|| Problem::new(Code::NotFound, none))?;
        let row = self.timeline.read()?.thread(thread)?;
        if row.summary.deleted.is_some() { Err(Problem::not_found(none)) } else { Ok(thread) }
    }
}

impl GitStatus {
    pub(crate) fn at(folder: &Path) -> Self {
        Self::of(environment_at(folder))
    }

    pub(crate) fn of_facts(folder: &Path, facts: GitFacts) -> Self {
        Self::of(environment_with(folder, facts))
    }

    fn of(found: Environment) -> Self {
        Self {
            path: found.workspace_root,
            branch: found.git_branch,
            head: found.git_commit,
            dirty: found.git_dirty,
            remote: found.git_remote,
        }
    }
}

pub(crate) fn environment_at(folder: &Path) -> Environment {
    environment_with(folder, git::observe(folder))
}

fn environment_with(folder: &Path, facts: GitFacts) -> Environment {
    let path = path_to_text(folder);
    Environment {
        workspace_root: Some(path.clone()),
        working_directory: Some(path),
        program_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        git_branch: facts.branch,
        git_commit: facts.commit,
        git_remote: facts.remote,
        git_dirty: facts.dirty,
        environment: recorded_environment(|name| std::env::var(name).ok()),
    }
}

impl<P, Q, B> Call<'_, P, Q, B> {
    /// The caller of a change in a project.
    pub(crate) fn caller_in(&self, project: ProjectId) -> Caller {
        Caller {
            actor: self.who.actor.clone(),
            environment: self.service.projects.environment(project),
            turn: None,
            expected: self.expected,
            request: self.request,
            take: None,
        }
    }
}
