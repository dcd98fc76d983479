//! The rules for files and conversation after a fault.
//!
//! ```text
//!                  files before                     files after
//!   conversation   before the command, or with      after the command
//!                  hand edits recorded
//! ```
//!
//! Nothing else is allowed: neither other files, nor the files of one column with the conversation of the other. Any
//! next command must establish this; [`CommandKind`] lists the exceptions.

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::id::TakeId;
use retake_model::state::ThreadState;
use retake_store::{DeletedFilter, ThreadFilter};
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

use crate::violation::BoxError;

use super::sandbox::{Folders, Sandbox};
use super::script::{CommandKind, PROJECT, Step};

/// The observed state.
#[derive(Clone, Debug)]
pub struct WorldState {
    /// The files.
    pub folders: Folders,
    /// The state of the store.
    pub store_state: StoreState,
}

/// The state of the store's only thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// The ids of all operations, in order.
    pub log: Vec<ContentId>,
    /// The kind of each operation.
    pub kinds: Vec<String>,
    /// The current version.
    pub position: u64,
    /// The last known files of each take.
    pub takes: BTreeMap<TakeId, Option<ContentId>>,
    /// Whether a worktree exists.
    pub worktree: bool,
    /// Whether a file move is unfinished.
    pub moving: bool,
}

/// The outcome that a command reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedOutcome {
    /// Success.
    Done,
    /// Failure.
    Failed,
    /// Unknown.
    Unsure,
    /// None: it was killed.
    Nothing,
}

/// The effect of a command without a fault.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The state before it, and before hand edits.
    pub before: StoreState,
    /// The files right before it.
    pub files: Folders,
    /// The state after it.
    pub after: WorldState,
}

impl WorldState {
    /// Reads files and store.
    pub fn of(sandbox: &Sandbox) -> Result<Self, BoxError> {
        Ok(Self { folders: sandbox.folders()?, store_state: StoreState::of(&open(sandbox)?)? })
    }
}

fn open(sandbox: &Sandbox) -> Result<Timeline, BoxError> {
    Ok(Timeline::open(&sandbox.store(), Rules::default())?)
}

impl StoreState {
    fn of(timeline: &Timeline) -> Result<Self, BoxError> {
        let reader = timeline.read()?;
        let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let rows = reader.threads(&filter)?;
        let [row] = rows.as_slice() else { return Err(format!("{} threads, not one", rows.len()).into()) };
        let mut operations = reader.queries().operations_back(row.number, u64::MAX, usize::MAX)?;
        operations.reverse();
        if operations.iter().zip(1..).any(|(stored, version)| stored.operation.version != version) {
            return Err("the log has gaps".into());
        }
        let state: ThreadState = reader.state(row.summary.id)?;
        let mut takes = BTreeMap::new();
        for take in state.all_takes(&reader.queries())? {
            takes.insert(take.id, reader.files(row.summary.id).of_take(take.id)?);
        }
        Ok(Self {
            log: operations.iter().map(|stored| stored.id).collect(),
            kinds: operations.iter().map(|stored| name_of(&stored.operation.kind)).collect(),
            position: reader.history(row.summary.id).undo_status()?.position,
            takes,
            worktree: !reader.worktrees().list()?.is_empty(),
            moving: !reader.queries().intents()?.is_empty(),
        })
    }
}

/// The kind of an operation without its fields.
fn name_of(kind: &impl std::fmt::Debug) -> String {
    let text = format!("{kind:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

/// The operation that records hand edits.
const HAND_EDIT_KIND: &str = "ExternalEdits";

impl Expectation {
    /// Checks files and store after a fault and one more command. The error names the broken rule.
    pub fn check(&self, sandbox: &Sandbox, step: &Step, reported: ReportedOutcome) -> Result<(), String> {
        let changed = record_changes_again(sandbox, step)?;
        let sight = WorldState::of(sandbox).map_err(|trouble| format!("it cannot be read: {trouble}"))?;
        let StoreState { log, moving, .. } = &sight.store_state;
        if !log.starts_with(&self.before.log) {
            return Err("acknowledged operations were lost or altered".to_owned());
        }
        if *moving {
            return Err("a move of files is still unfinished".to_owned());
        }
        for (name, folder) in &sight.folders {
            if let Some(left) = folder.leftovers().first() {
                return Err(format!("{} was left in {name}", left.display()));
            }
        }
        if let Some(left) = sandbox.left_beside().map_err(|trouble| trouble.to_string())?.first() {
            return Err(format!("{} was left beside the project", left.display()));
        }
        self.together(step, reported, &sight)?;
        let by_hand = step.by_hand.is_some() || step.nature == CommandKind::Runs;
        if !by_hand && !changed.is_empty() {
            return Err(format!("split: no files changed, but changes were recorded: {changed:?}"));
        }
        self.takes_keep_their_files(&sight, step)?;
        verified(sandbox)?;
        let again = record_changes_again(sandbox, step)?;
        if again.is_empty() { Ok(()) } else { Err(format!("a second snapshot finds {again:?}")) }
    }

    /// Checks files and store after a command that skipped paths: each path must be as before or as after, consistent
    /// with the store.
    pub fn check_left(&self, sandbox: &Sandbox, step: &Step) -> Result<(), String> {
        let changed = record_changes_again(sandbox, step)?;
        if step.by_hand.is_none() && !changed.is_empty() {
            return Err(format!("split: no files changed, but changes were recorded: {changed:?}"));
        }
        let sight = WorldState::of(sandbox).map_err(|trouble| format!("it cannot be read: {trouble}"))?;
        if !sight.store_state.log.starts_with(&self.before.log) {
            return Err("acknowledged operations were lost or altered".to_owned());
        }
        for (name, folder) in &sight.folders {
            let neither = |difference: &crate::folder::Difference<'_>| {
                difference.left != self.files[name].0.get(difference.path)
            };
            if let Some(found) = folder.differences(&self.after.folders[name]).into_iter().find(neither) {
                return Err(format!("{name}: neither before nor after: {found:?}"));
            }
        }
        verified(sandbox)
    }

    /// The folder and the conversation must both be as before, or both as after.
    fn together(&self, step: &Step, reported: ReportedOutcome, sight: &WorldState) -> Result<(), String> {
        let kinds = &sight.store_state.kinds;
        let without = |kinds: &[String]| -> Vec<String> {
            kinds.iter().filter(|kind| *kind != HAND_EDIT_KIND).cloned().collect()
        };
        let (old, new) = (without(&self.before.kinds), without(&self.after.store_state.kinds));
        let found = without(kinds);
        let is_old = found == old && sight.store_state.position >= self.before.position;
        let is_new = found == new && sight.store_state.worktree == self.after.store_state.worktree;
        // Unrecorded changes of a program are found by the next snapshot.
        let is_unrecorded = step.nature == CommandKind::Runs && is_old;
        let folders = |expected: &Folders| match step.nature {
            CommandKind::Opens => sight.folders.get(PROJECT) == expected.get(PROJECT),
            CommandKind::Whole | CommandKind::Runs | CommandKind::Closes => sight.folders == *expected,
        };
        let (as_before, as_after) = (folders(&self.files), folders(&self.after.folders));
        let good = (as_before && is_old) || (as_after && (is_new || is_unrecorded));
        if !good {
            return Err(format!(
                "split: the conversation is {}, the folder is {}",
                if is_new {
                    "after the command"
                } else if is_old {
                    "before it"
                } else {
                    "neither"
                },
                describe(&sight.folders, &self.files, &self.after.folders),
            ));
        }
        match reported {
            ReportedOutcome::Done if !(as_after && is_new) => Err("acknowledged, but not done".to_owned()),
            // If the end of a program could not be recorded, the next snapshot attributes the changes to it.
            ReportedOutcome::Failed if new != old && is_new && step.nature != CommandKind::Runs => {
                Err("reported as failed, but it was executed".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Every take has its old files, or those that the command gave it.
    fn takes_keep_their_files(&self, sight: &WorldState, step: &Step) -> Result<(), String> {
        for (take, files) in &sight.store_state.takes {
            let (old, new) = (self.before.takes.get(take), self.after.store_state.takes.get(take));
            let is_new_take = old.is_none() && new.is_none();
            let seen = step.by_hand.is_some();
            if !is_new_take
                && !seen
                && old != Some(files)
                && new != Some(files)
                && step.nature != CommandKind::Runs
            {
                return Err(format!("take {take} has files that it never had"));
            }
        }
        Ok(())
    }
}

/// Read-only commands, which mention an interrupted file move.
const READERS: [&[&str]; 5] =
    [&["thread", "list"], &["thread", "show"], &["history"], &["tree"], &["verify"]];

/// Until the next command finishes it, every read-only command mentions an interrupted file move, and none mentions one
/// that does not exist.
pub(super) fn check_mentions(sandbox: &Sandbox, step: &Step) -> Result<(), String> {
    let place = if sandbox.place(step.place).is_dir() { step.place } else { PROJECT };
    for arguments in READERS {
        let run = sandbox.run(place, arguments, |faults| faults).map_err(|trouble| trouble.to_string())?;
        if !run.acknowledged() {
            return Err(format!("{arguments:?} failed: {}", run.complaint()));
        }
        let answer: Value = serde_json::from_slice(&run.output.stdout).map_err(|error| error.to_string())?;
        let mentions = answer["pending_moves"].as_array().is_some_and(|moves| !moves.is_empty());
        // Read only now: the first command must meet the store as the fault left it.
        let sight = WorldState::of(sandbox).map_err(|trouble| format!("it cannot be read: {trouble}"))?;
        if mentions != sight.store_state.moving {
            let is = if sight.store_state.moving { "does not mention" } else { "mentions" };
            return Err(format!("{arguments:?} {is} an interrupted move, and that is wrong"));
        }
        if !sight.store_state.moving {
            break;
        }
    }
    Ok(())
}

/// Runs `retake status`; returns the paths that it reports as hand edits.
fn record_changes_again(sandbox: &Sandbox, step: &Step) -> Result<Vec<String>, String> {
    let place = if sandbox.place(step.place).is_dir() { step.place } else { PROJECT };
    let run = sandbox.run(place, &["status"], |faults| faults).map_err(|trouble| trouble.to_string())?;
    if !run.acknowledged() {
        return Err(format!("the next command failed: {}", run.complaint()));
    }
    let answer: Value = serde_json::from_slice(&run.output.stdout).map_err(|error| error.to_string())?;
    let paths = answer["changed"]["paths"].as_array().cloned().unwrap_or_default();
    Ok(paths.iter().map(|path| path["path"].to_string()).collect())
}

fn verified(sandbox: &Sandbox) -> Result<(), String> {
    let timeline = open(sandbox).map_err(|trouble| format!("the store does not open: {trouble}"))?;
    let found = timeline.store().verify(&mut |_| {}).map_err(|error| format!("verify failed: {error}"))?;
    match found.problems.first() {
        None => Ok(()),
        Some(problem) => Err(format!("verify found {} problems, the first: {problem}", found.problems.len())),
    }
}

/// Describes a folder, path by path.
fn describe(found: &Folders, before: &Folders, after: &Folders) -> String {
    let mut words = Vec::new();
    for (name, folder) in found {
        for difference in folder.differences(&after[name]) {
            let path = difference.path.display();
            let then = before[name].0.get(difference.path);
            let what = if difference.left == then { "as before" } else { "neither" };
            words
                .push(format!("{name}/{path} {what} ({:?}, wanted {:?})", difference.left, difference.right));
        }
    }
    if words.is_empty() { "as after".to_owned() } else { words.join(", ") }
}
