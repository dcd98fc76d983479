//! How far the log has been: kept beside the database, so that a log that lost its end is noticed.
//!
//! SQLite drops damaged transactions at the end of its write-ahead log without a word: what is left is whole,
//! but older than what was acknowledged. So the writer leaves the number of the last operation in the lock file
//! after each commit. It is not synced (a commit already is), and it never runs ahead of the database, so after
//! a power cut it may be behind, which means nothing. A database that is behind the mark has lost operations.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use crate::{Store, StoreError};

/// The number, and a guard against a damaged mark: a false alarm would frighten for nothing.
const BYTES: usize = 16;

/// The log ends earlier than it once did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostEnd {
    /// The last operation that was acknowledged, by its place among all operations.
    pub acknowledged: i64,
    /// The last one that is there.
    pub found: i64,
}

impl std::fmt::Display for LostEnd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = self.acknowledged - self.found;
        write!(formatter, "the log has lost its end: the last {missing} acknowledged operations are gone")
    }
}

impl Store {
    /// Whether operations that were acknowledged are missing from the end of the log.
    pub fn lost_end(&self) -> Result<Option<LostEnd>, StoreError> {
        // The mark first: a commit between the two can only bring the log further.
        let Some(acknowledged) = self.writer.mark() else { return Ok(None) };
        let found = match self.read()?.queries().last_sequence() {
            // Where the log itself is damaged its end is not known; what reads it will say so.
            Err(error) if error.is_damage() => return Ok(None),
            found => found?,
        };
        Ok((found < acknowledged).then_some(LostEnd { acknowledged, found }))
    }
}

/// Leaves the mark, unless one further on is there: a log that lost its end stays noticed until it is repaired.
pub(crate) fn advance(file: &File, sequence: i64) {
    if read(file).is_none_or(|mark| mark < sequence) {
        leave(file, sequence);
    }
}

/// Leaves the mark. A mark that cannot be written costs a warning some day, not the change.
pub(crate) fn leave(file: &File, sequence: i64) {
    let number = sequence.to_le_bytes();
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&number);
    bytes[8..].copy_from_slice(&guard(number));
    let _ = file.write_all_at(&bytes, 0);
}

/// The mark that was left, if it is whole.
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
