//! What the file system says of a file without it being read, and whether that can be relied on.
//!
//! The kernel stamps a change with a clock that moves in steps. A file that is written twice within one step
//! has the same stamp after both:
//!
//! ```text
//!   step of the clock   |─────────────|─────────────|
//!   first write            ▲
//!   read here                 ▲                            stamps are those of the first write …
//!   second write                 ▲                         … and stay the same: the second would never be seen
//! ```
//!
//! So stamps only count if they were clearly in the past when the file was read: then any later write has
//! others. Files that are younger are read once more the next time.

use rustix::fs::FileType;

/// The longest step of a kernel's clock is ten milliseconds.
const STEP: i64 = 25_000_000;
/// File systems that keep whole seconds only, and those that keep every second one.
const SECONDS: i64 = 2_100_000_000;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: i64,
    /// The same of the last change to the inode itself; no program can set it.
    pub(super) changed: i64,
    pub(super) mode: u32,
}

impl Stat {
    // What the fields are made of differs from one system to the next.
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

    /// The nine bits for owner, group and others.
    pub(super) fn permissions(&self) -> u16 {
        (self.mode & 0o777) as u16
    }

    /// Whether it has a setuid, setgid or sticky bit, which snapshots do not hold.
    pub(super) fn has_special_bits(&self) -> bool {
        self.mode & 0o7000 != 0
    }

    /// Whether a change after that moment is certain to show in the stamps.
    pub(super) fn is_settled(&self, moment: i64) -> bool {
        let whole = |stamp: i64| stamp.rem_euclid(1_000_000_000) == 0;
        let margin = if whole(self.modified) && whole(self.changed) { SECONDS } else { STEP };
        self.modified.max(self.changed).saturating_add(margin) < moment
    }
}

/// The time now, by the clock that files are stamped with.
pub(super) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_count_only_once_they_are_clearly_in_the_past() {
        let check = |modified: i64, changed: i64, moment: i64, expected: bool| {
            let stat = Stat { device: 0, inode: 0, size: 0, modified, changed, mode: 0 };
            assert_eq!(stat.is_settled(moment), expected, "{modified} {changed} at {moment}");
        };
        let second = 1_000_000_000;
        check(5 * second + 1, 5 * second + 1, 5 * second + 2, false);
        check(5 * second + 1, 5 * second + 1, 5 * second + 20_000_000, false);
        check(5 * second + 1, 5 * second + 1, 5 * second + 30_000_000, true);
        // A program may set the time of a file back, but not that of its inode.
        check(1, 5 * second + 1, 5 * second + 2, false);
        // Whole seconds: the next two may still be the same to the file system.
        check(5 * second, 5 * second, 6 * second, false);
        check(5 * second, 5 * second, 8 * second, true);
        // From the future, by a clock that was set back.
        check(9 * second + 1, 9 * second + 1, 5 * second, false);
    }
}
