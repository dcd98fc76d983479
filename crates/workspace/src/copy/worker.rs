//! Copies files from another folder.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use retake_model::path::{FileName, TreePath};
use retake_model::tree::Node;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{CopySource, Count};
use crate::apply::Identity;
use crate::apply::stage::write_all;
use crate::apply::walk::Walker;

/// Files of one folder.
pub(super) struct Batch {
    pub(super) folder: Vec<FileName>,
    pub(super) files: Vec<(FileName, Node)>,
}

/// State that the workers share.
#[derive(Default)]
pub(super) struct SharedState {
    pub(super) cloned: Count,
    pub(super) copied: Count,
    /// Set when the file systems cannot share blocks, so that this is tried only once.
    is_other_device: AtomicBool,
    missed: Mutex<Vec<(TreePath, Node)>>,
    failure: Mutex<Option<Errno>>,
}

impl SharedState {
    pub(super) fn failure(&self) -> Option<Errno> {
        self.failure.lock().ok().and_then(|failure| *failure)
    }

    /// Files that must come from the store.
    pub(super) fn missed_files(&self) -> Vec<(TreePath, Node)> {
        self.missed.lock().map(|mut missed| std::mem::take(&mut *missed)).unwrap_or_default()
    }
}

/// Processes batches until the channel closes.
pub(super) fn run(
    target: BorrowedFd<'_>,
    copy_source: Option<CopySource<'_>>,
    receiver: &Mutex<Receiver<Batch>>,
    shared: &SharedState,
) {
    let mut worker = Worker {
        target: Walker::new(target),
        copy_source: copy_source
            .as_ref()
            .map(|copy_source| (Walker::new(copy_source.root.as_fd()), *copy_source)),
        shared,
    };
    loop {
        let received = receiver.lock().map(|receiver| receiver.recv());
        let Ok(Ok(batch)) = received else { return };
        if shared.failure().is_some() {
            // Drain the channel, so that the walk does not block.
            continue;
        }
        if let Err(errno) = worker.process(&batch)
            && let Ok(mut failure) = shared.failure.lock()
        {
            failure.get_or_insert(errno);
        }
    }
}

struct Worker<'a> {
    target: Walker<'a>,
    copy_source: Option<(Walker<'a>, CopySource<'a>)>,
    shared: &'a SharedState,
}

impl Worker<'_> {
    fn process(&mut self, batch: &Batch) -> Result<(), Errno> {
        let target = self.target.folder(&batch.folder)?;
        let mut missed = Vec::new();
        for (name, node) in &batch.files {
            let path = path_of(&batch.folder, name);
            let taken = match &mut self.copy_source {
                Some((walker, copy_source)) => match walker.folder(&batch.folder) {
                    Ok(folder) => copy_file(copy_source, folder, target, &path, node, self.shared)?,
                    Err(_) => false,
                },
                None => false,
            };
            if !taken {
                missed.push((path, node.clone()));
            }
        }
        if let Ok(mut all) = self.shared.missed.lock() {
            all.append(&mut missed);
        }
        Ok(())
    }
}

/// Copies one file; returns whether that worked. Only problems in the new folder are errors.
fn copy_file(
    copy_source: &CopySource<'_>,
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    path: &TreePath,
    node: &Node,
    shared: &SharedState,
) -> Result<bool, Errno> {
    let Node::File { content, size, mode, .. } = *node else { return Ok(false) };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(source) = rustix::fs::openat(from, path.name().bytes(), flags, Mode::empty()) else {
        return Ok(false);
    };
    let before = match rustix::fs::fstat(&source) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Identity::of(&stat),
        _ => return Ok(false),
    };
    if before.size != size || !(copy_source.unchanged)(path, &before, content) {
        return Ok(false);
    }
    let made = create(to, path.name())?;
    let count = if size > 0 && is_shared(&made, &source, shared) {
        &shared.cloned
    } else if copy(&made, &source, size)? {
        &shared.copied
    } else {
        return remove_partial(to, path.name());
    };
    let after = rustix::fs::fstat(&source).map(|stat| Identity::of(&stat));
    if after != Ok(before) {
        return remove_partial(to, path.name());
    }
    rustix::fs::fchmod(&made, Mode::from_raw_mode(mode.into()))?;
    count.fetch_add(1, Ordering::Relaxed);
    Ok(true)
}

/// Removes an unreliable copy.
fn remove_partial(folder: BorrowedFd<'_>, name: &FileName) -> Result<bool, Errno> {
    rustix::fs::unlinkat(folder, name.bytes(), rustix::fs::AtFlags::empty()).map(|()| false)
}

fn is_shared(made: &OwnedFd, source: &OwnedFd, shared: &SharedState) -> bool {
    if shared.is_other_device.load(Ordering::Relaxed) {
        return false;
    }
    match rustix::fs::ioctl_ficlone(made, source) {
        Ok(()) => true,
        Err(errno) => {
            if matches!(errno, Errno::NOTSUP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS | Errno::INVAL) {
                shared.is_other_device.store(true, Ordering::Relaxed);
            }
            false
        }
    }
}

/// Copies the bytes of a file; returns whether the length is as expected.
fn copy(made: &OwnedFd, source: &OwnedFd, size: u64) -> Result<bool, Errno> {
    let mut copied = 0;
    while copied < size {
        match rustix::fs::copy_file_range(source, None, made, None, (size - copied) as usize) {
            Ok(0) => break,
            Ok(count) => copied += count as u64,
            Err(Errno::INTR) => {}
            // Some file systems cannot, or not with each other.
            Err(Errno::XDEV | Errno::NOSYS | Errno::NOTSUP | Errno::INVAL | Errno::IO) if copied == 0 => {
                return copy_by_read(made, source, size);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(copied == size)
}

fn copy_by_read(made: &OwnedFd, source: &OwnedFd, size: u64) -> Result<bool, Errno> {
    let mut buffer = vec![0; size.clamp(1, 1 << 20) as usize];
    let mut copied = 0;
    while copied < size {
        match rustix::io::read(source, &mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                write_all(made.as_fd(), &buffer[..count])?;
                copied += count as u64;
            }
            Err(Errno::INTR) => {}
            // An unreadable source file comes from the store instead.
            Err(_) => return Ok(false),
        }
    }
    Ok(copied == size)
}

/// Creates a file that no other user can read until it is complete.
pub(super) fn create(folder: BorrowedFd<'_>, name: &FileName) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name.bytes(), flags, Mode::from_raw_mode(0o600))
}

fn path_of(folder: &[FileName], name: &FileName) -> TreePath {
    let mut names = folder.iter().cloned();
    match names.next() {
        None => TreePath::of(name.clone()),
        Some(first) => names.fold(TreePath::of(first), |path, next| path.join(next)).join(name.clone()),
    }
}
