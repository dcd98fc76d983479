//! A folder to try things in, gone when it is dropped.
//!
//! It lies in memory where the system has such a place: these campaigns look for wrong content, not for lost
//! syncs, and a sync in memory costs nothing.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const IN_MEMORY: &str = "/dev/shm";

/// A folder to try things in.
#[derive(Debug)]
pub struct Ground {
    folder: TempDir,
    mounted: bool,
}

impl Ground {
    /// A new, empty folder.
    pub fn new() -> io::Result<Self> {
        if Path::new(IN_MEMORY).is_dir()
            && let Ok(folder) = builder().tempdir_in(IN_MEMORY)
        {
            return Ok(Self { folder, mounted: false });
        }
        Ok(Self { folder: builder().tempdir()?, mounted: false })
    }

    /// The same for a project to lie in, which must not be in a folder of the system's. It lies in memory where
    /// we may mount such a place.
    pub fn for_files() -> io::Result<Self> {
        let folder = builder().tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "mode=700", "retake-proof"]).arg(folder.path());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        Ok(Self { folder, mounted })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if self.mounted {
            // What is in it goes with it, also where somebody still looks at it.
            let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
        }
    }
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("retake-proof-");
    builder
}
