//! Kills the program at every write-class system call of whole turns with tools.
//!
//! ```text
//!   script   run "create … / run echo … / edit …"   ·   retry   ·   undo, and run again
//!               │
//!               └─ at each write-class call, in four ways:  run … ✗ ─► resume, or stop, or run ─► conversation and files agree
//! ```
//!
//! The offline assistant needs no network, so the real program runs whole turns. At any point: acknowledged changes
//! exist; a command that was marked as running never runs again; the interrupted call is closed; conversation and files
//! are at the same operation, and the next turn works.
//!
//! In one control, syncs do nothing and the power is cut after the answer; in the other, a temporary file with the name
//! of a running process must be reported as left behind.

use std::collections::BTreeMap;
use std::fs;

use retake_model::entry::Block;
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

use crate::faults::{KillPlan, Run};
use crate::files::{PROJECT, Sandbox, StoreLocation, retake};
use crate::folder::Folder;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::shim::{Faults, KillMode};
use crate::violation::{BoxError, CampaignError, Violation};

const DEATHS: [KillMode; 4] = [KillMode::Kill, KillMode::Torn, KillMode::Cut, KillMode::TornCut];

/// A command that runs twice leaves two lines. It syncs its own output, since Retake does not promise that a program's
/// work survives a power cut.
const WORK: &str = "create a.txt with hi\nrun echo ran >> ran.txt; sync -f .\nedit a.txt: replace \"hi\" with \
                    \"ho\"\nsay done";

/// The turns. Each runs a command that appends a line to `ran.txt`; a retry starts without the lines of the first
/// attempt.
const TURNS: [&[&str]; 3] = [
    &["run", "--approve", "all", WORK],
    &["retry", "--approve", "all"],
    &["run", "--approve", "all", "run echo ran >> ran.txt; sync -f .\ncreate b/c.txt with more\nlist"],
];

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnKillSummary {
    /// Turns that were tested.
    pub turns: u64,
    /// Number of kills.
    pub kills: u64,
    /// Kills that lost unsynced data.
    pub lossy: u64,
    /// Turns that were resumed.
    pub resumed: u64,
    /// Turns that were closed instead, by `stop`, the next turn or an undo.
    pub closed: u64,
    /// Kills after which a running call was found.
    pub interrupted: u64,
}

/// Kills the program at every point of every turn, or at about the given number of points.
pub fn kill(plan: KillPlan) -> Result<TurnKillSummary, CampaignError> {
    let mut strikes = TurnKillRun::new(plan)?;
    for (number, turn) in (1..).zip(TURNS) {
        strikes.turn(number, turn)?;
    }
    Ok(strikes.kills)
}

/// The control: syncs do nothing, and the power is cut after the answer. It must be caught.
pub fn kill_control() -> Result<TurnKillSummary, CampaignError> {
    let mut strikes = TurnKillRun::new(KillPlan { seed: 1, points: None })?;
    let before = strikes.rehearse(TURNS[0])?;
    let run = strikes.sandbox.run(PROJECT, TURNS[0], |faults| faults.cut_at_exit().lying_syncs())?;
    strikes.kills.kills += 1;
    strikes.judge(1, &before, &run, "power cut with syncs that lie")?;
    Ok(strikes.kills)
}

/// The control: a temporary file named after a running process, which no command removes. It must be noticed.
pub fn leftover_control() -> Result<TurnKillSummary, CampaignError> {
    let mut strikes = TurnKillRun::new(KillPlan { seed: 1, points: None })?;
    let before = strikes.rehearse(TURNS[0])?;
    let name = format!("{}1", retake_workspace::leftover::tool_prefix(std::process::id()));
    fs::write(strikes.sandbox.place(PROJECT).join(name), "half of a file").map_err(CampaignError::trouble)?;
    let run = strikes.sandbox.run(PROJECT, TURNS[0], |faults| faults)?;
    strikes.kills.kills += 1;
    strikes.judge(1, &before, &run, "a temporary file that stays")?;
    Ok(strikes.kills)
}

struct TurnKillRun {
    _ground: ScratchDir,
    sandbox: Sandbox,
    rng: Rng,
    plan: KillPlan,
    kills: TurnKillSummary,
}

/// The state before a turn.
struct Baseline {
    /// The log.
    log: Vec<String>,
    /// Number of lines that commands wrote.
    lines: usize,
    /// Expected number of lines after it.
    then: usize,
}

impl TurnKillRun {
    fn new(plan: KillPlan) -> Result<Self, CampaignError> {
        let scratch = ScratchDir::for_files().map_err(CampaignError::trouble)?;
        let sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
        Ok(Self {
            _ground: scratch,
            sandbox,
            rng: Rng::new(plan.seed),
            plan,
            kills: TurnKillSummary::default(),
        })
    }

    /// Saves everything, and runs the turn once for reference.
    fn rehearse(&mut self, turn: &[&str]) -> Result<Baseline, CampaignError> {
        let (log, lines) = (self.sight()?.log, self.lines());
        self.sandbox.keep()?;
        self.sandbox.run_checked(PROJECT, turn)?;
        let then = self.lines();
        self.sandbox.restore()?;
        Ok(Baseline { log, lines, then })
    }

    fn turn(&mut self, number: u64, turn: &[&str]) -> Result<(), CampaignError> {
        let before = self.rehearse(turn)?;
        self.kills.turns += 1;
        // The approximate total number of points; a smaller plan tests a share of each turn's.
        let share = self.plan.points.map(|points| (6_000 / points.max(1)).max(1));
        for death in DEATHS {
            let mut call = 1 + share.map_or(0, |share| self.rng.below(share));
            loop {
                self.sandbox.restore()?;
                let run = self.sandbox.run(PROJECT, turn, |faults| faults.die_at(call, death))?;
                if run.report.faults == 0 {
                    break;
                }
                self.kills.kills += 1;
                self.kills.lossy += u64::from(run.report.lost > 0);
                self.judge(number, &before, &run, &format!("{turn:?}, {death:?} at call {call}"))?;
                call += share.map_or(1, |share| 1 + self.rng.below(2 * share));
            }
        }
        self.sandbox.restore()?;
        let run = self.sandbox.run(PROJECT, turn, Faults::cut_at_exit)?;
        self.judge(number, &before, &run, &format!("{turn:?}, power cut after the answer"))?;
        self.sandbox.restore()?;
        self.sandbox.run_checked(PROJECT, turn)?;
        Ok(())
    }

    fn judge(&mut self, number: u64, before: &Baseline, run: &Run, what: &str) -> Result<(), CampaignError> {
        let checked = self.check(before, run);
        checked.map_err(|broken| {
            let what = format!("{what}: {broken}");
            CampaignError::Violation(Violation {
                campaign: "turns kill",
                seed: self.plan.seed,
                step: number,
                what,
            })
        })
    }

    fn check(&mut self, before: &Baseline, run: &Run) -> Result<(), String> {
        let text = |trouble: CampaignError| trouble.to_string();
        let left = self.sight().map_err(text)?;
        if !left.log.starts_with(&before.log) {
            return Err("acknowledged operations were lost or altered".to_owned());
        }
        if run.acknowledged() && (left.unfinished || left.ran != left.ended) {
            return Err("acknowledged, but not done".to_owned());
        }
        if run.acknowledged() && left.log.len() == before.log.len() {
            return Err("acknowledged, but missing from the log".to_owned());
        }
        self.kills.interrupted += u64::from(left.ran > left.ended);
        self.continue_turn(left.unfinished)?;
        let after = self.sight().map_err(text)?;
        if !after.log.starts_with(&left.log) {
            return Err("resuming lost or altered existing content".to_owned());
        }
        if after.unfinished || after.ran != after.ended {
            return Err(format!("{} calls ran, {} have a result", after.ran, after.ended));
        }
        let lines = self.lines();
        let most = before.lines.max(before.then);
        if lines > most {
            return Err(format!("a command ran twice: {lines} lines, at most {most} were to be"));
        }
        if run.acknowledged() && lines != before.then {
            return Err(format!("acknowledged, but the command left {lines} lines"));
        }
        self.together()?;
        let next =
            self.sandbox
                .run(PROJECT, &["run", "--approve", "all", "create next.txt with n"], |faults| faults);
        let next = next.map_err(|trouble| trouble.to_string())?;
        if !next.acknowledged() {
            return Err(format!("the next turn failed: {}", next.complaint()));
        }
        self.together()?;
        // A process killed after its last step leaves a record, which the next turn removes.
        let timeline = self.timeline().map_err(text)?;
        let records =
            timeline.store().runtime_database().and_then(|runtime_database| runtime_database.turns());
        match records.map_err(|error| error.to_string())?.first() {
            Some(left) => Err(format!("a record of turn {} was left behind", left.turn)),
            None => Ok(()),
        }
    }

    /// Continues in one of the possible ways.
    fn continue_turn(&mut self, unfinished: bool) -> Result<(), String> {
        if !unfinished {
            return Ok(());
        }
        let ways: [&[&str]; 4] = [
            &["resume", "--approve", "all"],
            &["stop"],
            &["run", "--approve", "all", "say something else"],
            // The tool was killed, so that its changes may be the user's.
            &["undo", "--shared"],
        ];
        let way = self.rng.index(5).saturating_sub(1);
        if way == 0 {
            self.kills.resumed += 1;
        } else {
            self.kills.closed += 1;
        }
        let run =
            self.sandbox.run(PROJECT, ways[way], |faults| faults).map_err(|trouble| trouble.to_string())?;
        if run.acknowledged() { Ok(()) } else { Err(format!("{:?} failed: {}", ways[way], run.complaint())) }
    }

    /// The folder agrees with the store, and nothing is left over.
    fn together(&self) -> Result<(), String> {
        for look in 0..2 {
            let run =
                self.sandbox.run(PROJECT, &["status"], |faults| faults).map_err(|error| error.to_string())?;
            if !run.acknowledged() {
                return Err(format!("`status` failed: {}", run.complaint()));
            }
            let answer: Value =
                serde_json::from_slice(&run.output.stdout).map_err(|error| error.to_string())?;
            let paths = answer["changed"]["paths"].as_array().cloned().unwrap_or_default();
            if !paths.is_empty() {
                return Err(format!(
                    "split: `status` number {look} finds {paths:?}, although no files changed"
                ));
            }
        }
        let folder = Folder::read(&self.sandbox.place(PROJECT)).map_err(|error| error.to_string())?;
        if let Some(left) = folder.leftovers().first() {
            return Err(format!("the temporary file {} was not removed", left.display()));
        }
        let timeline = self.timeline().map_err(|failed| failed.to_string())?;
        let found = timeline.store().verify(&mut |_| {}).map_err(|error| error.to_string())?;
        found.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
    }

    fn lines(&self) -> usize {
        let path = self.sandbox.place(PROJECT).join("ran.txt");
        fs::read_to_string(path).unwrap_or_default().lines().count()
    }

    fn timeline(&self) -> Result<Timeline, CampaignError> {
        Timeline::open(&self.sandbox.store(), Rules::default()).map_err(CampaignError::trouble)
    }

    fn sight(&self) -> Result<StoreView, CampaignError> {
        Ok(StoreView::of(&self.timeline()?)?)
    }
}

/// The state of the store's only thread.
#[derive(Debug)]
struct StoreView {
    /// The ids of all operations, in order.
    log: Vec<String>,
    /// Whether a turn of the active take has not ended.
    unfinished: bool,
    /// Number of calls in the active take.
    ran: usize,
    /// Number of calls with a result.
    ended: usize,
}

impl StoreView {
    fn of(timeline: &Timeline) -> Result<Self, BoxError> {
        let reader = timeline.read()?;
        let rows = reader.threads(&retake_store::ThreadFilter::default())?;
        let [row] = rows.as_slice() else { return Err(format!("{} threads, not one", rows.len()).into()) };
        let mut log = reader.queries().operations_back(row.number, u64::MAX, usize::MAX)?;
        log.reverse();
        let thread = row.summary.id;
        let take = reader.state(thread)?.active_take(&reader.queries())?;
        let mut calls: BTreeMap<String, usize> = BTreeMap::new();
        for view in reader.entries(thread, &take).page(0..take.entries.len())? {
            for block in &view.entry.blocks {
                match block {
                    Block::ToolCall { call, .. } => _ = calls.entry(call.clone()).or_default(),
                    Block::ToolResult { call, .. } => *calls.entry(call.clone()).or_default() += 1,
                    _ => {}
                }
            }
        }
        if let Some((call, _)) = calls.iter().find(|(_, results)| **results > 1) {
            return Err(format!("call {call} has more than one result").into());
        }
        Ok(Self {
            log: log.iter().map(|stored| stored.id.to_string()).collect(),
            unfinished: take.agent.is_some(),
            ran: calls.len(),
            ended: calls.values().filter(|results| **results == 1).count(),
        })
    }
}
