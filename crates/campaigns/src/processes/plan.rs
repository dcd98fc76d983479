//! The operations of each lane, derived from the seed, so that a restarted worker can continue and the check knows the
//! expected result.

use std::fs;
use std::path::{Path, PathBuf};

use retake_model::id::{EntryId, ThreadId};

use crate::rng::{Rng, mix};
use crate::violation::BoxError;

/// Number of shared threads.
pub(super) const SHARED: usize = 3;

/// The data that all processes share.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// Operations per lane.
    pub(super) operations: u64,
    /// Shared threads.
    pub(super) shared: Vec<ThreadId>,
    /// One thread per lane.
    pub(super) own: Vec<ThreadId>,
}

#[derive(Clone, Debug)]
pub(super) enum PlannedOperation {
    /// Add an entry to a shared thread.
    Add { thread: ThreadId, entry: EntryId, expecting: bool },
    /// Change the lane's own thread.
    Own,
}

impl Plan {
    /// The operation of a lane, and a generator for its details.
    pub(super) fn operation(&self, lane: usize, ordinal: u64) -> (PlannedOperation, Rng) {
        let mut rng = Rng::new(mix(self.seed) ^ mix(lane as u64 + 1) ^ mix(ordinal << 20));
        let planned = if rng.once_in(3) {
            PlannedOperation::Own
        } else {
            let thread = self.shared[rng.index(self.shared.len())];
            PlannedOperation::Add { thread, entry: entry(lane, ordinal), expecting: rng.once_in(2) }
        };
        (planned, rng)
    }

    pub(super) fn save(&self, scratch: &Path) -> Result<(), BoxError> {
        let mut text = format!("{} {}\n", self.seed, self.operations);
        for thread in self.shared.iter().chain(&self.own) {
            text.push_str(&thread.to_string());
            text.push('\n');
        }
        Ok(fs::write(scratch.join("plan"), text)?)
    }

    pub(super) fn load(scratch: &Path) -> Result<Self, BoxError> {
        let text = fs::read_to_string(scratch.join("plan"))?;
        let mut words = text.split_whitespace();
        let seed = words.next().ok_or("the plan has no seed")?.parse()?;
        let operations = words.next().ok_or("the plan has no size")?.parse()?;
        let mut shared = words.map(str::parse).collect::<Result<Vec<ThreadId>, _>>()?;
        let own = shared.split_off(SHARED.min(shared.len()));
        Ok(Self { seed, operations, shared, own })
    }
}

/// The entry of an operation. Its id is chosen here, so that a lane can add it again without knowing whether it was
/// added.
fn entry(lane: usize, ordinal: u64) -> EntryId {
    let mut bytes = [0x11; 16];
    bytes[4..8].copy_from_slice(&(lane as u32).to_be_bytes());
    bytes[8..].copy_from_slice(&ordinal.to_be_bytes());
    EntryId::from_bytes(bytes)
}

/// The folder of the store.
pub(super) fn store(scratch: &Path) -> PathBuf {
    scratch.join("store")
}

/// The file that tells readers to stop.
pub(super) fn stop(scratch: &Path) -> PathBuf {
    scratch.join("stop")
}
