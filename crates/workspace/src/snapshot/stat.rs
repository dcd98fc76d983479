//! File attributes that reveal changes without reading the file, and when they are reliable.
//!
//! The kernel stamps changes with a clock that advances in ticks. Two writes within one tick have the same stamp:
//!
//! ```text
//!   tick of the clock   |─────────────|─────────────|
//!   first write            ▲
//!   read here                 ▲                            stamps are those of the first write …
//!   second write                 ▲                         … and stay the same: the second would be missed
//! ```
//!
//! So stamps are reliable only if they were clearly in the past when the file was read: any later write then has
//! another stamp. More recent files are read again by the next snapshot.

use rustix::fs::FileType;

/// The longest tick of a kernel clock is ten milliseconds.
const STEP: i64 = 25_000_000;
/// Some file systems store whole seconds only, or every second one.
const SECONDS: i64 = 2_100_000_000;

/// The attributes to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: i64,
    /// Time of the last inode change; no program can set it.
    pub(super) changed: i64,
    pub(super) mode: u32,
}

impl Stat {
    // Field types differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub(super) fn from(stat: &rustix::fs::Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            mode: stat.st_mode as u32,
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }

    /// The nine permission bits.
    pub(super) fn permissions(&self) -> u16 {
        (self.mode & 0o777) as u16
    }

    /// Returns whether it has a setuid, setgid or sticky bit, which snapshots do not capture.
    pub(super) fn has_special_bits(&self) -> bool {
        self.mode & 0o7000 != 0
    }

    /// Returns whether any change after that time certainly changes the stamps.
    pub(super) fn is_settled(&self, now_nanos: i64) -> bool {
        let is_whole_second = |stamp: i64| stamp.rem_euclid(1_000_000_000) == 0;
        let margin =
            if is_whole_second(self.modified) && is_whole_second(self.changed) { SECONDS } else { STEP };
        self.modified.max(self.changed).saturating_add(margin) < now_nanos
    }
}

/// Current time of the clock that stamps files.
pub(super) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_timestamps_are_not_trusted() {
        let check = |modified: i64, changed: i64, now_nanos: i64, expected: bool| {
            let stat = Stat { device: 0, inode: 0, size: 0, modified, changed, mode: 0 };
            assert_eq!(stat.is_settled(now_nanos), expected, "{modified} {changed} at {now_nanos}");
        };
        let second = 1_000_000_000;
        check(5 * second + 1, 5 * second + 1, 5 * second + 2, false);
        check(5 * second + 1, 5 * second + 1, 5 * second + 20_000_000, false);
        check(5 * second + 1, 5 * second + 1, 5 * second + 30_000_000, true);
        // A program can set back the time of a file, but not that of its inode.
        check(1, 5 * second + 1, 5 * second + 2, false);
        // Whole seconds: the next two may look the same to the file system.
        check(5 * second, 5 * second, 6 * second, false);
        check(5 * second, 5 * second, 8 * second, true);
        // A time in the future, from a clock that was set back.
        check(9 * second + 1, 9 * second + 1, 5 * second, false);
    }
}
