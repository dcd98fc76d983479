//! Restores files that a power cut emptied.
//!
//! If a program does not sync its writes, a power cut can leave an empty file, although the file was captured with content
//! before. That is not a user's change: the content is in the store, and is restored.
//!
//! ```text
//!   captured ─────────── power cut ─────────── first recording after the next boot
//!   todo.md: 12 bytes                          todo.md: empty, unchanged since it was captured
//! ```
//!
//! A file counts as emptied if all three are true: the system was restarted since the capture, the file had content then
//! and is empty now, and its change time (which no program can set) is shortly before the capture. A file that the user
//! empties, before or after the power cut, has a newer change time and counts as the user's change.
//!
//! "Shortly", because a system writes a file to the disk within seconds: what is older than that cannot have been emptied
//! by a power cut. If the change time is much older than the capture, the clock was wrong at the capture, and nothing is
//! known about the order of the two.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, UNIX_EPOCH};

use retake_model::intent::{CaptureTime, FolderRecord};
use retake_model::path::{RootPath, TreePath};
use retake_model::tree::{Difference, Node};
use retake_workspace::apply::{OpenRoot, Token, apply};
use retake_workspace::boot::empty_since;
use retake_workspace::snapshot::{self, Observation};

use super::execute::{outcome, request};
use super::record_changes::changed_paths;
use super::report::PathReport;
use super::status::SnapshotObjects;
use super::{FileError, WorkingCopy};
use crate::Timeline;

/// How long written content may take to reach the disk. Linux starts writing after 30 seconds.
const MAX_UNSYNCED: Duration = Duration::from_mins(2);

impl Timeline {
    /// Files that a power cut emptied, with their outcomes, since the last call.
    pub fn take_emptied(&self) -> Vec<PathReport> {
        std::mem::take(&mut *self.emptied.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl WorkingCopy {
    /// Restores files that a power cut emptied. The folder is locked.
    ///
    /// This needs no intent: the files return to the last known state of the folder, and after a crash the next
    /// recording repeats it.
    pub(super) fn restore_emptied(&self) -> Result<Vec<PathReport>, FileError> {
        let Some(boot) = self.new_boot()? else { return Ok(Vec::new()) };
        let observed = snapshot::observe(&self.timeline.store, &self.workspace)?;
        let emptied = self.emptied_files(&observed)?;
        let mut restored = Vec::new();
        {
            let reader = self.timeline.read()?;
            let queries = reader.queries();
            let token = Token::new(&self.folder.to_string()).expect("an id is a token");
            for root in self.workspace.roots() {
                let steps: Vec<Difference> = emptied.get(&root.name).cloned().unwrap_or_default();
                if steps.is_empty() {
                    continue;
                }
                let open = OpenRoot::open(&root.path).map_err(retake_workspace::apply::Cause::Root);
                let open = open.map_err(retake_workspace::apply::ApplyError::from)?;
                let report = apply(&request(&queries, &open, &steps, &token))?;
                let nodes: BTreeMap<TreePath, Difference> =
                    steps.into_iter().map(|step| (step.path.clone(), step)).collect();
                restored.extend(report.results.into_iter().map(|result| {
                    let (before, after) = nodes
                        .get(&result.path)
                        .map_or((None, None), |step| (step.before.clone(), step.after.clone()));
                    let path = RootPath { root: root.name.clone(), path: result.path };
                    PathReport { path, outcome: outcome(result.outcome), note: None, after, before }
                }));
            }
        }
        let folder = self.folder;
        self.timeline.store.write(move |writing| -> Result<(), FileError> {
            if let Some(record) = writing.folder(folder)? {
                let time = |captured: CaptureTime| CaptureTime { boot, ..captured };
                let captured = record.captured.clone().map(time);
                writing.put_folder(&FolderRecord { captured, ..record })?;
            }
            Ok(())
        })?;
        let mut reported = self.timeline.emptied.lock().unwrap_or_else(PoisonError::into_inner);
        reported.extend(restored.iter().cloned());
        Ok(restored)
    }

    /// Emptied files as steps that restore them, by root.
    pub(super) fn emptied_files(
        &self,
        observed: &Observation,
    ) -> Result<BTreeMap<String, Vec<Difference>>, FileError> {
        let mut emptied: BTreeMap<String, Vec<Difference>> = BTreeMap::new();
        if self.new_boot()?.is_none() {
            return Ok(emptied);
        }
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        // Content was erased in the meantime: the caller tries again.
        if queries.erasure_epoch() != observed.epoch {
            return Err(FileError::Outdated);
        }
        let Some(FolderRecord { snapshot: Some(known), captured: Some(captured), .. }) =
            queries.folder(self.folder)?
        else {
            return Ok(emptied);
        };
        let objects = SnapshotObjects::new(&observed.objects, &queries);
        for changed in changed_paths(&objects, known, observed.id)? {
            let PathReport { path, before, after, .. } = changed;
            let had_content = matches!(before, Some(Node::File { size: 1.., .. }));
            let is_empty = matches!(after, Some(Node::File { size: 0, .. }));
            if had_content && is_empty && self.is_untouched(&path, &captured) {
                let step = Difference { path: path.path, before: after, after: before };
                emptied.entry(path.root).or_default().push(step);
            }
        }
        Ok(emptied)
    }

    /// The current boot, if the files were captured in another one.
    pub(super) fn new_boot(&self) -> Result<Option<String>, FileError> {
        let Some(boot) = self.timeline.clock.boot() else { return Ok(None) };
        let captured =
            self.timeline.read()?.queries().folder(self.folder)?.and_then(|record| record.captured);
        Ok(captured.filter(|captured| captured.boot != boot).map(|_| boot))
    }

    /// Returns whether an empty file is unchanged since the capture.
    fn is_untouched(&self, path: &RootPath, captured: &CaptureTime) -> bool {
        let Some(root) = self.workspace.roots().iter().find(|root| root.name == path.root) else {
            return false;
        };
        let Ok(millis) = u64::try_from(captured.time.millis()) else { return false };
        let captured = UNIX_EPOCH + Duration::from_millis(millis);
        OpenRoot::open(&root.path).ok().and_then(|open| empty_since(&open, &path.path)).is_some_and(
            |touched| captured.duration_since(touched).is_ok_and(|age| !age.is_zero() && age <= MAX_UNSYNCED),
        )
    }
}
