//! Bringing a folder from one set of files to another, path by path, and never over somebody's work.
//!
//! Everything new is written aside first, made durable with one sync, and only then moved to its place:
//!
//! ```text
//!   look      each path: is it what it should be? (already) · what was expected? · or neither? (kept)
//!   write     .retake-tmp-TOKEN-1/   x3 the new README · n7/ a whole new folder · …      then one sync
//!             .retake-tmp-TOKEN-2/   the same folder, renamed: all of it is complete
//!   move      out     src/old  ──────────► r5        look at what came out; not as expected: back again
//!             swap    README   ◄─────────► x3        look at what came out; not as expected: swap again
//!             in      docs/    ◄────────── n7        only if nothing stands there
//!   finish    what came out goes, the temporary folder goes, one sync
//! ```
//!
//! A failure or a cancel before *finish* runs the moves backwards, with the same looks, from what still lies in
//! the temporary folder: nothing has to be written for it, so a full disk does not stand in the way. A crash
//! leaves the temporary folder; the same request finds it, and finishes. In the folder that ends with `1`
//! everything is ours and half made; in the one that ends with `2` lies what came out, and what is neither of
//! the two sides is put back to its place first.
//!
//! Every path is reached name by name from the descriptor of the root, and no link is followed on the way.

mod look;
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
use retake_model::object::{Objects, Unavailable};
use retake_model::path::{TEMPORARY, TreePath};
use retake_model::tree::{Difference, Node};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub use look::{Identity, content_of};
pub use sealed::{PlainFile, Replacement, Stamped, read_plain, replace_plain};
pub use set_aside::{SetAside, set_aside};

/// The folder that is to be changed, held open: a path that is moved meanwhile does not lead elsewhere.
#[derive(Debug)]
pub struct OpenRoot {
    descriptor: OwnedFd,
    renames: rename::Renames,
}

/// The text that names the temporary folder; the same for a request and for its repetition after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(String);

/// The text cannot be part of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has 1 to 64 letters, digits or dashes")]
pub struct NotAToken;

/// What is to be done.
pub struct Request<'a> {
    /// Where.
    pub root: &'a OpenRoot,
    /// What is to become of each path. Each path once; the order does not matter.
    pub steps: &'a [Difference],
    /// Where content comes from. It is read on the calling thread only.
    pub objects: &'a dyn Objects,
    /// Names the temporary folder.
    pub token: &'a Token,
    /// Whether a file with this identity is known to have the content that the step expects, so that it need
    /// not be read. An answer that is not certain must be no.
    pub unchanged: Option<&'a Unchanged<'a>>,
    /// Told how far it is.
    pub progress: Option<&'a dyn Fn(Progress)>,
    /// Set from elsewhere to stop, and put everything back.
    pub cancel: &'a AtomicBool,
}

/// Whether the file at a path, with that identity, is known to be what is expected there.
pub type Unchanged<'a> = dyn Fn(&TreePath, &Identity) -> bool + 'a;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How many paths are done.
    pub done: usize,
    /// Of how many.
    pub total: usize,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking at what is there.
    Looking,
    /// Writing new content aside.
    Writing,
    /// Moving it to its place.
    Moving,
}

/// What became of every path.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Each step, in the order of the paths.
    pub results: Vec<PathResult>,
    /// Work of others that was moved aside, and whose place is taken.
    pub left: Vec<Left>,
}

/// Somebody's work that is kept aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where it is now, from the root.
    pub file: String,
    /// Where it was, if that is still known.
    pub path: Option<TreePath>,
}

/// What became of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathResult {
    /// Which.
    pub path: TreePath,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is now as wanted.
    Written,
    /// It is gone, as wanted.
    Removed,
    /// It was as wanted before.
    Already,
    /// It was neither what was expected nor what is wanted: somebody changed it, and it was left alone.
    Kept(Found),
    /// It could not be done, and it was left alone.
    Skipped(Skip),
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A file.
    File {
        /// The name of its bytes.
        content: ContentId,
        /// How many there are.
        size: u64,
        /// Its permissions.
        mode: u16,
    },
    /// A symbolic link.
    Link {
        /// Where it points to.
        target: Vec<u8>,
    },
    /// A folder.
    Folder {
        /// Its permissions.
        mode: u16,
    },
    /// A pipe, a socket or a device.
    Special,
}

/// Why a path was left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Skip {
    /// Permissions do not allow it.
    #[error("permission denied")]
    Denied,
    /// It is in use.
    #[error("it is in use")]
    Busy,
    /// The folder holds things that Retake does not.
    #[error("the folder holds files that Retake does not")]
    NotEmpty,
    /// The file system takes its name for that of another path.
    #[error("the file system takes its name for another one")]
    NameClash,
    /// On the way to it stands something that is not a folder.
    #[error("something else is in the way")]
    InTheWay,
    /// The file system does not take its name.
    #[error("the file system does not take the name")]
    NameRefused,
    /// It is on another file system than the root.
    #[error("it is on another file system")]
    OtherFileSystem,
    /// It could not be written.
    #[error("it could not be written")]
    NotWritten,
    /// It belongs to a version control system.
    #[error("it belongs to a version control system, whose data is never written")]
    Repository,
    /// Its content is missing from the store, or damaged.
    #[error("its content is missing or damaged in the store")]
    NotHeld,
}

/// It failed, and everything was put back but for what is named.
#[derive(Debug)]
pub struct ApplyError {
    /// What failed.
    pub cause: Cause,
    /// Paths that could not be put back, because somebody else changed them meanwhile or putting back failed.
    pub not_put_back: Vec<TreePath>,
}

/// What failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// It was to stop.
    #[error("it was cancelled")]
    Cancelled,
    /// The root cannot be opened, or nothing can be written there.
    #[error("the folder cannot be written")]
    Root(#[source] io::Error),
    /// The disk is full or failing, or cannot be written.
    #[error("cannot write {path}")]
    Path {
        /// Where it showed.
        path: TreePath,
        /// What the system said.
        source: io::Error,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Content(Unavailable),
    /// What was written could not be made durable.
    #[error("the files could not be made durable")]
    Sync(#[source] io::Error),
    /// The same path is named twice.
    #[error("{0} is named twice")]
    Twice(TreePath),
}

/// Does it. When this returns, what it did is durable.
pub fn apply(request: &Request<'_>) -> Result<Report, ApplyError> {
    let mut steps: Vec<&Difference> = request.steps.iter().collect();
    steps.sort_by(|left, right| left.path.cmp(&right.path));
    if let Some(pair) = steps.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return Err(Cause::Twice(pair[0].path.clone()).into());
    }
    let mut left = recover::recover(request, &steps).map_err(root_failed)?;
    let plan = plan::make(request, &steps)?;
    let mut outcomes = plan.outcomes;
    if !plan.actions.iter().all(plan::Action::is_nothing) {
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
    /// Opens a folder. The path itself may go through links: it is the user's own word.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { descriptor, renames: rename::Renames::default() })
    }

    /// As on a file system that can neither swap nor refuse to replace.
    #[cfg(test)]
    pub(crate) fn open_plain(path: &Path) -> io::Result<Self> {
        Ok(Self { renames: rename::Renames::plain(), ..Self::open(path)? })
    }
}

impl AsFd for OpenRoot {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl OpenRoot {
    /// Whether it is the folder with that number on that device.
    pub fn is(&self, device: u64, inode: u64) -> bool {
        rustix::fs::fstat(&self.descriptor).is_ok_and(|found| (found.st_dev, found.st_ino) == (device, inode))
    }
}

impl Token {
    /// The token with that text.
    pub fn new(text: &str) -> Result<Self, NotAToken> {
        let fits = (1..=64).contains(&text.len());
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if fits && plain { Ok(Self(text.to_owned())) } else { Err(NotAToken) }
    }

    /// Whether a request with this token left its temporary folder in a root, because it could not even clear up.
    /// The same request clears it up when it is made again.
    pub fn is_in(&self, root: &Path) -> bool {
        [Life::Filling, Life::Full]
            .iter()
            .any(|life| root.join(self.folder(*life)).symlink_metadata().is_ok())
    }

    /// The name of the temporary folder in one of its two lives.
    fn folder(&self, life: Life) -> String {
        let prefix = str::from_utf8(TEMPORARY).expect("it is plain text");
        let number = match life {
            Life::Filling => 1,
            Life::Full => 2,
        };
        format!("{prefix}{}-{number}", self.0)
    }
}

/// What the temporary folder may hold.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// Only what we write, perhaps half of it.
    Filling,
    /// What we wrote, and what was moved out of the way.
    Full,
}

impl Request<'_> {
    fn tell(&self, phase: Phase, done: usize, total: usize) {
        if let Some(progress) = self.progress {
            progress(Progress { phase, done, total });
        }
    }

    fn check_cancel(&self) -> Result<(), Cause> {
        if self.cancel.load(Ordering::Relaxed) { Err(Cause::Cancelled) } else { Ok(()) }
    }
}

impl Found {
    /// Whether that is exactly this node. A folder is compared by its permissions alone.
    pub fn is(&self, node: Option<&Node>) -> bool {
        match (self, node) {
            (Self::Nothing, None) => true,
            (Self::File { content, size, mode }, Some(Node::File { content: c, size: s, mode: m })) => {
                content == c && size == s && mode == m
            }
            (Self::Link { target }, Some(Node::Link { target: t })) => target == t,
            (Self::Folder { mode }, Some(Node::Folder { mode: m, .. })) => mode == m,
            _ => false,
        }
    }
}

/// An error of the system, sorted by what it is about.
enum Trouble {
    /// This path.
    Skip(Skip),
    /// Everything.
    Fatal(Errno),
}

fn sort(errno: Errno) -> Trouble {
    Trouble::Skip(match errno {
        Errno::ACCESS | Errno::PERM => Skip::Denied,
        Errno::TXTBSY | Errno::BUSY => Skip::Busy,
        Errno::NOTEMPTY => Skip::NotEmpty,
        Errno::EXIST | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR | Errno::NOENT => Skip::InTheWay,
        Errno::NAMETOOLONG | Errno::ILSEQ | Errno::INVAL => Skip::NameRefused,
        Errno::XDEV => Skip::OtherFileSystem,
        errno => return Trouble::Fatal(errno),
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
