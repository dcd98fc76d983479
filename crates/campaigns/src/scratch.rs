//! A temporary folder that is removed when dropped.
//!
//! In memory if possible: these campaigns look for wrong content, not for lost syncs, and a sync in memory is free.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const IN_MEMORY: &str = "/dev/shm";

/// A temporary folder.
#[derive(Debug)]
pub struct ScratchDir {
    folder: TempDir,
    mounted: bool,
}

impl ScratchDir {
    /// Creates an empty folder.
    pub fn new() -> io::Result<Self> {
        if Path::new(IN_MEMORY).is_dir()
            && let Ok(folder) = builder().tempdir_in(IN_MEMORY)
        {
            return Ok(Self { folder, mounted: false });
        }
        Ok(Self { folder: builder().tempdir()?, mounted: false })
    }

    /// Creates a folder for a project, which must not be in a system folder. In memory if mounting is permitted.
    pub fn for_files() -> io::Result<Self> {
        let folder = builder().tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "mode=700", "retake-campaigns"]).arg(folder.path());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        Ok(Self { folder, mounted })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if self.mounted {
            // Lazy, in case a process still uses it.
            let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
        }
    }
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("retake-campaigns-");
    builder
}
