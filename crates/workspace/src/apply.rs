//! Moves a folder from one set of files to another, path by path, without overwriting anyone's changes.
//!
//! New content is first written to a temporary folder, made durable with one sync, and only then moved into place:
//!
//! ```text
//!   check     each path: already as wanted? · as expected? · or neither (kept)?
//!   write     .retake-tmp-TOKEN-1/   x3 the new README · n7/ a whole new folder · …      then one sync
//!             .retake-tmp-TOKEN-2/   the same folder, renamed: all of it is complete
//!   move      out     src/old  ──────────► r5        check the removed file; if unexpected, move it back
//!             swap    README   ◄─────────► x3        check the removed file; if unexpected, swap again
//!             in      docs/    ◄────────── n7        only if the path is free
//!   finish    delete the removed files and the temporary folder, then one sync
//! ```
//!
//! A failure or cancellation before *finish* reverses the moves, with the same checks, from the files that are still in
//! the temporary folder. This writes nothing, so a full disk cannot prevent it. A crash leaves the temporary folder
//! behind; repeating the request finds it and finishes. The folder that ends in `1` contains only incomplete files of
//! ours. The one that ends in `2` also contains removed files: those that match neither side are first moved back.
//!
//! Every path is opened name by name from the descriptor of the root, without following links.

mod inspect;
mod moves;
mod plan;
mod recover;
mod rename;
mod sealed;
mod set_aside;
pub(crate) mod stage;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod walk;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use retake_model::content::ContentId;
use retake_model::object::{ObjectError, Objects};
use retake_model::path::{TEMPORARY, TreePath};
use retake_model::tree::{Difference, Node};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub use inspect::{Identity, content_of};
pub use sealed::{PlainFile, Replaced, Replacement, StampedFile, read_plain, replace_plain};
pub use set_aside::{AsideFiles, aside_path, set_aside};

/// The root folder to change. The open descriptor stays valid if the path is moved in the meantime.
#[derive(Debug)]
pub struct OpenRoot {
    descriptor: OwnedFd,
    renames: rename::Renames,
}

/// Names the temporary folder. A repeated request after a crash uses the same token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(String);

/// The text cannot be part of a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has 1 to 64 letters, digits or dashes")]
pub struct InvalidTokenError;

/// A set of changes to the files below one root.
pub struct Request<'a> {
    /// The folder to change.
    pub root: &'a OpenRoot,
    /// The change of each path. Each path occurs once; the order does not matter.
    pub steps: &'a [Difference],
    /// Source of content. Only the calling thread reads it.
    pub objects: &'a dyn Objects,
    /// Names the temporary folder.
    pub token: &'a Token,
    /// Returns whether the file with this identity has the content that the step expects, so that it need not be read.
    /// Must return `false` if in doubt.
    pub unchanged: Option<&'a UnchangedFn<'a>>,
    /// Receives progress reports.
    pub progress: Option<&'a dyn Fn(Progress)>,
    /// Set by another thread to stop and roll back.
    pub cancel: &'a AtomicBool,
    /// Fails and rolls back if a path is skipped. A folder that has other files in it may stay.
    pub all_or_nothing: bool,
}

/// Returns whether the file at a path, with that identity, has the expected content.
pub type UnchangedFn<'a> = dyn Fn(&TreePath, &Identity) -> bool + 'a;

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Paths done so far.
    pub done: usize,
    /// Paths in total.
    pub total: usize,
}

/// Phases of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Checking the existing files.
    Checking,
    /// Writing new content to the temporary folder.
    Writing,
    /// Moving content into place.
    Moving,
}

/// The outcome of every path.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The outcome of each step, sorted by path.
    pub results: Vec<PathResult>,
    /// Changes of others that were moved aside and whose path is occupied.
    pub left: Vec<Leftover>,
}

/// A file of someone else that stays aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its new path, relative to the root.
    pub file: String,
    /// Its original path, if known.
    pub path: Option<TreePath>,
}

/// The outcome of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathResult {
    /// The path.
    pub path: TreePath,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The path now has the wanted content.
    Written,
    /// The path was removed as wanted.
    Removed,
    /// The path already had the wanted content.
    Already,
    /// Someone changed the path: it had neither the expected nor the wanted content, and was left unchanged.
    Kept(DiskNode),
    /// The change failed, and the path was left unchanged.
    Skipped(SkipReason),
}

/// What exists at a path on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskNode {
    /// Nothing.
    Nothing,
    /// A file.
    File {
        /// Id of its content.
        content: ContentId,
        /// Size in bytes.
        size: u64,
        /// Permission bits.
        mode: u16,
    },
    /// A symbolic link.
    Link {
        /// Target of the link.
        target: Vec<u8>,
    },
    /// A folder.
    Folder {
        /// Permission bits.
        mode: u16,
    },
    /// A pipe, a socket or a device.
    Special,
}

/// Why a path was left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// Permission denied.
    #[error("permission denied")]
    Denied,
    /// The file is in use.
    #[error("the file is in use")]
    Busy,
    /// The folder contains files that Retake does not capture.
    #[error("the folder contains files that Retake does not capture")]
    NotEmpty,
    /// The file system treats the name as equal to that of another path.
    #[error("the file system treats its name as equal to another one")]
    NameClash,
    /// A parent of the path is not a folder.
    #[error("a parent of the path is not a folder")]
    InTheWay,
    /// The file system rejects the name.
    #[error("the file system rejects the name")]
    NameRefused,
    /// The path is on another file system than the root.
    #[error("the path is on another file system")]
    OtherFileSystem,
    /// The path could not be written.
    #[error("the path could not be written")]
    NotWritten,
    /// The path belongs to a version control system.
    #[error("the path belongs to a version control system, whose data Retake never writes")]
    Repository,
    /// The content is missing from the store, or damaged.
    #[error("the content is missing or damaged in the store; run `retake verify`")]
    ContentMissing,
}

/// The request failed and was rolled back, except for the named paths.
#[derive(Debug)]
pub struct ApplyError {
    /// The reason.
    pub cause: Cause,
    /// Paths that could not be rolled back, because someone changed them or because of an I/O error.
    pub not_put_back: Vec<TreePath>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// The root cannot be opened or written.
    #[error("the folder cannot be written")]
    Root(#[source] io::Error),
    /// The disk is full, failing or read-only.
    #[error("cannot write {path}")]
    Path {
        /// The path at which it failed.
        path: TreePath,
        /// The error of the system.
        source: io::Error,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Content(ObjectError),
    /// The sync failed.
    #[error("the files could not be synced to disk")]
    Sync(#[source] io::Error),
    /// The request names the same path twice.
    #[error("{0} occurs twice in the request")]
    Twice(TreePath),
    /// The request is all or nothing, and paths were skipped.
    #[error("cannot change {}", describe_skipped(.0))]
    Skipped(Vec<(TreePath, SkipReason)>),
}

impl Report {
    /// The skipped paths, except for folders that have other files in them.
    pub fn skipped(&self) -> Vec<(TreePath, SkipReason)> {
        skipped(self.results.iter().map(|result| (&result.path, &result.outcome)))
    }
}

fn skipped<'a>(found: impl Iterator<Item = (&'a TreePath, &'a Outcome)>) -> Vec<(TreePath, SkipReason)> {
    let skipped = found.filter_map(|(path, outcome)| match outcome {
        Outcome::Skipped(reason) if *reason != SkipReason::NotEmpty => Some((path.clone(), *reason)),
        _ => None,
    });
    skipped.collect()
}

/// Some of the skipped paths with their reasons, and the number of the rest.
pub fn describe_skipped(skipped: &[(TreePath, SkipReason)]) -> String {
    let named: Vec<String> =
        skipped.iter().take(5).map(|(path, reason)| format!("{path} ({reason})")).collect();
    match skipped.len().saturating_sub(5) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Executes a request. Changes are durable when this returns.
pub fn apply(request: &Request<'_>) -> Result<Report, ApplyError> {
    let mut steps: Vec<&Difference> = request.steps.iter().collect();
    steps.sort_by(|left, right| left.path.cmp(&right.path));
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return Err(Cause::Twice(pair[0].path.clone()).into());
    }
    let mut left = recover::recover(request, &steps).map_err(root_failed)?;
    let plan = plan::make_plan(request, &steps)?;
    let mut outcomes = plan.outcomes;
    request.check_skipped(&steps, &outcomes)?;
    if !plan.actions.iter().all(plan::Action::is_noop) {
        let staged = stage::write(request, &steps, &plan.actions, &mut outcomes)?;
        left.extend(moves::run(request, &steps, &plan.actions, &mut outcomes, staged)?);
    }
    let results = steps
        .iter()
        .zip(outcomes)
        .map(|(step, outcome)| PathResult {
            path: step.path.clone(),
            outcome: outcome.expect("every step has an outcome when all phases are over"),
        })
        .collect();
    Ok(Report { results, left })
}

impl OpenRoot {
    /// Opens a folder. Links in `path` are followed, because the user named it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { descriptor, renames: rename::Renames::default() })
    }

    /// Opens a folder like on a file system that supports neither `RENAME_EXCHANGE` nor `RENAME_NOREPLACE`.
    #[cfg(test)]
    pub(crate) fn open_plain(path: &Path) -> io::Result<Self> {
        Ok(Self { renames: rename::Renames::plain(), ..Self::open(path)? })
    }

    /// Opens a folder in which the system does not allow to rename files of this name.
    #[cfg(test)]
    pub(crate) fn open_denying(path: &Path, name: &'static [u8]) -> io::Result<Self> {
        Ok(Self { renames: rename::Renames::denying(name), ..Self::open(path)? })
    }
}

impl AsFd for OpenRoot {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl OpenRoot {
    /// Returns whether this is the folder with that device and inode.
    pub fn has_identity(&self, device: u64, inode: u64) -> bool {
        rustix::fs::fstat(&self.descriptor).is_ok_and(|found| (found.st_dev, found.st_ino) == (device, inode))
    }
}

impl Token {
    /// Validates the text of a token.
    pub fn new(text: &str) -> Result<Self, InvalidTokenError> {
        let fits = (1..=64).contains(&text.len());
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if fits && plain { Ok(Self(text.to_owned())) } else { Err(InvalidTokenError) }
    }

    /// Returns whether a request with this token left its temporary folder in a root. Repeating the request removes it.
    pub fn is_in(&self, root: &Path) -> bool {
        [StageState::Filling, StageState::Full]
            .iter()
            .any(|life| root.join(self.folder(*life)).symlink_metadata().is_ok())
    }

    /// Name of the temporary folder in a given state.
    fn folder(&self, life: StageState) -> String {
        let prefix = str::from_utf8(TEMPORARY).expect("the prefix is ASCII");
        let number = match life {
            StageState::Filling => 1,
            StageState::Full => 2,
        };
        format!("{prefix}{}-{number}", self.0)
    }
}

/// State of the temporary folder.
#[derive(Clone, Copy, Debug)]
enum StageState {
    /// Contains only new content, possibly incomplete.
    Filling,
    /// Contains complete new content and files that were moved out of the way.
    Full,
}

impl Request<'_> {
    fn report_progress(&self, phase: Phase, done: usize, total: usize) {
        if let Some(progress) = self.progress {
            progress(Progress { phase, done, total });
        }
    }

    fn check_cancel(&self) -> Result<(), Cause> {
        if self.cancel.load(Ordering::Relaxed) { Err(Cause::Cancelled) } else { Ok(()) }
    }

    fn check_skipped(&self, steps: &[&Difference], outcomes: &[Option<Outcome>]) -> Result<(), Cause> {
        if !self.all_or_nothing {
            return Ok(());
        }
        let found = steps.iter().zip(outcomes);
        let found = found.filter_map(|(step, outcome)| Some((&step.path, outcome.as_ref()?)));
        let skipped = skipped(found);
        if skipped.is_empty() { Ok(()) } else { Err(Cause::Skipped(skipped)) }
    }
}

impl DiskNode {
    /// Returns whether this is exactly the node. Folders are compared by their permissions only.
    pub fn matches(&self, node: Option<&Node>) -> bool {
        match (self, node) {
            (Self::Nothing, None) => true,
            (Self::File { content, size, mode }, Some(Node::File { content: c, size: s, mode: m, .. })) => {
                content == c && size == s && mode == m
            }
            (Self::Link { target }, Some(Node::Link { target: t })) => target == t,
            (Self::Folder { mode }, Some(Node::Folder { mode: m, .. })) => mode == m,
            _ => false,
        }
    }
}

/// A system error, classified by its scope.
enum ErrorClass {
    /// Affects one path.
    Skip(SkipReason),
    /// Affects the whole request.
    Fatal(Errno),
}

fn classify(errno: Errno) -> ErrorClass {
    ErrorClass::Skip(match errno {
        Errno::ACCESS | Errno::PERM => SkipReason::Denied,
        Errno::TXTBSY | Errno::BUSY => SkipReason::Busy,
        Errno::NOTEMPTY => SkipReason::NotEmpty,
        Errno::EXIST | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR | Errno::NOENT => SkipReason::InTheWay,
        Errno::NAMETOOLONG | Errno::ILSEQ | Errno::INVAL => SkipReason::NameRefused,
        Errno::XDEV => SkipReason::OtherFileSystem,
        errno => return ErrorClass::Fatal(errno),
    })
}

fn root_failed(errno: Errno) -> Cause {
    Cause::Root(errno.into())
}

fn path_failed(path: &TreePath, errno: Errno) -> Cause {
    Cause::Path { path: path.clone(), source: errno.into() }
}

impl From<Cause> for ApplyError {
    fn from(cause: Cause) -> Self {
        Self { cause, not_put_back: Vec::new() }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(formatter)?;
        match self.not_put_back.len() {
            0 => formatter.write_str("; the files are as they were"),
            count => write!(formatter, "; {count} of the files could not be put back"),
        }
    }
}

impl std::error::Error for ApplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}
