//! A machine: its store, its links and its clock.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{TakeId, ThreadId};
use retake_model::time::Timestamp;
use retake_sync::engine::{Sync, SyncState};
use retake_sync::links::Links;
use retake_sync::remote::{ProjectKey, Remote};
use retake_timeline::{
    Caller, Clock, Command, Goal, InsertPosition, NewThread, ReadError, ReplicaPoint, Rules, SeededClock,
    Timeline, Unit,
};

use super::{PROJECT, SyncDone, named};
use crate::rng::{Rng, mix};
use crate::violation::BoxError;

pub(super) struct Device {
    place: PathBuf,
    timeline: Option<Timeline>,
    seed: u64,
    skew: i64,
}

/// A clock that is wrong.
struct SkewedClock {
    clock: SeededClock,
    skew: i64,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.now().millis() + self.skew)
    }

    fn random(&self) -> [u8; 10] {
        self.clock.random()
    }
}

impl Device {
    pub(super) fn open(place: PathBuf, seed: u64, skew: i64) -> Result<Self, BoxError> {
        let mut device = Self { place, timeline: None, seed, skew };
        device.restart()?;
        Ok(device)
    }

    pub(super) fn restart(&mut self) -> Result<(), BoxError> {
        self.timeline = None;
        // Far from the numbers of all others: they count on from the seed.
        self.seed = mix(self.seed.wrapping_add(1));
        let clock = Arc::new(SkewedClock { clock: SeededClock::new(self.seed), skew: self.skew });
        self.timeline = Some(Timeline::open_with(&self.place.join("store"), Rules::default(), clock)?);
        Ok(())
    }

    fn timeline(&self) -> &Timeline {
        self.timeline.as_ref().expect("a machine runs except while its disk is copied")
    }

    /// A copy of its disk, while it is off.
    pub(super) fn image(&mut self, to: &Path) -> Result<(), BoxError> {
        self.timeline = None;
        copy(&self.place, to)?;
        self.restart()
    }

    /// Replaces its disk by a copy.
    pub(super) fn restore(&mut self, from: &Path) -> Result<(), BoxError> {
        self.timeline = None;
        fs::remove_dir_all(&self.place)?;
        copy(from, &self.place)?;
        self.restart()
    }

    /// Replaces its disk by an empty one.
    pub(super) fn wipe(&mut self) -> Result<(), BoxError> {
        self.timeline = None;
        fs::remove_dir_all(&self.place)?;
        fs::create_dir(&self.place)?;
        self.restart()
    }

    /// Exchanges a thread; returns whether it succeeded.
    pub(super) fn exchange(&self, remote: &dyn Remote, thread: ThreadId, done: &mut SyncDone) -> bool {
        let links = self.links();
        let sync = Sync { timeline: self.timeline(), remote, links: &links };
        let Ok(report) = sync.exchange(thread, (PROJECT, ProjectKey::default()), 0) else {
            done.failures += 1;
            return false;
        };
        done.exchanges += 1;
        done.merges += report.merges.len() as u64;
        true
    }

    pub(super) fn state(&self, remote: &dyn Remote, thread: ThreadId) -> Option<SyncState> {
        let links = self.links();
        Sync { timeline: self.timeline(), remote, links: &links }.state(thread).ok()
    }

    pub(super) fn is_clean(&self, remote: &dyn Remote, thread: ThreadId) -> bool {
        self.state(remote, thread) == Some(SyncState::Clean)
    }

    fn links(&self) -> Links {
        Links::at(&self.place.join("links"))
    }

    /// The ids of the operations of a thread, as other machines see them.
    pub(super) fn ids(&self, thread: ThreadId) -> Result<Vec<Option<ContentId>>, BoxError> {
        let reader = self.timeline().read()?;
        let replica = match reader.replica(thread) {
            Ok(replica) => replica,
            Err(ReadError::NoSuchThread(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        Ok(replica.points(ReplicaPoint::default())?.into_iter().map(|point| point.id).collect())
    }

    /// The states of all versions of a thread.
    pub(super) fn states(&self, thread: ThreadId) -> Result<BTreeSet<ContentId>, BoxError> {
        let reader = self.timeline().read()?;
        let Ok(row) = reader.thread(thread) else { return Ok(BTreeSet::new()) };
        let mut states = BTreeSet::new();
        for version in 1..=row.summary.version {
            let found = reader.queries().operation(row.number, version)?;
            states.insert(found.ok_or("an operation is missing")?.operation.after);
        }
        Ok(states)
    }

    pub(super) fn has(&self, thread: ThreadId) -> Result<bool, BoxError> {
        Ok(self.timeline().read()?.thread(thread).is_ok())
    }

    pub(super) fn verify(&self) -> Result<bool, BoxError> {
        Ok(self.timeline().store().verify(&mut |_| {})?.is_clean())
    }

    pub(super) fn create(&self, title: &str) -> Result<ThreadId, BoxError> {
        let new = NewThread::in_project(PROJECT).titled(title);
        Ok(self.timeline().create_thread(new, Caller::human())?.thread)
    }

    pub(super) fn make_private(&self, thread: ThreadId) -> Result<(), BoxError> {
        let command = Command::Share { visibility: None, private: Some(true), shared_with_support: None };
        self.timeline().change(thread, command, Caller::human())?;
        Ok(())
    }

    fn active(&self, thread: ThreadId) -> Option<TakeId> {
        Some(self.timeline().read().ok()?.state(thread).ok()?.active)
    }

    fn add(&self, thread: ThreadId, take: TakeId, text: &str) {
        let entry = EntryVersion::from_text("User", text, self.timeline().now());
        self.change(
            thread,
            Command::AddEntries { take, at: InsertPosition::End, entries: vec![entry.into()] },
        );
    }

    fn change(&self, thread: ThreadId, command: Command) {
        // A refused change is no change.
        let _ = self.timeline().change(thread, command, Caller::human());
    }

    /// A random change, if the machine has the thread.
    pub(super) fn work(&self, thread: ThreadId, random: &mut Rng) {
        let Some(take) = self.active(thread) else { return };
        let number = random.below(1000);
        let moved = |goal| drop(self.timeline().go(thread, goal, Caller::human()));
        match random.below(10) {
            0..=3 => self.add(thread, take, &format!("text {number} of {}", named(thread))),
            4 => self.change(thread, Command::Branch { from: take, at: None, name: None }),
            5 => self.change(thread, Command::Rename { title: format!("title {number}") }),
            6 => self.change(thread, Command::SetDraft { take, text: format!("draft {number}") }),
            7 => moved(Goal::Undo(Unit::Turn, 1 + number % 3)),
            8 => moved(Goal::Redo(Unit::Turn, 1)),
            _ => moved(Goal::Jump(1 + number % 8)),
        }
    }

    /// A change of the private thread, with a text that no other has.
    pub(super) fn work_hidden(&self, thread: ThreadId, random: &mut Rng) {
        let Some(take) = self.active(thread) else { return };
        let moved = |goal| drop(self.timeline().go(thread, goal, Caller::human()));
        match random.below(4) {
            0 => moved(Goal::Undo(Unit::Turn, 1)),
            1 => moved(Goal::Jump(2)),
            _ => self.add(thread, take, HIDDEN),
        }
    }
}

/// The text of the private thread.
const HIDDEN: &str = "Wqzxjkvb and nobody else says this";

/// What must not leave of a private thread: its texts, its id, and the ids of its operations and states.
pub(super) fn traces(device: &Device, thread: ThreadId) -> Result<Vec<Vec<u8>>, BoxError> {
    // Ids that are made at the same time share the time: only the random part tells one from another.
    let id = thread.to_string()[..16].to_owned();
    let mut traces =
        vec![thread.key()[..10].to_vec(), id.into_bytes(), HIDDEN.into(), b"Zjqxkwvu title".to_vec()];
    traces.extend(device.ids(thread)?.into_iter().flatten().map(|id| id.bytes().to_vec()));
    traces.extend(device.states(thread)?.into_iter().map(|id| id.bytes().to_vec()));
    Ok(traces)
}

/// The bytes as they are, in hex and in base64 at each alignment.
pub(super) fn forms(trace: &[u8]) -> Vec<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
    let hex = trace.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    let mut forms = vec![trace.to_vec(), hex];
    for skip in 0..3 {
        let (groups, _) = trace.get(skip..).unwrap_or_default().as_chunks::<3>();
        forms.push(
            groups
                .iter()
                .flat_map(|[a, b, c]| {
                    let bits = u32::from(*a) << 16 | u32::from(*b) << 8 | u32::from(*c);
                    [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift & 63) as usize])
                })
                .collect(),
        );
    }
    forms
}

/// Copies a folder.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), BoxError> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}
