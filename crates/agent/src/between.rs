//! What changed in the folder between two turns, as an entry before the prompt. The setting `auto_add_history` asks for it.
//!
//! ```text
//!   … last step of a turn │ hand edits │ `exec` │ hand edits │ the next prompt
//!                         └──────── one entry ───────────────┘
//! ```
//!
//! It names paths and counts lines: a model that needs the content reads the file.

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
/// Operations that are read at once.
const PAGE: usize = 100;
/// Operations that are read in all.
const LONGEST: usize = 2_000;
/// Paths that are named.
const NAMED: usize = 100;

/// What changed in the files of a take since its last turn; `None` if nothing did.
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

/// The operations on files since the take's last turn, or since a move, a switch or a fork put other files there. The
/// earliest first.
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
                // Files that another operation put there belong to the conversation as it is now.
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
