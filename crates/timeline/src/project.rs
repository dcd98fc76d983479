//! Which project a folder is.
//!
//! The pure decision is in [`retake_model::project`]; here the evidence is gathered and the verdict recorded.

mod forget;

use std::path::{Path, PathBuf};

use retake_model::id::{ProjectId, ThreadId};
use retake_model::project::{Candidate, Folder, ProjectRecord, Verdict, decide};
use retake_model::time::Timestamp;
use retake_store::{ProjectRow, StoreError, ThreadFilter, WriteError, Writing};
use retake_workspace::folder::{self, FolderError, Identity, path_from_text};
use retake_workspace::root::find_root;
use retake_workspace::snapshot::{OpenError, check_folder};
use serde::Serialize;

use crate::change::Head;
use crate::clock::{Clock, Ticks};
use crate::{Caller, ChangeError, Done, LookError, Looking, Timeline};

pub use forget::ForgottenProject;

/// A project, and the folder it is in now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Project {
    /// Its identity.
    pub id: ProjectId,
    /// Its folder.
    pub path: String,
    /// The thread that commands mean when they name none.
    pub current: Option<ThreadId>,
    /// What was noticed when the folder was looked at.
    #[serde(skip)]
    pub noticed: Noticed,
    /// Whether the store knows it; otherwise its id is only a suggestion.
    #[serde(skip)]
    pub recorded: bool,
}

/// A folder that is not recorded as a project, and may be.
pub(crate) struct Unrecorded {
    facts: Folder,
}

impl Unrecorded {
    /// The folder of a project that is not recorded, if it can be one.
    pub(crate) fn of(project: &Project) -> Result<Self, ProjectError> {
        let facts = folder::observe(&path_from_text(&project.path))?.as_evidence();
        check_folder(&path_from_text(&facts.path))?;
        Ok(Self { facts })
    }

    /// Records the folder inside a write. Another program may have done so since it was looked at.
    pub(crate) fn record(self, writing: &Writing<'_>, clock: &dyn Clock) -> Result<Project, StoreError> {
        let (known, noticed) = recognised(&writing.projects()?, &self.facts);
        let id = known.unwrap_or_else(|| ProjectId::fresh(&mut Ticks(clock)));
        record(writing, id, self.facts, noticed, clock.now())
    }
}

impl Project {
    /// Marks the folder, so that it keeps its threads if it moves to another file system. Where that is not possible,
    /// the other evidence has to do.
    pub(crate) fn mark(&self) {
        let _ = folder::mark(&path_from_text(&self.path), self.id);
    }
}

/// What a person may want to know about how a folder was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// Nothing: it is where it was.
    Nothing,
    /// It is new to Retake.
    New,
    /// It was moved or renamed; its threads came along.
    Moved {
        /// Where it was.
        from: String,
    },
    /// It is a copy of a project that still stands, and starts without threads.
    Copied {
        /// The project it was copied from.
        of: ProjectId,
    },
    /// Another folder was here before, with threads of its own.
    Replaced {
        /// The project that was here.
        formerly: ProjectId,
    },
}

/// A project, as this machine knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownProject {
    /// Its identity.
    pub id: ProjectId,
    /// Where its folder was seen last; empty if that was forgotten.
    pub path: String,
    /// Whether there is a folder now.
    pub exists: bool,
    /// How many threads it has, without those that were put away.
    pub threads: u64,
    /// The thread that commands mean when they name none.
    pub current: Option<ThreadId>,
    /// Where its repository is pushed to.
    pub remote: Option<String>,
    /// When it was seen last.
    pub last_seen: Timestamp,
}

/// Whether a folder that is new becomes known by being looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recording {
    Always,
    Known,
}

/// Why a folder could not be recognised.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The folder could not be looked at.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There is no such project.
    #[error("there is no project {0}")]
    NoSuchProject(ProjectId),
    /// The folder cannot be a project: it is a home folder or one of the system.
    #[error(transparent)]
    Unsuitable(#[from] OpenError),
    /// The folder is in one that Retake fills itself.
    #[error("{} is inside {what}, and cannot be a project of its own; name a folder outside of it", path.display())]
    Inside {
        /// The folder that was named.
        path: PathBuf,
        /// What holds it.
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

impl From<ProjectError> for LookError {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Store(error) => Self::Store(error),
            other => Self::Store(StoreError::Damaged(other.to_string())),
        }
    }
}

impl Timeline {
    /// The project that a folder, or the nearest known folder above it, is. A folder that is new is recorded, unless
    /// it is a home folder or one of the system.
    pub fn project(&self, folder: &Path) -> Result<Project, ProjectError> {
        self.recognise(folder, Recording::Always)
    }

    /// Makes a folder itself a project, whatever is above it. A folder that is one already stays as it is.
    pub fn init_project(&self, folder: &Path) -> Result<Project, ProjectError> {
        let inside = |what| Err(ProjectError::Inside { path: folder.to_owned(), what });
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        if self.look()?.apart_folder_at(&real)?.is_some() {
            return inside("the folder of a take");
        }
        let store = self.store.folder();
        if real.starts_with(store.canonicalize().unwrap_or_else(|_| store.to_owned())) {
            return inside("the store");
        }
        let rows = self.look()?.queries().projects()?;
        self.recognise_root(&real, &rows, Recording::Always)
    }

    /// The same for someone who only looks: a folder that is new stays unrecorded, and its project empty.
    pub fn project_if_known(&self, folder: &Path) -> Result<Project, ProjectError> {
        self.recognise(folder, Recording::Known)
    }

    /// The same, where the folder may also be one that a take has for itself: its project is meant then.
    pub fn project_at(&self, folder: &Path) -> Result<Project, ProjectError> {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        match self.project_of_apart(&real)? {
            Some(project) => Ok(project),
            None => self.project(folder),
        }
    }

    /// The project of the folder that a take has for itself, if that is where the path leads. Its current thread is the
    /// take's.
    pub fn project_of_apart(&self, path: &Path) -> Result<Option<Project>, ProjectError> {
        let Some(apart) = self.recognise_apart(path)? else { return Ok(None) };
        let row = self.look()?.queries().project(apart.project)?;
        Ok(row.map(|row| Project {
            id: row.id,
            path: row.path,
            current: Some(apart.thread),
            noticed: Noticed::Nothing,
            recorded: true,
        }))
    }

    fn recognise(&self, folder: &Path, recording: Recording) -> Result<Project, ProjectError> {
        let rows = self.look()?.queries().projects()?;
        let known = |path: &Path| {
            let text = folder::path_to_text(path);
            rows.iter().any(|row| row.path == text)
        };
        self.recognise_root(&find_root(folder, known), &rows, recording)
    }

    fn recognise_root(
        &self,
        root: &Path,
        rows: &[ProjectRow],
        recording: Recording,
    ) -> Result<Project, ProjectError> {
        let facts = folder::observe(root)?.as_evidence();
        let (known, noticed) = recognised(rows, &facts);
        match known {
            Some(id) => {
                if let Some(row) = rows.iter().find(|row| row.id == id && describes(row, &facts)) {
                    // The usual case writes nothing.
                    let (path, current) = (row.path.clone(), row.current);
                    return Ok(Project { id, path, current, noticed, recorded: true });
                }
            }
            None if recording == Recording::Known => {
                let id = ProjectId::fresh(&mut Ticks(&*self.clock));
                return Ok(Project { id, path: facts.path, current: None, noticed, recorded: false });
            }
            // Before anything is written: a refusal leaves no trace.
            None => check_folder(&path_from_text(&facts.path))?,
        }
        let clock = self.clock.clone();
        let unrecorded = Unrecorded { facts };
        let project = self.store.write(move |writing: &Writing<'_>| -> Result<Project, StoreError> {
            unrecorded.record(writing, &*clock)
        })?;
        project.mark();
        Ok(project)
    }

    /// Whether the folder that a project was seen in last is there, and still the project's. Records nothing new.
    pub(crate) fn is_folder_of(&self, row: &ProjectRow) -> Result<bool, StoreError> {
        let path = path_from_text(&row.path);
        let Ok(facts) = folder::observe(&path) else { return Ok(false) };
        let facts = facts.as_evidence();
        // The usual case is decided without the other projects.
        if describes(row, &facts) {
            return Ok(true);
        }
        let (known, _) = recognised(&self.look()?.queries().projects()?, &facts);
        Ok(known == Some(row.id))
    }

    /// Says that a folder is a project that is known from elsewhere.
    pub fn adopt(&self, folder: &Path, id: ProjectId) -> Result<Project, ProjectError> {
        if self.look()?.queries().project(id)?.is_none() {
            return Err(ProjectError::NoSuchProject(id));
        }
        let facts = folder::observe(folder)?.as_evidence();
        check_folder(&path_from_text(&facts.path))?;
        let now = self.clock.now();
        let project = self.store.write(move |writing: &Writing<'_>| -> Result<Project, StoreError> {
            record(writing, id, facts, Noticed::Nothing, now)
        })?;
        project.mark();
        Ok(project)
    }

    /// Makes a thread the one that commands mean when they name none, in the project that it belongs to.
    pub fn work_on(&self, thread: ThreadId, caller: Caller) -> Result<Done, ChangeError> {
        self.settled(|| {
            let caller = caller.clone();
            let done = self.store.write(move |writing: &Writing<'_>| -> Result<Done, ChangeError> {
                let at = Head::of(writing, thread, &caller)?;
                if at.state.deleted.is_some() {
                    return Err(ChangeError::ThreadDeleted);
                }
                writing.set_current(at.row.home, Some(thread))?;
                Ok(at.unchanged())
            })?;
            Ok(done)
        })
    }
}

impl Looking<'_> {
    /// A project with what a person wants to know of it.
    pub fn known_project(&self, row: ProjectRow) -> Result<KnownProject, LookError> {
        let filter = ThreadFilter { project: Some(row.id), ..ThreadFilter::default() };
        Ok(KnownProject {
            exists: path_from_text(&row.path).is_dir(),
            threads: self.threads(&filter)?.len() as u64,
            id: row.id,
            path: row.path,
            current: row.current,
            remote: row.remote,
            last_seen: row.last_seen,
        })
    }
}

/// Which known project a folder is, if any, and what a person may want to know about that.
fn recognised(rows: &[ProjectRow], facts: &Folder) -> (Option<ProjectId>, Noticed) {
    let candidates = candidates(rows, facts);
    match decide(facts, &candidates) {
        Verdict::Same(id) => (Some(id), Noticed::Nothing),
        Verdict::Moved { project, from } => (Some(project), Noticed::Moved { from: from.to_owned() }),
        Verdict::Copied { of } => (None, Noticed::Copied { of }),
        Verdict::Replaced { formerly } | Verdict::New { perhaps: Some(formerly) } => {
            (None, Noticed::Replaced { formerly })
        }
        Verdict::New { perhaps: None } => (None, Noticed::New),
    }
}

fn record(
    writing: &Writing<'_>,
    id: ProjectId,
    facts: Folder,
    noticed: Noticed,
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
    Ok(Project { id, path, current, noticed, recorded: true })
}

fn candidates(rows: &[ProjectRow], facts: &Folder) -> Vec<Candidate> {
    rows.iter()
        // A project whose folder was forgotten is in no folder until one adopts it, whatever marks say.
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
        .filter(|record| record.may_be(facts))
        .map(|record| {
            let there = folder::observe(&path_from_text(&record.path)).ok();
            // Asked only where the mark is all that speaks for the folder.
            let renamed = facts.mark == Some(record.id)
                && (record.inode, record.born) != (facts.inode, facts.born)
                && folder::renamed_beside(
                    &path_from_text(&record.path),
                    &Identity { device: record.device, inode: record.inode, born: record.born },
                )
                .is_some();
            Candidate { there: there.map(|facts| facts.as_evidence()), record, renamed }
        })
        .collect()
}

/// Whether what is recorded is what the folder shows.
fn describes(row: &ProjectRow, facts: &Folder) -> bool {
    row.path == facts.path
        && row.device == facts.device
        && row.inode == facts.inode
        && row.born == facts.born
        && row.remote == facts.remote
}
