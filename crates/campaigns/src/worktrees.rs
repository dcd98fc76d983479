//! Two processes in two takes of one thread: one in the project's folder, one in a worktree.
//!
//! ```text
//!   worker one   run · exec · undo · entry · redo …   in project/, take main    ┐ one thread, one store:
//!   worker two   undo · run · redo · exec · run …     in apart/,   take second  ┘ the real program each time
//! ```
//!
//! A turn creates a file that its prompt names. Each worker knows which changes of its take are undone, independently
//! of the other: after each command the entries of its take and the files of its folder are compared with that. The
//! control undoes in the project's folder a change of the worktree.

use std::collections::BTreeSet;

use retake_model::entry::EntryVersion;
use retake_model::object::load;
use retake_store::ThreadFilter;
use retake_timeline::{Rules, Timeline};

use crate::files::{PROJECT, Sandbox, StoreLocation, WORKTREE_FOLDER, retake};
use crate::folder::Folder;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

/// The text before the file name in a prompt.
const PROMPT: &str = "run touch ";

/// The size of a run, and where undo runs.
#[derive(Clone, Copy, Debug)]
pub struct WorktreePlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of commands per worker.
    pub commands: u64,
    /// Whether undos of the worktree run in the project's folder: the control.
    pub misplaced: bool,
}

/// The counts of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerSummary {
    /// Turns, commands and entries.
    pub changes: u64,
    /// Undos and redos.
    pub moves: u64,
}

#[derive(Clone, Copy)]
struct Worker {
    name: &'static str,
    folder: &'static str,
    take: &'static str,
}

const WORKERS: [Worker; 2] = [
    Worker { name: "one", folder: PROJECT, take: "main" },
    Worker { name: "two", folder: WORKTREE_FOLDER, take: "second" },
];

/// One change: a turn has an entry and a file, a command only a file.
#[derive(Clone, Debug)]
struct Change {
    name: String,
    entry: bool,
    file: bool,
}

/// Runs both workers.
pub fn worktrees(plan: WorktreePlan) -> Result<Vec<WorkerSummary>, CampaignError> {
    let scratch = ScratchDir::for_files().map_err(CampaignError::trouble)?;
    let sandbox = Sandbox::new(scratch.path(), retake()?, StoreLocation::Beside)?;
    sandbox.run_checked(PROJECT, &["take", "branch", "--name", "second"])?;
    sandbox.run_checked(PROJECT, &["take", "switch", "main"])?;
    sandbox.run_checked(PROJECT, &["worktree", "add", "second", "../worktree"])?;
    let mut rng = Rng::new(plan.seed);
    let outcomes: Vec<Result<WorkerSummary, BoxError>> = std::thread::scope(|scope| {
        let spawned: Vec<_> = WORKERS
            .into_iter()
            .map(|worker| {
                let (rng, sandbox) = (rng.split(), &sandbox);
                scope.spawn(move || work(sandbox, worker, rng, plan))
            })
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<WorkerSummary, BoxError>>| {
            worker.join().map_err(|_| BoxError::from("a worker panicked")).and_then(|summary| summary)
        };
        spawned.into_iter().map(join).collect()
    });
    let checked = outcomes.into_iter().collect::<Result<Vec<_>, _>>().and_then(|summaries| {
        check_end(&sandbox)?;
        Ok(summaries)
    });
    checked.map_err(|trouble| {
        let what = trouble.to_string();
        CampaignError::Violation(Violation {
            campaign: "worktrees",
            seed: plan.seed,
            step: plan.commands,
            what,
        })
    })
}

fn work(
    sandbox: &Sandbox,
    worker: Worker,
    mut rng: Rng,
    plan: WorktreePlan,
) -> Result<WorkerSummary, BoxError> {
    let timeline = Timeline::open(&sandbox.store(), Rules::default())?;
    let (mut done, mut undone): (Vec<Change>, Vec<Change>) = (Vec::new(), Vec::new());
    let mut summary = WorkerSummary::default();
    for number in 0..plan.commands {
        let name = format!("{}-{number}", worker.name);
        let what = match rng.below(8) {
            0..=2 if !done.is_empty() => {
                undone.extend(done.pop());
                let folder = if plan.misplaced { PROJECT } else { worker.folder };
                run(sandbox, folder, &["undo"])?
            }
            3 | 4 if !undone.is_empty() => {
                done.extend(undone.pop());
                run(sandbox, worker.folder, &["redo"])?
            }
            chosen => {
                undone.clear();
                let prompt = format!("{PROMPT}{name}");
                let (arguments, entry, file): (&[&str], bool, bool) = match chosen {
                    5 => (&["exec", "--", "touch", &name], false, true),
                    6 => (&["entry", "add", &name], true, false),
                    _ => (&["run", "--approve", "all", &prompt], true, true),
                };
                let what = run(sandbox, worker.folder, arguments)?;
                summary.changes += 1;
                done.push(Change { name, entry, file });
                what
            }
        };
        check(&timeline, sandbox, worker, &done)
            .map_err(|trouble| format!("worker {}, {what}: {trouble}", worker.name))?;
    }
    summary.moves = plan.commands - summary.changes;
    Ok(summary)
}

/// Runs a command that must succeed; returns it as text.
fn run(sandbox: &Sandbox, folder: &str, arguments: &[&str]) -> Result<String, BoxError> {
    let what = arguments.join(" ");
    let output = sandbox.command(folder, arguments).output()?;
    if output.status.success() {
        return Ok(what);
    }
    Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Compares the take and the folder of a worker with its changes.
fn check(timeline: &Timeline, sandbox: &Sandbox, worker: Worker, done: &[Change]) -> Result<(), BoxError> {
    let entries: Vec<&str> =
        done.iter().filter(|change| change.entry).map(|change| change.name.as_str()).collect();
    let found = names_said(timeline, worker.take)?;
    if found != entries {
        return Err(format!("the entries are {found:?} instead of {entries:?}").into());
    }
    let files: BTreeSet<&str> =
        done.iter().filter(|change| change.file).map(|change| change.name.as_str()).collect();
    let folder = Folder::read(&sandbox.place(worker.folder))?;
    let found: BTreeSet<&str> =
        folder.0.keys().filter_map(|path| path.to_str()).filter(|path| is_ours(path)).collect();
    if found != files {
        return Err(format!("the files are {found:?} instead of {files:?}").into());
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    WORKERS.iter().any(|worker| name.strip_prefix(worker.name).is_some_and(|rest| rest.starts_with('-')))
}

/// The changes that the user's entries of a take name, in order.
fn names_said(timeline: &Timeline, take: &str) -> Result<Vec<String>, BoxError> {
    let reader = timeline.read()?;
    let queries = reader.queries();
    let row = reader.threads(&ThreadFilter::default())?.pop().ok_or("there is no thread")?;
    let takes = reader.state(row.summary.id)?.all_takes(&queries)?;
    let take = takes.into_iter().find(|found| found.name == take).ok_or("the take is gone")?;
    let mut names = Vec::new();
    for cell in take.entries.iter(&queries, 0) {
        let entry: EntryVersion = load(&queries, cell?.version)?;
        let text = entry.text();
        let name = text.strip_prefix(PROMPT).unwrap_or(&text);
        if entry.role == "User" && is_ours(name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Nothing is unfinished or unrecorded, and the store verifies.
fn check_end(sandbox: &Sandbox) -> Result<(), BoxError> {
    for worker in WORKERS {
        let status = sandbox.run_checked(worker.folder, &["status"])?;
        if !String::from_utf8_lossy(&status.output.stdout).contains(r#""paths":[]"#) {
            return Err(format!(
                "the folder of worker {} has unrecorded changes, although no files changed",
                worker.name
            )
            .into());
        }
    }
    let timeline = Timeline::open(&sandbox.store(), Rules::default())?;
    if !timeline.read()?.queries().intents()?.is_empty() {
        return Err("a move is still unfinished".into());
    }
    let verified = timeline.store().verify(&mut |_| {})?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}").into()))
}
