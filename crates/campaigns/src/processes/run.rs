//! The parent process: starts workers and readers, kills some, and checks the result.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use retake_model::id::ProjectId;
use retake_timeline::{Caller, NewThread, Rules, Timeline};

use super::check::check;
use super::plan::{Plan, SHARED, stop, store};
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

const CAMPAIGN: &str = "processes";
/// Number of readers.
const READERS: usize = 2;
/// Every second worker has this many lanes, to fill its batches.
const LANES: usize = 3;
/// Longer than any documented run: a run that hangs is a violation too.
const RUN_TIMEOUT: Duration = Duration::from_mins(30);

/// The size of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program to run as workers and readers.
    pub program: PathBuf,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of writing processes.
    pub processes: usize,
    /// Number of operations per process, over all its lanes.
    pub operations: u64,
    /// Number of kills, if the workers run long enough.
    pub kills: u64,
    /// Whether workers acknowledge before they write: the control.
    pub early: bool,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Acknowledged operations.
    pub acknowledged: u64,
    /// Conflicts after which an operation was repeated.
    pub conflicts: u64,
    /// Operations of killed workers that had not been acknowledged.
    pub in_doubt: u64,
    /// Killed workers.
    pub kills: u64,
    /// Passes of the readers.
    pub reads: u64,
}

/// Runs workers and readers, and compares the store with the acknowledgements.
pub fn run(options: &Options) -> Result<Summary, CampaignError> {
    let scratch = ScratchDir::new().map_err(CampaignError::trouble)?;
    let plan = prepare(options, scratch.path())?;
    let mut party =
        ProcessGroup { options, scratch: scratch.path(), workers: Vec::new(), readers: Vec::new() };
    let outcome = party.run().and_then(|(kills, reads)| {
        let summary = check(scratch.path(), &plan)?;
        Ok(Summary { kills, reads, ..summary })
    });
    party.end();
    outcome.map_err(|trouble| {
        let step = options.operations;
        CampaignError::Violation(Violation {
            campaign: CAMPAIGN,
            seed: options.seed,
            step,
            what: trouble.to_string(),
        })
    })
}

fn prepare(options: &Options, scratch: &Path) -> Result<Plan, CampaignError> {
    let timeline = Timeline::open(&store(scratch), Rules::default()).map_err(CampaignError::trouble)?;
    let lanes = lanes(options.processes).last().map_or(0, |lanes| lanes.end);
    let mut threads = Vec::new();
    for _ in 0..SHARED + lanes {
        let new = NewThread::in_project(ProjectId::from_bytes([7; 16]));
        threads.push(timeline.create_thread(new, Caller::human()).map_err(CampaignError::trouble)?.thread);
    }
    let own = threads.split_off(SHARED);
    let operations = options.operations * options.processes as u64 / lanes.max(1) as u64;
    let plan = Plan { seed: options.seed, operations, shared: threads, own };
    plan.save(scratch)?;
    Ok(plan)
}

/// The lanes of each worker.
fn lanes(processes: usize) -> Vec<std::ops::Range<usize>> {
    let mut next = 0;
    (0..processes)
        .map(|number| {
            let lanes = next..next + if number % 2 == 0 { 1 } else { LANES };
            next = lanes.end;
            lanes
        })
        .collect()
}

struct ProcessGroup<'run> {
    options: &'run Options,
    scratch: &'run Path,
    /// Running workers; `None` for finished ones.
    workers: Vec<Option<Child>>,
    readers: Vec<Child>,
}

impl ProcessGroup<'_> {
    /// Runs until all workers are done; returns the number of kills and of reader passes.
    fn run(&mut self) -> Result<(u64, u64), BoxError> {
        let mut rng = Rng::new(self.options.seed);
        let started = Instant::now();
        for number in 0..self.options.processes {
            let worker = self.start_worker(number)?;
            self.workers.push(Some(worker));
        }
        for number in 0..READERS {
            let mut reader = self.program("reader", &format!("reader-{number}"))?;
            reader.args(["--seed", &number.to_string()]);
            self.readers.push(reader.spawn()?);
        }
        let mut kills = 0;
        while self.workers.iter().any(Option::is_some) {
            std::thread::sleep(Duration::from_millis(10 + rng.below(60)));
            for number in 0..self.workers.len() {
                if let Some(worker) = &mut self.workers[number]
                    && let Some(status) = worker.try_wait()?
                {
                    self.workers[number] = None;
                    self.ended_well(&format!("worker-{number}"), status)?;
                }
            }
            let victim = rng.index(self.workers.len());
            if kills < self.options.kills && self.kill(victim)? {
                kills += 1;
            }
            if started.elapsed() > RUN_TIMEOUT {
                return Err("the workers are deadlocked".into());
            }
        }
        File::create(stop(self.scratch))?;
        let mut reads = 0;
        for (number, mut reader) in std::mem::take(&mut self.readers).into_iter().enumerate() {
            let name = format!("reader-{number}");
            self.ended_well(&name, reader.wait()?)?;
            reads += self.output(&name, "out").trim().parse::<u64>().unwrap_or(0);
        }
        Ok((kills, reads))
    }

    /// Kills a worker if it is still running, and restarts it.
    fn kill(&mut self, victim: usize) -> Result<bool, BoxError> {
        let Some(worker) = &mut self.workers[victim] else {
            return Ok(false);
        };
        worker.kill()?;
        let status = worker.wait()?;
        if status.code().is_some() {
            // It has finished already.
            self.workers[victim] = None;
            self.ended_well(&format!("worker-{victim}"), status)?;
            return Ok(false);
        }
        self.workers[victim] = Some(self.start_worker(victim)?);
        Ok(true)
    }

    fn start_worker(&self, number: usize) -> Result<Child, BoxError> {
        let lanes = lanes(self.options.processes)[number].clone();
        let mut worker = self.program("worker", &format!("worker-{number}"))?;
        worker.args(["--first", &lanes.start.to_string(), "--lanes", &lanes.len().to_string()]);
        if self.options.early {
            worker.arg("--early");
        }
        Ok(worker.spawn()?)
    }

    fn program(&self, role: &str, name: &str) -> Result<Command, BoxError> {
        let mut command = Command::new(&self.options.program);
        command.arg(role).arg(self.scratch).stdin(Stdio::null());
        command.stdout(File::create(self.scratch.join(format!("{name}.out")))?);
        command.stderr(File::create(self.scratch.join(format!("{name}.err")))?);
        Ok(command)
    }

    fn ended_well(&self, name: &str, status: ExitStatus) -> Result<(), BoxError> {
        if status.success() {
            return Ok(());
        }
        Err(format!("{name} ended with {status}: {}", self.output(name, "err").trim()).into())
    }

    fn output(&self, name: &str, stream: &str) -> String {
        fs::read_to_string(self.scratch.join(format!("{name}.{stream}"))).unwrap_or_default()
    }

    /// Ends all children when a run ends early.
    fn end(&mut self) {
        for child in self.workers.iter_mut().flatten().chain(&mut self.readers) {
            // It may have exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
