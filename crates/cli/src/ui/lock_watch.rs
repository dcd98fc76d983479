//! Reports when the command waits for another process.
//!
//! All writers wait for one lock, usually for milliseconds. A process that was suspended while writing holds the lock
//! until it continues, and a silent command looks broken. Linux lists lock waiters, so a watcher thread can report this
//! without the store knowing about terminals.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Polling interval. A process that waits at two consecutive polls has waited long.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Reports once if this process waits for the lock at this path. The watcher ends with the process.
pub(crate) fn watch(lock: PathBuf, report: impl Fn(&str) + Send + 'static) {
    let own = std::process::id();
    // If the watcher cannot start, the command runs without it.
    let _ = std::thread::Builder::new().name("watcher".to_owned()).spawn(move || {
        let mut looks = 0;
        while looks < 2 {
            std::thread::sleep(POLL_INTERVAL);
            looks = if holder_of(&lock, own).is_some() { looks + 1 } else { 0 };
        }
        match holder_of(&lock, own) {
            Some(0) | None => report("Waiting for another process that is writing to the store."),
            Some(process) => report(&format!(
                "Waiting for process {process}, which is writing to the store. If it is suspended, resume or end it."
            )),
        }
    });
}

fn holder_of(lock: &Path, own: u32) -> Option<u32> {
    let inode = fs::metadata(lock).ok()?.ino();
    holder(&fs::read_to_string("/proc/locks").ok()?, inode, own)
}

/// The process that holds the lock on a file, if process `own` waits for it. Lines look like
/// `3: FLOCK  ADVISORY  WRITE 812 fd:01:1234 0 EOF`; waiters like `3: -> FLOCK …`.
fn holder(locks: &str, inode: u64, own: u32) -> Option<u32> {
    let end = format!(":{inode}");
    let mut holding = None;
    let mut waiting = false;
    for line in locks.lines() {
        let mut words = line.split_whitespace().skip(1).peekable();
        let waits = words.next_if_eq(&"->").is_some();
        let (kind, Some(process), Some(file)) = (words.next(), words.nth(2), words.next()) else { continue };
        if kind != Some("FLOCK") || !file.ends_with(&end) {
            continue;
        }
        let process: u32 = process.parse().unwrap_or_default();
        waiting |= waits && process == own;
        if !waits {
            holding = Some(process);
        }
    }
    holding.filter(|_| waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_holder_is_found() {
        let locks = "\
1: POSIX  ADVISORY  READ  40 fd:01:1234 128 128
2: FLOCK  ADVISORY  WRITE 812 fd:01:1234 0 EOF
2: -> FLOCK  ADVISORY  WRITE 913 fd:01:1234 0 EOF
3: FLOCK  ADVISORY  WRITE 913 fd:01:34 0 EOF
4: POSIX  ADVISORY  READ  41 fd:01:1234 128 128
nonsense
";
        assert_eq!(holder(locks, 1234, 913), Some(812));
        assert_eq!(holder(locks, 1234, 914), None, "it does not wait");
        assert_eq!(holder(locks, 34, 913), None, "it holds the lock itself");
        assert_eq!(holder("", 34, 913), None);
    }
}
