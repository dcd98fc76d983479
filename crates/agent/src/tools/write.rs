//! `write`: writes a file.
//!
//! ```text
//!   src/ (by descriptor)   .retake-tmp-tool-7   written, synced
//!                          main.rs  ◄────────── renamed: readers see the old or the new file
//! ```

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use retake_model::path::TreePath;
use retake_workspace::leftover::tool_prefix;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::openat::{self, OpenError, SymlinkPolicy};
use super::text::{count, one_line};
use super::tool_context::ToolPath;
use super::{Output, Tool, ToolAccess, ToolContext, ToolError, ToolRun, input};

pub(super) const TOOL: Tool = Tool {
    name: "write",
    description: "Write a whole file. Replaces the file if it exists, and makes missing folders. \
                  To change part of a file, use `edit`.",
    access: ToolAccess::Writes,
    schema: input::schema::<Input>,
    run,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, from the project folder.
    path: String,
    /// The whole content of the file.
    content: String,
}

fn run(input: &Value, run: &mut ToolRun<'_>) -> Result<Output, ToolError> {
    let Input { path, content } = input::parse(input)?;
    let path = run.path(&path)?;
    let replaced = replace(run.context, &path, content.as_bytes(), &ExpectedFile::Anything)?;
    let verb = if replaced == PreviousFile::Nothing { "Created" } else { "Replaced" };
    let lines = count(content.lines().count(), "line", "lines");
    let bytes = count(content.len(), "byte", "bytes");
    let note = replaced.note();
    Ok(Output::success(format!("{verb} {} ({lines}, {bytes}).{note}", one_line(&path))))
}

/// The file that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreviousFile {
    Nothing,
    File,
    /// A file whose setuid, setgid or sticky bit the new one does not have.
    WithSpecialBits,
}

impl PreviousFile {
    /// A note for the output; usually empty.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Nothing | Self::File => "",
            Self::WithSpecialBits => " Its setuid, setgid or sticky bit was cleared.",
        }
    }
}

/// The expected file before it is replaced.
pub(super) enum ExpectedFile<'a> {
    /// Any file or none.
    Anything,
    /// The file as it was read.
    This(&'a Stat),
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0} is a symbolic link. Tools write neither through links nor over them.")]
    Link(String),
    #[error("{0} is a folder; it cannot be written as a file.")]
    Folder(String),
    #[error("{0} is a pipe, a socket or a device, which tools do not write to.")]
    Special(String),
    #[error("{0} is read-only, so it was left as it is.")]
    ReadOnly(String),
    #[error("{0} was changed by someone else meanwhile, so it was left as it is. Read it again.")]
    Changed(String),
    #[error("{path} cannot be written: {errno}.")]
    Failed { path: String, errno: Errno },
}

/// Writes a file atomically.
pub(super) fn replace(
    context: &ToolContext,
    path: &TreePath,
    content: &[u8],
    expected: &ExpectedFile<'_>,
) -> Result<PreviousFile, WriteError> {
    let failed = |errno| WriteError::Failed { path: path.to_string(), errno };
    let folder = openat::make_parents(&context.root, path)?;
    let before = check_target(folder.as_fd(), path)?;
    let (mut file, name) = create_temporary(folder.as_fd()).map_err(failed)?;
    let written = (|| {
        file.write_all(content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if let Some(before) = &before {
            // Drop setuid, setgid and sticky bits: new content must not inherit them.
            rustix::fs::fchmod(&file, Mode::from_raw_mode(before.st_mode & 0o777))?;
        }
        rustix::fs::fdatasync(&file)
    })()
    .map_err(failed)
    .and_then(|()| {
        let now = check_target(folder.as_fd(), path)?;
        match expected {
            ExpectedFile::This(stat) if !now.as_ref().is_some_and(|now| same(now, stat)) => {
                Err(WriteError::Changed(path.to_string()))
            }
            _ => rustix::fs::renameat(&folder, name.as_str(), &folder, path.name().bytes())
                // The operation that records the result is synced next.
                .and_then(|()| rustix::fs::fsync(&folder))
                .map_err(failed),
        }
    });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, name.as_str(), AtFlags::empty());
    }
    written.map(|()| match before {
        None => PreviousFile::Nothing,
        Some(before) if before.st_mode & 0o7000 != 0 => PreviousFile::WithSpecialBits,
        Some(_) => PreviousFile::File,
    })
}

/// Checks that the target can be replaced; returns its metadata.
fn check_target(folder: BorrowedFd<'_>, path: &TreePath) -> Result<Option<Stat>, WriteError> {
    let name = || path.to_string();
    let found =
        openat::look(folder, path.name()).map_err(|errno| WriteError::Failed { path: name(), errno })?;
    let Some(stat) = found else { return Ok(None) };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o222 == 0 => Err(WriteError::ReadOnly(name())),
        FileType::RegularFile => Ok(Some(stat)),
        FileType::Symlink => Err(WriteError::Link(name())),
        FileType::Directory => Err(WriteError::Folder(name())),
        _ => Err(WriteError::Special(name())),
    }
}

/// Whether it is the same unchanged file.
fn same(one: &Stat, other: &Stat) -> bool {
    let identity = |stat: &Stat| {
        (
            stat.st_dev,
            stat.st_ino,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec,
        )
    };
    identity(one) == identity(other)
}

/// Removes temporary files that a process left next to a file.
pub(super) fn sweep(context: &ToolContext, path: &TreePath, process: u32) {
    let Ok(mut folder) = openat::folder(&context.root, &ToolPath::Root, SymlinkPolicy::Refuse) else {
        return;
    };
    for name in path.parents() {
        let Ok(below) = openat::step(folder.as_fd(), name) else { return };
        folder = below;
    }
    let prefix = tool_prefix(process);
    let Ok(listed) = Dir::read_from(&folder) else { return };
    for found in listed.flatten() {
        if found.file_name().to_bytes().starts_with(prefix.as_bytes()) {
            // Ignore errors: a leftover temporary file is harmless.
            let _ = rustix::fs::unlinkat(&folder, found.file_name(), AtFlags::empty());
        }
    }
}

/// Creates a temporary file with a name that snapshots skip.
fn create_temporary(folder: BorrowedFd<'_>) -> Result<(File, String), Errno> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let prefix = tool_prefix(std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}{number}");
        match rustix::fs::openat(folder, name.as_str(), flags, Mode::from_raw_mode(0o666)) {
            // Left by an earlier process with the same id.
            Err(Errno::EXIST) => {}
            other => return Ok((File::from(other?), name)),
        }
    }
}
