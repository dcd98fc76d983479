//! Finds the first and current files of all takes of a thread in one walk along the log.
//!
//! ```text
//!   newest ◄─────────────────────────────────────────────────────── oldest
//!   b: edit   a ► b: switch   a: edit   b ► a: switch   b: edit   a ► b: branch   a: edit
//!   └ b current               └ a current                         └ b first       └ a first
//! ```

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::history::{self, Log};
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{FileChange, Version};

use super::plan::Filed;
use crate::{LookError, Looking};

/// The files of the takes of a thread.
#[derive(Clone, Debug, Default)]
pub struct FilesOfTakes {
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
    pub began: ContentId,
    /// The last known files.
    pub now: ContentId,
}

impl Looking<'_> {
    /// The files of all takes of a thread, from at most `most` of the newest operations with files. Given an earlier
    /// result, reads only later operations.
    pub fn files_of_takes(
        &self,
        thread: ThreadId,
        before: Option<&FilesOfTakes>,
        most: usize,
    ) -> Result<FilesOfTakes, LookError> {
        let row = self.thread(thread)?;
        let head = self.head(thread)?.operation;
        let queries = self.queries();
        let log = queries.log(row.number);
        let mut found = FilesOfTakes { at: Some(head.version), ..FilesOfTakes::default() };
        let mut known = None;
        if let Some((before, version)) = before.and_then(|before| Some((before, before.at?))) {
            // The earlier result stays valid unless something was undone or redone since.
            let mut holds = version <= head.version;
            for since in version + 1..=head.version {
                let step = log.step(since)?;
                holds &= !(step.moves_only && step.chains.is_none_or(|chains| chains.take.is_some()));
            }
            known = holds.then_some((before, version));
        }
        for (index, filed) in Filed::up_to(&queries, row.number, head.version)?.enumerate() {
            let (operation, files) = filed?;
            if let Some((before, version)) = known
                && operation.version <= version
            {
                found.go_on_with(before);
                return Ok(found);
            }
            if index >= most {
                found.more = true;
                return Ok(found);
            }
            // Undone changes are not part of any take; changes in a worktree are undone only there.
            let done =
                !operation.kind.moves_only() && history::is_done(&log, head.version, operation.version)?;
            if files.apart || done {
                found.pass(&files);
            }
        }
        Ok(found)
    }
}

impl FilesOfTakes {
    /// Processes the next older operation.
    fn pass(&mut self, files: &FileChange) {
        let arrived = files.left.is_some_and(|left| left != files.take);
        self.know(files.take, if arrived { files.after } else { files.before }, files.after);
        if let Some(left) = files.left.filter(|_| arrived && !files.apart) {
            self.know(left, files.before, files.before);
        }
    }

    /// Appends the earlier result.
    fn go_on_with(&mut self, before: &Self) {
        for (take, files) in &before.takes {
            self.know(*take, files.began, files.now);
        }
        self.more = before.more;
    }

    fn know(&mut self, take: TakeId, began: ContentId, now: ContentId) {
        self.takes.entry(take).or_insert(TakeFiles { began, now }).began = began;
    }
}
