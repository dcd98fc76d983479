//! Boot ids, and empty files that a power cut leaves.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use retake_model::path::TreePath;
use rustix::fs::{AtFlags, FileType};

use crate::apply::OpenRoot;
use crate::apply::walk::Walker;

/// File in which Linux reports the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// A boot id has 36 characters; anything much longer is something else.
const MAX_LENGTH: usize = 64;

/// Id of the current boot; `None` where the system has none.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string(BOOT_ID).ok()?;
    let id = text.trim();
    (!id.is_empty() && id.len() <= MAX_LENGTH).then(|| id.to_owned())
}

/// When an empty file was last changed in any way (content, permissions, name), by the inode's change time, which no
/// program can set. `None` if the path is not an empty file.
pub fn empty_since(root: &OpenRoot, path: &TreePath) -> Option<SystemTime> {
    let mut walker = Walker::new(root.as_fd());
    let folder = walker.folder(path.parents()).ok()?;
    let stat = rustix::fs::statat(folder, path.name().bytes(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_empty_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size == 0;
    let seconds = u64::try_from(stat.st_ctime).ok().filter(|_| is_empty_file)?;
    let nanoseconds = u32::try_from(stat.st_ctime_nsec).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_file_has_been_empty_for_some_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("empty"), "").expect("it is ours");
        std::fs::write(folder.path().join("full"), "x").expect("it is ours");
        std::fs::create_dir(folder.path().join("folder")).expect("it is ours");
        let root = OpenRoot::open(folder.path()).expect("a folder");
        let since = |path: &str| empty_since(&root, &TreePath::new(path.as_bytes()).expect("a path"));
        let empty = since("empty").expect("it is empty");
        assert!(empty <= SystemTime::now() && empty.elapsed().is_ok_and(|age| age.as_secs() < 60));
        assert_eq!([since("full"), since("folder"), since("gone"), since("gone/too")], [None; 4]);
    }
}
