//! Jumps to a version and back, which must restore conversation and files, whatever the version and the moves
//! before.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use super::mistake::ProgramFault;
use super::observe::differences;
use super::report::{aside, reported};
use super::steps::Target;
use super::world::{CommandRun, StepError, World};

impl World {
    /// Jumps to a version, and back to the one before the jump.
    pub(super) fn journey(&mut self, target: &Target, version: &str) -> Result<(), StepError> {
        let talk = |world: &Self| -> Result<Value, StepError> {
            let shown = world.execute(&target.place, &target.line(&["thread", "show"]).arguments)?.answer;
            Ok(serde_json::json!([
                shown["take"]["name"],
                shown["draft"],
                shown["entries"],
                shown["thread"]["title"]
            ]))
        };
        let before = talk(self)?;
        let there = self.run(&target.line(&["jump", version]))?;
        let Some(last) = there.output.answer["version"].as_u64().filter(|_| there.succeeded()) else {
            return Ok(());
        };
        if there.output.answer["operation"].is_null() {
            return Ok(());
        }
        let short = u64::from(self.mistake == Some(ProgramFault::JumpsShort));
        let back = self.run(&target.line(&["jump", &(last - 1 - short).to_string()]))?;
        if !back.succeeded() {
            // A change that may belong to another thread is undone only after confirmation.
            let asked = back.output.errors.contains("--shared");
            return if asked { Ok(()) } else { broken("the jump back was refused", &back) };
        }
        self.summary.journeys += 1;
        let after = talk(self)?;
        if before != after {
            return broken(
                &format!("the conversation was {before}, and is {after} after a jump there and back"),
                &back,
            );
        }
        let ((found, _), (_, left)) = (there.folder(&target.folder), back.folder(&target.folder));
        let excused: BTreeSet<PathBuf> = [&there, &back].into_iter().flat_map(unfinished).collect();
        // A folder appears and disappears with the paths in it.
        let is_excused =
            |path: &PathBuf| excused.iter().any(|other| other.starts_with(path) || path.starts_with(other));
        let mut lost = differences(&found, &left).into_iter().map(PathBuf::from);
        match lost.find(|path| !is_excused(path)) {
            Some(path) => broken(&format!("{} differs after a jump there and back", path.display()), &back),
            None => Ok(()),
        }
    }
}

/// The paths that a move reports as not restored.
fn unfinished(ran: &CommandRun) -> BTreeSet<PathBuf> {
    let paths = reported(&ran.output.answer).unwrap_or_default().into_iter();
    let left = paths
        .filter(|path| path.note || !matches!(path.outcome.as_str(), "written" | "removed" | "unchanged"));
    left.map(|path| path.path).chain(aside(&ran.output.answer)).collect()
}

fn broken(what: &str, ran: &CommandRun) -> Result<(), StepError> {
    Err(StepError::Broken(format!("{what} (exit code {:?}: {})", ran.output.code, ran.output.errors.trim())))
}
