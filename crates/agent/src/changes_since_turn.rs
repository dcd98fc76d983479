//! File changes between two turns, as an entry before the prompt. Enabled by the setting `auto_add_history`.
//!
//! ```text
//!   … last step of a turn │ user edits │ `exec` │ user edits │ the next prompt
//!                         └──────── one entry ───────────────┘
//! ```
//!
//! It has paths and line counts; a model that needs the content reads the files.

use std::fmt::Write as _;

use retake_model::command::NewEntry;
use retake_model::entry::EntryVersion;
use retake_model::id::{TakeId, ThreadId};
use retake_model::operation::{Actor, FileChange, Operation, OperationKind};
use retake_model::time::Timestamp;
use retake_model::tree::PathChangeKind;
use retake_timeline::{Detail, DiffOptions, FileDiff, ReadError, Reader};

/// The role of the entry.
const ROLE: &str = "History";
/// Operations per read.
const PAGE: usize = 100;
/// Maximum operations to read.
const MAX_OPERATIONS: usize = 2_000;
/// Maximum paths to list.
const MAX_PATHS: usize = 100;

/// The file changes of a take since its last turn; `None` if there are none.
pub(crate) fn since_last_turn(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: TakeId,
    now: Timestamp,
) -> Result<Option<NewEntry>, ReadError> {
    let mut text = String::new();
    let mut named = 0;
    for operation in changes_since_last_turn(reader, thread, take)? {
        let Some(files) = &operation.files else { continue };
        let changes =
            reader.snapshot(files.before).changes(files.after, &DiffOptions::all(Detail::Counts))?;
        if changes.files.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}{}:", if text.is_empty() { "" } else { "\n" }, author_label(&operation));
        let left = changes.files.len().saturating_sub(MAX_PATHS - named);
        for file in changes.files.iter().take(MAX_PATHS - named) {
            let _ = writeln!(text, "- {}", line(file));
            named += 1;
        }
        if left > 0 {
            let _ = writeln!(text, "- and {left} more");
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let text = format!("Files changed since the last turn.\n\n{text}");
    Ok(Some(EntryVersion::from_text(ROLE, &text, now).into()))
}

/// The file operations since the take's last turn, or since a move, switch or fork replaced its files;
/// earliest first.
fn changes_since_last_turn(
    reader: &Reader<'_>,
    thread: ThreadId,
    take: TakeId,
) -> Result<Vec<Operation>, ReadError> {
    let row = reader.thread(thread)?;
    let queries = reader.queries();
    let mut found = Vec::new();
    let mut from = row.summary.version;
    let mut read = 0;
    'log: while from > 0 && read < MAX_OPERATIONS {
        let page = queries.operations_back(row.number, from, PAGE)?;
        read += page.len();
        from = page.last().map_or(0, |last| last.operation.version.saturating_sub(1));
        for stored in page {
            let operation = stored.operation;
            match &operation.kind {
                OperationKind::TurnAdvanced { take: of, .. } if *of == take => break 'log,
                OperationKind::ExternalEdits { .. } | OperationKind::FilesChanged { .. } => {
                    let is_here = |files: &FileChange| files.take == take && files.before != files.after;
                    if operation.files.as_ref().is_some_and(is_here) {
                        found.push(operation);
                    }
                }
                // Files from a move, switch or fork match the conversation already.
                _ if operation.files.as_ref().is_some_and(|files| files.take == take) => break 'log,
                _ => {}
            }
        }
    }
    found.reverse();
    Ok(found)
}

fn author_label(operation: &Operation) -> String {
    match (&operation.kind, &operation.actor) {
        (OperationKind::ExternalEdits { .. }, _) => "By hand".to_owned(),
        (_, Actor::Client { name }) => format!("By {name}"),
        _ => "By a command".to_owned(),
    }
}

fn line(file: &FileDiff) -> String {
    let path = &file.path;
    let lines =
        file.lines.map_or_else(String::new, |lines| format!(" (+{} -{})", lines.added, lines.removed));
    match (file.change, &file.from) {
        (PathChangeKind::Added, _) => format!("added {path}{lines}"),
        (PathChangeKind::Removed, _) => format!("removed {path}"),
        (PathChangeKind::Renamed, Some(from)) => format!("renamed {from} to {path}{lines}"),
        _ => format!("changed {path}{lines}"),
    }
}
