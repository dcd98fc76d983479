//! Machines that share a remote: offline work, failures, copies, restored copies and wrong clocks.
//!
//! ```text
//!   2–5 machines: work, exchange, crash, are cloned, go back to an older disk        clocks ±400 days
//!        │ a folder, or a bucket behind a server that delays, cuts, halves and repeats
//!        ▼
//!   the remote, which sometimes goes back to an older copy
//! ```
//!
//! After two rounds without failures, all logs must be equal, byte for byte, and every state that a machine acknowledged
//! and did not lose with its disk must be in them. Of private threads, no run of 8 bytes may ever leave.

mod bucket_server;
mod device;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use retake_model::content::ContentId;
use retake_model::id::{ProjectId, ThreadId};
use retake_sync::bundle;
use retake_sync::engine::SyncState;
use retake_sync::remote::{BucketAddress, BucketRemote, Credentials, FolderRemote, OpenMode, Remote};

use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation, caught};

use bucket_server::{BucketServer, Faults};
use device::{Device, copy};

/// The project of all machines.
const PROJECT: ProjectId = ProjectId::from_bytes([7; 16]);
/// Steps of one history.
const STEPS: u64 = 24;

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncFault {
    /// A machine that diverged takes the remote's log instead of merging.
    LastWriteWins,
    /// A private thread is sent.
    SendsPrivateThread,
}

/// Where the machines exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteKind {
    /// A folder.
    Folder,
    /// A bucket, over HTTP, with failures.
    Bucket,
}

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct SyncPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of histories.
    pub histories: u64,
    /// The remote.
    pub remote: RemoteKind,
    /// The injected fault.
    pub mistake: Option<SyncFault>,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncDone {
    /// Histories.
    pub histories: u64,
    /// Exchanges that succeeded.
    pub exchanges: u64,
    /// Exchanges that failed, and were made again.
    pub failures: u64,
    /// Merges of logs that had diverged.
    pub merges: u64,
    /// States of private threads whose traces were looked for.
    pub private: u64,
}

/// The remote of a history.
struct Shared {
    remote: Box<dyn Remote>,
    server: Option<BucketServer>,
}

impl Shared {
    fn new(kind: RemoteKind, base: &Path, seed: u64) -> Result<Self, BoxError> {
        if kind == RemoteKind::Folder {
            return Ok(Self {
                remote: Box::new(FolderRemote::create_in_folder(&base.join("remote"))?),
                server: None,
            });
        }
        let server = BucketServer::start(seed)?;
        let address = BucketAddress {
            bucket: "threads".to_owned(),
            prefix: "a".to_owned(),
            endpoint: Some(format!("http://{}", server.address())),
            region: "us-east-1".to_owned(),
        };
        let credentials =
            Credentials { secret: Some("secret".to_owned()), access_key: Some("access".to_owned()) };
        let remote = BucketRemote::in_bucket(&address, &credentials, OpenMode::Create)?;
        server.set(Faults::Random);
        Ok(Self { remote: Box::new(remote), server: Some(server) })
    }

    /// No failures from now on.
    fn heal(&self) {
        if let Some(server) = &self.server {
            server.set(Faults::None);
        }
    }
}

/// Runs random histories.
pub fn sync_model(plan: SyncPlan) -> Result<SyncDone, CampaignError> {
    let mut done = SyncDone::default();
    for number in 0..plan.histories {
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(number);
        let violation = |what: String| Violation { campaign: "sync", seed: plan.seed, step: number, what };
        let outcome = history(seed, plan, &mut done).map_err(CampaignError::Trouble)?;
        if let Some(what) = outcome {
            return Err(violation(what).into());
        }
        done.histories += 1;
    }
    Ok(done)
}

/// The controls: each fault must be noticed.
pub fn controls(seed: u64) -> Result<u64, BoxError> {
    let plan = |remote, mistake| SyncPlan { seed, histories: 40, remote, mistake: Some(mistake) };
    caught("last write wins", sync_model(plan(RemoteKind::Folder, SyncFault::LastWriteWins)))?;
    caught("a private thread is sent", sync_model(plan(RemoteKind::Bucket, SyncFault::SendsPrivateThread)))?;
    Ok(2)
}

/// What is wrong after one history, if anything.
#[expect(clippy::too_many_lines, reason = "one history, step by step")]
fn history(seed: u64, plan: SyncPlan, done: &mut SyncDone) -> Result<Option<String>, BoxError> {
    let base = ScratchDir::new()?;
    let path = |name: &str| base.path().join(name);
    let mut random = Rng::new(seed);
    let shared = Shared::new(plan.remote, base.path(), seed)?;
    let remote = &*shared.remote;
    let count = 2 + random.index(4);
    let mut devices: Vec<Device> = Vec::new();
    for number in 0..count {
        let place = path(&format!("device{number}"));
        fs::create_dir(&place)?;
        // Up to 400 days wrong.
        let skew = random.below(800 * 86_400_000) as i64 - 400 * 86_400_000;
        devices.push(Device::open(place, seed.wrapping_mul(100).wrapping_add(number as u64), skew)?);
    }
    let thread = devices[0].create("Fix")?;
    let hidden = devices[0].create("Zjqxkwvu title")?;
    if plan.mistake != Some(SyncFault::SendsPrivateThread) {
        devices[0].make_private(hidden)?;
    }
    let acknowledge = |device: &Device, into: &mut BTreeSet<ContentId>| -> Result<(), BoxError> {
        into.extend(device.states(thread)?);
        Ok(())
    };
    let mut acknowledged: BTreeSet<ContentId> = BTreeSet::new();
    for step in 0..STEPS {
        let at = random.index(count);
        match random.below(20) {
            0..=8 => {
                devices[at].work(thread, &mut random);
                if at == 0 {
                    devices[0].work_hidden(hidden, &mut random);
                }
            }
            // Two machines with the same disk.
            9 => {
                let (image, other) = (path(&format!("image{step}")), (at + 1) % count);
                let is_safe = other != 0 && devices[other].exchange(remote, thread, done);
                if is_safe && devices[other].is_clean(remote, thread) {
                    devices[at].image(&image)?;
                    devices[other].restore(&image)?;
                }
            }
            // A disk that goes back to an older copy, after what it had was sent.
            10 => {
                let image = path(&format!("older{step}"));
                devices[at].image(&image)?;
                devices[at].work(thread, &mut random);
                if devices[at].exchange(remote, thread, done) && devices[at].is_clean(remote, thread) {
                    acknowledge(&devices[at], &mut acknowledged)?;
                    devices[at].restore(&image)?;
                }
            }
            // The remote goes back; the machines still have everything.
            11 => {
                if let Some(server) = &shared.server {
                    let image = server.image();
                    devices[at].work(thread, &mut random);
                    devices[at].exchange(remote, thread, done);
                    server.restore(image);
                } else {
                    let image = path(&format!("remote{step}"));
                    copy(&path("remote"), &image)?;
                    devices[at].work(thread, &mut random);
                    devices[at].exchange(remote, thread, done);
                    fs::remove_dir_all(path("remote"))?;
                    copy(&image, &path("remote"))?;
                }
            }
            // A crash: everything that is not on the disk is gone.
            12 => devices[at].restart()?,
            _ => {
                let diverged = plan.mistake == Some(SyncFault::LastWriteWins)
                    && matches!(devices[at].state(remote, thread), Some(SyncState::Diverged(..)));
                if diverged {
                    acknowledge(&devices[at], &mut acknowledged)?;
                    devices[at].wipe()?;
                }
                devices[at].exchange(remote, thread, done);
                // Another machine does not know the id, and could not ask.
                if devices[at].has(hidden)? {
                    devices[at].exchange(remote, hidden, done);
                }
            }
        }
    }
    for device in &devices {
        acknowledge(device, &mut acknowledged)?;
    }
    shared.heal();
    for _ in 0..2 {
        for device in &devices {
            device.exchange(remote, thread, done);
        }
    }
    let first = devices[0].ids(thread)?;
    for (number, device) in devices.iter().enumerate() {
        if device.ids(thread)? != first {
            return Ok(Some(format!("the logs of machines 0 and {number} differ after two rounds")));
        }
        if !device.verify()? {
            return Ok(Some(format!("the store of machine {number} is damaged")));
        }
    }
    let kept = devices[0].states(thread)?;
    let lost = acknowledged.difference(&kept).count();
    if lost > 0 {
        return Ok(Some(format!("{lost} acknowledged states are lost")));
    }
    let everything = match &shared.server {
        Some(server) => server.received(),
        None => files_below(&path("remote"))?,
    };
    let traces = device::traces(&devices[0], hidden)?;
    done.private += traces.len() as u64;
    Ok(found(&everything, &traces).map(|trace| format!("a trace of the private thread left: {trace:?}")))
}

/// The first trace with a run of 8 bytes in what left the machines: plain, in hex or base64, packed or not.
fn found<'traces>(everything: &[Vec<u8>], traces: &'traces [Vec<u8>]) -> Option<&'traces [u8]> {
    let mut runs: BTreeSet<&[u8]> = BTreeSet::new();
    let unpacked: Vec<Vec<u8>> = everything.iter().flat_map(|bytes| unpack(bytes)).collect();
    for bytes in everything.iter().chain(&unpacked) {
        runs.extend(bytes.windows(8));
    }
    traces
        .iter()
        .map(Vec::as_slice)
        .find(|trace| device::forms(trace).iter().any(|form| form.windows(8).any(|run| runs.contains(run))))
}

/// The content of the bundle that bytes end with, if they do: a request has its headers before.
fn unpack(bytes: &[u8]) -> Vec<Vec<u8>> {
    let Some(start) = bytes.windows(4).position(|window| window == b"RTKB") else { return Vec::new() };
    let Ok((_, operations)) = bundle::decode(&bytes[start..]) else { return Vec::new() };
    let mut parts = Vec::new();
    for operation in operations {
        parts.extend(operation.objects.iter().map(|object| object.bytes.to_vec()));
        parts.push(operation.operation);
    }
    parts
}

/// The files below a folder, and their names.
fn files_below(folder: &Path) -> Result<Vec<Vec<u8>>, BoxError> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        all.push(entry.file_name().to_string_lossy().into_owned().into_bytes());
        if entry.path().is_dir() {
            all.extend(files_below(&entry.path())?);
        } else {
            all.push(fs::read(entry.path())?);
        }
    }
    Ok(all)
}

/// Names a thread in messages.
fn named(thread: ThreadId) -> String {
    format!("thread {}", thread.short())
}
