//! Describes operations in one clause.

use retake_model::agent::ToolOutcome;
use retake_model::operation::{Actor, OperationKind, TurnStep};
use retake_timeline::ChangeOutcome;

use crate::number::counted;

/// Describes an operation in a short clause.
pub fn operation(kind: &OperationKind) -> String {
    let entries = |count: u64| counted(count, "entry", "entries");
    let files = |count: u64| counted(count, "file", "files");
    match kind {
        OperationKind::ThreadCreated { .. } => "created the thread".to_owned(),
        OperationKind::EntriesAdded { count: 1, position, .. } => format!("added entry {}", position + 1),
        OperationKind::EntriesAdded { count, .. } => format!("added {}", entries(*count)),
        OperationKind::EntryEdited { .. } => "edited an entry".to_owned(),
        OperationKind::RoleChanged { from, to, .. } => format!("changed a role from {from} to {to}"),
        OperationKind::EntriesDeleted { count, .. } => format!("deleted {}", entries(*count)),
        OperationKind::EntriesReplaced { from, to, .. } => format!("replaced {} by {to}", entries(*from)),
        OperationKind::Truncated { pairs: 1, removed, .. } => {
            format!("truncated to the last pair, removed {}", entries(*removed))
        }
        OperationKind::Truncated { pairs, removed, .. } => {
            format!(
                "truncated to the last {}, removed {}",
                counted(*pairs, "pair", "pairs"),
                entries(*removed)
            )
        }
        OperationKind::Cleared { removed, .. } => format!("cleared {}", entries(*removed)),
        OperationKind::TakeBranched { name, .. } => format!("branched take {name}"),
        OperationKind::TakeForked { name, .. } => format!("forked take {name}"),
        OperationKind::TakeSwitched { .. } => "switched the take".to_owned(),
        OperationKind::TakeRenamed { from, to, .. } => format!("renamed take {from} to {to}"),
        OperationKind::TakeMerged { name, .. } => format!("merged take {name}"),
        OperationKind::TakeKept { name, deleted, .. } if deleted.is_empty() => format!("kept take {name}"),
        OperationKind::TakeKept { name, deleted, .. } => {
            format!("kept take {name}, deleted {}", deleted.join(", "))
        }
        OperationKind::TakeDeleted { name, .. } => format!("deleted take {name}"),
        OperationKind::TakePromoted { name, .. } => format!("promoted take {name} to a thread"),
        OperationKind::ThreadPromoted { .. } => "was promoted from a take".to_owned(),
        OperationKind::Renamed { from, to } => format!("renamed the thread from {from:?} to {to:?}"),
        OperationKind::Tagged { added, removed } => tags(added, removed),
        OperationKind::Pinned { pinned: true } => "pinned the thread".to_owned(),
        OperationKind::Pinned { pinned: false } => "unpinned the thread".to_owned(),
        OperationKind::SharingSet { private: true, .. }
        | OperationKind::SharingChanged { private: true, .. } => "marked the thread private".to_owned(),
        OperationKind::SharingSet { visibility, .. } | OperationKind::SharingChanged { visibility, .. } => {
            format!("set the visibility on a hub to {}", format!("{visibility:?}").to_lowercase())
        }
        OperationKind::Deleted => "deleted the thread".to_owned(),
        OperationKind::Restored => "restored the thread".to_owned(),
        OperationKind::RolesChanged { added, removed } => roles(added, removed),
        OperationKind::SettingsChanged { names } => format!("set {}", names.join(", ")),
        OperationKind::DraftChanged { .. } => "edited the draft".to_owned(),
        OperationKind::DraftAttached { pictures: 0, .. } => "removed the picture from the draft".to_owned(),
        OperationKind::DraftAttached { pictures, .. } => {
            format!("attached {} to the draft", counted(*pictures, "picture", "pictures"))
        }
        OperationKind::DraftCleared { .. } => "cleared the draft".to_owned(),
        OperationKind::FilesListed { list, count, .. } => {
            let what = match list {
                retake_model::take::FileList::Files => "files",
                retake_model::take::FileList::ContextFiles => "context files",
                retake_model::take::FileList::Screenshots => "screenshots",
            };
            format!("set the {what} ({count})")
        }
        OperationKind::SendRecorded { .. } => "recorded the request".to_owned(),
        OperationKind::Reset => "reset the thread".to_owned(),
        OperationKind::Saved { name } => format!("saved as {name:?}"),
        OperationKind::Undone { to, .. } => format!("undo, back to {to}"),
        OperationKind::Redone { to, .. } => format!("redo, forward to {to}"),
        OperationKind::Jumped { to, .. } => format!("jump to {to}"),
        OperationKind::ExternalEdits { paths } => format!("{} changed by hand", files(*paths)),
        OperationKind::FilesChanged { paths } => format!("changed {}", files(*paths)),
        OperationKind::FilesRestored { paths, .. } => format!("restored {}", files(*paths)),
        OperationKind::FilesMoved { to, paths, .. } => format!("moved {} to {to}", files(*paths)),
        OperationKind::TurnAdvanced { step, .. } => turn_step(step),
        OperationKind::Compressed { removed, .. } => format!("summarised {}", entries(*removed)),
    }
}

/// Describes a step of a turn in a short clause.
fn turn_step(step: &TurnStep) -> String {
    let what = |outcome: &ToolOutcome| match outcome {
        ToolOutcome::Succeeded => "ran",
        ToolOutcome::Failed => "failed",
        ToolOutcome::Denied => "was denied",
        ToolOutcome::Interrupted => "was interrupted",
    };
    match step {
        TurnStep::Started { forked: None } => "sent a message".to_owned(),
        TurnStep::Started { forked: Some(forked) } => format!("retried in take {}", forked.name),
        TurnStep::Answered => "answered".to_owned(),
        TurnStep::ApprovalRequested { tool, .. } => format!("requested {tool}"),
        TurnStep::ToolStarted { tool, .. } => format!("runs {tool}"),
        TurnStep::ToolEnded { tool, outcome, .. } => format!("{tool} {}", what(outcome)),
        TurnStep::CalledAgain => "called the model again".to_owned(),
        TurnStep::Failed { message } => format!("failed: {message}"),
        TurnStep::Interrupted => "was interrupted".to_owned(),
        TurnStep::Resumed => "resumed".to_owned(),
        TurnStep::HookStarted => "runs the hook after tools".to_owned(),
        TurnStep::HookEnded { outcome } => format!("the hook after tools {}", what(outcome)),
    }
}

/// Names the actor of an operation.
pub fn actor(actor: &Actor) -> String {
    match actor {
        Actor::Human => "you".to_owned(),
        Actor::Agent => "agent".to_owned(),
        Actor::ToolCall { call } => format!("tool {call}"),
        Actor::Client { name } => name.clone(),
        Actor::Sync => "sync".to_owned(),
        Actor::Recovery => "recovery".to_owned(),
    }
}

/// Describes the outcome of a change in one sentence.
pub fn done(done: &ChangeOutcome) -> String {
    match &done.kind {
        Some(kind) => {
            let mut text = operation(kind);
            if let Some(first) = text.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            format!("{text}.")
        }
        None => "Nothing to change.".to_owned(),
    }
}

fn roles(added: &[String], removed: &[String]) -> String {
    let named = |roles: &[String]| {
        let noun = if roles.len() == 1 { "role" } else { "roles" };
        format!("{noun} {}", roles.join(", "))
    };
    match (added, removed) {
        ([], []) => "changed the order of the roles".to_owned(),
        (added, []) => format!("added {}", named(added)),
        ([], removed) => format!("removed {}", named(removed)),
        (added, removed) => format!("added {}, removed {}", named(added), named(removed)),
    }
}

fn tags(added: &[String], removed: &[String]) -> String {
    let mut parts = Vec::new();
    if !added.is_empty() {
        parts.push(format!("tagged {}", added.join(", ")));
    }
    if !removed.is_empty() {
        parts.push(format!("untagged {}", removed.join(", ")));
    }
    parts.join(", ")
}
