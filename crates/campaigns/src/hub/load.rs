//! Writers and readers at the same threads, and the check of their answers.
//!
//! Heads form a list to which pushes append by compare-and-swap. It is linearizable if every acknowledged push is in the log
//! where its answer said, and if a reader never sees less than what was acknowledged, or read, before it asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use retake_model::id::ThreadId;
use retake_sync::bundle::BundleReader;
use retake_sync::wire::{BundleRow, ThreadHead};

use super::bundles::Push;
use crate::rng::Rng;
use crate::violation::{BoxError, CampaignError, Violation};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    /// Name of the campaign.
    pub campaign: &'static str,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Writers.
    pub writers: u64,
    /// Threads that they share.
    pub threads: u8,
    /// Pushes of each writer that are acknowledged.
    pub pushes: u64,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadReport {
    /// Acknowledged pushes.
    pub acknowledged: u64,
    /// Pushes that lost a race.
    pub moved: u64,
    /// Requests without an answer, or with a temporary refusal, that were repeated.
    pub repeated: u64,
    /// Readings of a head.
    pub readings: u64,
}

/// The answer to a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushAnswer {
    /// It was added.
    Added,
    /// The thread has another head.
    Moved(Option<ThreadHead>),
}

/// A hub, or a control.
pub trait LoadTarget: Sync {
    /// Pushes, and repeats until there is an answer; counts repetitions.
    fn push(&self, writer: u64, push: &Push, repeated: &AtomicU64) -> Result<PushAnswer, BoxError>;
    /// The bundles of a thread.
    fn log(&self, thread: ThreadId, repeated: &AtomicU64) -> Result<Vec<BundleRow>, BoxError>;
    /// The bytes of a bundle.
    fn bundle(&self, thread: ThreadId, row: &BundleRow) -> Result<Vec<u8>, BoxError>;
    /// The positions of the feed.
    fn feed(&self) -> Result<Vec<(u64, ThreadId)>, BoxError>;
}

/// A head that was acknowledged or read, and when.
struct Observation {
    thread: ThreadId,
    began: Instant,
    ended: Instant,
    number: u64,
    /// What was acknowledged; none for a reading.
    pushed: Option<ThreadHead>,
}

/// Runs writers and readers while `disturb` runs, and checks the result.
pub fn run(
    target: &dyn LoadTarget,
    plan: LoadPlan,
    disturb: impl FnOnce(&AtomicBool) -> Result<(), BoxError>,
) -> Result<LoadReport, CampaignError> {
    let observations = Mutex::new(Vec::new());
    let (moved, repeated) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let shared = Shared { target, plan, observations: &observations, moved: &moved, repeated: &repeated };
    std::thread::scope(|scope| -> Result<(), BoxError> {
        let writers: Vec<_> =
            (0..plan.writers).map(|writer| scope.spawn(move || shared.write(writer))).collect();
        let reader = scope.spawn(|| shared.read(&over));
        // Writers end only if somebody serves them, so the disturbance ends first.
        let disturbed = disturb(&over);
        let written: Vec<_> =
            writers.into_iter().map(|writer| writer.join().map_err(|_| "a writer panicked")).collect();
        over.store(true, Ordering::SeqCst);
        reader.join().map_err(|_| "the reader panicked")??;
        disturbed?;
        for done in written {
            done??;
        }
        Ok(())
    })
    .map_err(CampaignError::Trouble)?;
    let observations = observations.into_inner().unwrap_or_else(PoisonError::into_inner);
    check(target, plan, &observations, &repeated)?;
    let acknowledged = observations.iter().filter(|seen| seen.pushed.is_some()).count() as u64;
    Ok(LoadReport {
        acknowledged,
        moved: moved.into_inner(),
        repeated: repeated.into_inner(),
        readings: observations.len() as u64 - acknowledged,
    })
}

#[derive(Clone, Copy)]
struct Shared<'run> {
    target: &'run dyn LoadTarget,
    plan: LoadPlan,
    observations: &'run Mutex<Vec<Observation>>,
    moved: &'run AtomicU64,
    repeated: &'run AtomicU64,
}

fn thread(plan: LoadPlan, number: u8) -> ThreadId {
    let mut bytes = [number + 1; 16];
    bytes[..8].copy_from_slice(&plan.seed.to_be_bytes());
    ThreadId::from_bytes(bytes)
}

impl Shared<'_> {
    fn note(&self, observation: Observation) {
        self.observations.lock().unwrap_or_else(PoisonError::into_inner).push(observation);
    }

    fn write(&self, writer: u64) -> Result<(), BoxError> {
        let mut rng = Rng::new(self.plan.seed ^ (writer + 1) << 32);
        let mut heads: BTreeMap<u8, ThreadHead> = BTreeMap::new();
        let mut done = 0;
        while done < self.plan.pushes {
            let number = rng.below(u64::from(self.plan.threads)) as u8;
            let thread = thread(self.plan, number);
            let text = [writer.to_be_bytes(), rng.next_u64().to_be_bytes()].concat();
            let push = Push::behind(thread, heads.get(&number).copied(), &text)?;
            let began = Instant::now();
            let answer = self.target.push(writer, &push, self.repeated)?;
            let ended = Instant::now();
            let mine = push.head();
            // The answer to an earlier try was lost: the head is this very push, or it is behind it.
            let was_added = match answer {
                PushAnswer::Added => true,
                PushAnswer::Moved(Some(head)) => head == mine,
                PushAnswer::Moved(None) => false,
            };
            if was_added {
                done += 1;
                heads.insert(number, mine);
                self.note(Observation { thread, began, ended, number: mine.number, pushed: Some(mine) });
            } else if let PushAnswer::Moved(Some(head)) = answer {
                self.moved.fetch_add(1, Ordering::Relaxed);
                heads.insert(number, head);
            } else {
                heads.remove(&number);
            }
        }
        Ok(())
    }

    fn read(&self, over: &AtomicBool) -> Result<(), BoxError> {
        let mut rng = Rng::new(self.plan.seed);
        while !over.load(Ordering::SeqCst) {
            let thread = thread(self.plan, rng.below(u64::from(self.plan.threads)) as u8);
            let began = Instant::now();
            let number = self.target.log(thread, self.repeated)?.last().map_or(0, |row| row.number);
            self.note(Observation { thread, began, ended: Instant::now(), number, pushed: None });
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Ok(())
    }
}

fn check(
    target: &dyn LoadTarget,
    plan: LoadPlan,
    observations: &[Observation],
    repeated: &AtomicU64,
) -> Result<(), CampaignError> {
    let violated = |what: String| Violation { campaign: plan.campaign, seed: plan.seed, step: 0, what };
    let mut events = BTreeMap::new();
    for number in 0..plan.threads {
        let thread = thread(plan, number);
        let rows = target.log(thread, repeated).map_err(CampaignError::Trouble)?;
        let mut previous = None;
        for (at, row) in (1..).zip(&rows) {
            if (row.number, row.first, row.last) != (at, at, at) {
                return Err(
                    violated(format!("the bundles of {thread} do not tile: {row:?} is number {at}")).into()
                );
            }
            let bytes = target.bundle(thread, row).map_err(CampaignError::Trouble)?;
            let reader = BundleReader::new(bytes.as_slice(), bytes.len() as u64);
            let header = reader.map_err(CampaignError::trouble)?.header();
            if header.previous != previous || header.thread != thread {
                return Err(
                    violated(format!("bundle {at} of {thread} does not follow the one before it")).into()
                );
            }
            previous = Some(row.head);
        }
        let of_thread = || observations.iter().filter(|seen| seen.thread == thread);
        for head in of_thread().filter_map(|seen| seen.pushed) {
            let found = rows.get(head.number as usize - 1).map(|row| row.head);
            if found != Some(head.head) {
                return Err(violated(format!("acknowledged push {} of {thread} is lost", head.number)).into());
            }
        }
        linearizable(of_thread().collect()).map_err(violated)?;
        events.insert(thread, rows.len());
    }
    let feed = target.feed().map_err(CampaignError::Trouble)?;
    let positions: BTreeSet<u64> = feed.iter().map(|(seq, _)| *seq).collect();
    if positions.len() != feed.len() || positions.iter().copied().ne(1..=feed.len() as u64) {
        return Err(violated("the positions of the feed have gaps or repeat".to_owned()).into());
    }
    for (thread, rows) in events {
        let noted = feed.iter().filter(|(_, found)| *found == thread).count();
        if noted != rows {
            return Err(violated(format!(
                "the feed has {noted} events of {thread}, which has {rows} bundles"
            ))
            .into());
        }
    }
    Ok(())
}

/// Nobody sees less than what was seen before they asked.
fn linearizable(mut seen: Vec<&Observation>) -> Result<(), String> {
    let mut by_end: Vec<&Observation> = seen.clone();
    by_end.sort_by_key(|seen| seen.ended);
    seen.sort_by_key(|seen| seen.began);
    let (mut ended, mut most) = (by_end.into_iter().peekable(), 0);
    for observation in seen {
        while let Some(before) = ended.next_if(|before| before.ended < observation.began) {
            most = most.max(before.number);
        }
        // A push moves the head beyond what was seen.
        let least = if observation.pushed.is_some() { most + 1 } else { most };
        if observation.number < least {
            return Err(format!("a head {} was seen after {most}", observation.number));
        }
    }
    Ok(())
}
