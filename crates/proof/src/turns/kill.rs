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

use crate::dice::Dice;
use crate::faults::{KillPlan, Run};
use crate::files::{Home, Laboratory, PROJECT, retake};
use crate::folder::Folder;
use crate::ground::Ground;
use crate::shim::{Death, Faults};
use crate::violation::{Failed, Trouble, Violation};

const DEATHS: [Death; 4] = [Death::Kill, Death::Torn, Death::Cut, Death::TornCut];

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
pub struct TurnKills {
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
pub fn kill(plan: KillPlan) -> Result<TurnKills, Failed> {
    let mut strikes = Strikes::new(plan)?;
    for (number, turn) in (1..).zip(TURNS) {
        strikes.turn(number, turn)?;
    }
    Ok(strikes.kills)
}

/// The control: syncs do nothing, and the power is cut after the answer. It must be caught.
pub fn kill_control() -> Result<TurnKills, Failed> {
    let mut strikes = Strikes::new(KillPlan { seed: 1, points: None })?;
    let before = strikes.rehearse(TURNS[0])?;
    let run = strikes.laboratory.run(PROJECT, TURNS[0], |faults| faults.cut_at_exit().lying_syncs())?;
    strikes.kills.kills += 1;
    strikes.judge(1, &before, &run, "power cut with syncs that lie")?;
    Ok(strikes.kills)
}

/// The control: a temporary file named after a running process, which no command removes. It must be noticed.
pub fn leftover_control() -> Result<TurnKills, Failed> {
    let mut strikes = Strikes::new(KillPlan { seed: 1, points: None })?;
    let before = strikes.rehearse(TURNS[0])?;
    let name = format!("{}1", retake_workspace::leftover::tool_prefix(std::process::id()));
    fs::write(strikes.laboratory.place(PROJECT).join(name), "half of a file").map_err(Failed::trouble)?;
    let run = strikes.laboratory.run(PROJECT, TURNS[0], |faults| faults)?;
    strikes.kills.kills += 1;
    strikes.judge(1, &before, &run, "a temporary file that stays")?;
    Ok(strikes.kills)
}

struct Strikes {
    _ground: Ground,
    laboratory: Laboratory,
    dice: Dice,
    plan: KillPlan,
    kills: TurnKills,
}

/// The state before a turn.
struct Before {
    /// The log.
    log: Vec<String>,
    /// Number of lines that commands wrote.
    lines: usize,
    /// Expected number of lines after it.
    then: usize,
}

impl Strikes {
    fn new(plan: KillPlan) -> Result<Self, Failed> {
        let ground = Ground::for_files().map_err(Failed::trouble)?;
        let laboratory = Laboratory::new(ground.path(), retake()?, Home::Beside)?;
        Ok(Self {
            _ground: ground,
            laboratory,
            dice: Dice::new(plan.seed),
            plan,
            kills: TurnKills::default(),
        })
    }

    /// Saves everything, and runs the turn once for reference.
    fn rehearse(&mut self, turn: &[&str]) -> Result<Before, Failed> {
        let (log, lines) = (self.sight()?.log, self.lines());
        self.laboratory.keep()?;
        self.laboratory.must(PROJECT, turn)?;
        let then = self.lines();
        self.laboratory.restore()?;
        Ok(Before { log, lines, then })
    }

    fn turn(&mut self, number: u64, turn: &[&str]) -> Result<(), Failed> {
        let before = self.rehearse(turn)?;
        self.kills.turns += 1;
        // The approximate total number of points; a smaller plan tests a share of each turn's.
        let share = self.plan.points.map(|points| (6_000 / points.max(1)).max(1));
        for death in DEATHS {
            let mut call = 1 + share.map_or(0, |share| self.dice.below(share));
            loop {
                self.laboratory.restore()?;
                let run = self.laboratory.run(PROJECT, turn, |faults| faults.die_at(call, death))?;
                if run.report.faults == 0 {
                    break;
                }
                self.kills.kills += 1;
                self.kills.lossy += u64::from(run.report.lost > 0);
                self.judge(number, &before, &run, &format!("{turn:?}, {death:?} at call {call}"))?;
                call += share.map_or(1, |share| 1 + self.dice.below(2 * share));
            }
        }
        self.laboratory.restore()?;
        let run = self.laboratory.run(PROJECT, turn, Faults::cut_at_exit)?;
        self.judge(number, &before, &run, &format!("{turn:?}, power cut after the answer"))?;
        self.laboratory.restore()?;
        self.laboratory.must(PROJECT, turn)?;
        Ok(())
    }

    fn judge(&mut self, number: u64, before: &Before, run: &Run, what: &str) -> Result<(), Failed> {
        let checked = self.check(before, run);
        checked.map_err(|broken| {
            let what = format!("{what}: {broken}");
            Failed::Violation(Violation { campaign: "turns kill", seed: self.plan.seed, step: number, what })
        })
    }

    fn check(&mut self, before: &Before, run: &Run) -> Result<(), String> {
        let text = |trouble: Failed| trouble.to_string();
        let left = self.sight().map_err(text)?;
        if !left.log.starts_with(&before.log) {
            return Err("acknowledged operations were lost or altered".to_owned());
        }
        if run.acknowledged() && (left.unfinished || left.ran != left.ended) {
            return Err("acknowledged, but not done".to_owned());
        }
        if run.acknowledged() && left.log.len() == before.log.len() {
            return Err("acknowledged, and nothing of it is there".to_owned());
        }
        self.kills.interrupted += u64::from(left.ran > left.ended);
        self.go_on(left.unfinished)?;
        let after = self.sight().map_err(text)?;
        if !after.log.starts_with(&left.log) {
            return Err("going on lost or altered what was there".to_owned());
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
            self.laboratory
                .run(PROJECT, &["run", "--approve", "all", "create next.txt with n"], |faults| faults);
        let next = next.map_err(|trouble| trouble.to_string())?;
        if !next.acknowledged() {
            return Err(format!("the next turn failed: {}", next.complaint()));
        }
        self.together()?;
        // A process killed after its last step leaves a record, which the next turn removes.
        let timeline = self.timeline().map_err(text)?;
        let records = timeline.store().ledger().and_then(|ledger| ledger.turns());
        match records.map_err(|error| error.to_string())?.first() {
            Some(left) => Err(format!("a record of turn {} was left", left.turn)),
            None => Ok(()),
        }
    }

    /// Continues in one of the possible ways.
    fn go_on(&mut self, unfinished: bool) -> Result<(), String> {
        if !unfinished {
            return Ok(());
        }
        let ways: [&[&str]; 4] = [
            &["resume", "--approve", "all"],
            &["stop"],
            &["run", "--approve", "all", "say something else"],
            &["undo"],
        ];
        let way = self.dice.index(5).saturating_sub(1);
        if way == 0 {
            self.kills.resumed += 1;
        } else {
            self.kills.closed += 1;
        }
        let run = self
            .laboratory
            .run(PROJECT, ways[way], |faults| faults)
            .map_err(|trouble| trouble.to_string())?;
        if run.acknowledged() { Ok(()) } else { Err(format!("{:?} failed: {}", ways[way], run.complaint())) }
    }

    /// The folder agrees with the store, and nothing is left over.
    fn together(&self) -> Result<(), String> {
        for look in 0..2 {
            let run = self
                .laboratory
                .run(PROJECT, &["status"], |faults| faults)
                .map_err(|error| error.to_string())?;
            if !run.acknowledged() {
                return Err(format!("looking failed: {}", run.complaint()));
            }
            let answer: Value =
                serde_json::from_slice(&run.output.stdout).map_err(|error| error.to_string())?;
            let paths = answer["changed"]["paths"].as_array().cloned().unwrap_or_default();
            if !paths.is_empty() {
                return Err(format!("split: look {look} finds {paths:?}, and nobody worked by hand"));
            }
        }
        let folder = Folder::read(&self.laboratory.place(PROJECT)).map_err(|error| error.to_string())?;
        if let Some(left) = folder.leftovers().first() {
            return Err(format!("{} was left behind", left.display()));
        }
        let timeline = self.timeline().map_err(|failed| failed.to_string())?;
        let found = timeline.store().verify(&mut |_| {}).map_err(|error| error.to_string())?;
        found.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
    }

    fn lines(&self) -> usize {
        let path = self.laboratory.place(PROJECT).join("ran.txt");
        fs::read_to_string(path).unwrap_or_default().lines().count()
    }

    fn timeline(&self) -> Result<Timeline, Failed> {
        Timeline::open(&self.laboratory.store(), Rules::default()).map_err(Failed::trouble)
    }

    fn sight(&self) -> Result<Sight, Failed> {
        Ok(Sight::of(&self.timeline()?)?)
    }
}

/// The state of the store's only thread.
#[derive(Debug)]
struct Sight {
    /// The ids of all operations, in order.
    log: Vec<String>,
    /// Whether a turn of the active take has not ended.
    unfinished: bool,
    /// Number of calls in the active take.
    ran: usize,
    /// Number of calls with a result.
    ended: usize,
}

impl Sight {
    fn of(timeline: &Timeline) -> Result<Self, Trouble> {
        let looking = timeline.look()?;
        let rows = looking.threads(&retake_store::ThreadFilter::default())?;
        let [row] = rows.as_slice() else { return Err(format!("{} threads, not one", rows.len()).into()) };
        let mut log = looking.queries().operations_back(row.number, u64::MAX, usize::MAX)?;
        log.reverse();
        let thread = row.summary.id;
        let take = looking.state(thread)?.active_take(&looking.queries())?;
        let mut calls: BTreeMap<String, usize> = BTreeMap::new();
        for view in looking.page(thread, &take, 0..take.entries.len())? {
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
