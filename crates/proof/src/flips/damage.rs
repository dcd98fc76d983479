//! Damages the bytes of a file.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::dice::Dice;
use crate::violation::Trouble;

/// SQLite's page size; also used for the header and the frames of the log.
const PAGE: usize = 4096;

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
pub(super) fn damage(store: &Path, misplaced: bool, dice: &mut Dice) -> Result<Option<Damage>, Trouble> {
    let log = store.join("retake.db-wal").exists() && !dice.once_in(3);
    let path = store.join(if log { "retake.db-wal" } else { "retake.db" });
    let before = fs::read(&path)?;
    let mut bytes = before.clone();
    let what = if misplaced && dice.once_in(6) { misplace(&mut bytes, dice) } else { harm(&mut bytes, dice) };
    if bytes == before {
        return Ok(None);
    }
    fs::write(&path, bytes)?;
    Ok(Some(Damage { log, what }))
}

fn harm(bytes: &mut Vec<u8>, dice: &mut Dice) -> String {
    let place = dice.index(bytes.len());
    match dice.below(12) {
        0..=3 => {
            let bit = dice.below(8);
            bytes[place] ^= 1 << bit;
            format!("bit {bit} of byte {place}")
        }
        4 | 5 => {
            bytes[place] = dice.below(256) as u8;
            format!("byte {place}")
        }
        6 => {
            let count = dice.below(15) + 2;
            for _ in 0..count {
                let place = dice.index(bytes.len());
                bytes[place] = dice.below(256) as u8;
            }
            format!("{count} bytes here and there, after byte {place}")
        }
        7 => {
            let end = (place + 1 + dice.index(512)).min(bytes.len());
            for byte in &mut bytes[place..end] {
                *byte = dice.below(256) as u8;
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
fn misplace(bytes: &mut [u8], dice: &mut Dice) -> String {
    let (from, to) = (dice.index(bytes.len()), dice.index(bytes.len()));
    let (from, to) = (from - from % PAGE, to - to % PAGE);
    let length = PAGE.min(bytes.len() - from).min(bytes.len() - to);
    bytes.copy_within(from..from + length, to);
    format!("page at {from} written over page at {to}")
}
