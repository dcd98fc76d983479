//! A folder to try things in, gone when it is dropped.
//!
//! It lies in memory where the system has such a place: these campaigns look for wrong content, not for lost
//! syncs, and a sync in memory costs nothing.

use std::io;
use std::path::Path;

use tempfile::TempDir;

const IN_MEMORY: &str = "/dev/shm";

/// A folder to try things in.
#[derive(Debug)]
pub struct Ground(TempDir);

impl Ground {
    /// A new, empty folder.
    pub fn new() -> io::Result<Self> {
        let builder = || tempfile::Builder::new().prefix("retake-proof-").to_owned();
        if Path::new(IN_MEMORY).is_dir()
            && let Ok(folder) = builder().tempdir_in(IN_MEMORY)
        {
            return Ok(Self(folder));
        }
        builder().tempdir().map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
