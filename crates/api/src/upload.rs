//! Request bodies that are too large for memory.

use std::fs::File;
use std::io::{BufReader, Seek};

use crate::problem::{Code, Problem};

/// A body in an unnamed file, which disappears on drop or when the process dies.
pub(crate) struct Upload {
    file: File,
}

impl Upload {
    pub(crate) fn new(file: File) -> Self {
        Self { file }
    }

    /// Reads the body from the start.
    pub(crate) fn read(&self) -> Result<BufReader<File>, Problem> {
        let again = || -> std::io::Result<File> {
            let mut file = self.file.try_clone()?;
            file.rewind()?;
            Ok(file)
        };
        again().map(BufReader::new).map_err(|error| Problem::new(Code::Storage, error))
    }
}
