//! The folder of a desk as a write sees it: what it was when it was last known, and what runs in it.

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

/// A folder, as it is written down.
pub(super) struct Place {
    id: FolderId,
    project: ProjectId,
    roots: Vec<(String, String)>,
    apart: Option<Apart>,
    captured: Option<CaptureTime>,
}

/// What was known of a folder.
pub(super) struct Known {
    /// What it was, and what differs now; `None` if nothing does.
    pub(super) before: Option<(ContentId, Vec<PathReport>)>,
    /// What runs in it.
    pub(super) runs: Vec<Running>,
}

impl Place {
    /// To be made before the files are captured: what changes from then on is newer than the capture.
    pub(super) fn of(desk: &Desk) -> Self {
        let clock = &desk.timeline.clock;
        let captured = clock.boot().map(|boot| CaptureTime { boot, time: clock.now() });
        Self { id: desk.folder, project: desk.project, roots: desk.roots(), apart: desk.apart, captured }
    }

    /// What was known of the folder that now has these files.
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

    /// Writes down what the folder is, and what runs in it.
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

    /// Adds to what runs in the folder: what changes meanwhile may be its doing.
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

    /// Which folder this is, if it is a take's own. Records of older versions do not say so.
    fn identify(&self) -> Option<FolderIdentity> {
        let (_, path) = self.roots.first().filter(|_| self.apart.is_some())?;
        identify(&path_from_text(path), self.id).ok()
    }

    /// Writes down what the folder is, and leaves alone what runs in it.
    pub(super) fn look_like(&self, writing: &Writing<'_>, snapshot: ContentId) -> Result<(), StoreError> {
        match writing.folder(self.id)? {
            Some(record) => writing.put_folder(&FolderRecord { snapshot: Some(snapshot), ..record }),
            None => Ok(()),
        }
    }

    /// The take that is worked on in the folder.
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
    /// The runs in the folder whose process is gone.
    pub(super) fn dead_runs(&self) -> Result<Vec<TurnId>, FileError> {
        let mut dead = Vec::new();
        for run in self.runs()? {
            if !self.timeline.store.is_alive(run.turn)? {
                dead.push(run.turn);
            }
        }
        Ok(dead)
    }

    /// Whether something is at work in the folder.
    pub(super) fn is_at_work(&self) -> Result<bool, FileError> {
        Ok(self.runs()?.len() > self.dead_runs()?.len())
    }

    /// Refuses to move files while something is at work on them.
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
