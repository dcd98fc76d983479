//! The report of a run, readable even after the process was killed.

use std::io;
use std::path::Path;

/// The counts of a run with faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Counted calls, including the fatal one.
    pub calls: u64,
    /// Injected faults; 0 if the run ended before that call.
    pub faults: u64,
    /// Changes that a power cut reverted.
    pub lost: u64,
    /// Changes that it could not have reverted; a cut proves nothing unless this is 0.
    pub untracked: u64,
}

impl Report {
    /// Reads the report from this file.
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
