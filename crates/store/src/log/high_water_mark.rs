//! The high-water mark: the sequence number of the last acknowledged operation, stored next to the database to detect
//! a truncated log.
//!
//! SQLite silently drops damaged transactions at the end of its write-ahead log, which leaves an intact but older
//! database. So the writer stores the last sequence number in the lock file after each commit. The mark is not synced
//! (the commit is) and never runs ahead of the database, so after a power cut it may lag behind, which is harmless. A
//! database behind its mark has lost operations.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use crate::{Store, StoreError};

/// Sequence number and checksum: a damaged mark must not cause a false alarm.
const BYTES: usize = 16;

/// Acknowledged operations are missing at the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostLogEnd {
    /// The sequence number of the last acknowledged operation.
    pub acknowledged: i64,
    /// The sequence number of the last stored operation.
    pub found: i64,
}

impl std::fmt::Display for LostLogEnd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = self.acknowledged - self.found;
        write!(
            formatter,
            "the end of the log is missing: the last {missing} acknowledged operations are lost"
        )
    }
}

impl Store {
    /// Checks for acknowledged operations that are missing at the end of the log.
    pub fn lost_log_end(&self) -> Result<Option<LostLogEnd>, StoreError> {
        // Read the mark first: a commit in between can only extend the log.
        let Some(acknowledged) = self.writer.high_water_mark() else { return Ok(None) };
        let found = match self.read()?.queries().last_sequence() {
            // If the log itself is damaged, its end is unknown; reading it reports the damage.
            Err(error) if error.is_damage() => return Ok(None),
            found => found?,
        };
        Ok((found < acknowledged).then_some(LostLogEnd { acknowledged, found }))
    }
}

/// Raises the mark. A higher mark stays, so that a truncated log is reported until it is repaired.
pub(crate) fn advance(file: &File, sequence: i64) {
    if read(file).is_none_or(|mark| mark < sequence) {
        write(file, sequence);
    }
}

/// Writes the mark. A failure costs at most a warning later, not the change.
pub(crate) fn write(file: &File, sequence: i64) {
    let number = sequence.to_le_bytes();
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&number);
    bytes[8..].copy_from_slice(&guard(number));
    let _ = file.write_all_at(&bytes, 0);
}

/// The stored mark, if its checksum matches.
pub(crate) fn read(file: &File) -> Option<i64> {
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let number: [u8; 8] = bytes[..8].try_into().ok()?;
    (bytes[8..] == guard(number)).then(|| i64::from_le_bytes(number))
}

fn guard(number: [u8; 8]) -> [u8; 8] {
    let hash = blake3::hash(&number);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    first
}
