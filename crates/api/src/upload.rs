//! Bodies that are too large for memory: they go to a file, and away with it.

use std::fs::File;
use std::io::{BufReader, Seek};

use crate::problem::{Code, Problem};

/// A body that is in a file without a name: it is gone when it is dropped, or when the process dies.
pub(crate) struct Upload {
    file: File,
}

impl Upload {
    /// A file that is written already.
    pub(crate) fn new(file: File) -> Self {
        Self { file }
    }

    /// The body, from its beginning.
    pub(crate) fn read(&self) -> Result<BufReader<File>, Problem> {
        let again = || -> std::io::Result<File> {
            let mut file = self.file.try_clone()?;
            file.rewind()?;
            Ok(file)
        };
        again().map(BufReader::new).map_err(|error| Problem::new(Code::Storage, error))
    }
}
