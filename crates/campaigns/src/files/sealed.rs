//! Kills undo and redo of ignored and secret files that tools replaced, at every point.
//!
//! ```text
//!   by hand   .env · local.json (ignored)                              folder A
//!   turn      write .env · edit local.json · write a new ignored file  folder B
//!   killed    undo ──► A      redo ──► B      (.env by hand) undo ──► A, except .env
//!   killed    another take, which had a worktree meanwhile: switch to it, back, and undo ──► the same
//! ```
//!
//! The results are compared with the folders byte for byte. At the end every file of the store is searched for the
//! secret. The control runs without the key, and must be caught.

use crate::faults::{KillPlan, KillSummary};
use crate::folder::{FileNode, Folder};
use crate::violation::{CampaignError, Violation};

use super::kill::KillRun;
use super::sandbox::{Sandbox, StoreLocation};
use super::script::{PROJECT, Step, WORKTREE_FOLDER, hand, step};
use super::{retake, scratch};

const SECRET: &str = "the-old-secret-5be1";
const FILES: &str = "\
printf 'TOKEN=the-old-secret-5be1\\n' > .env && chmod 600 .env
printf 'local.json\\n' > .gitignore
printf '{\"port\": 8080, \"password\": \"the-old-secret-5be1\"}\\n' > local.json
mkdir made
";
const TURN: &[&str] = &[
    "run",
    "--approve",
    "all",
    "create .env with TOKEN=rotated\nedit local.json: replace \"8080\" with \"9090\"\ncreate made/local.json with new\ncreate plain.txt with captured",
];
const UNDO: Step = step(&["undo"]);
const REDO: Step = step(&["redo"]);
const CHANGED_SINCE: Step = hand("printf 'TOKEN=by-hand\\n' > .env", &["undo"]);

/// Another take gets a worktree, in which the agent writes and undoes a secret file too.
const WORKTREE: &[(&str, &[&str])] = &[
    (PROJECT, &["take", "branch", "--name", "second"]),
    (PROJECT, &["take", "switch", "main"]),
    (PROJECT, &["worktree", "add", "second", "../worktree"]),
    (WORKTREE_FOLDER, &["run", "--approve", "all", "create .env with TOKEN=of-the-worktree"]),
    (WORKTREE_FOLDER, &["undo"]),
    (PROJECT, &["worktree", "remove", "second", "--delete-files"]),
];
const SWITCH: Step = step(&["take", "switch", "second"]);
const SWITCH_BACK: Step = step(&["take", "switch", "main"]);

/// Kills undo and redo of such a turn at every point, or at about the given number of points.
pub fn sealed(plan: KillPlan) -> Result<KillSummary, CampaignError> {
    run(plan, |_| Ok(()))
}

/// The control: without the key, no sealed file is restored.
pub fn sealed_control() -> Result<KillSummary, CampaignError> {
    run(KillPlan { seed: 1, points: Some(4) }, |sandbox| {
        let mut key = sandbox.store().into_os_string();
        key.push(".key");
        std::fs::remove_file(key)
    })
}

fn run(
    plan: KillPlan,
    meanwhile: impl FnOnce(&Sandbox) -> std::io::Result<()>,
) -> Result<KillSummary, CampaignError> {
    let scratch = scratch()?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    sandbox.run_checked(PROJECT, &["snapshot", "take"])?;
    sandbox.by_hand(FILES)?;
    let before = project(&sandbox)?;
    sandbox.run_checked(PROJECT, TURN)?;
    let after = project(&sandbox)?;
    meanwhile(&sandbox).map_err(CampaignError::trouble)?;
    let mut by_hand = before.clone();
    by_hand.0.insert(".env".into(), FileNode::File { bytes: b"TOKEN=by-hand\n".to_vec(), mode: 0o600 });
    // The approximate total number of points.
    let mut strikes = KillRun::new(plan, 2500);
    let violated = |number: u64, what: String| {
        CampaignError::Violation(Violation { campaign: "sealed files", seed: plan.seed, step: number, what })
    };
    let steps = [
        (UNDO, &before),
        (REDO, &after),
        (CHANGED_SINCE, &by_hand),
        (SWITCH, &by_hand),
        (SWITCH_BACK, &by_hand),
        (UNDO, &by_hand),
    ];
    for (number, (step, expected)) in (1..).zip(steps) {
        if step.arguments == SWITCH.arguments {
            for (place, arguments) in WORKTREE {
                sandbox.run_checked(place, arguments)?;
            }
        }
        strikes.step(&mut sandbox, number, &step)?;
        let found = project(&sandbox)?;
        if let Some(difference) = found.differences(expected).first() {
            return Err(violated(number, format!("{:?} cannot be reversed: {difference:?}", step.arguments)));
        }
    }
    match crate::secrets::places(&sandbox.store(), SECRET.as_bytes())?.first() {
        None => Ok(strikes.kills),
        Some(place) => Err(violated(0, format!("the secret is in {place}"))),
    }
}

fn project(sandbox: &Sandbox) -> Result<Folder, CampaignError> {
    Folder::read(&sandbox.place(PROJECT)).map_err(CampaignError::trouble)
}

/// The search must find existing content; otherwise it proves nothing.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_for_secrets_finds_captured_content() {
        let scratch = scratch().unwrap_or_else(|failed| panic!("{failed}"));
        let program = retake().unwrap_or_else(|trouble| panic!("{trouble}"));
        let sandbox = Sandbox::new(scratch.path(), program, StoreLocation::Beside).expect("a laboratory");
        sandbox.by_hand(&format!("printf '{SECRET}' > plain.txt")).expect("a file");
        sandbox.run_checked(PROJECT, &["snapshot", "take"]).expect("a snapshot");
        let places = crate::secrets::places(&sandbox.store(), SECRET.as_bytes()).expect("readable");
        assert!(!places.is_empty());
    }
}
