//! A small disk in memory with a real file system, whose power can be cut.
//!
//! ```text
//!   /dev/shm/…/image  ──loop device──►  ext4  ──mounted at──►  ground/world
//!                                         │
//!                             shutdown ioctl, unmount, mount: the journal is replayed, the rest is lost
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::violation::BoxError;

const SIZE: u64 = 96 * 1024 * 1024;
const SHUTDOWN: &str = include_str!("../../shim/shutdown.c");

#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    place: PathBuf,
    shutdown: PathBuf,
}

impl Disk {
    /// Creates a disk with an empty ext4, its image in `folder`, mounted at `place` below it. Needs root,
    /// loop devices, `mkfs.ext4` and a C compiler; the error names the missing one.
    pub fn new(folder: &Path, place: &str) -> Result<Self, BoxError> {
        let disk = Self {
            image: folder.join("image"),
            place: folder.join(place),
            shutdown: folder.join("shutdown"),
        };
        fs::create_dir_all(&disk.place)?;
        let source = folder.join("shutdown.c");
        fs::write(&source, SHUTDOWN)?;
        run(Command::new("cc").arg("-o").arg(&disk.shutdown).arg(&source))?;
        File::create(&disk.image)?.set_len(SIZE)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&disk.image))?;
        disk.mount()?;
        Ok(disk)
    }

    /// The mount point.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Makes everything durable.
    pub fn sync(&self) -> Result<(), BoxError> {
        run(Command::new("sync").arg("-f").arg(&self.place))
    }

    /// Cuts the power: no further write reaches the disk.
    pub fn cut(&self) -> Result<(), BoxError> {
        run(Command::new(&self.shutdown).arg(&self.place))
    }

    /// Mounts the disk again after a cut, once no process uses it.
    pub fn bring_back(&self) -> Result<(), BoxError> {
        run(Command::new("umount").arg(&self.place))?;
        self.mount()
    }

    fn mount(&self) -> Result<(), BoxError> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.place))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy, in case a process still uses it; the loop device is released with it.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

fn run(command: &mut Command) -> Result<(), BoxError> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{} failed: {}", command.get_program().display(), stderr.trim()).into())
}
