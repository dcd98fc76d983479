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
use retake_model::tree::Happened;
use retake_timeline::{Detail, FileDiff, LookError, Looking, Question};

/// The role of the entry.
const ROLE: &str = "History";
/// Operations per read.
const PAGE: usize = 100;
/// Maximum operations to read.
const LONGEST: usize = 2_000;
/// Maximum paths to list.
const NAMED: usize = 100;

/// The file changes of a take since its last turn; `None` if there are none.
pub(crate) fn since_last_turn(
    looking: &Looking<'_>,
    thread: ThreadId,
    take: TakeId,
    now: Timestamp,
) -> Result<Option<NewEntry>, LookError> {
    let mut text = String::new();
    let mut named = 0;
    for operation in changes_since_last_turn(looking, thread, take)? {
        let Some(files) = &operation.files else { continue };
        let changes = looking.changes(files.before, files.after, &Question::all(Detail::Counts))?;
        if changes.files.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}{}:", if text.is_empty() { "" } else { "\n" }, whose(&operation));
        let left = changes.files.len().saturating_sub(NAMED - named);
        for file in changes.files.iter().take(NAMED - named) {
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

/// The file operations since the take's last turn, or since a move, switch or fork replaced its files; earliest first.
fn changes_since_last_turn(
    looking: &Looking<'_>,
    thread: ThreadId,
    take: TakeId,
) -> Result<Vec<Operation>, LookError> {
    let row = looking.thread(thread)?;
    let queries = looking.queries();
    let mut found = Vec::new();
    let mut from = row.summary.version;
    let mut read = 0;
    'log: while from > 0 && read < LONGEST {
        let page = queries.operations_back(row.number, from, PAGE)?;
        read += page.len();
        from = page.last().map_or(0, |last| last.operation.version.saturating_sub(1));
        for stored in page {
            let operation = stored.operation;
            match &operation.kind {
                OperationKind::TurnAdvanced { take: of, .. } if *of == take => break 'log,
                OperationKind::FilesSeen { .. } | OperationKind::FilesChanged { .. } => {
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

fn whose(operation: &Operation) -> String {
    match (&operation.kind, &operation.actor) {
        (OperationKind::FilesSeen { .. }, _) => "By hand".to_owned(),
        (_, Actor::Client { name }) => format!("By {name}"),
        _ => "By a command".to_owned(),
    }
}

fn line(file: &FileDiff) -> String {
    let path = &file.path;
    let lines =
        file.lines.map_or_else(String::new, |lines| format!(" (+{} -{})", lines.added, lines.removed));
    match (file.happened, &file.from) {
        (Happened::Added, _) => format!("added {path}{lines}"),
        (Happened::Removed, _) => format!("removed {path}"),
        (Happened::Renamed, Some(from)) => format!("renamed {from} to {path}{lines}"),
        _ => format!("changed {path}{lines}"),
    }
}
