//! A redaction that is interrupted at any point is completed by running it again.
//!
//! ```text
//!   secret in   entries · an answer · titles, names, tags, roles, presets, settings, authors · drafts · git metadata
//!               the trace of a turn · an approval · the search index
//!                    │
//!                    ├─ `redact --text` is interrupted at call n = 1, 2, 3 …
//!                    ├─ the store must verify clean
//!                    └─ `redact --text` runs again: no byte of the secret may be in any file, compressed content included
//! ```
//!
//! The control restores the old search index, which must be detected.

use std::fs;

use retake_model::time::Timestamp;
use retake_store::{Store, ThreadFilter};

use crate::rng::Rng;
use crate::secrets::places;
use crate::shim::{InjectedError, KillMode};
use crate::violation::{BoxError, CampaignError, Violation};

use super::check::verified_at;
use super::errors::ErrorMode;
use super::kill::{KillPlan, KillSummary};
use super::sandbox::Sandbox;

const SECRET: &str = "zanzibarsecret4711";

const REDACT: &[&str] = &["redact", "--text", SECRET, "--yes"];

/// An injected fault.
#[derive(Clone, Copy, Debug)]
enum InjectedFault {
    Die(KillMode),
    Fail(ErrorMode),
}

const INJECTED_FAULTS: [InjectedFault; 6] = [
    InjectedFault::Die(KillMode::Kill),
    InjectedFault::Die(KillMode::Torn),
    InjectedFault::Die(KillMode::Cut),
    InjectedFault::Die(KillMode::TornCut),
    InjectedFault::Fail(ErrorMode::Once(InjectedError::BrokenDisk)),
    InjectedFault::Fail(ErrorMode::FromThenOn(InjectedError::DiskFull)),
];

/// Interrupts a redaction at every point, or at about the given number of points.
pub fn kill_redaction(plan: KillPlan) -> Result<KillSummary, CampaignError> {
    strike(plan, false)
}

/// The control: the search index is not scrubbed. It must be caught.
pub fn redaction_control() -> Result<KillSummary, CampaignError> {
    strike(KillPlan { seed: 1, points: Some(1) }, true)
}

fn strike(plan: KillPlan, keeps_words: bool) -> Result<KillSummary, CampaignError> {
    let sandbox = Sandbox::new(&retake_testing::find_program().map_err(CampaignError::trouble)?)
        .map_err(CampaignError::Trouble)?;
    let mut rng = Rng::new(plan.seed);
    let mut kills = KillSummary { commands: 1, ..KillSummary::default() };
    prepare(&sandbox).map_err(CampaignError::Trouble)?;
    let words = fs::read(sandbox.store().join("search.db")).map_err(CampaignError::trouble)?;
    sandbox.keep().map_err(CampaignError::Trouble)?;
    // The approximate total number of points.
    let share = plan.points.map(|points| (1500 / points.max(1)).max(1));
    for strike in INJECTED_FAULTS {
        let mut call = 1 + share.map_or(0, |share| rng.below(share));
        loop {
            sandbox.restore().map_err(CampaignError::Trouble)?;
            let run = sandbox
                .run(REDACT, |faults| match strike {
                    InjectedFault::Die(death) => faults.die_at(call, death),
                    InjectedFault::Fail(way) => way.arm(faults, call),
                })
                .map_err(CampaignError::Trouble)?;
            if run.report.faults == 0 {
                break;
            }
            kills.kills += 1;
            kills.lossy += u64::from(run.report.lost > 0);
            let finished = finish(&sandbox, keeps_words.then_some(&words)).map_err(CampaignError::Trouble)?;
            if let Some(broken) = finished {
                let what = format!("{REDACT:?}, {strike:?} at call {call}: {broken}");
                let violation = Violation { campaign: "redaction", seed: plan.seed, step: call, what };
                return Err(CampaignError::Violation(violation));
            }
            call += share.map_or(1, |share| 1 + rng.below(2 * share));
        }
    }
    Ok(kills)
}

/// Creates a store with the secret in every possible place.
fn prepare(sandbox: &Sandbox) -> Result<(), BoxError> {
    let prompt = format!("say I use {SECRET} for it");
    let draft = format!("deploy with {SECRET}, please");
    let turn = format!("run echo {SECRET}");
    let name = |what: &str| format!("{what}-{SECRET}");
    // The branch and the remote are recorded with each operation.
    let git = sandbox.project().join(".git");
    fs::create_dir_all(git.join("refs/heads"))?;
    fs::create_dir_all(git.join("objects"))?;
    fs::write(git.join("HEAD"), format!("ref: refs/heads/{}\n", name("branch")))?;
    fs::write(
        git.join("config"),
        format!("[remote \"origin\"]\n\turl = https://example.org/{SECRET}.git\n"),
    )?;
    for arguments in [
        &["run", "--new", &prompt][..],
        &["take", "branch", "--name", &name("take")],
        &["take", "rename", &name("renamed")],
        &["thread", "tag", &name("tag")],
        &["role", "add", &name("role")],
        &["context", "add", &name("notes")],
        &["context", "preset", "save", &name("preset")],
        &["context", "preset", "delete", &name("preset")],
        &["save", &name("saved")],
        &["exec", "--by", &name("author"), "--", "true"],
        &["snapshot", "take", "--by", &name("author")],
        &["settings", "set", "global_system_prompt", &name("prompt")],
        &["settings", "set", "project_system_prompt", &name("prompt")],
        &["settings", "set", "base_system_prompt", &name("prompt")],
        &["settings", "set", "model", &name("model")],
        &["settings", "set", "provider", &name("provider")],
        &["settings", "unset", "model", "provider"],
        &["run", "--approve", "all", &turn],
        &["draft", "set", &draft],
        &["draft", "set", "something else"],
        &["thread", "new", &format!("About {SECRET}")],
        &["entry", "add", "Nothing to see here."],
        &["search", SECRET],
    ] {
        let run = sandbox.run(arguments, |faults| faults)?;
        if !run.acknowledged() {
            return Err(format!("{arguments:?} failed without a fault: {}", run.complaint()).into());
        }
    }
    let store = Store::open(&sandbox.store())?;
    let home = store.read()?.queries().threads(&ThreadFilter::default())?[0].home;
    let allowed = format!("shell: $ export A=1\n> export KEY={SECRET}");
    store.runtime_database()?.approve(home, &[7; 32], &allowed, Timestamp::from_millis(1))?;
    drop(store);
    let found = places(&sandbox.store(), SECRET.as_bytes())?;
    for file in ["retake.db", "search.db", "ledger.db"] {
        if !found.iter().any(|place| place.contains(file)) {
            return Err(format!("the secret was never in {file}: {found:?}").into());
        }
    }
    Ok(())
}

/// Runs the redaction again; returns the broken promise, if any.
fn finish(sandbox: &Sandbox, words: Option<&Vec<u8>>) -> Result<Option<String>, BoxError> {
    if let Err(broken) = verified_at(&sandbox.store()) {
        return Ok(Some(broken));
    }
    let again = sandbox.run(REDACT, |faults| faults)?;
    if !again.acknowledged() {
        return Ok(Some(format!("running it again failed: {}", again.complaint())));
    }
    if let Some(words) = words {
        fs::write(sandbox.store().join("search.db"), words)?;
    }
    if let Err(broken) = verified_at(&sandbox.store()) {
        return Ok(Some(format!("after it was finished, {broken}")));
    }
    let left = places(&sandbox.store(), SECRET.as_bytes())?;
    Ok((!left.is_empty()).then(|| format!("the secret is still in {left:?}")))
}
