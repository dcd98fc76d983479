//! Backups are consistent while others write, whole or absent, and checked without being touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::*;
use retake_model::content::{ContentId, Kind};
use retake_model::time::Timestamp;
use retake_store::{
    BackupCheck, BackupError, BackupKeyState, BackupReport, CollectMode, Problem, SettingScope, SharedValue,
    Store, StoreError,
};

fn later() -> Timestamp {
    Timestamp::from_millis(START + 1_000_000_000_000)
}

fn back_up(store: &Store, to: &Path) -> Result<BackupReport, BackupError> {
    store.back_up(to, "1.2.3", later(), &mut |_| ())
}

fn check(backup: &Path) -> Result<BackupCheck, BackupError> {
    Store::verify_backup(backup, &mut |_| (), &mut |_| ())
}

/// Blobs in a pack, which only the table of packs refers to.
fn add_pack(store: &Store, range: std::ops::Range<u32>) {
    let writer = store.pack_writer().expect("a writer");
    for number in range {
        let bytes = blake3::hash(&number.to_le_bytes()).as_bytes().repeat(9);
        writer.add(ContentId::of(Kind::Blob, &bytes), &bytes).expect("a blob");
    }
    let batch = writer.finish().expect("a pack");
    store
        .write(move |writing| writing.put_packed(&batch, Timestamp::from_millis(START)))
        .expect("content stored");
}

/// A store with everything that a backup copies.
fn full_store() -> (Folder, Store) {
    let folder = Folder::new();
    let store = folder.open();
    let grown = grow(&store);
    add_pack(&store, 0..3000);
    let value = SharedValue { thread: grown.threads[0], value: "Be kind.".to_owned() };
    store
        .change_shared_settings::<StoreError>(SettingScope::Global, |shared| {
            shared.push("global_system_prompt", value);
            Ok(())
        })
        .expect("a shared setting");
    store.runtime_database().expect("a runtime database");
    store.sealer_or_create().expect("a key");
    (folder, store)
}

/// Every file below a folder with its bytes and time of change.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut waiting = vec![folder.to_owned()];
    let mut found = BTreeMap::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let changed = fs::symlink_metadata(&path).and_then(|found| found.modified()).expect("a time");
            found.insert(path.clone(), (fs::read(&path).unwrap_or_default(), changed));
        }
    }
    found
}

#[test]
fn a_backup_is_a_store_with_everything_that_belongs_to_it() {
    let (folder, store) = full_store();
    let to = folder.path.with_file_name("backup");
    let written = back_up(&store, &to).expect("a backup");
    assert_eq!((written.threads, written.missing.len()), (3, 0));
    assert_eq!(
        written.key.as_deref(),
        Some(to.with_extension("key").canonicalize().expect("a key").as_path())
    );
    let before = contents(to.parent().expect("a parent"));
    let checked = check(&to).expect("a check");
    assert!(checked.is_clean(), "{checked:?}");
    assert_eq!((checked.program.as_str(), checked.created), ("1.2.3", later()));
    assert_eq!((checked.key, checked.files), (BackupKeyState::Present, written.files));
    assert_eq!(contents(to.parent().expect("a parent")), before, "a check writes nothing");
    let names: Vec<String> =
        before.keys().filter_map(|path| Some(path.strip_prefix(&to).ok()?.display().to_string())).collect();
    assert_eq!(
        names,
        ["backup.json", "ledger.db", "packs/00000001.pack", "retake.db", "shared/global", "writer.lock"]
    );
    let expected = dump(&store).expect("readable");
    let restored = Store::open(&to).expect("a backup opens as a store");
    assert_eq!(dump(&restored).expect("readable"), expected);
    assert_eq!(
        restored.shared_settings(SettingScope::Global).expect("settings"),
        store.shared_settings(SettingScope::Global).expect("settings")
    );
    assert!(restored.sealer().expect("a key lookup").is_some());
    assert_clean(&restored);
    let thread =
        create(&restored, retake_model::id::ProjectId::generate(&mut Rng::new()), "After the restore");
    publish(&restored, thread, say(active(&restored, thread), "User", "it can be written"));
    let mode: String = folder_journal_mode(&to);
    assert_eq!(mode, "wal");
    let opened = check(&to).expect("a check");
    assert!(!opened.is_clean(), "a backup that was opened is a store, and no longer what was written");
}

fn folder_journal_mode(folder: &Path) -> String {
    let raw = rusqlite::Connection::open(folder.join("retake.db")).expect("a database");
    raw.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode")
}

/// Any change of any file is found; an unchanged backup (the control) is clean.
#[test]
fn damage_of_a_backup_is_found() {
    let (folder, store) = full_store();
    let to = folder.path.with_file_name("backup");
    back_up(&store, &to).expect("a backup");
    let is_clean = || check(&to).is_ok_and(|checked| checked.is_clean());
    assert!(is_clean());
    for (path, (bytes, _)) in contents(&to) {
        for step in 0..7 {
            let at = (bytes.len() - 1) * step / 6;
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).expect("a writable file");
            assert!(!is_clean(), "byte {at} of {}", path.display());
            fs::write(&path, &bytes[..at]).expect("a writable file");
            assert!(!is_clean(), "{} cut at {at}", path.display());
        }
        fs::remove_file(&path).expect("removable");
        assert!(!is_clean(), "{} is missing", path.display());
        fs::write(&path, &bytes).expect("a writable file");
    }
    assert!(is_clean());
    fs::write(to.join("retake.db-wal"), "x").expect("a new file");
    assert!(!is_clean(), "a file was added");
    fs::remove_file(to.join("retake.db-wal")).expect("removable");
    let key = to.with_extension("key");
    fs::write(&key, [9; 32]).expect("a writable key");
    assert!(!is_clean(), "another key");
    fs::remove_file(&key).expect("removable");
    let checked = check(&to).expect("a check");
    assert!(checked.is_clean() && checked.key == BackupKeyState::Missing, "the key may be stored elsewhere");
}

#[test]
fn a_backup_overwrites_nothing() {
    let (folder, store) = full_store();
    let parent = folder.path.parent().expect("a parent").to_owned();
    let refused = |name: &str, put: &dyn Fn(&Path)| {
        let to = parent.join(name);
        put(&to);
        let before = contents(&parent);
        match back_up(&store, &to) {
            Err(BackupError::AlreadyExists(_) | BackupError::InsideStore(_)) => {}
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(contents(&parent).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{name}");
    };
    refused("file", &|to| fs::write(to, "mine").expect("a file"));
    refused("empty", &|to| fs::create_dir(to).expect("a folder"));
    refused("link", &|to| std::os::unix::fs::symlink("nowhere", to).expect("a link"));
    refused("home", &|_| ());
    refused("home/inside", &|_| ());
    refused("home/packs/inside", &|_| ());
    refused("keyed", &|to| fs::write(to.with_extension("key"), "another key").expect("a file"));
    assert!(back_up(&store, &parent.join("no/parent")).is_err());
    // A key that a killed backup left is the same key.
    fs::copy(store.key_file(), parent.join("again.key")).expect("a copy");
    back_up(&store, &parent.join("again")).expect("a backup");
}

/// What a killed backup leaves does not pass for one, and the next backup replaces it.
#[test]
fn an_unfinished_backup_is_replaced_and_a_running_one_is_not() {
    let (folder, store) = full_store();
    let to = folder.path.with_file_name("backup");
    let partial = folder.path.with_file_name("backup.retake-partial");
    let mut refused = 0;
    store
        .back_up(&to, "1", later(), &mut |_| {
            assert!(matches!(check(&partial), Err(BackupError::NotABackup { .. })));
            if refused == 0 {
                refused += 1;
                assert!(matches!(back_up(&store, &to), Err(BackupError::Running(_))));
            }
            assert!(!to.exists());
        })
        .expect("a backup");
    assert_eq!(refused, 1);
    assert!(!partial.exists());
    let other = folder.path.with_file_name("other");
    let left = folder.path.with_file_name("other.retake-partial");
    fs::create_dir_all(left.join("packs")).expect("a folder");
    fs::write(left.join("packs/00000007.pack"), "half").expect("a file");
    back_up(&store, &other).expect("a backup");
    assert!(!left.exists() && check(&other).expect("a check").is_clean());
}

/// Every backup made while two threads write contains what was acknowledged before it began. A copy of the database
/// file alone (the control) does not.
#[test]
fn a_backup_made_while_others_write_has_every_acknowledged_change() {
    let (folder, store) = full_store();
    let writing = AtomicBool::new(true);
    let acknowledged = [AtomicU64::new(0), AtomicU64::new(0)];
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let project = retake_model::id::ProjectId::generate(&mut Rng::new());
            create(&store, project, &format!("Writer {number}"))
        })
        .collect();
    let count = |store: &Store, index: usize| entries(store, threads[index]).len() as u64;
    let mut control_lost = 0;
    std::thread::scope(|scope| {
        for (index, acknowledged) in acknowledged.iter().enumerate() {
            let (store, thread, writing) = (&store, threads[index], &writing);
            scope.spawn(move || {
                let take = active(store, thread);
                let mut number = 0;
                while writing.load(Ordering::SeqCst) {
                    publish(store, thread, say(take, "User", &format!("line {number}")));
                    if number % 5 == 0 {
                        add_pack(
                            store,
                            100_000 * (index as u32 + 1) + number..100_000 * (index as u32 + 1) + number + 3,
                        );
                    }
                    number += 1;
                    acknowledged.store(u64::from(number), Ordering::SeqCst);
                }
            });
        }
        for round in 0..6 {
            std::thread::sleep(Duration::from_millis(40));
            let before = acknowledged.each_ref().map(|count| count.load(Ordering::SeqCst));
            let naive = folder.path.with_file_name(format!("naive-{round}"));
            fs::create_dir(&naive).expect("a folder");
            fs::copy(folder.database(), naive.join("retake.db")).expect("a copy");
            let to = folder.path.with_file_name(format!("backup-{round}"));
            back_up(&store, &to).expect("a backup");
            let checked = check(&to).expect("a check");
            assert!(checked.is_clean(), "{checked:?}");
            let restored = Store::open(&to).expect("a store");
            for (index, before) in before.into_iter().enumerate() {
                assert!(count(&restored, index) >= before, "backup {round} lost changes of writer {index}");
                let lost = std::panic::catch_unwind(|| {
                    Store::open(&naive).is_ok_and(|store| count(&store, index) >= before)
                });
                control_lost += u32::from(!lost.unwrap_or(false));
            }
        }
        writing.store(false, Ordering::SeqCst);
    });
    assert!(control_lost > 0, "the control: a copy of the file has everything too");
}

/// Content that is destroyed while a backup runs is not in it, and the backup is whole.
#[test]
fn content_destroyed_meanwhile_is_in_no_backup() {
    let (folder, store) = full_store();
    let pack = folder.path.join("packs/00000001.pack");
    // Now the size of the file tells how many pages there are to copy.
    folder.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
    let to = folder.path.with_file_name("backup");
    let mut collected = false;
    let other = folder.open();
    store
        .back_up(&to, "1", later(), &mut |at| {
            // The database and the pack are copied, and the backup is not finished.
            if !collected && at.done == at.total {
                collected = true;
                let done =
                    other.collect(Duration::ZERO, later(), CollectMode::Collect).expect("a collection");
                assert!(done.unreachable >= 3000);
            }
        })
        .expect("a backup");
    assert!(collected && !pack.exists());
    let checked = check(&to).expect("a check");
    assert!(checked.is_clean(), "{checked:?}");
    assert!(!to.join("packs/00000001.pack").exists());
}

/// A damaged store can be backed up before its repair, and the report names what is gone.
#[test]
fn a_damaged_store_is_backed_up_as_it_is() {
    let (folder, store) = full_store();
    fs::remove_file(folder.path.join("packs/00000001.pack")).expect("removable");
    let to = folder.path.with_file_name("backup");
    let written = back_up(&store, &to).expect("a backup");
    assert_eq!(written.missing, ["packs/00000001.pack"]);
    let checked = check(&to).expect("a check");
    assert!(checked.file_problems.is_empty() && !checked.is_clean());
    let found: Vec<_> =
        checked.store.iter().flat_map(|store| store.problems.iter().map(Problem::code)).collect();
    assert_eq!(found, codes(&verify(&store)));
}
