//! Several processes on one folder, each with its own thread, some killed at random.
//!
//! ```text
//!   worker 1   run · undo · redo · run · ✗ · run …   in the folder one/  ┐ one project, one store:
//!   worker 2   undo · run · ✗ · redo · run · …       in the folder two/  ┘ the real program each time
//! ```
//!
//! Afterwards the log contains the file of every acknowledged command and every acknowledged move, no move is
//! unfinished, and recording finds no further changes. The author of a file depends on which process records it first,
//! because concurrent changes in one folder cannot be told apart. The control counts a killed command as acknowledged.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use retake_model::object::load;
use retake_model::operation::{FileChange, OperationKind};
use retake_model::tree::{Snapshot, differences};
use retake_store::{Queries, ThreadFilter};
use retake_timeline::{Rules, Timeline};

use crate::files::{PROJECT, Sandbox, StoreLocation, retake};
use crate::folder::Folder;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

const WORKERS: [&str; 2] = ["one", "two"];

/// The size of a run, and the interpretation of kills.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrentPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of commands per worker.
    pub commands: u64,
    /// How a killed command is interpreted.
    pub killed: KilledCommand,
}

/// How a killed command is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KilledCommand {
    /// Executed or not.
    Unknown,
    /// Executed: the control.
    Done,
}

/// The acknowledgements of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerLog {
    /// Files of acknowledged changes.
    pub changes: Vec<String>,
    /// Number of acknowledged moves.
    pub moves: u64,
    /// Files of killed changes.
    pub killed: Vec<String>,
}

/// Runs the workers on one folder.
pub fn concurrent_processes(plan: ConcurrentPlan) -> Result<Vec<WorkerLog>, CampaignError> {
    let scratch = ScratchDir::for_files().map_err(CampaignError::trouble)?;
    let sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    for worker in WORKERS {
        sandbox.run_checked(PROJECT, &["thread", "new", worker])?;
        sandbox.by_hand(&format!("mkdir {worker}; echo 0 > {worker}/count"))?;
        sandbox.run_checked(PROJECT, &["snapshot", "take", "--thread", worker])?;
    }
    let mut rng = Rng::new(plan.seed);
    let told = std::thread::scope(|scope| {
        let workers: Vec<_> = WORKERS
            .into_iter()
            .map(|name| {
                let (rng, sandbox) = (rng.split(), &sandbox);
                scope.spawn(move || work(sandbox, name, rng, plan))
            })
            .collect();
        let ended = workers.into_iter().map(|worker| {
            worker.join().map_err(|_| BoxError::from("a worker panicked")).and_then(|told| told)
        });
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    check(&sandbox, &told, plan.killed).map_err(|what| {
        CampaignError::Violation(Violation {
            campaign: "concurrent-processes",
            seed: plan.seed,
            step: plan.commands,
            what,
        })
    })?;
    Ok(told)
}

fn work(sandbox: &Sandbox, name: &str, mut rng: Rng, plan: ConcurrentPlan) -> Result<WorkerLog, BoxError> {
    // The control needs a command that dies before it writes, on slow and fast machines alike.
    let delay_limit = match plan.killed {
        KilledCommand::Unknown => Duration::from_millis(60),
        KilledCommand::Done => Duration::ZERO,
    };
    let mut told = WorkerLog::default();
    for number in 0..plan.commands {
        let path = format!("{name}/{number}");
        let line = format!("echo {number} > {name}/count; echo {number} > {path}");
        let run = ["exec", "--thread", name, "--", "sh", "-c", &line];
        let (undo, redo) = (["undo", "--thread", name], ["redo", "--thread", name]);
        let (arguments, changes): (&[&str], bool) = match rng.below(4) {
            0 => (&undo, false),
            1 => (&redo, false),
            _ => (&run, true),
        };
        let mut child =
            sandbox.command(PROJECT, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        if rng.once_in(3) {
            std::thread::sleep(delay_limit.mul_f64(rng.below(1_000) as f64 / 1_000.0));
            // It may have exited already.
            let _ = child.kill();
        }
        let status = child.wait()?;
        match (status.success(), status.code()) {
            (true, _) if changes => told.changes.push(path),
            (true, _) => told.moves += 1,
            (false, None) if changes => told.killed.push(path),
            (false, None) => {}
            // Nothing to undo or redo.
            (false, Some(_)) if !changes => {}
            (false, Some(code)) => return Err(format!("{arguments:?} ended with {code}").into()),
        }
    }
    Ok(told)
}

fn check(sandbox: &Sandbox, told: &[WorkerLog], killed: KilledCommand) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    for worker in WORKERS {
        sandbox.run_checked(PROJECT, &["status", "--thread", worker]).map_err(|error| fail(&error))?;
    }
    let again =
        sandbox.run_checked(PROJECT, &["status", "--thread", WORKERS[0]]).map_err(|error| fail(&error))?;
    if !String::from_utf8_lossy(&again.output.stdout).contains(r#""paths":[]"#) {
        return Err("looking twice finds changes that nobody made".to_owned());
    }
    let found = Folder::read(&sandbox.place(PROJECT)).map_err(|error| fail(&error))?;
    if let Some(left) = found.leftovers().first() {
        return Err(format!("{} was left behind", left.display()));
    }
    let store: &Path = &sandbox.store();
    let timeline = Timeline::open(store, Rules::default()).map_err(|error| fail(&error))?;
    let reader = timeline.read().map_err(|error| fail(&error))?;
    if !reader.queries().intents().map_err(|error| fail(&error))?.is_empty() {
        return Err("a move is still unfinished".to_owned());
    }
    let mut written = BTreeSet::new();
    for row in reader.threads(&ThreadFilter::default()).map_err(|error| fail(&error))? {
        let log = reader.queries().operations_back(row.number, u64::MAX, usize::MAX);
        let log = log.map_err(|error| fail(&error))?;
        for files in log.iter().filter_map(|stored| stored.operation.files.as_ref()) {
            paths_written(&reader.queries(), files, &mut written).map_err(|error| fail(&error))?;
        }
        let Some(worker) = WORKERS.iter().position(|name| *name == row.summary.title) else { continue };
        let moved = |kind: &OperationKind| {
            matches!(kind, OperationKind::Undone { .. } | OperationKind::Redone { .. })
        };
        let moves = log.iter().filter(|stored| moved(&stored.operation.kind)).count() as u64;
        if moves < told[worker].moves {
            return Err(format!(
                "{moves} moves of {worker} are there, and {} were acknowledged",
                told[worker].moves
            ));
        }
    }
    let also =
        |told: &WorkerLog| if killed == KilledCommand::Done { told.killed.clone() } else { Vec::new() };
    let missing = told.iter().flat_map(|told| told.changes.iter().cloned().chain(also(told)));
    if let Some(missing) = missing.into_iter().find(|path| !written.contains(path)) {
        return Err(format!("{missing} was acknowledged, and no operation wrote it"));
    }
    let verified = timeline.store().verify(&mut |_| {}).map_err(|error| fail(&error))?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
}

/// Adds the paths that an operation wrote.
pub(crate) fn paths_written(
    queries: &Queries<'_>,
    files: &FileChange,
    written: &mut BTreeSet<String>,
) -> Result<(), BoxError> {
    let (before, after): (Snapshot, Snapshot) = (load(queries, files.before)?, load(queries, files.after)?);
    let tree = |snapshot: &Snapshot| snapshot.root("").map(|root| root.tree);
    let found = differences(queries, tree(&before), tree(&after))?;
    written
        .extend(found.into_iter().filter(|found| found.after.is_some()).map(|found| found.path.to_string()));
    Ok(())
}
