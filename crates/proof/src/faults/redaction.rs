//! A redaction that is interrupted at any point is completed by running it again.
//!
//! ```text
//!   secret in   entries · an answer · a title · drafts · the trace of a turn · an approval · the search index
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

use crate::dice::Dice;
use crate::secrets::places;
use crate::shim::{Death, Failure};
use crate::violation::{Failed, Trouble, Violation};

use super::check::verified_at;
use super::errors::Way;
use super::kill::{KillPlan, Kills};
use super::laboratory::{Laboratory, program};

const SECRET: &str = "zanzibarsecret4711";

const REDACT: &[&str] = &["redact", "--text", SECRET, "--yes"];

/// An injected fault.
#[derive(Clone, Copy, Debug)]
enum Strike {
    Die(Death),
    Fail(Way),
}

const STRIKES: [Strike; 6] = [
    Strike::Die(Death::Kill),
    Strike::Die(Death::Torn),
    Strike::Die(Death::Cut),
    Strike::Die(Death::TornCut),
    Strike::Fail(Way::Once(Failure::BrokenDisk)),
    Strike::Fail(Way::FromThenOn(Failure::DiskFull)),
];

/// Interrupts a redaction at every point, or at about the given number of points.
pub fn kill_redaction(plan: KillPlan) -> Result<Kills, Failed> {
    strike(plan, false)
}

/// The control: the search index is not scrubbed. It must be caught.
pub fn redaction_control() -> Result<Kills, Failed> {
    strike(KillPlan { seed: 1, points: Some(1) }, true)
}

fn strike(plan: KillPlan, keeps_words: bool) -> Result<Kills, Failed> {
    let laboratory = Laboratory::new(&program().map_err(Failed::Trouble)?).map_err(Failed::Trouble)?;
    let mut dice = Dice::new(plan.seed);
    let mut kills = Kills { commands: 1, ..Kills::default() };
    prepare(&laboratory).map_err(Failed::Trouble)?;
    let words = fs::read(laboratory.store().join("search.db")).map_err(Failed::trouble)?;
    laboratory.keep().map_err(Failed::Trouble)?;
    // The approximate total number of points.
    let share = plan.points.map(|points| (1500 / points.max(1)).max(1));
    for strike in STRIKES {
        let mut call = 1 + share.map_or(0, |share| dice.below(share));
        loop {
            laboratory.restore().map_err(Failed::Trouble)?;
            let run = laboratory
                .run(REDACT, |faults| match strike {
                    Strike::Die(death) => faults.die_at(call, death),
                    Strike::Fail(way) => way.arm(faults, call),
                })
                .map_err(Failed::Trouble)?;
            if run.report.faults == 0 {
                break;
            }
            kills.kills += 1;
            kills.lossy += u64::from(run.report.lost > 0);
            let finished = finish(&laboratory, keeps_words.then_some(&words)).map_err(Failed::Trouble)?;
            if let Some(broken) = finished {
                let what = format!("{REDACT:?}, {strike:?} at call {call}: {broken}");
                let violation = Violation { campaign: "redaction", seed: plan.seed, step: call, what };
                return Err(Failed::Violation(violation));
            }
            call += share.map_or(1, |share| 1 + dice.below(2 * share));
        }
    }
    Ok(kills)
}

/// Creates a store with the secret in every possible place.
fn prepare(laboratory: &Laboratory) -> Result<(), Trouble> {
    let said = format!("say I use {SECRET} for it");
    let draft = format!("deploy with {SECRET}, please");
    let turn = format!("run echo {SECRET}");
    for arguments in [
        &["run", "--new", &said][..],
        &["run", "--approve", "all", &turn],
        &["draft", "set", &draft],
        &["draft", "set", "something else"],
        &["thread", "new", &format!("About {SECRET}")],
        &["entry", "add", "Nothing to see here."],
        &["search", SECRET],
    ] {
        let run = laboratory.run(arguments, |faults| faults)?;
        if !run.acknowledged() {
            return Err(format!("{arguments:?} failed without a fault: {}", run.complaint()).into());
        }
    }
    let store = Store::open(&laboratory.store())?;
    let home = store.read()?.queries().threads(&ThreadFilter::default())?[0].home;
    let allowed = format!("shell: $ export A=1\n> export KEY={SECRET}");
    store.ledger()?.approve(home, &[7; 32], &allowed, Timestamp::from_millis(1))?;
    drop(store);
    let found = places(&laboratory.store(), SECRET.as_bytes())?;
    for file in ["retake.db", "search.db", "ledger.db"] {
        if !found.iter().any(|place| place.contains(file)) {
            return Err(format!("the secret is not in {file} to begin with: {found:?}").into());
        }
    }
    Ok(())
}

/// Runs the redaction again; returns the broken promise, if any.
fn finish(laboratory: &Laboratory, words: Option<&Vec<u8>>) -> Result<Option<String>, Trouble> {
    if let Err(broken) = verified_at(&laboratory.store()) {
        return Ok(Some(broken));
    }
    let again = laboratory.run(REDACT, |faults| faults)?;
    if !again.acknowledged() {
        return Ok(Some(format!("running it again failed: {}", again.complaint())));
    }
    if let Some(words) = words {
        fs::write(laboratory.store().join("search.db"), words)?;
    }
    let left = places(&laboratory.store(), SECRET.as_bytes())?;
    Ok((!left.is_empty()).then(|| format!("the secret is still in {left:?}")))
}
