//! The folder of a desk as a write sees it: what it was when it was last known, and what runs in it.

use retake_model::content::ContentId;
use retake_model::id::{FolderId, ProjectId, TakeId};
use retake_model::intent::{Apart, CaptureTime, FolderIdentity, FolderRecord, Running};
use retake_model::operation::{Actor, FileChange};
use retake_model::state::ThreadState;
use retake_store::{StoreError, Writing};
use retake_workspace::folder::path_from_text;

use super::apart::identify;
use super::look::changed_paths;
use super::report::PathReport;
use super::{Desk, FileError};

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
    pub(super) running: Option<Running>,
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
        let Some(record) = writing.folder(self.id)? else { return Ok(Known { before: None, running: None }) };
        let before = match record.snapshot.filter(|before| *before != now) {
            Some(before) => Some((before, changed_paths(&**writing, before, now)?)),
            None => None,
        };
        Ok(Known { before: before.filter(|(_, paths)| !paths.is_empty()), running: record.running })
    }

    /// Writes down what the folder is, and what runs in it.
    pub(super) fn put(
        &self,
        writing: &Writing<'_>,
        snapshot: ContentId,
        running: Option<Running>,
    ) -> Result<(), StoreError> {
        let known = writing.folder(self.id)?;
        let (identity, removing) = known.map_or((None, None), |known| (known.identity, known.removing));
        writing.put_folder(&FolderRecord {
            id: self.id,
            project: self.project,
            roots: self.roots.clone(),
            snapshot: Some(snapshot),
            apart: self.apart,
            running,
            identity: identity.or_else(|| self.identify()),
            removing,
            captured: self.captured.clone(),
        })
    }

    /// Says at the folder what runs in it, unless something else does already: what changes meanwhile is its doing.
    pub(super) fn let_loose(&self, writing: &Writing<'_>, run: Running) -> Result<(), StoreError> {
        match writing.folder(self.id)? {
            Some(record) if record.running.is_none() => {
                writing.put_folder(&FolderRecord { running: Some(run), ..record })
            }
            _ => Ok(()),
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

    /// The take whose files are in the folder.
    pub(super) fn take(&self, state: &ThreadState) -> TakeId {
        self.apart.map_or(state.active, |apart| apart.take)
    }

    /// A change of files in this folder.
    pub(super) fn change(&self, before: ContentId, after: ContentId, take: TakeId) -> FileChange {
        FileChange { before, after, take, apart: self.apart.is_some(), left: None }
    }
}

impl Desk {
    /// Whether what ran in the folder is dead.
    pub(super) fn run_is_dead(&self) -> Result<bool, FileError> {
        match self.run()? {
            Some(run) => Ok(!self.timeline.store.is_alive(run.turn)?),
            None => Ok(false),
        }
    }

    /// Refuses to move files while something is at work on them.
    pub(super) fn check_idle(&self) -> Result<(), FileError> {
        match self.run()? {
            Some(run) if self.timeline.store.is_alive(run.turn)? => {
                Err(FileError::Running(named(&run.actor)))
            }
            _ => Ok(()),
        }
    }

    fn run(&self) -> Result<Option<Running>, FileError> {
        Ok(self.timeline.look()?.queries().folder(self.folder)?.and_then(|record| record.running))
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
