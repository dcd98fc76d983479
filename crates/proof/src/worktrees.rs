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

use crate::dice::Dice;
use crate::files::{APART, Home, Laboratory, PROJECT, retake};
use crate::folder::Folder;
use crate::ground::Ground;
use crate::violation::{Failed, Trouble, Violation};

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
    Worker { name: "two", folder: APART, take: "second" },
];

/// One change: a turn has an entry and a file, a command only a file.
#[derive(Clone, Debug)]
struct Change {
    name: String,
    entry: bool,
    file: bool,
}

/// Runs both workers.
pub fn worktrees(plan: WorktreePlan) -> Result<Vec<WorkerSummary>, Failed> {
    let ground = Ground::for_files().map_err(Failed::trouble)?;
    let laboratory = Laboratory::new(ground.path(), retake()?, Home::Beside)?;
    laboratory.must(PROJECT, &["take", "branch", "--name", "second"])?;
    laboratory.must(PROJECT, &["take", "switch", "main"])?;
    laboratory.must(PROJECT, &["worktree", "add", "second", "../apart"])?;
    let mut dice = Dice::new(plan.seed);
    let outcomes: Vec<Result<WorkerSummary, Trouble>> = std::thread::scope(|scope| {
        let spawned: Vec<_> = WORKERS
            .into_iter()
            .map(|worker| {
                let (dice, laboratory) = (dice.split(), &laboratory);
                scope.spawn(move || work(laboratory, worker, dice, plan))
            })
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<WorkerSummary, Trouble>>| {
            worker.join().map_err(|_| Trouble::from("a worker panicked")).and_then(|summary| summary)
        };
        spawned.into_iter().map(join).collect()
    });
    let checked = outcomes.into_iter().collect::<Result<Vec<_>, _>>().and_then(|summaries| {
        check_end(&laboratory)?;
        Ok(summaries)
    });
    checked.map_err(|trouble| {
        let what = trouble.to_string();
        Failed::Violation(Violation { campaign: "worktrees", seed: plan.seed, step: plan.commands, what })
    })
}

fn work(
    laboratory: &Laboratory,
    worker: Worker,
    mut dice: Dice,
    plan: WorktreePlan,
) -> Result<WorkerSummary, Trouble> {
    let timeline = Timeline::open(&laboratory.store(), Rules::default())?;
    let (mut done, mut undone): (Vec<Change>, Vec<Change>) = (Vec::new(), Vec::new());
    let mut summary = WorkerSummary::default();
    for number in 0..plan.commands {
        let name = format!("{}-{number}", worker.name);
        let what = match dice.below(8) {
            0..=2 if !done.is_empty() => {
                undone.extend(done.pop());
                let folder = if plan.misplaced { PROJECT } else { worker.folder };
                run(laboratory, folder, &["undo"])?
            }
            3 | 4 if !undone.is_empty() => {
                done.extend(undone.pop());
                run(laboratory, worker.folder, &["redo"])?
            }
            chosen => {
                undone.clear();
                let prompt = format!("{PROMPT}{name}");
                let (arguments, entry, file): (&[&str], bool, bool) = match chosen {
                    5 => (&["exec", "--", "touch", &name], false, true),
                    6 => (&["entry", "add", &name], true, false),
                    _ => (&["run", "--approve", "all", &prompt], true, true),
                };
                let what = run(laboratory, worker.folder, arguments)?;
                summary.changes += 1;
                done.push(Change { name, entry, file });
                what
            }
        };
        check(&timeline, laboratory, worker, &done)
            .map_err(|trouble| format!("worker {}, {what}: {trouble}", worker.name))?;
    }
    summary.moves = plan.commands - summary.changes;
    Ok(summary)
}

/// Runs a command that must succeed; returns it as text.
fn run(laboratory: &Laboratory, folder: &str, arguments: &[&str]) -> Result<String, Trouble> {
    let what = arguments.join(" ");
    let output = laboratory.command(folder, arguments).output()?;
    if output.status.success() {
        return Ok(what);
    }
    Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Compares the take and the folder of a worker with its changes.
fn check(
    timeline: &Timeline,
    laboratory: &Laboratory,
    worker: Worker,
    done: &[Change],
) -> Result<(), Trouble> {
    let entries: Vec<&str> =
        done.iter().filter(|change| change.entry).map(|change| change.name.as_str()).collect();
    let found = names_said(timeline, worker.take)?;
    if found != entries {
        return Err(format!("the entries are {found:?} instead of {entries:?}").into());
    }
    let files: BTreeSet<&str> =
        done.iter().filter(|change| change.file).map(|change| change.name.as_str()).collect();
    let folder = Folder::read(&laboratory.place(worker.folder))?;
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
fn names_said(timeline: &Timeline, take: &str) -> Result<Vec<String>, Trouble> {
    let looking = timeline.look()?;
    let queries = looking.queries();
    let row = looking.threads(&ThreadFilter::default())?.pop().ok_or("there is no thread")?;
    let takes = looking.state(row.summary.id)?.all_takes(&queries)?;
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
fn check_end(laboratory: &Laboratory) -> Result<(), Trouble> {
    for worker in WORKERS {
        let status = laboratory.must(worker.folder, &["status"])?;
        if !String::from_utf8_lossy(&status.output.stdout).contains(r#""paths":[]"#) {
            return Err(format!("the folder of worker {} has changes that nobody made", worker.name).into());
        }
    }
    let timeline = Timeline::open(&laboratory.store(), Rules::default())?;
    if !timeline.look()?.queries().intents()?.is_empty() {
        return Err("a move is still unfinished".into());
    }
    let verified = timeline.store().verify(&mut |_| {})?;
    verified.problems.first().map_or(Ok(()), |problem| Err(format!("verify: {problem}").into()))
}
