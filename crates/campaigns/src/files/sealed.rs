//! Kills undo and redo of ignored and secret files that tools replaced, at every point.
//!
//! ```text
//!   by hand   .env · local.json (ignored)                              folder A
//!   turn      write .env · edit local.json · write a new ignored file  folder B
//!   killed    undo ──► A      redo ──► B      (.env by hand) undo ──► A, except .env
//!   killed    another take, which had a worktree meanwhile: switch to it, back, and undo ──► the same
//! ```
//!
//! A second project has turns between which, and in which, the ignore rules change:
//!
//! ```text
//!   turn 1    write out.txt · .gitignore names it · write out.txt
//!   turn 2    .gitignore names it no longer · write out.txt
//!   by hand   .gitignore names it again
//!   turn 3    write out.txt
//!   killed    undo · undo · undo ──► as before      redo · redo · redo ──► as after
//! ```
//!
//! The results are compared with the folders byte for byte. At the end every file of the store is searched for the
//! secret. The controls run without the key, and must be caught.

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

/// Turns in which the ignore rules change.
const RULES_TURNS: [&[&str]; 3] = [
    &[
        "run",
        "--approve",
        "all",
        "create out.txt with one\ncreate .gitignore with out.txt\ncreate out.txt with two",
    ],
    &["run", "--approve", "all", "create .gitignore with other.txt\ncreate out.txt with three"],
    &["run", "--approve", "all", "create out.txt with four"],
];
/// The user does so too, before the last turn.
const RULES_BY_HAND: &str = "echo out.txt > .gitignore";

/// Kills undo and redo of such turns at every point, or at about the given number of points.
pub fn sealed(plan: KillPlan) -> Result<KillSummary, CampaignError> {
    let (first, second) = (run(plan, |_| Ok(()))?, run_rules(plan, |_| Ok(()))?);
    Ok(KillSummary {
        commands: first.commands + second.commands,
        kills: first.kills + second.kills,
        lossy: first.lossy + second.lossy,
    })
}

/// The control: without the key, no sealed file is restored.
pub fn sealed_control() -> Result<KillSummary, CampaignError> {
    run(KillPlan { seed: 1, points: Some(4) }, without_key)
}

/// The control: without the key, no move passes a change of the ignore rules.
pub fn rules_control() -> Result<KillSummary, CampaignError> {
    run_rules(KillPlan { seed: 1, points: Some(4) }, without_key)
}

fn without_key(sandbox: &Sandbox) -> std::io::Result<()> {
    let mut key = sandbox.store().into_os_string();
    key.push(".key");
    std::fs::remove_file(key)
}

fn run_rules(
    plan: KillPlan,
    meanwhile: impl FnOnce(&Sandbox) -> std::io::Result<()>,
) -> Result<KillSummary, CampaignError> {
    let scratch = scratch()?;
    let mut sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    sandbox.run_checked(PROJECT, &["snapshot", "take"])?;
    let mut states = vec![project(&sandbox)?];
    for (number, turn) in RULES_TURNS.iter().enumerate() {
        if number == 2 {
            sandbox.by_hand(RULES_BY_HAND)?;
        }
        sandbox.run_checked(PROJECT, turn)?;
        states.push(project(&sandbox)?);
    }
    // What the user wrote stays as long as the turns do not name it.
    let rules = states[3].0.get(".gitignore".as_ref() as &std::path::Path).cloned();
    if let Some(rules) = rules {
        states[2].0.insert(".gitignore".into(), rules);
    }
    meanwhile(&sandbox).map_err(CampaignError::trouble)?;
    // The approximate total number of points.
    let mut strikes = KillRun::new(plan, 2000);
    let steps = [(UNDO, 2), (UNDO, 1), (UNDO, 0), (REDO, 1), (REDO, 2), (REDO, 3)];
    for (number, (step, expected)) in (1..).zip(steps) {
        strikes.step(&mut sandbox, number, &step)?;
        let found = project(&sandbox)?;
        if let Some(difference) = found.differences(&states[expected]).first() {
            let what = format!("{:?} stops at a change of the ignore rules: {difference:?}", step.arguments);
            let violation = Violation { campaign: "sealed files", seed: plan.seed, step: number, what };
            return Err(CampaignError::Violation(violation));
        }
    }
    Ok(strikes.kills)
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
