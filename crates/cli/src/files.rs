//! Reads and writes the user's files: atomic writes, and reads of regular files only.
//!
//! ```text
//!   .retake-tmp-tool-PROCESS-XXXXXX   written, synced   ──rename──►   name   ──►   folder synced
//! ```
//!
//! A killed process leaves the old file and a temporary file, which the next write in that folder removes. These files
//! contain conversations or their paths, so only their owner can read them, whatever the umask.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use retake_workspace::leftover::{remove_if_abandoned, tool_prefix};
use rustix::fs::{Mode, OFlags};

use crate::failure::{Code, Failure};

/// What to do with an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfExists {
    /// Keep it and fail.
    Stays,
    Replaced,
}

/// Writes a file atomically.
pub(crate) fn write_whole<T>(
    path: &Path,
    existing: IfExists,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let target = real(path, existing)?;
    let fail = |error: io::Error| Failure::new(Code::Failed, format!("{}: {error}", path.display()));
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    remove_left(folder);
    let prefix = tool_prefix(std::process::id());
    let temporary = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder).map_err(fail)?;
    let mut buffer = BufWriter::new(temporary.as_file());
    let written = write(&mut buffer)?;
    buffer.flush().map_err(fail)?;
    drop(buffer);
    temporary.as_file().sync_all().map_err(fail)?;
    let placed = match existing {
        IfExists::Stays => temporary.persist_noclobber(&target),
        IfExists::Replaced => temporary.persist(&target),
    };
    placed.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => fail(error.error),
    })?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
    Ok(written)
}

/// Opens a file for reading. A pipe could block forever and a device has no end, so the opened file must be a regular
/// one; checking the path first would be racy. Links are followed.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "not a regular file" };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}")));
    }
    Ok(file)
}

/// Removes temporary files of killed processes.
fn remove_left(folder: &Path) {
    let Ok(folder) = folder.canonicalize() else { return };
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        remove_if_abandoned(&folder, Path::new(&entry.file_name()));
    }
}

/// The target of a link, so that a write replaces the target and not the link.
fn real(path: &Path, existing: IfExists) -> Result<PathBuf, Failure> {
    match fs::symlink_metadata(path) {
        Err(_) => return Ok(path.to_owned()),
        Ok(_) if existing == IfExists::Stays => return Err(exists(path)),
        Ok(_) => {}
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        return Err(Failure::new(Code::Refused, format!("{} is not a regular file", path.display())));
    }
    Ok(target)
}

fn exists(path: &Path) -> Failure {
    Failure::new(Code::Refused, format!("{} already exists; --force overwrites it", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &Path, existing: IfExists, text: &str) -> Result<(), Failure> {
        write_whole(path, existing, |out| Ok(out.write_all(text.as_bytes())?))
    }

    #[test]
    fn a_file_is_written_completely_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("some");
        let failed = write_whole(&path, IfExists::Replaced, |out| {
            out.write_all(b"half")?;
            Err::<(), _>(Failure::new(Code::Failed, "on purpose"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        write(&path, IfExists::Stays, "one").expect("it is new");
        assert_eq!(fs::metadata(&path).expect("the file exists").permissions().mode() & 0o777, 0o600);
        assert!(write(&path, IfExists::Stays, "two").is_err());
        assert_eq!(fs::read_to_string(&path).expect("text"), "one");
        write(&path, IfExists::Replaced, "two").expect("it may be replaced");
        assert_eq!(fs::read_to_string(&path).expect("text"), "two");
    }

    #[test]
    fn leftovers_of_a_killed_process_are_removed_by_the_next_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let left = folder.path().join(format!("{}abc", tool_prefix(child.id())));
        child.wait().expect("it ends");
        fs::write(&left, "half").expect("a file");
        write(&folder.path().join("some"), IfExists::Stays, "one").expect("it is new");
        assert!(!left.exists());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn only_regular_files_are_opened_and_a_pipe_never_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").expect("a file");
        symlink(at("file"), at("link")).expect("a link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        for name in ["file", "link"] {
            assert_eq!(io::read_to_string(open_regular(&at(name)).expect("a file")).expect("text"), "text");
        }
        for (path, what) in [(at("pipe"), "regular"), (at(""), "folder"), ("/dev/null".into(), "regular")] {
            assert!(open_regular(&path).expect_err("not a file").to_string().contains(what), "{path:?}");
        }
        // A pipe that replaces the file at any step is refused, and nothing blocks.
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let swap = rustix::fs::RenameFlags::EXCHANGE;
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        at("file"),
                        rustix::fs::CWD,
                        at("pipe"),
                        swap,
                    );
                }
            });
            for _ in 0..2_000 {
                if let Ok(file) = open_regular(&at("file")) {
                    assert!(file.metadata().expect("it is open").is_file());
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn links_are_kept_and_special_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "one").expect("a file");
        symlink(&real, &link).expect("a link");
        write(&link, IfExists::Replaced, "two").expect("it may be replaced");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_to_string(&real).expect("text"), "two");
        assert!(write(folder.path(), IfExists::Replaced, "three").is_err());
        assert!(write(Path::new("/dev/null"), IfExists::Replaced, "four").is_err());
    }
}
