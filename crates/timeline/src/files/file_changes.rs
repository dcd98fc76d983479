//! Lists the file changes of one thread, newest first, path by path.

use retake_model::path::RootPath;

use crate::files::changes::{Detail, changed_paths, compare_content};
use crate::files::file_history::FileHistoryReader;
use crate::files::file_log::OperationInfo;
use crate::files::file_operations::FileOperations;
use crate::{FileLogItem, ReadError};

/// A page of file changes.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChanges {
    /// The changes, newest first.
    pub items: Vec<FileLogItem>,
    /// Cursor for the next page: the sequence number of an operation, and the number of its paths to skip; `None` on
    /// the last page.
    pub next: Option<(i64, usize)>,
}

impl FileHistoryReader<'_> {
    /// File changes of the thread, and before its promotion of the threads that it was a take of: newest first, at most
    /// `limit` paths, from the `next` of an earlier page on.
    pub fn changes(&self, from: Option<(i64, usize)>, limit: usize) -> Result<FileChanges, ReadError> {
        let queries = self.reader.queries();
        let mut last_file_operation = FileOperations::of_logs(&queries, self.lineage()?)?;
        if let Some((from, _)) = from {
            last_file_operation.skip_to(from.saturating_add(1))?;
        }
        let mut items = Vec::new();
        while let Some((thread, stored)) = last_file_operation.step()? {
            let files = stored.operation.files.filter(|files| files.before != files.after);
            let done = match files {
                Some(files) => changed_paths(&queries, files.before, files.after)?,
                None => Vec::new(),
            };
            // Only the operation at which a page ended has paths to skip.
            let start = from.filter(|(from, _)| *from == stored.sequence).map_or(0, |(_, passed)| passed);
            for (index, (root, change)) in done.into_iter().enumerate().skip(start) {
                if items.len() >= limit {
                    return Ok(FileChanges { items, next: Some((stored.sequence, index)) });
                }
                let text =
                    compare_content(&queries, change.before.as_ref(), change.after.as_ref(), Detail::Counts)?;
                items.push(FileLogItem {
                    by: OperationInfo::by(&stored, &last_file_operation.threads()[thread].summary.title),
                    change: change.kind(),
                    path: RootPath { root, path: change.path },
                    from: change.from,
                    to: None,
                    content: text.compared,
                    lines: text.lines,
                });
            }
        }
        Ok(FileChanges { items, next: None })
    }
}
