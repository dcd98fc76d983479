//! Acknowledgements: one line each, written atomically to an append-only file.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use retake_model::content::ContentId;
use retake_model::id::{EntryId, ThreadId};

use crate::violation::BoxError;

/// An acknowledgement of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    /// The number of the lane's operation.
    pub(super) ordinal: u64,
    /// Number of attempts; 0 if it was found to have been executed before a kill.
    pub(super) tries: u64,
    /// The executed operation; `None` if there was nothing to do.
    pub(super) done: Option<AcknowledgedOperation>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AcknowledgedOperation {
    pub(super) thread: ThreadId,
    /// Version and operation id; unknown if the worker acknowledged too early.
    pub(super) operation: Option<(u64, ContentId)>,
    /// The added entry.
    pub(super) entry: Option<EntryId>,
}

pub(super) struct Acknowledgements {
    file: File,
}

impl Acknowledgements {
    pub(super) fn open(scratch: &Path, lane: usize) -> Result<Self, BoxError> {
        let file = OpenOptions::new().create(true).append(true).open(path(scratch, lane))?;
        Ok(Self { file })
    }

    pub(super) fn write(&mut self, acknowledgement: &Acknowledgement) -> Result<(), BoxError> {
        let line = acknowledgement.to_line();
        if self.file.write(line.as_bytes())? == line.len() {
            Ok(())
        } else {
            Err("an acknowledgement was cut short".into())
        }
    }

    pub(super) fn read(scratch: &Path, lane: usize) -> Result<Vec<Acknowledgement>, BoxError> {
        match fs::read_to_string(path(scratch, lane)) {
            Ok(text) => text.lines().map(Acknowledgement::from_line).collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Acknowledgement {
    fn to_line(&self) -> String {
        let Self { ordinal, tries, done } = self;
        let Some(AcknowledgedOperation { thread, operation, entry }) = done else {
            return format!("{ordinal} {tries} - - - -\n");
        };
        let (version, operation) = match operation {
            Some((version, operation)) => (version.to_string(), operation.to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let entry = entry.map_or_else(|| "-".to_owned(), |entry| entry.to_string());
        format!("{ordinal} {tries} {thread} {version} {operation} {entry}\n")
    }

    fn from_line(line: &str) -> Result<Self, BoxError> {
        let words: Vec<&str> = line.split(' ').collect();
        let &[ordinal, tries, thread, version, operation, entry] = words.as_slice() else {
            return Err(format!("not an acknowledgement: {line:?}").into());
        };
        let (ordinal, tries) = (ordinal.parse()?, tries.parse()?);
        if thread == "-" {
            return Ok(Self { ordinal, tries, done: None });
        }
        let operation = if version == "-" {
            None
        } else {
            Some((version.parse::<u64>()?, operation.parse::<ContentId>()?))
        };
        let entry = if entry == "-" { None } else { Some(entry.parse()?) };
        Ok(Self {
            ordinal,
            tries,
            done: Some(AcknowledgedOperation { thread: thread.parse()?, operation, entry }),
        })
    }
}

fn path(scratch: &Path, lane: usize) -> PathBuf {
    scratch.join(format!("acknowledged-{lane}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_round_trip() {
        let thread = ThreadId::from_bytes([3; 16]);
        let operation = Some((7, ContentId::from_bytes([9; 32])));
        for done in [
            None,
            Some(AcknowledgedOperation { thread, operation, entry: None }),
            Some(AcknowledgedOperation {
                thread,
                operation: None,
                entry: Some(EntryId::from_bytes([5; 16])),
            }),
        ] {
            let written = Acknowledgement { ordinal: 12, tries: 3, done };
            let line = written.to_line();
            let read = Acknowledgement::from_line(line.trim_end()).expect("a line that was just written");
            assert_eq!(read, written);
        }
    }
}
