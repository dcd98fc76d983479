//! The rules for files and conversation after a fault.
//!
//! ```text
//!                  files before                     files after
//!   conversation   before the command, or with      after the command
//!                  hand edits recorded
//! ```
//!
//! Nothing else is allowed: neither other files, nor the files of one column with the conversation of the other. Any
//! next command must establish this; [`Nature`] lists the exceptions.

use std::collections::BTreeMap;

use retake_model::content::ContentId;
use retake_model::id::TakeId;
use retake_model::state::ThreadState;
use retake_store::{Deleted, ThreadFilter};
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

use crate::violation::Trouble;

use super::laboratory::{Folders, Laboratory};
use super::script::{Nature, PROJECT, Step};

/// The observed state.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The files.
    pub folders: Folders,
    /// The state of the store.
    pub said: Said,
}

/// The state of the store's only thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The ids of all operations, in order.
    pub log: Vec<ContentId>,
    /// The kind of each operation.
    pub kinds: Vec<String>,
    /// The current version.
    pub position: u64,
    /// The last known files of each take.
    pub takes: BTreeMap<TakeId, Option<ContentId>>,
    /// Whether a worktree exists.
    pub apart: bool,
    /// Whether a file move is unfinished.
    pub moving: bool,
}

/// The outcome that a command reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
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
    pub before: Said,
    /// The files right before it.
    pub files: Folders,
    /// The state after it.
    pub after: Sight,
}

impl Sight {
    /// Reads files and store.
    pub fn of(laboratory: &Laboratory) -> Result<Self, Trouble> {
        Ok(Self { folders: laboratory.folders()?, said: Said::of(&open(laboratory)?)? })
    }
}

fn open(laboratory: &Laboratory) -> Result<Timeline, Trouble> {
    Ok(Timeline::open(&laboratory.store(), Rules::default())?)
}

impl Said {
    fn of(timeline: &Timeline) -> Result<Self, Trouble> {
        let looking = timeline.look()?;
        let filter = ThreadFilter { deleted: Deleted::Shown, ..ThreadFilter::default() };
        let rows = looking.threads(&filter)?;
        let [row] = rows.as_slice() else { return Err(format!("{} threads, not one", rows.len()).into()) };
        let mut operations = looking.queries().operations_back(row.number, u64::MAX, usize::MAX)?;
        operations.reverse();
        if operations.iter().zip(1..).any(|(stored, version)| stored.operation.version != version) {
            return Err("the log has gaps".into());
        }
        let state: ThreadState = looking.state(row.summary.id)?;
        let mut takes = BTreeMap::new();
        for take in state.all_takes(&looking.queries())? {
            takes.insert(take.id, looking.files_of_take(row.summary.id, take.id)?);
        }
        Ok(Self {
            log: operations.iter().map(|stored| stored.id).collect(),
            kinds: operations.iter().map(|stored| name_of(&stored.operation.kind)).collect(),
            position: looking.standing(row.summary.id)?.position,
            takes,
            apart: !looking.apart_folders()?.is_empty(),
            moving: !looking.queries().intents()?.is_empty(),
        })
    }
}

/// The kind of an operation without its fields.
fn name_of(kind: &impl std::fmt::Debug) -> String {
    let text = format!("{kind:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

/// The operation that records hand edits.
const SEEN: &str = "FilesSeen";

impl Expectation {
    /// Checks files and store after a fault and one more command. The error names the broken rule.
    pub fn check(&self, laboratory: &Laboratory, step: &Step, told: Told) -> Result<(), String> {
        let changed = look_again(laboratory, step)?;
        let sight = Sight::of(laboratory).map_err(|trouble| format!("it cannot be looked at: {trouble}"))?;
        let Said { log, moving, .. } = &sight.said;
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
        if let Some(left) = laboratory.left_beside().map_err(|trouble| trouble.to_string())?.first() {
            return Err(format!("{} was left beside the project", left.display()));
        }
        self.together(step, told, &sight)?;
        let by_hand = step.by_hand.is_some() || step.nature == Nature::Runs;
        if !by_hand && !changed.is_empty() {
            return Err(format!("split: nobody changed anything by hand, but it was found: {changed:?}"));
        }
        self.takes_keep_their_files(&sight, step)?;
        verified(laboratory)?;
        let again = look_again(laboratory, step)?;
        if again.is_empty() { Ok(()) } else { Err(format!("looking twice finds {again:?}")) }
    }

    /// Checks files and store after a command that skipped paths: each path must be as before or as after, consistent
    /// with the store.
    pub fn check_left(&self, laboratory: &Laboratory, step: &Step) -> Result<(), String> {
        let changed = look_again(laboratory, step)?;
        if step.by_hand.is_none() && !changed.is_empty() {
            return Err(format!("split: nobody changed anything by hand, but it was found: {changed:?}"));
        }
        let sight = Sight::of(laboratory).map_err(|trouble| format!("it cannot be looked at: {trouble}"))?;
        if !sight.said.log.starts_with(&self.before.log) {
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
        verified(laboratory)
    }

    /// The folder and the conversation must both be as before, or both as after.
    fn together(&self, step: &Step, told: Told, sight: &Sight) -> Result<(), String> {
        let kinds = &sight.said.kinds;
        let without = |kinds: &[String]| -> Vec<String> {
            kinds.iter().filter(|kind| *kind != SEEN).cloned().collect()
        };
        let (old, new) = (without(&self.before.kinds), without(&self.after.said.kinds));
        let found = without(kinds);
        let is_old = found == old && sight.said.position >= self.before.position;
        let is_new = found == new && sight.said.apart == self.after.said.apart;
        // Unrecorded changes of a program are found by the next snapshot.
        let is_unrecorded = step.nature == Nature::Runs && is_old;
        let folders = |expected: &Folders| match step.nature {
            Nature::Opens => sight.folders.get(PROJECT) == expected.get(PROJECT),
            Nature::Whole | Nature::Runs | Nature::Closes => sight.folders == *expected,
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
        match told {
            Told::Done if !(as_after && is_new) => Err("acknowledged, but not done".to_owned()),
            // If the end of a program could not be recorded, the next snapshot attributes the changes to it.
            Told::Failed if new != old && is_new && step.nature != Nature::Runs => {
                Err("reported as failed, but it was done".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Every take has its old files, or those that the command gave it.
    fn takes_keep_their_files(&self, sight: &Sight, step: &Step) -> Result<(), String> {
        for (take, files) in &sight.said.takes {
            let (old, new) = (self.before.takes.get(take), self.after.said.takes.get(take));
            let is_new_take = old.is_none() && new.is_none();
            let seen = step.by_hand.is_some();
            if !is_new_take
                && !seen
                && old != Some(files)
                && new != Some(files)
                && step.nature != Nature::Runs
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
pub(super) fn check_mentions(laboratory: &Laboratory, step: &Step) -> Result<(), String> {
    let place = if laboratory.place(step.place).is_dir() { step.place } else { PROJECT };
    for arguments in READERS {
        let run = laboratory.run(place, arguments, |faults| faults).map_err(|trouble| trouble.to_string())?;
        if !run.acknowledged() {
            return Err(format!("{arguments:?} failed: {}", run.complaint()));
        }
        let answer: Value = serde_json::from_slice(&run.output.stdout).map_err(|error| error.to_string())?;
        let mentions = answer["pending_moves"].as_array().is_some_and(|moves| !moves.is_empty());
        // Read only now: the first command must meet the store as the fault left it.
        let sight = Sight::of(laboratory).map_err(|trouble| format!("it cannot be looked at: {trouble}"))?;
        if mentions != sight.said.moving {
            let is = if sight.said.moving { "does not mention" } else { "mentions" };
            return Err(format!("{arguments:?} {is} an interrupted move, and that is wrong"));
        }
        if !sight.said.moving {
            break;
        }
    }
    Ok(())
}

/// Runs `retake status`; returns the paths that it reports as hand edits.
fn look_again(laboratory: &Laboratory, step: &Step) -> Result<Vec<String>, String> {
    let place = if laboratory.place(step.place).is_dir() { step.place } else { PROJECT };
    let run = laboratory.run(place, &["status"], |faults| faults).map_err(|trouble| trouble.to_string())?;
    if !run.acknowledged() {
        return Err(format!("the next command failed: {}", run.complaint()));
    }
    let answer: Value = serde_json::from_slice(&run.output.stdout).map_err(|error| error.to_string())?;
    let paths = answer["changed"]["paths"].as_array().cloned().unwrap_or_default();
    Ok(paths.iter().map(|path| path["path"].to_string()).collect())
}

fn verified(laboratory: &Laboratory) -> Result<(), String> {
    let timeline = open(laboratory).map_err(|trouble| format!("the store does not open: {trouble}"))?;
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
