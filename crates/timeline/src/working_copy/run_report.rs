//! Reports everything that a command changed, although other commands may have recorded a part of it while it ran.
//!
//! ```text
//!   exec begins ─── a file ─── `retake status` records it ─── another file ─── exec ends: both files are its own
//! ```

use std::collections::BTreeMap;

use retake_model::id::{ThreadId, TurnId};
use retake_model::operation::{Operation, Version};
use retake_model::path::RootPath;

use super::plan::FileOperationWalk;
use super::record_changes::changed_paths;
use super::report::{Outcome, PathReport};
use super::{FileError, FileReport, RecordedChanges, WorkingCopy};
use crate::Caller;
use crate::write::change::head_of;

impl WorkingCopy {
    /// Records the changes of a command that has ended, and reports all operations of its turn since a version.
    pub fn record_run(
        &self,
        thread: ThreadId,
        caller: Caller,
        since: Version,
    ) -> Result<RecordedChanges, FileError> {
        let turn = caller.turn;
        let recorded = self.record_as_caller(thread, caller)?;
        match turn {
            Some(turn) => self.with_earlier_parts(recorded, thread, turn, since),
            None => Ok(recorded),
        }
    }

    fn with_earlier_parts(
        &self,
        recorded: RecordedChanges,
        thread: ThreadId,
        turn: TurnId,
        since: Version,
    ) -> Result<RecordedChanges, FileError> {
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        let (row, head) = head_of(&queries, thread)?;
        let mut parts: Vec<Operation> = Vec::new();
        for last_file_operation in FileOperationWalk::up_to(&queries, row.number, head.version)? {
            let (operation, files) = last_file_operation?;
            if operation.version <= since {
                break;
            }
            // Its changes may belong to an unfinished turn of the take, with which they are undone.
            let is_last = recorded.operation.as_ref().is_some_and(|last| last.version == operation.version);
            if (operation.turn == turn || is_last) && self.here().holds(&files) {
                parts.push(operation);
            }
        }
        if parts.len() < 2 && recorded.operation.is_some() == (parts.len() == 1) {
            return Ok(recorded);
        }
        let mut paths: BTreeMap<RootPath, PathReport> = BTreeMap::new();
        let (mut before, mut after) = (recorded.files.before, recorded.files.after);
        for (number, files) in parts.iter().rev().filter_map(|part| part.files).enumerate() {
            if number == 0 {
                before = files.before;
            }
            after = files.after;
            for changed in changed_paths(&queries, files.before, files.after)? {
                let first = paths.remove(&changed.path).map_or(changed.before.clone(), |first| first.before);
                paths.insert(changed.path.clone(), PathReport { before: first, ..changed });
            }
        }
        // A file that came and went is no change.
        let changed = |path: &PathReport| path.before.is_some() || path.outcome != Outcome::Removed;
        let paths = paths.into_values().filter(changed).collect();
        let files = FileReport { before, after, paths, ..recorded.files };
        Ok(RecordedChanges { files, ..recorded })
    }
}
