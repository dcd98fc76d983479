//! Restoring: the folder, or some paths of it, exactly as at another moment.

use retake_model::content::ContentId;
use retake_model::id::{FolderId, TakeId, ThreadId};
use retake_model::intent::FolderRecord;
use retake_model::object::{Additions, load};
use retake_model::operation::{FileChange, OperationKind, Version};
use retake_model::path::RootPath;
use retake_model::replay::take_over;
use retake_model::time::Timestamp;
use retake_model::tree::{LeftOut, Snapshot, resolve};
use retake_store::Queries;
use serde::Serialize;

use super::carry_out::{CarriedOut, Plan};
use super::plan::{Filed, files_of_take};
use super::report::{FileReport, of_plan};
use super::{Desk, FileError, Handling};
use crate::change::compose_change;
use crate::{Caller, ChangeError, Done, LookError, Looking, Rules};

/// What came of a restore.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restored {
    /// The operation; of a preview, or where all was already so, none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// What became of each path.
    pub files: FileReport,
}

/// The files of a thread at one moment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesAt {
    /// The operation that left them so.
    pub version: Version,
    /// When.
    pub time: Timestamp,
    /// What it was.
    pub kind: OperationKind,
    /// The files before and after it.
    #[serde(flatten)]
    pub files: FileChange,
}

impl Desk {
    /// Makes the files exactly those of a snapshot of this thread: all of them, or only some paths.
    pub fn restore(
        &self,
        thread: ThreadId,
        snapshot: ContentId,
        only: &[RootPath],
        caller: Caller,
        handling: Handling,
    ) -> Result<Restored, FileError> {
        if !self.timeline.look()?.has_snapshot(thread, snapshot)? {
            return Err(FileError::NoSuchSnapshot);
        }
        loop {
            match self.try_restore(thread, snapshot, only, &caller, handling) {
                Err(FileError::Change(ChangeError::Conflict { .. })) if caller.expected.is_none() => {}
                other => return other,
            }
        }
    }

    fn try_restore(
        &self,
        thread: ThreadId,
        snapshot: ContentId,
        only: &[RootPath],
        caller: &Caller,
        handling: Handling,
    ) -> Result<Restored, FileError> {
        let session = self.begin()?;
        let present = session.present(thread, caller)?;
        let plan = {
            let looking = self.timeline.look()?;
            let queries = looking.queries();
            let target: Snapshot = load(&queries, snapshot)?;
            only.iter().try_for_each(|path| check_path(&queries, path, &present.snapshot, &target))?;
            let mut additions = Additions::new(&queries);
            let replayed = take_over(&mut additions, &present.snapshot, &target, only)?;
            let wanted = additions.add(&replayed.snapshot);
            Plan { wanted, replayed, objects: additions.into_new() }
        };
        let moving = plan.replayed.paths.iter().filter(|path| path.present != path.wanted).count() as u64;
        if handling.preview || moving == 0 {
            let paths = of_plan(&plan.replayed.paths, None);
            let files = FileReport::new(present.id, plan.wanted, paths, session.recovered);
            return Ok(Restored { done: None, files: FileReport { preview: handling.preview, ..files } });
        }
        let clock = self.timeline.clock.clone();
        let composing = caller.clone();
        let CarriedOut { done, report, .. } =
            session.carry_out(thread, &present, plan, caller, move |writing, at| {
                let kind = OperationKind::FilesRestored { snapshot, paths: moving };
                let additions = Additions::new(&**writing);
                let rules = Rules::default();
                Ok(compose_change(writing, at, additions, &at.state, kind, &composing, &*clock, rules)?)
            })?;
        Ok(Restored { done: Some(done), files: report })
    }
}

/// Refuses a path that is nowhere: to restore nothing would look like success.
fn check_path(
    queries: &Queries<'_>,
    path: &RootPath,
    present: &Snapshot,
    target: &Snapshot,
) -> Result<(), FileError> {
    let mut not_held = None;
    for root in [present, target].into_iter().filter_map(|snapshot| snapshot.root(&path.root)) {
        if resolve(queries, root.tree, &path.path)?.is_some() {
            return Ok(());
        }
        if let Some(left_out) = root.left_out {
            let left_out: LeftOut = load(queries, left_out)?;
            not_held = not_held.or(left_out.covering(&path.path.bytes()).map(|left| left.reason));
        }
    }
    Err(match not_held {
        Some(reason) => FileError::NotHeld(path.clone(), reason.words()),
        None => FileError::NoSuchPath(path.clone()),
    })
}

impl Looking<'_> {
    /// The moments at which a thread's files are known, newest first, at most `limit`, before a version.
    pub fn files(
        &self,
        thread: ThreadId,
        before: Option<Version>,
        limit: usize,
    ) -> Result<Vec<FilesAt>, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let from = before.map_or(row.summary.version, |before| before.saturating_sub(1));
        let filed = Filed::up_to(&queries, row.number, from)?;
        let found = filed.take(limit).map(|found| {
            let (operation, files) = found?;
            let (version, time, kind) = (operation.version, operation.time, operation.kind);
            Ok(FilesAt { version, time, kind, files })
        });
        found.collect()
    }

    /// The files of a thread just after an operation, in the folder of the take that was active then.
    pub fn files_at(&self, thread: ThreadId, version: Version) -> Result<Option<FilesAt>, LookError> {
        let before = version.checked_add(1);
        Ok(self.files(thread, before, 1)?.into_iter().next())
    }

    /// The last files of a take that are known.
    pub fn files_of_take(&self, thread: ThreadId, take: TakeId) -> Result<Option<ContentId>, LookError> {
        let row = self.thread(thread)?;
        let head = self.head(thread)?.operation;
        Ok(files_of_take(&self.queries(), row.number, &head, take)?)
    }

    /// The snapshots of a thread whose id begins with that text.
    pub fn snapshots_beginning(&self, thread: ThreadId, text: &str) -> Result<Vec<ContentId>, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let mut found = std::collections::BTreeSet::new();
        // Shorter texts would mean too many, and a text that is no id none.
        if text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            for filed in Filed::up_to(&queries, row.number, row.summary.version)? {
                let (_, files) = filed?;
                let both = [files.before, files.after].into_iter();
                found.extend(both.filter(|id| id.to_string().starts_with(&text.to_lowercase())));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Whether a snapshot is one of that thread's own.
    pub fn has_snapshot(&self, thread: ThreadId, snapshot: ContentId) -> Result<bool, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        // What its folder was seen to be is in no operation before it is changed.
        let own = |folder: &FolderRecord| match folder.apart {
            Some(apart) => apart.thread == thread,
            None => folder.id == FolderId::of_project(row.home),
        };
        if queries.folders()?.iter().any(|folder| own(folder) && folder.snapshot == Some(snapshot)) {
            return Ok(true);
        }
        for found in Filed::up_to(&queries, row.number, row.summary.version)? {
            let (_, files) = found?;
            if files.after == snapshot || files.before == snapshot {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
