//! Only the owner can read a store, whatever the umask. The tests change the umask of the whole process.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use crate::support::*;
use retake_model::time::Timestamp;
use retake_store::{Permissions, Store};
use rustix::fs::Mode;

#[test]
fn files_are_private_under_any_umask() {
    rustix::process::umask(Mode::empty());
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    check(&folder.path);
    // Backup, salvage and purge: everything that creates files.
    store.purge_threads(&[grown.threads[2]]).expect("purge succeeds");
    drop(store);
    let first = include_str!("../../src/schema/1.sql");
    let second = include_str!("../../src/schema/2.sql");
    let third = include_str!("../../src/schema/3.sql");
    let store =
        Store::open_with(&folder.path, &[first, second, third, "CREATE TABLE more (x INTEGER) STRICT"])
            .expect("open succeeds");
    check(&folder.path);
    drop(store);
    let damaged = Folder::new();
    let store = damaged.open();
    grow(&store);
    drop(store);
    let file = fs::OpenOptions::new().write(true).open(damaged.database()).expect("open succeeds");
    file.write_all_at(&[0; PAGE], 0).expect("write succeeds");
    drop(file);
    Store::salvage(&damaged.path, &mut |_| {}, Timestamp::from_millis(START)).expect("salvage succeeds");
    let store = damaged.open();
    grow(&store);
    check(&damaged.path);
    assert!(damaged.path.join("backups/damaged-1.db").exists());
    // Opening restricts permissions that are too wide.
    drop(store);
    fs::set_permissions(damaged.database(), fs::Permissions::from_mode(0o644)).expect("mode changed");
    fs::set_permissions(&damaged.path, fs::Permissions::from_mode(0o755)).expect("mode changed");
    drop(damaged.open());
    check(&damaged.path);
}

fn check(path: &Path) {
    let found = fs::symlink_metadata(path).expect("readable");
    let mode = found.permissions().mode() & 0o777;
    if found.is_dir() {
        assert_eq!(mode, Permissions::FOLDER, "{}", path.display());
        for entry in fs::read_dir(path).expect("readable") {
            check(&entry.expect("an entry").path());
        }
    } else {
        assert_eq!(mode, Permissions::FILE, "{}", path.display());
    }
}

#[test]
fn a_folder_with_other_files_is_not_adopted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("letter.txt"), "not ours").expect("a file");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let refused = retake_store::Store::open(folder.path());
    assert!(matches!(refused, Err(retake_store::OpenError::NotEmpty(_))));
    let mode = std::fs::metadata(folder.path()).expect("a folder").permissions().mode() & 0o777;
    assert_eq!(mode, 0o755);
}
