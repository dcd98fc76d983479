//! Identifies the project of a folder.
//!
//! [`retake_model::project`] makes the decision; this module collects the evidence and records the result.

mod forget;

use std::path::{Path, PathBuf};

use retake_model::id::{ProjectId, ThreadId};
use retake_model::project::{Folder, ProjectCandidate, ProjectRecord, ProjectVerdict, decide};
use retake_model::time::Timestamp;
use retake_store::{ProjectRow, StoreError, ThreadFilter, WriteError, WriteTransaction};
use retake_workspace::folder::{self, FolderError, Identity, path_from_text};
use retake_workspace::root::find_root;
use retake_workspace::snapshot::{OpenError, check_folder};
use serde::Serialize;

use crate::clock::{Clock, ClockIds};
use crate::write::change::Head;
use crate::{Caller, ChangeError, ChangeOutcome, ReadError, Reader, Timeline};

pub use forget::ForgottenProject;

/// A project and its current folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Project {
    /// The project.
    pub id: ProjectId,
    /// Path of its folder.
    pub path: String,
    /// The current thread, used by commands that name none.
    pub current: Option<ThreadId>,
    /// How the folder was recognised.
    #[serde(skip)]
    pub folder_change: ProjectChange,
    /// Whether the store knows the project; otherwise its id is only a suggestion.
    #[serde(skip)]
    pub recorded: bool,
}

/// A folder that is not a recorded project, but can become one.
pub(crate) struct UnrecordedProject {
    facts: Folder,
}

impl UnrecordedProject {
    /// The folder of an unrecorded project, if it is suitable.
    pub(crate) fn of(project: &Project) -> Result<Self, ProjectError> {
        let facts = folder::observe(&path_from_text(&project.path))?.as_evidence();
        check_folder(&path_from_text(&facts.path))?;
        Ok(Self { facts })
    }

    /// Records the folder inside a write, unless another process has done so.
    pub(crate) fn record(
        self,
        writing: &WriteTransaction<'_>,
        clock: &dyn Clock,
    ) -> Result<Project, StoreError> {
        let (known, folder_change) = recognised(&writing.projects()?, &self.facts);
        let id = known.unwrap_or_else(|| ProjectId::generate(&mut ClockIds(clock)));
        record(writing, id, self.facts, folder_change, clock.now())
    }
}

impl Project {
    /// Marks the folder, so that it keeps its threads if it moves to another file system. If that fails, the other
    /// evidence has to suffice.
    pub(crate) fn mark(&self) {
        let _ = folder::mark(&path_from_text(&self.path), self.id);
    }
}

/// How a folder was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectChange {
    /// Unchanged.
    Nothing,
    /// New to Retake.
    New,
    /// Moved or renamed, with its threads.
    Moved {
        /// The former path.
        from: String,
    },
    /// A copy of an existing project, without threads.
    Copied {
        /// The project it was copied from.
        of: ProjectId,
    },
    /// Another folder was at this path before, with its own threads.
    Replaced {
        /// The former project.
        formerly: ProjectId,
    },
}

/// A project that was assigned to a folder.
#[derive(Clone, Debug)]
pub struct AdoptedProject {
    /// The project.
    pub project: Project,
    /// The project that the folder belonged to before, if it has threads or shared settings.
    pub displaced: Option<ForgottenProject>,
}

/// A project on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownProject {
    /// The project.
    pub id: ProjectId,
    /// Last known path of its folder; empty if it was forgotten.
    pub path: String,
    /// Whether the folder exists.
    pub exists: bool,
    /// Number of threads, without deleted ones.
    pub threads: u64,
    /// The current thread, used by commands that name none.
    pub current: Option<ThreadId>,
    /// Remote of its repository.
    pub remote: Option<String>,
    /// When it was last used.
    pub last_seen: Timestamp,
}

/// Whether a new folder is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordPolicy {
    Always,
    Known,
}

/// Why a folder could not be recognised.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The folder could not be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The project does not exist.
    #[error("project {0} does not exist; `retake project list` shows all projects")]
    NoSuchProject(ProjectId),
    /// A home or system folder cannot be a project.
    #[error(transparent)]
    Unsuitable(#[from] OpenError),
    /// The folder is inside one that Retake manages.
    #[error("{} is inside {what} and cannot be a project; name a folder outside of it", path.display())]
    Inside {
        /// The folder.
        path: PathBuf,
        /// The containing folder.
        what: &'static str,
    },
    /// The project is in use.
    #[error("{0}")]
    InUse(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteError<StoreError>> for ProjectError {
    fn from(error: WriteError<StoreError>) -> Self {
        match error {
            WriteError::Refused(error) | WriteError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ProjectError> for ReadError {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Store(error) => Self::Store(error),
            other => Self::Store(StoreError::Damaged(other.to_string())),
        }
    }
}

impl Timeline {
    /// The project of a folder or of its nearest known parent. Records a new folder, unless it is a home or system
    /// folder.
    pub fn project(&self, folder: &Path) -> Result<Project, ProjectError> {
        self.recognise(folder, RecordPolicy::Always)
    }

    /// Makes a folder itself a project, whatever its parents are. Has no effect on an existing project.
    pub fn init_project(&self, folder: &Path) -> Result<Project, ProjectError> {
        let inside = |what| Err(ProjectError::Inside { path: folder.to_owned(), what });
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        if self.read()?.worktrees().at(&real)?.is_some() {
            return inside("the worktree of a take");
        }
        let store = self.store.folder();
        if real.starts_with(store.canonicalize().unwrap_or_else(|_| store.to_owned())) {
            return inside("the store");
        }
        let rows = self.read()?.queries().projects()?;
        self.recognise_root(&real, &rows, RecordPolicy::Always)
    }

    /// The project of a folder, for reading only: a new folder is not recorded and its project is empty.
    pub fn project_if_known(&self, folder: &Path) -> Result<Project, ProjectError> {
        self.recognise(folder, RecordPolicy::Known)
    }

    /// Like `project_if_known`, and resolves a worktree to its project.
    pub fn project_at(&self, folder: &Path) -> Result<Project, ProjectError> {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        match self.project_of_worktree(&real)? {
            Some(project) => Ok(project),
            None => self.project(folder),
        }
    }

    /// The project of the worktree at a path, if there is one. Its current thread is that of the take.
    pub fn project_of_worktree(&self, path: &Path) -> Result<Option<Project>, ProjectError> {
        let Some(worktree) = self.recognise_worktree(path)? else { return Ok(None) };
        let row = self.read()?.queries().project(worktree.project)?;
        Ok(row.map(|row| Project {
            id: row.id,
            path: row.path,
            current: Some(worktree.thread),
            folder_change: ProjectChange::Nothing,
            recorded: true,
        }))
    }

    fn recognise(&self, folder: &Path, recording: RecordPolicy) -> Result<Project, ProjectError> {
        let rows = self.read()?.queries().projects()?;
        self.recognise_root(&find_root(folder, |path| is_project(&rows, path)), &rows, recording)
    }

    fn recognise_root(
        &self,
        root: &Path,
        rows: &[ProjectRow],
        recording: RecordPolicy,
    ) -> Result<Project, ProjectError> {
        let facts = folder::observe(root)?.as_evidence();
        let (known, folder_change) = recognised(rows, &facts);
        match known {
            Some(id) => {
                if let Some(row) = rows.iter().find(|row| row.id == id && describes(row, &facts)) {
                    // The usual case writes nothing.
                    let (path, current) = (row.path.clone(), row.current);
                    return Ok(Project { id, path, current, folder_change, recorded: true });
                }
            }
            None if recording == RecordPolicy::Known => {
                let id = ProjectId::generate(&mut ClockIds(&*self.clock));
                return Ok(Project { id, path: facts.path, current: None, folder_change, recorded: false });
            }
            // Checked before anything is written, so that a rejection leaves no trace.
            None => check_folder(&path_from_text(&facts.path))?,
        }
        let clock = self.clock.clone();
        let unrecorded = UnrecordedProject { facts };
        let project =
            self.store.write(move |writing: &WriteTransaction<'_>| -> Result<Project, StoreError> {
                unrecorded.record(writing, &*clock)
            })?;
        project.mark();
        Ok(project)
    }

    /// Returns whether the last known folder of a project exists and still belongs to it. Records nothing.
    pub(crate) fn is_folder_of(&self, row: &ProjectRow) -> Result<bool, StoreError> {
        let path = path_from_text(&row.path);
        let Ok(facts) = folder::observe(&path) else { return Ok(false) };
        let facts = facts.as_evidence();
        // The usual case needs no other projects.
        if describes(row, &facts) {
            return Ok(true);
        }
        let (known, _) = recognised(&self.read()?.queries().projects()?, &facts);
        Ok(known == Some(row.id))
    }

    /// Assigns a known project to a folder. A project that the folder belonged to before is forgotten: it keeps its
    /// threads, without a folder.
    pub fn adopt(&self, folder: &Path, id: ProjectId) -> Result<AdoptedProject, ProjectError> {
        let rows = self.read()?.queries().projects()?;
        let former = rows.iter().find(|row| row.id == id).ok_or(ProjectError::NoSuchProject(id))?;
        let facts = folder::observe(folder)?.as_evidence();
        check_folder(&path_from_text(&facts.path))?;
        let here = |row: &&ProjectRow| row.id != id && row.path == facts.path;
        // A project without threads leaves nothing behind that could be adopted again.
        let displaced = match rows.iter().find(here) {
            Some(row) => Some(self.forget_project(row.id)?).filter(|forgotten| forgotten.kept),
            None => None,
        };
        if former.path != facts.path {
            // Otherwise the former folder would look like a copy. Marks are best effort.
            let _ = folder::unmark(&path_from_text(&former.path), id);
        }
        let now = self.clock.now();
        let project =
            self.store.write(move |writing: &WriteTransaction<'_>| -> Result<Project, StoreError> {
                record(writing, id, facts, ProjectChange::Nothing, now)
            })?;
        project.mark();
        Ok(AdoptedProject { project, displaced })
    }

    /// Makes a thread the current one of its project.
    pub fn work_on(&self, thread: ThreadId, caller: Caller) -> Result<ChangeOutcome, ChangeError> {
        self.settled(|| {
            let caller = caller.clone();
            let done = self.store.write(
                move |writing: &WriteTransaction<'_>| -> Result<ChangeOutcome, ChangeError> {
                    let at = Head::of(writing, thread, &caller)?;
                    if at.state.deleted.is_some() {
                        return Err(ChangeError::ThreadDeleted);
                    }
                    writing.set_current(at.row.home, Some(thread))?;
                    Ok(at.unchanged())
                },
            )?;
            Ok(done)
        })
    }
}

impl KnownProject {
    /// Details of a project.
    pub fn of(reader: &Reader<'_>, row: ProjectRow) -> Result<Self, ReadError> {
        let filter = ThreadFilter { project: Some(row.id), ..ThreadFilter::default() };
        Ok(Self {
            exists: path_from_text(&row.path).is_dir(),
            threads: reader.threads(&filter)?.len() as u64,
            id: row.id,
            path: row.path,
            current: row.current,
            remote: row.remote,
            last_seen: row.last_seen,
        })
    }
}

/// Returns whether a folder is a known project, at its recorded path or moved from it.
fn is_project(rows: &[ProjectRow], path: &Path) -> bool {
    let text = folder::path_to_text(path);
    if rows.iter().any(|row| row.path == text) {
        return true;
    }
    // Most folders have nothing in common with a project, which is found out without reading their repository.
    let identity = Identity::of(path).ok();
    let mark = folder::read_mark(path);
    let has_evidence = rows.iter().any(|row| {
        Some(row.id) == mark
            || identity.is_some_and(|found| (found.device, found.inode) == (row.device, row.inode))
    });
    has_evidence
        && folder::observe(path).is_ok_and(|facts| recognised(rows, &facts.as_evidence()).0.is_some())
}

/// The known project of a folder, if any, and how it was recognised.
fn recognised(rows: &[ProjectRow], facts: &Folder) -> (Option<ProjectId>, ProjectChange) {
    let candidates = candidates(rows, facts);
    match decide(facts, &candidates) {
        ProjectVerdict::Same(id) => (Some(id), ProjectChange::Nothing),
        ProjectVerdict::Moved { project, from } => {
            (Some(project), ProjectChange::Moved { from: from.to_owned() })
        }
        ProjectVerdict::Copied { of } => (None, ProjectChange::Copied { of }),
        ProjectVerdict::Replaced { formerly } | ProjectVerdict::New { perhaps: Some(formerly) } => {
            (None, ProjectChange::Replaced { formerly })
        }
        ProjectVerdict::New { perhaps: None } => (None, ProjectChange::New),
    }
}

fn record(
    writing: &WriteTransaction<'_>,
    id: ProjectId,
    facts: Folder,
    folder_change: ProjectChange,
    now: Timestamp,
) -> Result<Project, StoreError> {
    let current = writing.project(id)?.and_then(|row| row.current);
    let path = facts.path.clone();
    writing.put_project(&ProjectRow {
        id,
        path: facts.path,
        device: facts.device,
        inode: facts.inode,
        born: facts.born,
        remote: facts.remote,
        last_seen: now,
        current,
    })?;
    Ok(Project { id, path, current, folder_change, recorded: true })
}

fn candidates(rows: &[ProjectRow], facts: &Folder) -> Vec<ProjectCandidate> {
    rows.iter()
        // A forgotten project has no folder until one adopts it, whatever its mark says.
        .filter(|row| !row.path.is_empty())
        .map(|row| ProjectRecord {
            id: row.id,
            path: row.path.clone(),
            device: row.device,
            inode: row.inode,
            born: row.born,
            remote: row.remote.clone(),
            last_seen: row.last_seen,
        })
        .filter(|record| record.is_relevant_to(facts))
        .map(|record| {
            let there = folder::observe(&path_from_text(&record.path)).ok();
            // Checked only if the mark is the only evidence.
            let renamed = facts.mark == Some(record.id)
                && (record.inode, record.born) != (facts.inode, facts.born)
                && folder::find_renamed_sibling(
                    &path_from_text(&record.path),
                    &Identity { device: record.device, inode: record.inode, born: record.born },
                )
                .is_some();
            ProjectCandidate { there: there.map(|facts| facts.as_evidence()), record, renamed }
        })
        .collect()
}

/// Returns whether the record matches the folder.
fn describes(row: &ProjectRow, facts: &Folder) -> bool {
    row.path == facts.path
        && row.device == facts.device
        && row.inode == facts.inode
        && row.born == facts.born
        && row.remote == facts.remote
}
