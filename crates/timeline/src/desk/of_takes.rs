//! The files of all takes of a thread, each from where it began, in one walk along the log.
//!
//! ```text
//!   newest ◄─────────────────────────────────────────────────────── oldest
//!   b: edit   a ► b: switch   a: edit   b ► a: switch   b: edit   a ► b: branch   a: edit
//!   └ b now                   └ a now                             └ b began       └ a began
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
    /// Those whose files are known, by their ids.
    pub takes: BTreeMap<TakeId, TakeFiles>,
    /// Whether there are older operations that were not looked at: a take may have begun before them.
    pub more: bool,
    /// The last operation then.
    at: Option<Version>,
}

/// The files of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TakeFiles {
    /// As it found them when it began; of the first take, as the thread first saw them.
    pub began: ContentId,
    /// As they were last known.
    pub now: ContentId,
}

impl Looking<'_> {
    /// The files of all takes of a thread, by the newest operations with files, at most so many. Who knows already how it
    /// was gives that, and only what happened since is looked at.
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
            // What was known holds as long as nothing was undone or redone since.
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
            // What was undone is no part of any take; what was done in a folder of its own is undone there alone.
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
    /// Goes one operation further back.
    fn pass(&mut self, files: &FileChange) {
        let arrived = files.left.is_some_and(|left| left != files.take);
        self.know(files.take, if arrived { files.after } else { files.before }, files.after);
        if let Some(left) = files.left.filter(|_| arrived && !files.apart) {
            self.know(left, files.before, files.before);
        }
    }

    /// All that is older is known.
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
