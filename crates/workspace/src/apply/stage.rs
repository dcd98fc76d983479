//! Writes all new content to the temporary folder and makes it durable before anything is moved.
//!
//! The calling thread reads content, which is mostly decompression; other threads write it, which is mostly waiting for
//! the system. A few files are written by the calling thread alone.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

use retake_model::content::Kind;
use retake_model::object::ObjectError;
use retake_model::path::{FileName, TreePath};
use retake_model::tree::{Difference, Node, each_piece};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::plan::{Action, Placement, STAGING_MODE, is_open};
use super::walk::{Walker, open_folder, remove_all};
use super::{
    ApplyError, Cause, ErrorClass, Outcome, Phase, Request, SkipReason, StageState, classify, path_failed,
    root_failed,
};

/// Up to this number of files, each is synced; above it, the whole file system is synced once.
pub(super) const FEW_FILES: usize = 8;

/// Batch limits for one writer: number of files, and bytes.
const BATCH: usize = 64;
/// Number of writer threads.
const WRITERS: usize = 6;
const BATCH_BYTES: usize = 1024 * 1024;

/// The temporary folder, complete and durable.
pub(super) struct StageFolder {
    pub(super) folder: OwnedFd,
}

/// Path of new content below the temporary folder.
pub(super) fn names(steps: &[&Difference], actions: &[Action], index: usize) -> Option<Vec<FileName>> {
    let own = |text: String| FileName::new(text.as_bytes()).expect("a letter and digits are a name");
    match &actions[index].placement {
        Placement::New => Some(vec![own(format!("n{index}"))]),
        Placement::Swap(_) => Some(vec![own(format!("x{index}"))]),
        Placement::Within(top) => {
            let above = steps[*top].path.names().len();
            let mut names = vec![own(format!("n{top}"))];
            names.extend_from_slice(&steps[index].path.names()[above..]);
            Some(names)
        }
        Placement::Nothing | Placement::Mode(_) | Placement::FolderMode => None,
    }
}

/// Writes new content and makes it durable. Leaves nothing behind on failure.
pub(super) fn write(
    request: &Request<'_>,
    steps: &[&Difference],
    actions: &[Action],
    outcomes: &mut [Option<Outcome>],
) -> Result<StageFolder, ApplyError> {
    let root = request.root.as_fd();
    let (filling, full) = (request.token.folder(StageState::Filling), request.token.folder(StageState::Full));
    rustix::fs::mkdirat(root, filling.as_bytes(), Mode::from_raw_mode(0o700)).map_err(root_failed)?;
    let written = open_folder(root, filling.as_bytes()).map_err(root_failed).and_then(|folder| {
        let mut staging = Staging { request, steps, actions, outcomes, folder: folder.as_fd() };
        staging.fill()?;
        rustix::fs::renameat(root, filling.as_bytes(), root, full.as_bytes()).map_err(root_failed)?;
        Ok(StageFolder { folder })
    });
    written.map_err(|cause| {
        // The next request with this token removes what remains.
        let _ = remove_all(root, filling.as_bytes());
        cause.into()
    })
}

struct Staging<'a> {
    request: &'a Request<'a>,
    steps: &'a [&'a Difference],
    actions: &'a [Action],
    outcomes: &'a mut [Option<Outcome>],
    folder: BorrowedFd<'a>,
}

/// A file to write.
struct StagedFile {
    index: usize,
    names: Vec<FileName>,
    mode: u16,
    bytes: Arc<[u8]>,
}

impl Staging<'_> {
    fn fill(&mut self) -> Result<(), Cause> {
        let staged: Vec<(usize, Vec<FileName>)> = (0..self.steps.len())
            .filter_map(|index| Some((index, names(self.steps, self.actions, index)?)))
            .collect();
        if staged.is_empty() {
            return Ok(());
        }
        let few = staged.len() <= FEW_FILES;
        self.make_folders(&staged)?;
        if few {
            self.write_few(&staged)?;
        } else {
            self.write_many(&staged)?;
        }
        self.set_folder_modes(&staged)?;
        if !few || staged.iter().any(|(index, _)| self.node(*index).is_folder()) {
            rustix::fs::syncfs(self.folder).map_err(|errno| Cause::Sync(errno.into()))?;
        }
        Ok(())
    }

    fn node(&self, index: usize) -> &Node {
        self.steps[index].after.as_ref().expect("a staged step has new content")
    }

    /// Skips a path or fails the request, depending on the error.
    fn failed(&mut self, index: usize, errno: Errno) -> Result<(), Cause> {
        let skip = match classify(errno) {
            // Nothing else writes here, so an existing entry has a name that the file system treats as equal.
            ErrorClass::Skip(SkipReason::InTheWay) if errno == Errno::EXIST => SkipReason::NameClash,
            ErrorClass::Skip(skip) => skip,
            ErrorClass::Fatal(errno) => return Err(path_failed(&self.steps[index].path, errno)),
        };
        self.outcomes[index] = Some(Outcome::Skipped(skip));
        Ok(())
    }

    fn make_folders(&mut self, staged: &[(usize, Vec<FileName>)]) -> Result<(), Cause> {
        let mut walker = Walker::new(self.folder);
        let mut skipped: Option<(&TreePath, Outcome)> = None;
        for (index, names) in staged {
            let path = &self.steps[*index].path;
            if let Some((above, outcome)) = &skipped
                && path.starts_with(above)
            {
                self.outcomes[*index] = Some(outcome.clone());
                continue;
            }
            if !self.node(*index).is_folder() {
                continue;
            }
            let (name, above) = names.split_last().expect("there is a name");
            let made = walker.folder(above).and_then(|folder| {
                rustix::fs::mkdirat(folder, name.bytes(), Mode::from_raw_mode(STAGING_MODE.into()))
            });
            if let Err(errno) = made {
                self.failed(*index, errno)?;
                skipped = self.outcomes[*index].clone().map(|outcome| (path, outcome));
            }
        }
        Ok(())
    }

    fn set_folder_modes(&mut self, staged: &[(usize, Vec<FileName>)]) -> Result<(), Cause> {
        let mut walker = Walker::new(self.folder);
        for (index, names) in staged.iter().rev() {
            let Node::Folder { mode, .. } = *self.node(*index) else { continue };
            // The outermost folder must stay movable.
            if mode == STAGING_MODE || self.outcomes[*index].is_some() || (names.len() == 1 && !is_open(mode))
            {
                continue;
            }
            let (name, above) = names.split_last().expect("there is a name");
            let set = walker.folder(above).and_then(|folder| {
                let mode = Mode::from_raw_mode(mode.into());
                rustix::fs::chmodat(folder, name.bytes(), mode, AtFlags::empty())
            });
            if let Err(errno) = set {
                return Err(path_failed(&self.steps[*index].path, errno));
            }
        }
        Ok(())
    }

    fn write_few(&mut self, staged: &[(usize, Vec<FileName>)]) -> Result<(), Cause> {
        let mut walker = Walker::new(self.folder);
        for (index, names) in staged {
            if self.outcomes[*index].is_some() {
                continue;
            }
            match self.read(*index, names)? {
                Some(StagedContent::Whole(file)) => {
                    if let Err(errno) = write_file(&mut walker, &file, SyncMode::Sync) {
                        self.failed(*index, errno)?;
                    }
                }
                Some(StagedContent::Pieces) => {
                    self.write_pieces(&mut walker, *index, names, SyncMode::Sync)?;
                }
                None => self.write_link(&mut walker, *index, names)?,
            }
        }
        Ok(())
    }

    fn write_many(&mut self, staged: &[(usize, Vec<FileName>)]) -> Result<(), Cause> {
        let (sender, receiver) = sync_channel::<Vec<StagedFile>>(2);
        let receiver = Mutex::new(receiver);
        let failures: Mutex<Vec<(usize, Errno)>> = Mutex::default();
        let stop = AtomicBool::new(false);
        let folder = self.folder;
        let read = std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| write_batches(folder, &receiver, &failures, &stop));
            }
            // Moved into the closure, so that the channel closes when reading ends.
            let sender = sender;
            let mut walker = Walker::new(folder);
            let (mut batch, mut bytes) = (Vec::with_capacity(BATCH), 0);
            for (done, (index, names)) in staged.iter().enumerate() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if self.outcomes[*index].is_some() {
                    continue;
                }
                match self.read(*index, names)? {
                    Some(StagedContent::Whole(file)) => {
                        bytes += file.bytes.len();
                        batch.push(file);
                    }
                    Some(StagedContent::Pieces) => {
                        self.write_pieces(&mut walker, *index, names, SyncMode::Nothing)?;
                    }
                    None => self.write_link(&mut walker, *index, names)?,
                }
                if batch.len() == BATCH || bytes >= BATCH_BYTES {
                    self.request.check_cancel()?;
                    self.request.report_progress(Phase::Writing, done, staged.len());
                    // A writer ends early only after a failure, which is checked below.
                    let _ = sender.send(std::mem::take(&mut batch));
                    bytes = 0;
                }
            }
            let _ = sender.send(batch);
            Ok(())
        });
        read?;
        for (index, errno) in failures.into_inner().unwrap_or_default() {
            self.failed(index, errno)?;
        }
        Ok(())
    }

    /// Reads the content of a file; `None` if it has none.
    fn read(&mut self, index: usize, names: &[FileName]) -> Result<Option<StagedContent>, Cause> {
        let node = self.node(index);
        let (Node::File { mode, .. }, Some((kind, id))) = (node, node.stored_as()) else { return Ok(None) };
        if kind != Kind::Blob {
            return Ok(Some(StagedContent::Pieces));
        }
        let mode = *mode;
        let read = self
            .request
            .objects
            .bytes(kind, id)
            .map(|bytes| StagedContent::Whole(StagedFile { index, names: names.to_vec(), mode, bytes }));
        match read {
            Ok(read) => Ok(Some(read)),
            Err(unavailable) => {
                self.unavailable(index, unavailable)?;
                // The path has an outcome now; an empty file would never be moved, so none is created.
                Ok(None)
            }
        }
    }

    fn unavailable(&mut self, index: usize, unavailable: ObjectError) -> Result<(), Cause> {
        match unavailable {
            ObjectError::Unreadable(_) => Err(Cause::Content(unavailable)),
            ObjectError::Missing { .. } | ObjectError::Damaged { .. } => {
                self.outcomes[index] = Some(Outcome::Skipped(SkipReason::ContentMissing));
                Ok(())
            }
        }
    }

    fn write_link(&mut self, walker: &mut Walker<'_>, index: usize, names: &[FileName]) -> Result<(), Cause> {
        let Node::Link { target } = self.node(index) else { return Ok(()) };
        let (name, above) = names.split_last().expect("there is a name");
        let made = walker
            .folder(above)
            .and_then(|folder| rustix::fs::symlinkat(target.as_slice(), folder, name.bytes()));
        made.or_else(|errno| self.failed(index, errno))
    }

    fn write_pieces(
        &mut self,
        walker: &mut Walker<'_>,
        index: usize,
        names: &[FileName],
        after: SyncMode,
    ) -> Result<(), Cause> {
        let Node::File { mode, .. } = *self.node(index) else { return Ok(()) };
        let file = match create(walker, names) {
            Ok(file) => file,
            Err(errno) => return self.failed(index, errno),
        };
        match self.write_each_piece(file.as_fd(), index) {
            Ok(()) => {
                if let Err(errno) = finish(file.as_fd(), mode, after) {
                    self.failed(index, errno)?;
                }
            }
            Err(PieceError::Unavailable(unavailable)) => self.unavailable(index, unavailable)?,
            Err(PieceError::Write(errno)) => self.failed(index, errno)?,
            Err(PieceError::Cancelled(cause)) => return Err(cause),
        }
        if self.outcomes[index].is_some() {
            discard(walker, names);
        }
        Ok(())
    }

    /// Writes the pieces of a file in order.
    fn write_each_piece(&self, file: BorrowedFd<'_>, index: usize) -> Result<(), PieceError> {
        each_piece(self.request.objects, self.node(index), &mut |piece| {
            self.request.check_cancel().map_err(PieceError::Cancelled)?;
            write_all(file, &piece).map_err(PieceError::Write)
        })
    }
}

/// Why a file was not written piece by piece.
enum PieceError {
    Unavailable(ObjectError),
    Write(Errno),
    Cancelled(Cause),
}

impl From<ObjectError> for PieceError {
    fn from(unavailable: ObjectError) -> Self {
        Self::Unavailable(unavailable)
    }
}

enum StagedContent {
    Whole(StagedFile),
    /// A file that is not read at once.
    Pieces,
}

/// What to do after writing a file.
#[derive(Clone, Copy)]
enum SyncMode {
    Nothing,
    Sync,
}

fn write_batches(
    folder: BorrowedFd<'_>,
    receiver: &Mutex<Receiver<Vec<StagedFile>>>,
    failures: &Mutex<Vec<(usize, Errno)>>,
    stop: &AtomicBool,
) {
    let mut walker = Walker::new(folder);
    loop {
        let received = receiver.lock().map(|receiver| receiver.recv());
        let Ok(Ok(batch)) = received else { return };
        for file in batch {
            if stop.load(Ordering::Relaxed) {
                // Drain the channel, so that the reader does not block.
                break;
            }
            if let Err(errno) = write_file(&mut walker, &file, SyncMode::Nothing) {
                if matches!(classify(errno), ErrorClass::Fatal(_)) {
                    stop.store(true, Ordering::Relaxed);
                }
                if let Ok(mut failures) = failures.lock() {
                    failures.push((file.index, errno));
                }
            }
        }
    }
}

fn write_file(walker: &mut Walker<'_>, file: &StagedFile, after: SyncMode) -> Result<(), Errno> {
    let created = create(walker, &file.names)?;
    let written =
        write_all(created.as_fd(), &file.bytes).and_then(|()| finish(created.as_fd(), file.mode, after));
    if written.is_err() {
        discard(walker, &file.names);
    }
    written
}

/// Removes an incomplete file, which would otherwise be moved into place with its new folder.
fn discard(walker: &mut Walker<'_>, names: &[FileName]) {
    let (name, above) = names.split_last().expect("there is a name");
    // If this fails too, the next recording of the folder finds the file and records it.
    let _ =
        walker.folder(above).and_then(|folder| rustix::fs::unlinkat(folder, name.bytes(), AtFlags::empty()));
}

fn create(walker: &mut Walker<'_>, names: &[FileName]) -> Result<OwnedFd, Errno> {
    let (name, above) = names.split_last().expect("there is a name");
    let folder = walker.folder(above)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name.bytes(), flags, Mode::from_raw_mode(0o600))
}

pub(crate) fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            // A disk that accepts no bytes without an error is full.
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn finish(file: BorrowedFd<'_>, mode: u16, after: SyncMode) -> Result<(), Errno> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode.into()))?;
    match after {
        SyncMode::Nothing => Ok(()),
        SyncMode::Sync => rustix::fs::fsync(file),
    }
}
