//! Damages the bytes of a file.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::rng::Rng;
use crate::violation::BoxError;

/// SQLite's page size; also used for the header and the frames of the log.
const PAGE: usize = 2048;

#[derive(Clone, Debug)]
pub(super) struct Damage {
    /// Whether the log was damaged, not the database.
    pub(super) log: bool,
    what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} in the {}", self.what, if self.log { "log" } else { "database" })
    }
}

/// Damages a file of the store; `None` if the bytes did not change.
pub(super) fn damage(store: &Path, misplaced: bool, rng: &mut Rng) -> Result<Option<Damage>, BoxError> {
    let log = store.join("retake.db-wal").exists() && !rng.once_in(3);
    let path = store.join(if log { "retake.db-wal" } else { "retake.db" });
    let before = fs::read(&path)?;
    let mut bytes = before.clone();
    let what = if misplaced && rng.once_in(6) { misplace(&mut bytes, rng) } else { harm(&mut bytes, rng) };
    if bytes == before {
        return Ok(None);
    }
    fs::write(&path, bytes)?;
    Ok(Some(Damage { log, what }))
}

fn harm(bytes: &mut Vec<u8>, rng: &mut Rng) -> String {
    let place = rng.index(bytes.len());
    match rng.below(12) {
        0..=3 => {
            let bit = rng.below(8);
            bytes[place] ^= 1 << bit;
            format!("bit {bit} of byte {place}")
        }
        4 | 5 => {
            bytes[place] = rng.below(256) as u8;
            format!("byte {place}")
        }
        6 => {
            let count = rng.below(15) + 2;
            for _ in 0..count {
                let place = rng.index(bytes.len());
                bytes[place] = rng.below(256) as u8;
            }
            format!("{count} bytes here and there, after byte {place}")
        }
        7 => {
            let end = (place + 1 + rng.index(512)).min(bytes.len());
            for byte in &mut bytes[place..end] {
                *byte = rng.below(256) as u8;
            }
            format!("bytes {place} to {end}")
        }
        8 => {
            let start = place - place % PAGE;
            let end = (start + PAGE).min(bytes.len());
            bytes[start..end].fill(0);
            format!("page at {start} zeroed")
        }
        9 | 10 => {
            bytes.truncate(place);
            format!("cut at {place}")
        }
        _ => {
            let length = place - place % PAGE;
            bytes.truncate(length);
            format!("cut at page boundary {length}")
        }
    }
}

/// A misplaced write.
fn misplace(bytes: &mut [u8], rng: &mut Rng) -> String {
    let (from, to) = (rng.index(bytes.len()), rng.index(bytes.len()));
    let (from, to) = (from - from % PAGE, to - to % PAGE);
    let length = PAGE.min(bytes.len() - from).min(bytes.len() - to);
    bytes.copy_within(from..from + length, to);
    format!("page at {from} written over page at {to}")
}
