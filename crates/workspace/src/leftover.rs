//! Temporary files of killed tools.
//!
//! A tool writes a file next to its target under a name with its process id, and renames it. If the process is killed
//! in between, the file stays: snapshots skip it, but git does not.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use retake_model::path::TEMPORARY;
use rustix::process::{Pid, test_kill_process};

/// Follows [`TEMPORARY`] in the names of a tool's temporary files.
const TOOL_PREFIX: &str = "tool-";

/// Prefix of a process's temporary files.
pub fn tool_prefix(process: u32) -> String {
    let prefix = str::from_utf8(TEMPORARY).expect("it is plain text");
    format!("{prefix}{TOOL_PREFIX}{process}-")
}

/// Removes a file if its name belongs to a tool whose process has ended; returns whether it was removed. `path` is
/// relative to `root`, and no link is followed.
pub fn remove_if_abandoned(root: &Path, path: &Path) -> bool {
    let Some(process) = path.file_name().and_then(|name| process_of(name.as_bytes())) else { return false };
    if is_running(process) {
        return false;
    }
    let full = root.join(path);
    let straight = |folder: &Path| folder.canonicalize().is_ok_and(|real| real == folder);
    full.parent().is_some_and(straight)
        && full.symlink_metadata().is_ok_and(|found| found.is_file())
        && std::fs::remove_file(&full).is_ok()
}

/// Process id in the name of a tool's temporary file.
fn process_of(name: &[u8]) -> Option<u32> {
    let rest = name.strip_prefix(TEMPORARY)?.strip_prefix(TOOL_PREFIX.as_bytes())?;
    let (process, _) = str::from_utf8(rest).ok()?.split_once('-')?;
    process.parse().ok()
}

/// Returns whether a process with that id is running, of any user.
fn is_running(process: u32) -> bool {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// The paths that are temporary files of tools.
pub fn tool_files<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Vec<PathBuf> {
    let is_tool = |path: &&[u8]| path.rsplit(|byte| *byte == b'/').next().and_then(process_of).is_some();
    paths.filter(is_tool).map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_processes_that_have_ended_are_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().canonicalize().expect("it exists");
        std::fs::create_dir(root.join("below")).expect("a folder");
        std::os::unix::fs::symlink(root.join("below"), root.join("link")).expect("a link");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let (dead, alive) = (child.id(), std::process::id());
        child.wait().expect("it ends");
        let (dead, alive) = (format!("{}1", tool_prefix(dead)), format!("{}1", tool_prefix(alive)));
        for (path, expected) in [
            (format!("below/{dead}"), true),
            (format!("link/{dead}"), false),
            (dead.clone(), true),
            (alive, false),
            (".retake-tmp-tool-".to_owned(), false),
            (".retake-tmp-abc-1".to_owned(), false),
            ("notes.txt".to_owned(), false),
        ] {
            std::fs::write(root.join(&path), "half").expect("a file");
            assert_eq!(remove_if_abandoned(&root, Path::new(&path)), expected, "{path}");
            assert_eq!(root.join(&path).exists(), !expected, "{path}");
        }
        let paths = [b"a/.retake-tmp-tool-7-1".as_slice(), b"a/b", b".retake-tmp-tool-7-2/x", b".git"];
        assert_eq!(tool_files(paths.into_iter()), [PathBuf::from("a/.retake-tmp-tool-7-1")]);
    }
}
