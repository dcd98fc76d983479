//! The files of all takes of a thread, each from where it began, in one walk along the log.
//!
//! ```text
//!   newest ◄─────────────────────────────────────────────────────── oldest
//!   b: edit   a ► b: switch   a: edit   b ► a: switch   b: edit   a ► b: branch   a: edit
//!   └ b now                   └ a now                             └ b began       └ a began
//! ```

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::history;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::FileChange;

use super::plan::Filed;
use crate::{LookError, Looking};

/// The files of the takes of a thread.
#[derive(Clone, Debug, Default)]
pub struct FilesOfTakes {
    /// Those whose files are known, by their ids.
    pub takes: BTreeMap<TakeId, TakeFiles>,
    /// Whether there are older operations that were not looked at: a take may have begun before them.
    pub more: bool,
}

/// The files of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeFiles {
    /// As it found them when it began; of the first take, as the thread first saw them.
    pub began: ContentId,
    /// As they were last known.
    pub now: ContentId,
}

impl Looking<'_> {
    /// The files of all takes of a thread, by the newest operations with files, at most so many.
    pub fn files_of_takes(&self, thread: ThreadId, most: usize) -> Result<FilesOfTakes, LookError> {
        let row = self.thread(thread)?;
        let head = self.head(thread)?.operation;
        let queries = self.queries();
        let log = queries.log(row.number);
        let mut found = FilesOfTakes::default();
        for (index, filed) in Filed::up_to(&queries, row.number, head.version)?.enumerate() {
            if index >= most {
                found.more = true;
                break;
            }
            let (operation, files) = filed?;
            // What was undone is no part of any take; what was done in a folder of its own is undone there alone.
            let on_the_way = !operation.kind.moves_only()
                && history::contains(&log, head.place.position, operation.version)?;
            if files.apart || on_the_way {
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

    fn know(&mut self, take: TakeId, began: ContentId, now: ContentId) {
        self.takes.entry(take).or_insert(TakeFiles { began, now }).began = began;
    }
}
