//! Several processes on one folder, each with a thread of its own, some killed at random.
//!
//! ```text
//!   worker 1   run · undo · redo · run · ✗ · run …   in the folder one/  ┐ one project, one store:
//!   worker 2   undo · run · ✗ · redo · run · …       in the folder two/  ┘ the real program each time
//! ```
//!
//! In the end every command that was acknowledged is in its thread's log, a command that was killed at most once,
//! no move is unfinished, and a look finds nothing that somebody would have changed by hand since. The control
//! takes a killed command for an acknowledged one.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use retake_model::operation::OperationKind;
use retake_store::ThreadFilter;
use retake_timeline::{Rules, Timeline};

use crate::dice::Dice;
use crate::files::{Home, Laboratory, PROJECT, retake};
use crate::folder::Folder;
use crate::ground::Ground;
use crate::violation::{Failed, Trouble, Violation};

const WORKERS: [&str; 2] = ["one", "two"];

/// How many commands, and what is made of kills.
#[derive(Clone, Copy, Debug)]
pub struct CrowdPlan {
    /// What the dice start from.
    pub seed: u64,
    /// How many commands each worker runs.
    pub commands: u64,
    /// What a killed command is taken for.
    pub killed: Killed,
}

/// What a killed command is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// For one that may have been done or not.
    Unknown,
    /// For one that was done: the control.
    Done,
}

/// What a worker was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Changes of files that were acknowledged.
    pub changes: u64,
    /// Moves that were acknowledged.
    pub moves: u64,
    /// Commands that were killed.
    pub kills: u64,
}

/// Lets workers loose on one folder.
pub fn crowd(plan: CrowdPlan) -> Result<Vec<Told>, Failed> {
    let ground = Ground::for_files().map_err(Failed::trouble)?;
    let laboratory = Laboratory::new(ground.path(), retake()?, Home::Beside)?;
    for worker in WORKERS {
        laboratory.must(PROJECT, &["thread", "new", worker])?;
        laboratory.by_hand(&format!("mkdir {worker}; echo 0 > {worker}/count"))?;
        laboratory.must(PROJECT, &["snapshot", "take", "--thread", worker])?;
    }
    let mut dice = Dice::new(plan.seed);
    let told = std::thread::scope(|scope| {
        let workers: Vec<_> = WORKERS
            .into_iter()
            .map(|name| {
                let (dice, laboratory) = (dice.split(), &laboratory);
                scope.spawn(move || work(laboratory, name, dice, plan.commands))
            })
            .collect();
        let ended = workers.into_iter().map(|worker| {
            worker.join().map_err(|_| Trouble::from("a worker panicked")).and_then(|told| told)
        });
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    check(&laboratory, &told, plan.killed).map_err(|what| {
        Failed::Violation(Violation { campaign: "crowd", seed: plan.seed, step: plan.commands, what })
    })?;
    Ok(told)
}

fn work(laboratory: &Laboratory, name: &str, mut dice: Dice, commands: u64) -> Result<Told, Trouble> {
    let mut told = Told::default();
    for number in 0..commands {
        let line = format!("echo {number} > {name}/count; echo {number} > {name}/$(({number} % 5))");
        let run = ["run", "--thread", name, "--", "sh", "-c", &line];
        let (undo, redo) = (["undo", "--thread", name], ["redo", "--thread", name]);
        let (arguments, changes): (&[&str], bool) = match dice.below(4) {
            0 => (&undo, false),
            1 => (&redo, false),
            _ => (&run, true),
        };
        let mut child =
            laboratory.command(PROJECT, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        if dice.once_in(3) {
            std::thread::sleep(Duration::from_micros(dice.below(60_000)));
            // It may have ended by itself.
            let _ = child.kill();
        }
        let status = child.wait()?;
        match (status.success(), status.code()) {
            (true, _) if changes => told.changes += 1,
            (true, _) => told.moves += 1,
            (false, None) => told.kills += u64::from(changes),
            // There was nothing to undo or to redo.
            (false, Some(_)) if !changes => {}
            (false, Some(code)) => return Err(format!("{arguments:?} ended with {code}").into()),
        }
    }
    Ok(told)
}

fn check(laboratory: &Laboratory, told: &[Told], killed: Killed) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    for worker in WORKERS {
        laboratory.must(PROJECT, &["status", "--thread", worker]).map_err(|error| fail(&error))?;
    }
    let again =
        laboratory.must(PROJECT, &["status", "--thread", WORKERS[0]]).map_err(|error| fail(&error))?;
    if !String::from_utf8_lossy(&again.output.stdout).contains(r#""paths":[]"#) {
        return Err("looking twice finds changes that nobody made".to_owned());
    }
    let found = Folder::read(&laboratory.place(PROJECT)).map_err(|error| fail(&error))?;
    if let Some(left) = found.leftovers().first() {
        return Err(format!("{} was left behind", left.display()));
    }
    let store: &Path = &laboratory.store();
    let timeline = Timeline::open(store, Rules::default()).map_err(|error| fail(&error))?;
    let looking = timeline.look().map_err(|error| fail(&error))?;
    if !looking.queries().intents().map_err(|error| fail(&error))?.is_empty() {
        return Err("a move is still unfinished".to_owned());
    }
    for row in looking.threads(&ThreadFilter::default()).map_err(|error| fail(&error))? {
        let Some(worker) = WORKERS.iter().position(|name| *name == row.summary.title) else { continue };
        let log = looking.queries().operations_back(row.number, u64::MAX, usize::MAX);
        let log = log.map_err(|error| fail(&error))?;
        let kind = |test: &dyn Fn(&OperationKind) -> bool| {
            log.iter().filter(|stored| test(&stored.operation.kind)).count() as u64
        };
        let changes = kind(&|kind| matches!(kind, OperationKind::FilesChanged { .. }));
        let moves = kind(&|kind| matches!(kind, OperationKind::Undone { .. } | OperationKind::Redone { .. }));
        let Told { changes: least, moves: least_moves, kills } = told[worker];
        let least = if killed == Killed::Done { least + kills } else { least };
        // What was run may have changed nothing: the same number in the same file. It was a change by name only.
        if changes < least || moves < least_moves {
            return Err(format!(
                "{changes} changes and {moves} moves of {} are there, and {least} and {least_moves} were acknowledged",
                row.summary.title
            ));
        }
    }
    let verified = timeline.store().verify(&mut |_| {}).map_err(|error| fail(&error))?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
}
