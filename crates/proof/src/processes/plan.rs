//! What each lane is going to do, worked out from the seed alone, so that a restarted worker goes on where it
//! was and the check at the end knows what should be there.

use std::fs;
use std::path::{Path, PathBuf};

use retake_model::id::{EntryId, ThreadId};

use crate::dice::{Dice, mix};
use crate::violation::Trouble;

/// How many threads all lanes share.
pub(super) const SHARED: usize = 3;

/// Everything that parent, workers, readers and check agree on.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// Operations of each lane.
    pub(super) operations: u64,
    /// Threads that all lanes add to.
    pub(super) shared: Vec<ThreadId>,
    /// One thread of its own for each lane.
    pub(super) own: Vec<ThreadId>,
}

/// One operation of a lane.
#[derive(Clone, Debug)]
pub(super) enum Planned {
    /// Add that entry to that shared thread.
    Add { thread: ThreadId, entry: EntryId, expecting: bool },
    /// Do something with the lane's own thread.
    Own,
}

impl Plan {
    /// What a lane does at that point, and dice for the rest.
    pub(super) fn operation(&self, lane: usize, ordinal: u64) -> (Planned, Dice) {
        let mut dice = Dice::new(mix(self.seed) ^ mix(lane as u64 + 1) ^ mix(ordinal << 20));
        let planned = if dice.once_in(3) {
            Planned::Own
        } else {
            let thread = self.shared[dice.index(self.shared.len())];
            Planned::Add { thread, entry: entry(lane, ordinal), expecting: dice.once_in(2) }
        };
        (planned, dice)
    }

    pub(super) fn save(&self, ground: &Path) -> Result<(), Trouble> {
        let mut text = format!("{} {}\n", self.seed, self.operations);
        for thread in self.shared.iter().chain(&self.own) {
            text.push_str(&thread.to_string());
            text.push('\n');
        }
        Ok(fs::write(ground.join("plan"), text)?)
    }

    pub(super) fn load(ground: &Path) -> Result<Self, Trouble> {
        let text = fs::read_to_string(ground.join("plan"))?;
        let mut words = text.split_whitespace();
        let seed = words.next().ok_or("the plan has no seed")?.parse()?;
        let operations = words.next().ok_or("the plan has no size")?.parse()?;
        let mut shared = words.map(str::parse).collect::<Result<Vec<ThreadId>, _>>()?;
        let own = shared.split_off(SHARED.min(shared.len()));
        Ok(Self { seed, operations, shared, own })
    }
}

/// The entry that a lane adds with that operation: its identity is chosen here, so that it can be added again
/// by a lane that does not know whether it was.
fn entry(lane: usize, ordinal: u64) -> EntryId {
    let mut bytes = [0x11; 16];
    bytes[4..8].copy_from_slice(&(lane as u32).to_be_bytes());
    bytes[8..].copy_from_slice(&ordinal.to_be_bytes());
    EntryId::from_bytes(bytes)
}

/// Where the store is.
pub(super) fn store(ground: &Path) -> PathBuf {
    ground.join("store")
}

/// The file whose existence tells readers to stop.
pub(super) fn stop(ground: &Path) -> PathBuf {
    ground.join("stop")
}
