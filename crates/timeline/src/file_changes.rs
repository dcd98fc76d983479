//! What one thread did to files, newest first, path by path.

use retake_model::id::ThreadId;
use retake_model::operation::Version;
use retake_model::path::RootPath;
use retake_store::StoreError;

use crate::changes::{Detail, compare_content, differing};
use crate::file_log::Wrote;
use crate::{FileLogItem, LookError, Looking};

/// Some of what a thread did to files.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChanges {
    /// What was done to each path, newest first.
    pub items: Vec<FileLogItem>,
    /// Where to go on: an operation, and how many of its paths to pass over; none if there is no more.
    pub next: Option<(Version, usize)>,
}

impl Looking<'_> {
    /// What the operations of a thread did to files, newest first, at most so many paths, from the `next` of an earlier
    /// answer on.
    pub fn file_changes(
        &self,
        thread: ThreadId,
        from: Option<(Version, usize)>,
        limit: usize,
    ) -> Result<FileChanges, LookError> {
        let row = self.thread(thread)?;
        let queries = self.queries();
        let missing = |version: Version| StoreError::Damaged(format!("operation {version} is missing"));
        let read = |version| queries.operation(row.number, version)?.ok_or_else(|| missing(version));
        let newest = row.summary.version;
        let (mut version, mut passed) = from.map_or((newest, 0), |(from, passed)| (from.min(newest), passed));
        let mut items = Vec::new();
        while version > 0 {
            let Some(filed) = read(version)?.operation.filed else { break };
            let stored = read(filed)?;
            let files = stored.operation.files.filter(|files| files.before != files.after);
            let done = match files {
                Some(files) => differing(&queries, files.before, files.after)?,
                None => Vec::new(),
            };
            // Only the operation that a page ended in has paths to pass over.
            let start = if filed == version { std::mem::take(&mut passed) } else { 0 };
            for (index, (root, change)) in done.into_iter().enumerate().skip(start) {
                if items.len() >= limit {
                    return Ok(FileChanges { items, next: Some((filed, index)) });
                }
                let text =
                    compare_content(&queries, change.before.as_ref(), change.after.as_ref(), Detail::Counts)?;
                items.push(FileLogItem {
                    by: Wrote::by(&stored, &row.summary.title),
                    happened: change.happened(),
                    path: RootPath { root, path: change.path },
                    from: change.from,
                    to: None,
                    content: text.compared,
                    lines: text.lines,
                });
            }
            passed = 0;
            version = filed - 1;
        }
        Ok(FileChanges { items, next: None })
    }
}
