//! Reads and replaces single files that snapshots exclude: read to be sealed, replaced when a move restores an older
//! version.
//!
//! They are few and small, so each is replaced on its own, with the same checks:
//!
//! ```text
//!   .retake-tmp-TOKEN-a3    incomplete; deleted after a crash
//!   .retake-tmp-TOKEN-b3    complete and synced ◄── swap ──► .env      check the removed file; if unexpected, swap again
//! ```
//!
//! What has no copy in the store (a large file, a link, a folder) is renamed to `NAME.retake-aside` instead of deleted.
//!
//! Repeating the request after a crash finds its own temporary files and finishes.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};

use retake_model::path::{TEMPORARY, TreePath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::rename::{EntryLocation, SwapOutcome};
use super::set_aside::{beside, put_aside};
use super::stage::write_all;
use super::walk::Walker;
use super::{ApplyError, Cause, ErrorClass, OpenRoot, Outcome, SkipReason, Token, classify};

/// What exists at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainFile {
    /// Nothing.
    Nothing,
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its nine permission bits.
        mode: u16,
    },
    /// A file that is too large or unreadable.
    Unread,
    /// A folder, a link, a pipe, a socket or a device.
    NotAFile,
}

/// What exists at a path, with a stamp that distinguishes it from another file without its bytes. Renaming does not
/// change the stamp.
pub type StampedFile = (PlainFile, u64);

/// The replacement of one path.
pub struct Replacement<'a> {
    /// The root folder.
    pub root: &'a OpenRoot,
    /// The path.
    pub path: &'a TreePath,
    /// Returns whether the existing file may be replaced.
    pub expected: &'a dyn Fn(&StampedFile) -> bool,
    /// Whether the store has a copy of the existing file, so that it may be deleted.
    pub is_stored: bool,
    /// The wanted file, or none.
    pub wanted: &'a PlainFile,
    /// Names the temporary files, together with `number`.
    pub token: &'a Token,
    /// A different number for each path of a request.
    pub number: usize,
    /// Size limit for reading.
    pub largest: u64,
}

/// The outcome of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The outcome of the path.
    pub outcome: Outcome,
    /// The new path of what was there, if it was renamed.
    pub aside: Option<String>,
}

/// Reads a file of up to `largest` bytes.
pub fn read_plain(root: &OpenRoot, path: &TreePath, largest: u64) -> StampedFile {
    let mut walker = Walker::new(root.as_fd());
    match walker.folder(path.parents()) {
        Ok(folder) => read(folder, path.name().bytes(), largest),
        Err(Errno::NOENT) => (PlainFile::Nothing, 0),
        Err(_) => (PlainFile::NotAFile, 0),
    }
}

fn read(folder: BorrowedFd<'_>, name: &[u8], largest: u64) -> StampedFile {
    // Do not block if a pipe replaced the file.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return (PlainFile::Nothing, 0),
        Err(_) => return (PlainFile::NotAFile, 0),
    };
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file(&stat) {
        return (PlainFile::NotAFile, stamp_of(&stat));
    }
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty());
    let Ok((file, stat)) = opened.and_then(|file| rustix::fs::fstat(&file).map(|stat| (file, stat))) else {
        return (PlainFile::Unread, stamp_of(&stat));
    };
    // The file may have been replaced since; the open descriptor decides.
    let stamp = stamp_of(&stat);
    if !is_file(&stat) {
        return (PlainFile::NotAFile, stamp);
    }
    if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > largest {
        return (PlainFile::Unread, stamp);
    }
    let mut bytes = Vec::new();
    let read = File::from(file).take(largest + 1).read_to_end(&mut bytes);
    if read.is_err() || bytes.len() as u64 > largest {
        return (PlainFile::Unread, stamp);
    }
    (PlainFile::File { bytes, mode: (stat.st_mode & 0o777) as u16 }, stamp)
}

fn stamp_of(stat: &Stat) -> u64 {
    let mut hasher = blake3::Hasher::new();
    let stamps = [stat.st_ino, stat.st_size as u64, stat.st_mtime as u64, stat.st_mtime_nsec as u64];
    for number in stamps {
        hasher.update(&number.to_le_bytes());
    }
    let mut stamp = [0; 8];
    stamp.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(stamp)
}

/// Why a replacement failed.
enum ReplaceError {
    /// Nothing was changed.
    Before(Errno),
    /// The state on disk is unknown.
    Midway(Errno),
}

/// Writes or deletes a file, unless someone has changed it. Changes are durable when this returns. The outcome reports
/// why a path was left unchanged; an error means that the state on disk is unknown and that the request must be
/// repeated.
pub fn replace_plain(replacement: &Replacement<'_>) -> Result<Replaced, ApplyError> {
    let mut aside = None;
    let outcome = match try_replace(replacement, &mut aside) {
        Ok(outcome) => outcome,
        Err(ReplaceError::Before(errno)) => Outcome::Skipped(match classify(errno) {
            ErrorClass::Skip(skip) => skip,
            ErrorClass::Fatal(_) => SkipReason::NotWritten,
        }),
        Err(ReplaceError::Midway(errno)) => return Err(Cause::Sync(errno.into()).into()),
    };
    Ok(Replaced { outcome, aside: aside.map(|name| beside(replacement.path, &name)) })
}

fn try_replace(
    replacement: &Replacement<'_>,
    put_aside: &mut Option<Vec<u8>>,
) -> Result<Outcome, ReplaceError> {
    let Replacement { root, path, wanted, .. } = replacement;
    let mut walker = Walker::new(root.as_fd());
    if !matches!(wanted, PlainFile::Nothing) {
        walker.make(path.parents()).map_err(ReplaceError::Before)?;
    }
    let folder = match walker.folder(path.parents()) {
        Err(Errno::NOENT | Errno::NOTDIR) if matches!(wanted, PlainFile::Nothing) => {
            return Ok(Outcome::Already);
        }
        other => other.map_err(ReplaceError::Before)?,
    };
    let mut moving = ReplaceStep { replacement, folder, name: path.name().bytes(), put_aside };
    moving.clear_up()?;
    let found = moving.read(moving.name);
    if found.0 == **wanted {
        return Ok(Outcome::Already);
    }
    if !(replacement.expected)(&found) {
        return Ok(Outcome::Kept(super::DiskNode::Special));
    }
    let outcome = match wanted {
        PlainFile::Nothing => moving.remove()?,
        PlainFile::File { bytes, mode } => {
            moving.stage(bytes, *mode)?;
            moving.bring(&found.0)?
        }
        PlainFile::Unread | PlainFile::NotAFile => return Ok(Outcome::Skipped(SkipReason::ContentMissing)),
    };
    rustix::fs::fsync(folder).map_err(ReplaceError::Midway)?;
    Ok(outcome)
}

struct ReplaceStep<'a> {
    replacement: &'a Replacement<'a>,
    folder: BorrowedFd<'a>,
    name: &'a [u8],
    /// The new name of what was there, if it was renamed.
    put_aside: &'a mut Option<Vec<u8>>,
}

impl ReplaceStep<'_> {
    fn temporary(&self, letter: char) -> Vec<u8> {
        let Replacement { token, number, .. } = self.replacement;
        [TEMPORARY, format!("{}-{letter}{number}", token.0).as_bytes()].concat()
    }

    fn read(&self, name: &[u8]) -> StampedFile {
        read(self.folder, name, self.replacement.largest)
    }

    fn unlink(&self, name: &[u8]) -> Result<(), ReplaceError> {
        match rustix::fs::unlinkat(self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(ReplaceError::Midway(errno)),
        }
    }

    /// Deletes what was at the path and is at a temporary one now, or renames it if there is no copy of it.
    fn discard(&mut self, temporary: &[u8]) -> Result<(), ReplaceError> {
        if self.replacement.is_stored || self.read(temporary).0 == PlainFile::Nothing {
            return self.unlink(temporary);
        }
        let entry = EntryLocation { folder: self.folder, name: temporary };
        let name = put_aside(self.replacement.root, entry, self.name).map_err(ReplaceError::Midway)?;
        *self.put_aside = Some(name);
        Ok(())
    }

    /// Removes the temporary file and reports that nothing was changed.
    fn give_up<T>(&self, aside: &[u8], errno: Errno) -> Result<T, ReplaceError> {
        self.unlink(aside).and(Err(ReplaceError::Before(errno)))
    }

    fn place<'p>(&'p self, name: &'p [u8]) -> EntryLocation<'p> {
        EntryLocation { folder: self.folder, name }
    }

    /// Cleans up after a crash. A removed file that matches neither side is moved back.
    fn clear_up(&mut self) -> Result<(), ReplaceError> {
        self.unlink(&self.temporary('a'))?;
        let aside = self.temporary('b');
        let left = self.read(&aside);
        if left.0 == PlainFile::Nothing || left.0 == *self.replacement.wanted {
            return self.unlink(&aside);
        }
        if (self.replacement.expected)(&left) {
            return self.discard(&aside);
        }
        let renames = &self.replacement.root.renames;
        match self.read(self.name).0 {
            PlainFile::Nothing => {
                renames.put(self.place(&aside), self.place(self.name)).map_err(ReplaceError::Midway)
            }
            found if found == *self.replacement.wanted => {
                renames.swap(self.place(&aside), self.place(self.name)).map_err(ReplaceError::Midway)?;
                self.unlink(&aside)
            }
            // A newer file exists there; the older one stays aside, where the user can find it.
            _ => Err(ReplaceError::Before(Errno::EXIST)),
        }
    }

    /// Writes the new file to a temporary path, complete and durable.
    fn stage(&self, bytes: &[u8], mode: u16) -> Result<(), ReplaceError> {
        let (writing, complete) = (self.temporary('a'), self.temporary('b'));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.folder, &*writing, flags, Mode::from_raw_mode(0o600))
            .map_err(ReplaceError::Before)?;
        let written = write_all(file.as_fd(), bytes)
            .and_then(|()| rustix::fs::fchmod(&file, Mode::from_raw_mode(mode.into())))
            .and_then(|()| rustix::fs::fsync(&file))
            .and_then(|()| rustix::fs::renameat(self.folder, &*writing, self.folder, &*complete));
        written.or_else(|errno| self.give_up(&writing, errno))
    }

    fn bring(&mut self, found: &PlainFile) -> Result<Outcome, ReplaceError> {
        let aside = self.temporary('b');
        let (new, target) = (self.place(&aside), self.place(self.name));
        let renames = &self.replacement.root.renames;
        if *found == PlainFile::Nothing {
            return match renames.put(new, target) {
                Ok(()) => Ok(Outcome::Written),
                Err(Errno::EXIST) => self.unlink(&aside).map(|()| Outcome::Kept(super::DiskNode::Special)),
                Err(errno) => self.give_up(&aside, errno),
            };
        }
        match renames.swap(new, target) {
            Ok(SwapOutcome::Done) if (self.replacement.expected)(&self.read(&aside)) => {}
            Ok(SwapOutcome::Done) => {
                // Someone changed the file in the meantime.
                renames.swap(new, target).map_err(ReplaceError::Midway)?;
                return self.unlink(&aside).map(|()| Outcome::Kept(super::DiskNode::Special));
            }
            Ok(SwapOutcome::Unknown) if !self.replacement.is_stored => {
                return self.give_up(&aside, Errno::NOTSUP);
            }
            Ok(SwapOutcome::Unknown) => {
                return match rustix::fs::renameat(self.folder, &*aside, self.folder, self.name) {
                    Ok(()) => Ok(Outcome::Written),
                    Err(errno) => self.give_up(&aside, errno),
                };
            }
            Err(errno) => return self.give_up(&aside, errno),
        }
        self.discard(&aside).map(|()| Outcome::Written)
    }

    fn remove(&mut self) -> Result<Outcome, ReplaceError> {
        let aside = self.temporary('b');
        let renames = &self.replacement.root.renames;
        renames.put(self.place(self.name), self.place(&aside)).map_err(ReplaceError::Before)?;
        if (self.replacement.expected)(&self.read(&aside)) {
            return self.discard(&aside).map(|()| Outcome::Removed);
        }
        renames.put(self.place(&aside), self.place(self.name)).map_err(ReplaceError::Midway)?;
        Ok(Outcome::Kept(super::DiskNode::Special))
    }
}
