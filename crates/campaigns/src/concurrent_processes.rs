//! Several processes on one folder, each with its own thread, some killed at random.
//!
//! ```text
//!   worker 1   run · undo · redo · run · ✗ · run …   in the folder one/  ┐ one project, one store:
//!   worker 2   undo · run · ✗ · redo · run · …       in the folder two/  │ the real program each time
//!   speaker    entry · entry · ✗ · entry · …         in both threads     ┘
//! ```
//!
//! Afterwards the log contains the file of every acknowledged command, every acknowledged move and entry, no move is
//! unfinished, and recording finds no further changes. The author of a file depends on which process records it first,
//! because concurrent changes in one folder cannot be told apart. The control counts a killed command as acknowledged.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use retake_model::entry::EntryVersion;
use retake_model::object::load;
use retake_model::operation::{FileChange, OperationKind};
use retake_model::state::ThreadState;
use retake_model::tree::{Snapshot, differences};
use retake_store::{Queries, StoredOperation, ThreadFilter};
use retake_timeline::{Rules, Timeline};

use crate::files::{PROJECT, Sandbox, StoreLocation, retake};
use crate::folder::Folder;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

const WORKERS: [&str; 2] = ["one", "two"];
/// Adds entries to the threads of the workers.
const SPEAKER: &str = "speaker";

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
    /// Texts of acknowledged entries.
    pub entries: Vec<String>,
    /// Texts of killed entries.
    pub killed_entries: Vec<String>,
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
    let workers = std::thread::scope(|scope| {
        let threads: Vec<_> = WORKERS
            .into_iter()
            .chain([SPEAKER])
            .map(|name| {
                let (rng, sandbox) = (rng.split(), &sandbox);
                scope.spawn(move || match name {
                    SPEAKER => speak(sandbox, rng, plan),
                    name => work(sandbox, name, rng, plan),
                })
            })
            .collect();
        let ended = threads
            .into_iter()
            .map(|worker| worker.join().map_err(|_| BoxError::from("a worker panicked")).and_then(|log| log));
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    check(&sandbox, &workers, plan.killed).map_err(|what| {
        CampaignError::Violation(Violation {
            campaign: "concurrent-processes",
            seed: plan.seed,
            step: plan.commands,
            what,
        })
    })?;
    Ok(workers)
}

fn work(sandbox: &Sandbox, name: &str, mut rng: Rng, plan: ConcurrentPlan) -> Result<WorkerLog, BoxError> {
    // Kills fall anywhere into a command, as long as the last uninterrupted one took. The control needs a command that
    // dies before it writes.
    let mut duration = Duration::ZERO;
    let mut log = WorkerLog::default();
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
        let (started, kill) = (Instant::now(), rng.once_in(3));
        if kill {
            std::thread::sleep(duration.mul_f64(rng.below(1_000) as f64 / 1_000.0));
            // It may have exited already.
            let _ = child.kill();
        }
        let status = child.wait()?;
        if !kill && plan.killed == KilledCommand::Unknown {
            duration = started.elapsed();
        }
        match (status.success(), status.code()) {
            (true, _) if changes => log.changes.push(path),
            (true, _) => log.moves += 1,
            (false, None) if changes => log.killed.push(path),
            (false, None) => {}
            // Nothing to undo or redo.
            (false, Some(_)) if !changes => {}
            (false, Some(code)) => return Err(format!("{arguments:?} ended with {code}").into()),
        }
    }
    Ok(log)
}

/// Adds entries to both threads, and kills some of the commands.
fn speak(sandbox: &Sandbox, mut rng: Rng, plan: ConcurrentPlan) -> Result<WorkerLog, BoxError> {
    let mut duration = Duration::ZERO;
    let mut log = WorkerLog::default();
    for number in 0..plan.commands {
        let (thread, text) = (WORKERS[rng.index(WORKERS.len())], format!("entry {number}."));
        let arguments = ["entry", "add", &text, "--thread", thread];
        let mut child =
            sandbox.command(PROJECT, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let (started, kill) = (Instant::now(), rng.once_in(3));
        if kill {
            std::thread::sleep(duration.mul_f64(rng.below(1_000) as f64 / 1_000.0));
            // It may have exited already.
            let _ = child.kill();
        }
        let status = child.wait()?;
        if !kill && plan.killed == KilledCommand::Unknown {
            duration = started.elapsed();
        }
        match (status.success(), status.code()) {
            (true, _) => log.entries.push(text),
            (false, None) => log.killed_entries.push(text),
            (false, Some(code)) => return Err(format!("{arguments:?} ended with {code}").into()),
        }
    }
    Ok(log)
}

fn check(sandbox: &Sandbox, workers: &[WorkerLog], killed: KilledCommand) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    for worker in WORKERS {
        sandbox.run_checked(PROJECT, &["status", "--thread", worker]).map_err(|error| fail(&error))?;
    }
    let again =
        sandbox.run_checked(PROJECT, &["status", "--thread", WORKERS[0]]).map_err(|error| fail(&error))?;
    if !String::from_utf8_lossy(&again.output.stdout).contains(r#""paths":[]"#) {
        return Err("a second `status` records changes, although no files changed".to_owned());
    }
    let found = Folder::read(&sandbox.place(PROJECT)).map_err(|error| fail(&error))?;
    if let Some(left) = found.leftovers().first() {
        return Err(format!("the temporary file {} was not removed", left.display()));
    }
    let store: &Path = &sandbox.store();
    let timeline = Timeline::open(store, Rules::default()).map_err(|error| fail(&error))?;
    let reader = timeline.read().map_err(|error| fail(&error))?;
    if !reader.queries().intents().map_err(|error| fail(&error))?.is_empty() {
        return Err("a move is unfinished".to_owned());
    }
    let (mut written, mut texts) = (BTreeSet::new(), BTreeSet::new());
    for row in reader.threads(&ThreadFilter::default()).map_err(|error| fail(&error))? {
        let log = reader.queries().operations_back(row.number, u64::MAX, usize::MAX);
        let log = log.map_err(|error| fail(&error))?;
        for files in log.iter().filter_map(|stored| stored.operation.files.as_ref()) {
            paths_written(&reader.queries(), files, &mut written).map_err(|error| fail(&error))?;
        }
        texts_added(&reader.queries(), &log, &mut texts).map_err(|error| fail(&error))?;
        let Some(worker) = WORKERS.iter().position(|name| *name == row.summary.title) else { continue };
        let moved = |kind: &OperationKind| {
            matches!(kind, OperationKind::Undone { .. } | OperationKind::Redone { .. })
        };
        let moves = log.iter().filter(|stored| moved(&stored.operation.kind)).count() as u64;
        let acknowledged = workers[worker].moves;
        if moves < acknowledged {
            return Err(format!(
                "the log has {moves} moves of worker {worker}, of {acknowledged} acknowledged ones"
            ));
        }
    }
    let killed_changes = |log: &WorkerLog| match killed {
        KilledCommand::Done => log.killed.clone(),
        KilledCommand::Unknown => Vec::new(),
    };
    let mut acknowledged =
        workers.iter().flat_map(|log| log.changes.iter().cloned().chain(killed_changes(log)));
    if let Some(missing) = acknowledged.find(|path| !written.contains(path)) {
        return Err(format!("{missing} was acknowledged, but no operation wrote it"));
    }
    let entries = workers.iter().flat_map(|log| match killed {
        KilledCommand::Done => [&log.entries[..], &log.killed_entries].concat(),
        KilledCommand::Unknown => log.entries.clone(),
    });
    if let Some(missing) = entries.into_iter().find(|text| !texts.contains(text)) {
        return Err(format!("{missing:?} was acknowledged, but no operation added it"));
    }
    let verified = timeline.store().verify(&mut |_| {}).map_err(|error| fail(&error))?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}")))
}

/// Adds the texts of all entries that operations added.
fn texts_added(
    queries: &Queries<'_>,
    log: &[StoredOperation],
    texts: &mut BTreeSet<String>,
) -> Result<(), BoxError> {
    for StoredOperation { operation, .. } in log {
        let OperationKind::EntriesAdded { take, .. } = &operation.kind else { continue };
        let (Some(added), state) = (operation.kind.added(), load::<ThreadState>(queries, operation.after)?)
        else {
            continue;
        };
        let take = state.take(queries, *take)?.ok_or("an entry was added to no take")?;
        for cell in take.entries.page(queries, added.position..added.position + added.count)? {
            let version: EntryVersion = load(queries, cell.version)?;
            texts.insert(version.text());
        }
    }
    Ok(())
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
