//! What the library says of a run, readable also after the process was killed.

use std::io;
use std::path::Path;

/// What happened in a run with faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Counted calls, the fatal one included.
    pub calls: u64,
    /// Faults that came about: none, if the run ended before the call that was to fail.
    pub faults: u64,
    /// Changes that a power cut took back.
    pub lost: u64,
    /// Changes that it could not have taken back; a cut proves nothing unless this is zero.
    pub untracked: u64,
}

impl Report {
    /// Reads what was counted in that file.
    pub fn read(file: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(file)?;
        let (words, rest) = bytes.as_chunks::<8>();
        match (words, rest) {
            (&[calls, faults, lost, untracked], []) => Ok(Self {
                calls: u64::from_ne_bytes(calls),
                faults: u64::from_ne_bytes(faults),
                lost: u64::from_ne_bytes(lost),
                untracked: u64::from_ne_bytes(untracked),
            }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not a report of the fault library")),
        }
    }
}
