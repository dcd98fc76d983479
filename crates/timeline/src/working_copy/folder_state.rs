//! State of the folder inside a write: the last known files, and the runs in it.

use retake_model::content::ContentId;
use retake_model::id::{FolderId, ProjectId, TakeId, TurnId};
use retake_model::intent::{
    CaptureTime, FolderIdentity, FolderRecord, FolderRun, RunningCommand, WorktreeTake,
};
use retake_model::operation::{Actor, FileChange};
use retake_model::state::ThreadState;
use retake_store::{StoreError, WriteTransaction};
use retake_workspace::folder::path_from_text;

use super::plan::{FileOperationWalk, FolderKind};
use super::record_changes::changed_paths;
use super::report::PathReport;
use super::roots::identify_roots;
use super::worktree::identify;
use super::{FileError, WorkingCopy, plan};
use crate::write::change::Head;

/// The folder and its record.
pub(super) struct FolderState {
    id: FolderId,
    project: ProjectId,
    roots: Vec<(String, String)>,
    worktree: Option<WorktreeTake>,
    captured: Option<CaptureTime>,
}

/// Last known state of a folder.
pub(super) struct KnownFolder {
    /// The last known files and the changes since; `None` if nothing changed.
    pub(super) before: Option<(ContentId, Vec<PathReport>)>,
    /// Runs in the folder.
    pub(super) runs: Vec<FolderRun>,
}

impl FolderState {
    /// Must be created before the files are captured, so that later changes are newer than the capture time.
    pub(super) fn of(working_copy: &WorkingCopy) -> Self {
        let clock = &working_copy.timeline.clock;
        let captured = clock.boot().map(|boot| CaptureTime { boot, time: clock.now() });
        Self {
            id: working_copy.folder,
            project: working_copy.project,
            roots: working_copy.roots(),
            worktree: working_copy.worktree,
            captured,
        }
    }

    /// The last known state of the folder that now has these files.
    pub(super) fn known(
        &self,
        writing: &WriteTransaction<'_>,
        now: ContentId,
    ) -> Result<KnownFolder, StoreError> {
        let Some(record) = writing.folder(self.id)? else {
            return Ok(KnownFolder { before: None, runs: Vec::new() });
        };
        let before = match record.snapshot.filter(|before| *before != now) {
            Some(before) => Some((before, changed_paths(&**writing, before, now)?)),
            None => None,
        };
        let runs = record.runs().cloned().collect();
        Ok(KnownFolder { before: before.filter(|(_, paths)| !paths.is_empty()), runs })
    }

    /// Stores the files and runs of the folder.
    pub(super) fn write_record(
        &self,
        writing: &WriteTransaction<'_>,
        snapshot: ContentId,
        runs: Vec<FolderRun>,
    ) -> Result<(), StoreError> {
        let known = writing.folder(self.id)?;
        let identities = known.as_ref().and_then(|known| known.root_identities.clone());
        let (identity, removing) = known.map_or((None, None), |known| (known.identity, known.removing));
        let record = FolderRecord {
            id: self.id,
            project: self.project,
            roots: self.roots.clone(),
            snapshot: Some(snapshot),
            worktree: self.worktree,
            running: None,
            identity: identity.or_else(|| self.identify()),
            removing,
            captured: self.captured.clone(),
            other_runs: None,
            root_identities: identify_roots(&self.roots, &identities.unwrap_or_default()),
        };
        writing.put_folder(&record.with_runs(runs))
    }

    /// Adds a run, to which changes from now on may belong.
    pub(super) fn mark_running(
        &self,
        writing: &WriteTransaction<'_>,
        run: FolderRun,
    ) -> Result<(), StoreError> {
        match writing.folder(self.id)? {
            Some(record) => {
                let mut runs: Vec<FolderRun> =
                    record.runs().filter(|other| other.turn != run.turn).cloned().collect();
                runs.push(run);
                writing.put_folder(&record.with_runs(runs))
            }
            None => Ok(()),
        }
    }

    /// Identity of a worktree's folder. Older versions did not record it.
    fn identify(&self) -> Option<FolderIdentity> {
        let (_, path) = self.roots.first().filter(|_| self.worktree.is_some())?;
        identify(&path_from_text(path), self.id).ok()
    }

    /// Stores the files of the folder without changing its runs.
    pub(super) fn set_snapshot(
        &self,
        writing: &WriteTransaction<'_>,
        snapshot: ContentId,
    ) -> Result<(), StoreError> {
        match writing.folder(self.id)? {
            Some(record) => writing.put_folder(&FolderRecord { snapshot: Some(snapshot), ..record }),
            None => Ok(()),
        }
    }

    /// The take of the folder.
    pub(super) fn take(&self, state: &ThreadState) -> TakeId {
        self.worktree.map_or(state.active, |worktree| worktree.take)
    }

    /// The take whose files are in the folder.
    pub(super) fn take_in_folder(
        &self,
        writing: &WriteTransaction<'_>,
        at: &Head,
    ) -> Result<TakeId, StoreError> {
        match self.worktree {
            Some(worktree) => Ok(worktree.take),
            None => plan::take_in_folder(writing, at.row.number, at.last.operation.version, &at.state),
        }
    }

    /// The files of the folder that a thread recorded last.
    pub(super) fn known_files(
        &self,
        writing: &WriteTransaction<'_>,
        at: &Head,
    ) -> Result<Option<ContentId>, StoreError> {
        let here = self.worktree.map_or(FolderKind::Project, |worktree| FolderKind::Worktree(worktree.take));
        for last_file_operation in
            FileOperationWalk::up_to(writing, at.row.number, at.last.operation.version)?
        {
            let (_, files) = last_file_operation?;
            if here.holds(&files) {
                return Ok(Some(files.after));
            }
        }
        Ok(None)
    }

    /// A change of files in this folder.
    pub(super) fn change(&self, before: ContentId, after: ContentId, take: TakeId) -> FileChange {
        FileChange { before, after, take, worktree: self.worktree.is_some(), left: None, shared: None }
    }
}

impl WorkingCopy {
    /// Runs in the folder whose process has ended.
    pub(super) fn ended_runs(&self) -> Result<Vec<TurnId>, FileError> {
        let mut dead = Vec::new();
        for run in self.runs()? {
            if !self.timeline.store.is_alive(run.turn)? {
                dead.push(run.turn);
            }
        }
        Ok(dead)
    }

    /// Returns whether something is running in the folder.
    pub(super) fn is_running(&self) -> Result<bool, FileError> {
        Ok(self.runs()?.len() > self.ended_runs()?.len())
    }

    /// Rejects moving files while something is running in the folder.
    pub(super) fn check_idle(&self) -> Result<(), FileError> {
        for run in self.runs()? {
            if self.timeline.store.is_alive(run.turn)? {
                return Err(match run.command {
                    Some(RunningCommand { program, process }) => FileError::CommandRuns { program, process },
                    None => FileError::Running(named(&run.actor)),
                });
            }
        }
        Ok(())
    }

    fn runs(&self) -> Result<Vec<FolderRun>, FileError> {
        let record = self.timeline.read()?.queries().folder(self.folder)?;
        Ok(record.map(|record| record.runs().cloned().collect()).unwrap_or_default())
    }
}

fn named(actor: &Actor) -> String {
    match actor {
        Actor::ToolCall { call } => format!("tool call {call}"),
        Actor::Client { name } => name.clone(),
        Actor::Agent => "the agent".to_owned(),
        Actor::Human | Actor::Sync | Actor::Recovery => "a program".to_owned(),
    }
}
