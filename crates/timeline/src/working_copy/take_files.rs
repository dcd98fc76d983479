//! Finds the first and current files of all takes of a thread in one walk along the log.
//!
//! ```text
//!   newest ◄─────────────────────────────────────────────────────── oldest
//!   b: edit   a ► b: switch   a: edit   b ► a: switch   b: edit   a ► b: branch   a: edit
//!   └ b current               └ a current                         └ b first       └ a first
//! ```

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::history::{self, OperationLog};
use retake_model::id::TakeId;
use retake_model::operation::{FileChange, Version};

use super::plan::FileOperationWalk;
use crate::ReadError;
use crate::files::file_history::FileHistoryReader;

/// The files of the takes of a thread.
#[derive(Clone, Debug, Default)]
pub struct TakeFilesIndex {
    /// Takes with known files.
    pub takes: BTreeMap<TakeId, TakeFiles>,
    /// Whether older operations were not read: a take may have started before them.
    pub more: bool,
    /// The last operation that was read.
    at: Option<Version>,
}

/// The files of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TakeFiles {
    /// The files when it started; of the first take, the first files of the thread.
    pub first: ContentId,
    /// The last known files.
    pub current: ContentId,
}

impl FileHistoryReader<'_> {
    /// The files of all takes of the thread, from at most `most` of the newest operations with files. Given an earlier
    /// result, reads only later operations.
    pub fn of_takes(
        &self,
        before: Option<&TakeFilesIndex>,
        most: usize,
    ) -> Result<TakeFilesIndex, ReadError> {
        let row = self.reader.thread(self.thread)?;
        let head = self.reader.head(self.thread)?.operation;
        let queries = self.reader.queries();
        let log = queries.log(row.number);
        let mut found = TakeFilesIndex { at: Some(head.version), ..TakeFilesIndex::default() };
        let mut known = None;
        if let Some((before, version)) = before.and_then(|before| Some((before, before.at?))) {
            // The earlier result stays valid unless something was undone or redone since.
            let mut holds = version <= head.version;
            for since in version + 1..=head.version {
                let step = log.step(since)?;
                holds &= !(step.is_not_undoable && step.chains.is_none_or(|chains| chains.take.is_some()));
            }
            known = holds.then_some((before, version));
        }
        for (index, last_file_operation) in
            FileOperationWalk::up_to(&queries, row.number, head.version)?.enumerate()
        {
            let (operation, files) = last_file_operation?;
            if let Some((before, version)) = known
                && operation.version <= version
            {
                found.append(before);
                return Ok(found);
            }
            if index >= most {
                found.more = true;
                return Ok(found);
            }
            // Undone changes are not part of any take; changes in a worktree are undone only there.
            let done =
                !operation.kind.is_not_undoable() && history::is_done(&log, head.version, operation.version)?;
            if files.worktree || done {
                found.pass(&files);
            }
        }
        Ok(found)
    }
}

impl TakeFilesIndex {
    /// Processes the next older operation.
    fn pass(&mut self, files: &FileChange) {
        let arrived = files.left.is_some_and(|left| left != files.take);
        self.insert_if_new(files.take, if arrived { files.after } else { files.before }, files.after);
        if let Some(left) = files.left.filter(|_| arrived && !files.worktree) {
            self.insert_if_new(left, files.before, files.before);
        }
    }

    /// Appends the earlier result.
    fn append(&mut self, before: &Self) {
        for (take, files) in &before.takes {
            self.insert_if_new(*take, files.first, files.current);
        }
        self.more = before.more;
    }

    fn insert_if_new(&mut self, take: TakeId, first: ContentId, current: ContentId) {
        self.takes.entry(take).or_insert(TakeFiles { first, current }).first = first;
    }
}
