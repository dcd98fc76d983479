//! Creates threads.

use retake_model::history::FIRST;
use retake_model::id::{ProjectId, ThreadId, TurnId};
use retake_model::name::{NameKind, check};
use retake_model::object::Additions;
use retake_model::operation::{FileChange, Operation, OperationKind};
use retake_model::state::ThreadState;
use retake_store::{Publication, Queries, WriteTransaction};
use retake_workspace::folder::path_from_text;
use retake_workspace::snapshot::check_folder;

use crate::clock::{Clock, ClockIds};
use crate::write::project::UnrecordedProject;
use crate::{Caller, ChangeError, ChangeOutcome, FileError, Project, ProjectError, Timeline};

/// A thread to create.
#[derive(Clone, Debug)]
pub struct NewThread {
    /// The project.
    pub project: ProjectId,
    /// The title; `None` for the next free "Thread n".
    pub title: Option<String>,
    /// Whether it is never sent to a hub.
    pub private: bool,
    /// Tags for searching.
    pub tags: Vec<String>,
    /// Whether it becomes the current thread of the project.
    pub current: bool,
}

impl NewThread {
    /// A thread with default values.
    pub fn in_project(project: ProjectId) -> Self {
        Self { project, title: None, private: false, tags: Vec::new(), current: false }
    }

    /// Sets the title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }
}

/// Why no thread was created in a folder.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The folder cannot be a project.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The thread was rejected.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

impl Timeline {
    /// Rejects a project whose folder no turn can run in; an earlier version may have recorded one.
    fn check_project_folder(&self, project: ProjectId) -> Result<(), ChangeError> {
        let row = self.read()?.queries().project(project)?;
        match row.filter(|row| !row.path.is_empty()) {
            Some(row) => Ok(check_folder(&path_from_text(&row.path)).map_err(FileError::from)?),
            None => Ok(()),
        }
    }

    /// Creates a thread. Turns must be able to run in the folder of its project.
    pub fn create_thread(&self, new: NewThread, caller: Caller) -> Result<ChangeOutcome, ChangeError> {
        self.check_project_folder(new.project)?;
        let clock = self.clock.clone();
        Ok(self.store.write(move |writing| create(writing, &new, &caller, &*clock))?)
    }

    /// Creates a thread in the project of a folder. A new folder becomes a project in the same transaction, so that a
    /// rejected thread leaves no project behind. Ignores the project of `new`.
    pub fn create_thread_in(
        &self,
        project: &Project,
        new: NewThread,
        caller: Caller,
    ) -> Result<ChangeOutcome, CreateError> {
        if project.recorded {
            return Ok(self.create_thread(NewThread { project: project.id, ..new }, caller)?);
        }
        let (clock, unrecorded) = (self.clock.clone(), UnrecordedProject::of(project)?);
        let (project, done) = self
            .store
            .write(move |writing| -> Result<(Project, ChangeOutcome), ChangeError> {
                let project = unrecorded.record(writing, &*clock)?;
                let new = NewThread { project: project.id, ..new };
                let done = create(writing, &new, &caller, &*clock)?;
                Ok((project, done))
            })
            .map_err(ChangeError::from)?;
        project.mark();
        Ok(done)
    }
}

fn create(
    writing: &WriteTransaction<'_>,
    new: &NewThread,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<ChangeOutcome, ChangeError> {
    let title = match &new.title {
        Some(title) => free_title(writing, new.project, title)?,
        None => next_title(writing, new.project)?,
    };
    let mut additions = Additions::new(&**writing);
    let state = ThreadState::new(title, &mut additions, &mut ClockIds(clock))?;
    let tags = new.tags.iter().map(|tag| check(NameKind::Tag, tag)).collect::<Result<_, _>>()?;
    let state = ThreadState { private: new.private, tags, ..state };
    let kind = OperationKind::ThreadCreated { project: new.project };
    let thread = ThreadId::generate(&mut ClockIds(clock));
    let done = publish_first(writing, thread, &state, (kind, None), additions, caller, clock)?;
    if new.current {
        writing.set_current(new.project, Some(thread))?;
    }
    Ok(done)
}

/// Publishes the first operation of a thread.
pub(crate) fn publish_first(
    writing: &WriteTransaction<'_>,
    thread: ThreadId,
    state: &ThreadState,
    (kind, files): (OperationKind, Option<FileChange>),
    mut additions: Additions<'_, Queries<'_>>,
    caller: &Caller,
    clock: &dyn Clock,
) -> Result<ChangeOutcome, ChangeError> {
    let operation = Operation {
        thread,
        version: 1,
        previous: None,
        after: additions.add(state),
        kind: kind.clone(),
        turn: caller.turn.unwrap_or_else(|| TurnId::generate(&mut ClockIds(clock))),
        actor: caller.actor.clone(),
        time: clock.now(),
        place: FIRST,
        environment: caller.environment.as_ref().map(|around| additions.add(around)),
        files,
        last_file_operation: files.map(|_| 1),
        request: caller.request,
        chains: None,
    };
    let published = writing.publish(Publication { operation, objects: additions.into_new() })?;
    Ok(ChangeOutcome {
        thread,
        version: 1,
        operation: Some(published.id),
        kind: Some(kind),
        undoable: false,
        take: None,
        new_bytes: published.new_bytes,
        summary: published.head.row.summary,
    })
}

/// Validates that no active thread of the project has the title.
pub(crate) fn free_title(
    writing: &WriteTransaction<'_>,
    project: ProjectId,
    title: &str,
) -> Result<String, ChangeError> {
    let title = check(NameKind::Title, title)?;
    let taken = writing
        .threads_with_title(&title)?
        .iter()
        .any(|other| other.home == project && other.summary.deleted.is_none());
    if taken { Err(ChangeError::TitleTaken(title)) } else { Ok(title) }
}

/// The next free "Thread n" of a project.
fn next_title(writing: &WriteTransaction<'_>, project: ProjectId) -> Result<String, ChangeError> {
    let mut number = 1;
    loop {
        match free_title(writing, project, &format!("Thread {number}")) {
            Err(ChangeError::TitleTaken(_)) => number += 1,
            other => return other,
        }
    }
}
