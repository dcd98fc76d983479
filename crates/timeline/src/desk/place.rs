//! State of the folder inside a write: the last known files, and the runs in it.

use retake_model::content::ContentId;
use retake_model::id::{FolderId, ProjectId, TakeId, TurnId};
use retake_model::intent::{Apart, CaptureTime, FolderIdentity, FolderRecord, Running};
use retake_model::operation::{Actor, FileChange};
use retake_model::state::ThreadState;
use retake_store::{StoreError, Writing};
use retake_workspace::folder::path_from_text;

use super::apart::identify;
use super::look::changed_paths;
use super::plan::{Filed, Here};
use super::report::PathReport;
use super::roots::identify_roots;
use super::{Desk, FileError, plan};
use crate::change::Head;

/// The folder and its record.
pub(super) struct Place {
    id: FolderId,
    project: ProjectId,
    roots: Vec<(String, String)>,
    apart: Option<Apart>,
    captured: Option<CaptureTime>,
}

/// Last known state of a folder.
pub(super) struct Known {
    /// The last known files and the changes since; `None` if nothing changed.
    pub(super) before: Option<(ContentId, Vec<PathReport>)>,
    /// Runs in the folder.
    pub(super) runs: Vec<Running>,
}

impl Place {
    /// Must be created before the files are captured, so that later changes are newer than the capture time.
    pub(super) fn of(desk: &Desk) -> Self {
        let clock = &desk.timeline.clock;
        let captured = clock.boot().map(|boot| CaptureTime { boot, time: clock.now() });
        Self { id: desk.folder, project: desk.project, roots: desk.roots(), apart: desk.apart, captured }
    }

    /// The last known state of the folder that now has these files.
    pub(super) fn known(&self, writing: &Writing<'_>, now: ContentId) -> Result<Known, StoreError> {
        let Some(record) = writing.folder(self.id)? else {
            return Ok(Known { before: None, runs: Vec::new() });
        };
        let before = match record.snapshot.filter(|before| *before != now) {
            Some(before) => Some((before, changed_paths(&**writing, before, now)?)),
            None => None,
        };
        let runs = record.runs().cloned().collect();
        Ok(Known { before: before.filter(|(_, paths)| !paths.is_empty()), runs })
    }

    /// Stores the files and runs of the folder.
    pub(super) fn put(
        &self,
        writing: &Writing<'_>,
        snapshot: ContentId,
        runs: Vec<Running>,
    ) -> Result<(), StoreError> {
        let known = writing.folder(self.id)?;
        let identities = known.as_ref().and_then(|known| known.root_identities.clone());
        let (identity, removing) = known.map_or((None, None), |known| (known.identity, known.removing));
        let record = FolderRecord {
            id: self.id,
            project: self.project,
            roots: self.roots.clone(),
            snapshot: Some(snapshot),
            apart: self.apart,
            running: None,
            identity: identity.or_else(|| self.identify()),
            removing,
            captured: self.captured.clone(),
            others: None,
            root_identities: identify_roots(&self.roots, &identities.unwrap_or_default()),
        };
        writing.put_folder(&record.with_runs(runs))
    }

    /// Adds a run, to which changes from now on may belong.
    pub(super) fn let_loose(&self, writing: &Writing<'_>, run: Running) -> Result<(), StoreError> {
        match writing.folder(self.id)? {
            Some(record) => {
                let mut runs: Vec<Running> =
                    record.runs().filter(|other| other.turn != run.turn).cloned().collect();
                runs.push(run);
                writing.put_folder(&record.with_runs(runs))
            }
            None => Ok(()),
        }
    }

    /// Identity of a worktree's folder. Older versions did not record it.
    fn identify(&self) -> Option<FolderIdentity> {
        let (_, path) = self.roots.first().filter(|_| self.apart.is_some())?;
        identify(&path_from_text(path), self.id).ok()
    }

    /// Stores the files of the folder without changing its runs.
    pub(super) fn look_like(&self, writing: &Writing<'_>, snapshot: ContentId) -> Result<(), StoreError> {
        match writing.folder(self.id)? {
            Some(record) => writing.put_folder(&FolderRecord { snapshot: Some(snapshot), ..record }),
            None => Ok(()),
        }
    }

    /// The take of the folder.
    pub(super) fn take(&self, state: &ThreadState) -> TakeId {
        self.apart.map_or(state.active, |apart| apart.take)
    }

    /// The take whose files are in the folder.
    pub(super) fn take_in_folder(&self, writing: &Writing<'_>, at: &Head) -> Result<TakeId, StoreError> {
        match self.apart {
            Some(apart) => Ok(apart.take),
            None => plan::take_in_folder(writing, at.row.number, at.last.operation.version, &at.state),
        }
    }

    /// The files of the folder that a thread recorded last.
    pub(super) fn files_known(
        &self,
        writing: &Writing<'_>,
        at: &Head,
    ) -> Result<Option<ContentId>, StoreError> {
        let here = self.apart.map_or(Here::Project, |apart| Here::Apart(apart.take));
        for filed in Filed::up_to(writing, at.row.number, at.last.operation.version)? {
            let (_, files) = filed?;
            if here.holds(&files) {
                return Ok(Some(files.after));
            }
        }
        Ok(None)
    }

    /// A change of files in this folder.
    pub(super) fn change(&self, before: ContentId, after: ContentId, take: TakeId) -> FileChange {
        FileChange { before, after, take, apart: self.apart.is_some(), left: None, shared: None }
    }
}

impl Desk {
    /// Runs in the folder whose process has ended.
    pub(super) fn dead_runs(&self) -> Result<Vec<TurnId>, FileError> {
        let mut dead = Vec::new();
        for run in self.runs()? {
            if !self.timeline.store.is_alive(run.turn)? {
                dead.push(run.turn);
            }
        }
        Ok(dead)
    }

    /// Returns whether something is running in the folder.
    pub(super) fn is_at_work(&self) -> Result<bool, FileError> {
        Ok(self.runs()?.len() > self.dead_runs()?.len())
    }

    /// Rejects moving files while something is running in the folder.
    pub(super) fn check_idle(&self) -> Result<(), FileError> {
        for run in self.runs()? {
            if self.timeline.store.is_alive(run.turn)? {
                return Err(FileError::Running(named(&run.actor)));
            }
        }
        Ok(())
    }

    fn runs(&self) -> Result<Vec<Running>, FileError> {
        let record = self.timeline.look()?.queries().folder(self.folder)?;
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
