//! Machines that share a folder as their remote: offline work, failures, copies and restored copies.
//!
//! `RETAKE_SYNC_SEEDS` sets the number of random histories.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::{ProjectId, TakeId, ThreadId};
use retake_sync::bundle;
use retake_sync::engine::{Sync, SyncError, SyncReport, SyncState};
use retake_sync::links::Links;
use retake_sync::remote::{
    Feed, FolderRemote, PackHead, ProjectKey, ProjectName, PushOutcome, Remote, RemoteError, RemoteHead,
    RemoteThread, Seen,
};
use retake_timeline::{
    Caller, Command, Goal, InsertPosition, NewThread, ReplicaPoint, Rules, SeededClock, Timeline, Unit,
};
use tempfile::TempDir;

const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);

/// A deterministic random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// A machine: its store and its links.
struct Device {
    place: PathBuf,
    timeline: Option<Timeline>,
    seed: u64,
}

impl Device {
    fn open(place: PathBuf, seed: u64) -> Self {
        let mut device = Self { place, timeline: None, seed };
        device.start();
        device
    }

    fn start(&mut self) {
        self.seed += 1000;
        let clock = Arc::new(SeededClock::new(self.seed));
        let opened = Timeline::open_with(&self.place.join("store"), Rules::default(), clock);
        self.timeline = Some(opened.expect("a store"));
    }

    fn timeline(&self) -> &Timeline {
        self.timeline.as_ref().expect("a running machine")
    }

    /// A copy of its disk, while it is off.
    fn image(&mut self, to: &Path) {
        self.timeline = None;
        copy(&self.place, to);
        self.start();
    }

    /// Replaces its disk by a copy.
    fn restore(&mut self, from: &Path) {
        self.timeline = None;
        fs::remove_dir_all(&self.place).expect("a folder");
        copy(from, &self.place);
        self.start();
    }

    fn exchange(&self, remote: &dyn Remote, thread: ThreadId) -> Result<SyncReport, SyncError> {
        let links = Links::at(&self.place.join("links"));
        let sync = Sync { timeline: self.timeline(), remote, links: &links };
        sync.exchange(thread, (PROJECT, ProjectKey::default()), 0)
    }

    fn state(&self, remote: &dyn Remote, thread: ThreadId) -> SyncState {
        let links = Links::at(&self.place.join("links"));
        Sync { timeline: self.timeline(), remote, links: &links }.state(thread).expect("a state")
    }

    fn ids(&self, thread: ThreadId) -> Vec<Option<ContentId>> {
        let reader = self.timeline().read().expect("a reader");
        let Ok(replica) = reader.replica(thread) else { return Vec::new() };
        let points = replica.points(ReplicaPoint::default()).expect("a readable log");
        points.into_iter().map(|point| point.id).collect()
    }

    fn states(&self, thread: ThreadId) -> BTreeSet<ContentId> {
        let reader = self.timeline().read().expect("a reader");
        let Ok(row) = reader.thread(thread) else { return BTreeSet::new() };
        let operation = |version| reader.queries().operation(row.number, version).expect("readable");
        (1..=row.summary.version).filter_map(|version| Some(operation(version)?.operation.after)).collect()
    }

    fn active(&self, thread: ThreadId) -> TakeId {
        self.timeline().read().expect("a reader").state(thread).expect("a state").active
    }

    fn say(&self, thread: ThreadId, text: &str) {
        let entry = EntryVersion::from_text("User", text, self.timeline().now());
        let (take, entries) = (self.active(thread), vec![entry.into()]);
        self.change(thread, Command::AddEntries { take, at: InsertPosition::End, entries });
    }

    fn change(&self, thread: ThreadId, command: Command) {
        // A refused change is no change.
        let _ = self.timeline().change(thread, command, Caller::human());
    }

    fn work(&self, thread: ThreadId, random: &mut Random) {
        let (take, number) = (self.active(thread), random.below(1000));
        match random.below(9) {
            0..=3 => self.say(thread, &format!("text {number}")),
            4 => self.change(thread, Command::Branch { from: take, at: None, name: None }),
            5 => self.change(thread, Command::Rename { title: format!("title {number}") }),
            6 => self.change(thread, Command::SetDraft { take, text: format!("draft {number}") }),
            7 => drop(self.timeline().go(thread, Goal::Undo(Unit::Turn, 1 + number % 3), Caller::human())),
            _ => drop(self.timeline().go(thread, Goal::Redo(Unit::Turn, 1), Caller::human())),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a copy");
        }
    }
}

/// A remote that fails sometimes: before it did anything, or after, when only the answer is lost.
struct Failing<'remote> {
    inner: &'remote FolderRemote,
    random: Mutex<Random>,
}

impl Failing<'_> {
    fn fails(&self, one_in: u64) -> Result<(), RemoteError> {
        if self.random.lock().expect("no poison").below(one_in) > 0 {
            return Ok(());
        }
        Err(RemoteError::Unreachable { place: "here".to_owned(), error: std::io::ErrorKind::TimedOut.into() })
    }
}

impl Remote for Failing<'_> {
    fn place(&self) -> String {
        self.inner.place()
    }

    fn threads(&self) -> Result<Vec<RemoteThread>, RemoteError> {
        self.inner.threads()
    }

    fn feed(&self, seen: &Seen, wait: Duration) -> Result<Feed, RemoteError> {
        self.inner.feed(seen, wait)
    }

    fn purge(&self, thread: ThreadId) -> Result<(), RemoteError> {
        self.inner.purge(thread)
    }

    fn redact(&self, thread: ThreadId, content: &[ContentId]) -> Result<(), RemoteError> {
        self.inner.redact(thread, content)
    }

    fn redactions(&self, thread: ThreadId) -> Result<Vec<ContentId>, RemoteError> {
        self.inner.redactions(thread)
    }

    fn packs(&self, project: ProjectName, after: u64) -> Result<Vec<PackHead>, RemoteError> {
        self.inner.packs(project, after)
    }

    fn pack(&self, project: ProjectName, head: &PackHead) -> Result<Vec<u8>, RemoteError> {
        self.inner.pack(project, head)
    }

    fn push_pack(
        &self,
        project: ProjectName,
        head: &PackHead,
        pack: &[u8],
    ) -> Result<PushOutcome, RemoteError> {
        self.inner.push_pack(project, head, pack)
    }

    fn heads(&self, thread: ThreadId, after: u64) -> Result<Vec<RemoteHead>, RemoteError> {
        self.fails(6)?;
        self.inner.heads(thread, after)
    }

    fn bundle(&self, thread: ThreadId, head: &RemoteHead) -> Result<Vec<u8>, RemoteError> {
        self.fails(6)?;
        self.inner.bundle(thread, head)
    }

    fn push(&self, thread: ThreadId, head: &RemoteHead, bundle: &[u8]) -> Result<PushOutcome, RemoteError> {
        self.fails(5)?;
        let done = self.inner.push(thread, head, bundle)?;
        // A repeated request must not add it twice.
        if self.random.lock().expect("no poison").below(5) == 0 {
            assert_eq!(self.inner.push(thread, head, bundle)?, PushOutcome::Moved);
        }
        self.fails(5)?;
        Ok(done)
    }
}

/// What a history ends with.
struct End {
    equal: bool,
    lost: usize,
}

/// A random history of machines with one remote. With `overwrites`, a machine that diverged takes the remote's log
/// instead of merging: the control.
fn history(seed: u64, overwrites: bool) -> End {
    let base = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| base.path().join(name);
    let mut random = Random(seed);
    let remote_at = path("remote");
    let remote = FolderRemote::create_in_folder(&remote_at).expect("a remote");
    let failing = Failing { inner: &remote, random: Mutex::new(Random(seed + 1)) };
    let count = 2 + random.below(4) as usize;
    let mut devices: Vec<Device> = Vec::new();
    for number in 0..count {
        let place = path(&format!("device{number}"));
        fs::create_dir(&place).expect("a folder");
        devices.push(Device::open(place, seed * 100 + number as u64));
    }
    let new = NewThread::in_project(PROJECT).titled("Fix");
    let thread = devices[0].timeline().create_thread(new, Caller::human()).expect("a thread").thread;
    devices[0].exchange(&remote, thread).expect("a first exchange");
    for device in &devices[1..] {
        device.exchange(&remote, thread).expect("a clone");
    }
    // States that a machine acknowledged and did not lose with its disk.
    let mut acknowledged: BTreeSet<ContentId> = BTreeSet::new();
    for step in 0..24 {
        let at = random.below(count as u64) as usize;
        match random.below(20) {
            0..=8 => devices[at].work(thread, &mut random),
            9 => {
                // Two machines with the same disk.
                let (image, other) = (path(&format!("image{step}")), (at + 1) % count);
                if devices[other].exchange(&remote, thread).is_ok() {
                    devices[at].image(&image);
                    devices[other].restore(&image);
                }
            }
            10 => {
                // A disk that goes back to an older copy, after what it had was sent.
                let image = path(&format!("older{step}"));
                devices[at].image(&image);
                devices[at].work(thread, &mut random);
                if devices[at].exchange(&remote, thread).is_ok() {
                    acknowledged.extend(devices[at].states(thread));
                    devices[at].restore(&image);
                }
            }
            11 => {
                // The remote goes back; the machines still have everything.
                let image = path(&format!("remote{step}"));
                copy(&remote_at, &image);
                devices[at].work(thread, &mut random);
                let _ = devices[at].exchange(&remote, thread);
                fs::remove_dir_all(&remote_at).expect("a folder");
                copy(&image, &remote_at);
            }
            _ => {
                let diverged = matches!(devices[at].state(&remote, thread), SyncState::Diverged(..));
                if overwrites && diverged {
                    acknowledged.extend(devices[at].states(thread));
                    let place = devices[at].place.clone();
                    devices[at].timeline = None;
                    fs::remove_dir_all(&place).expect("a folder");
                    fs::create_dir(&place).expect("a folder");
                    devices[at].start();
                    devices[at].exchange(&remote, thread).expect("a clone");
                } else {
                    let _ = devices[at].exchange(&failing, thread);
                }
            }
        }
    }
    for device in &devices {
        acknowledged.extend(device.states(thread));
    }
    // After healing, two rounds are enough.
    for _ in 0..2 {
        for device in &devices {
            device.exchange(&remote, thread).expect("an exchange");
        }
    }
    let first = devices[0].ids(thread);
    let equal = devices.iter().all(|device| device.ids(thread) == first);
    let kept = devices[0].states(thread);
    for device in &devices {
        assert!(!equal || device.state(&remote, thread) == SyncState::Clean, "seed {seed}");
        let verified = device.timeline().store().verify(&mut |_| {}).expect("verified");
        assert!(verified.is_clean(), "seed {seed}: {:?}", verified.problems);
    }
    End { equal, lost: acknowledged.difference(&kept).count() }
}

#[test]
fn random_machines_end_with_one_log_and_lose_nothing() {
    let seeds = std::env::var("RETAKE_SYNC_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    for seed in 1..=seeds {
        let End { equal, lost } = history(seed, false);
        assert!(equal, "seed {seed}: the logs differ");
        assert_eq!(lost, 0, "seed {seed}: states are lost");
    }
}

#[test]
fn last_write_wins_is_caught() {
    assert!((1..=8).any(|seed| history(seed, true).lost > 0), "the control must lose something");
}

#[test]
fn private_threads_leave_nothing_on_the_remote() {
    let base = tempfile::tempdir().expect("a temporary folder");
    let remote = FolderRemote::create_in_folder(&base.path().join("remote")).expect("a remote");
    fs::create_dir(base.path().join("device")).expect("a folder");
    let device = Device::open(base.path().join("device"), 5);
    let create = |title: &str, private: bool| {
        let new = NewThread::in_project(PROJECT).titled(title);
        let thread = device.timeline().create_thread(new, Caller::human()).expect("a thread").thread;
        if private {
            let command = Command::Share { visibility: None, private: Some(true), shared_with_support: None };
            device.timeline().change(thread, command, Caller::human()).expect("a private thread");
        }
        thread
    };
    let (shared, hidden, control) =
        (create("Shared", false), create("Zjqxkwvu title", true), create("Control", false));
    for thread in [shared, hidden, control] {
        let word = format!("Wq{thread}");
        (0..5).for_each(|number| device.say(thread, &format!("{word} {number} of a text that is said")));
        device.timeline().go(thread, Goal::Undo(Unit::Turn, 2), Caller::human()).expect("an undo");
        device.timeline().go(thread, Goal::Jump(3), Caller::human()).expect("a jump");
    }
    for thread in [shared, hidden, control] {
        device.exchange(&remote, thread).expect("an exchange");
    }
    assert_eq!(device.state(&remote, hidden), SyncState::Private);
    let mut everything = Vec::new();
    collect(&base.path().join("remote"), &mut everything);
    let runs: BTreeSet<&[u8]> = everything.iter().flat_map(|bytes| bytes.windows(8)).collect();
    let traces = |thread: ThreadId| {
        // Only the random part of an id: ids made at the same time share the other one.
        let id = thread.to_string()[..16].to_owned();
        let mut traces = vec![thread.bytes().to_vec(), id.clone().into_bytes()];
        traces.extend(device.ids(thread).into_iter().flatten().map(|id| id.bytes().to_vec()));
        traces.extend(device.states(thread).into_iter().map(|id| id.bytes().to_vec()));
        traces.push(format!("Wq{id}").into_bytes());
        let mut found = 0;
        for trace in traces {
            let hex = data_encoding::HEXLOWER.encode(&trace);
            let based = (0..3).map(|skip| data_encoding::BASE64.encode(&trace[skip..]).into_bytes());
            let forms = based.chain([trace.clone(), hex.into_bytes()]);
            // The end of base64 depends on what follows.
            found += forms
                .flat_map(|form| form[..form.len() - 4].windows(8).map(<[u8]>::to_vec).collect::<Vec<_>>())
                .filter(|run| runs.contains(run.as_slice()))
                .count();
        }
        found
    };
    assert_eq!(traces(hidden), 0, "traces of the private thread");
    assert!(traces(control) > 0, "the control is found");
}

/// All files below a folder, their names, and the unpacked bundles.
fn collect(folder: &Path, everything: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        everything.push(path.to_string_lossy().into_owned().into_bytes());
        if path.is_dir() {
            collect(&path, everything);
            continue;
        }
        let bytes = fs::read(&path).expect("a file");
        if let Ok((_, operations)) = bundle::decode(&bytes) {
            for operation in operations {
                everything.extend(operation.objects.iter().map(|object| object.bytes.to_vec()));
                everything.push(operation.operation);
            }
        }
        everything.push(bytes);
    }
}

#[test]
fn one_of_many_pushes_at_once_wins() {
    let base: TempDir = tempfile::tempdir().expect("a temporary folder");
    let remote = FolderRemote::create_in_folder(base.path()).expect("a remote");
    let thread = ThreadId::from_bytes([3; 16]);
    for number in 1..=20 {
        let outcomes: Vec<PushOutcome> = std::thread::scope(|scope| {
            let pushes: Vec<_> = (0..8u8)
                .map(|writer| {
                    let remote = &remote;
                    scope.spawn(move || {
                        let bytes = [writer, number as u8];
                        let head = RemoteHead {
                            number,
                            first: number,
                            last: number,
                            head: ContentId::from_bytes([writer; 32]),
                            bundle: bundle::BundleId::of(&bytes),
                            bytes: 2,
                            summary: retake_sync::remote::RemoteSummary {
                                title: String::new(),
                                project: ProjectKey::default(),
                                updated: 0,
                                details: retake_sync::wire::ThreadDetails::default(),
                            },
                        };
                        remote.push(thread, &head, &bytes).expect("a push")
                    })
                })
                .collect();
            pushes.into_iter().map(|push| push.join().expect("a writer")).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == PushOutcome::Added).count(), 1);
    }
    let heads = remote.heads(thread, 0).expect("heads");
    assert_eq!(heads.len(), 20);
    assert!(heads.iter().all(|head| remote.bundle(thread, head).is_ok()));
}
