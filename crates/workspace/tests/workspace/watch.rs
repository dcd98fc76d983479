//! Snapshots with a watcher equal those of a full walk.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{TestFolder, commit, settle};
use retake_store::Store;
use retake_workspace::snapshot::{CapturedSnapshot, Workspace, snapshot};
use retake_workspace::watch::{Limits, Watcher, snapshot_watched};

type Edit = fn(&Path) -> std::io::Result<()>;

/// A folder with a watcher, and a second store whose snapshots walk everything.
struct Watched {
    place: TestFolder,
    workspace: Workspace,
    watcher: Watcher,
    other: Store,
}

impl Watched {
    fn new() -> Self {
        // A full walk would hide changes that the watcher misses.
        Self::with(Limits { trust: Duration::from_hours(1), ..Limits::default() })
    }

    fn with(limits: Limits) -> Self {
        let place = TestFolder::new();
        let workspace = place.workspace();
        let other = Store::open(&place.temporary.path().join("other")).expect("a new store");
        Self { watcher: Watcher::with_limits(&workspace, limits), place, workspace, other }
    }

    fn root(&self) -> &Path {
        &self.place.root
    }

    fn take(&mut self) -> CapturedSnapshot {
        snapshot_watched(&self.place.store, &self.workspace, &mut self.watcher).expect("a snapshot")
    }

    /// Takes a snapshot, compares it with one of a full walk, and stores it.
    #[track_caller]
    fn check(&mut self, what: &str) -> Arc<CapturedSnapshot> {
        let taken = self.take();
        let whole = snapshot(&self.other, &self.workspace).expect("a snapshot");
        assert_eq!(taken.snapshot, whole.snapshot, "{what}");
        let taken = commit(&self.place.store, taken);
        // All content must be readable: content from memory was stored before.
        let _ = self.place.captured(&taken);
        taken
    }
}

#[test]
fn every_kind_of_change_is_seen() {
    let mut watched = Watched::new();
    for number in 0..30 {
        watched.place.write(&format!("a/{}/{number}", number % 5), format!("file {number}"));
    }
    watched.place.write("b/c/d/e/deep", "deep");
    watched.place.write("ignored.log", "log");
    let root = watched.root().to_owned();
    let edits: [(&str, Edit); 21] = [
        ("nothing", |_| Ok(())),
        ("a write", |root| fs::write(root.join("a/1/1"), "other")),
        ("a write of the same length", |root| fs::write(root.join("a/1/1"), "third")),
        ("a new file", |root| fs::write(root.join("b/c/new"), "new")),
        ("a removal", |root| fs::remove_file(root.join("a/2/2"))),
        ("a mode", |root| fs::set_permissions(root.join("a/3/3"), fs::Permissions::from_mode(0o600))),
        ("a folder's mode", |root| fs::set_permissions(root.join("a/3"), fs::Permissions::from_mode(0o700))),
        ("a renamed file", |root| fs::rename(root.join("a/4/4"), root.join("b/4"))),
        ("a renamed folder", |root| fs::rename(root.join("b/c"), root.join("a/c"))),
        ("a write in it", |root| fs::write(root.join("a/c/d/e/deep"), "after the move")),
        ("folders that swap names", |root| {
            fs::rename(root.join("a/0"), root.join("a/x"))?;
            fs::rename(root.join("a/1"), root.join("a/0"))?;
            fs::rename(root.join("a/x"), root.join("a/1"))
        }),
        ("a write in one of them", |root| fs::write(root.join("a/0/1"), "in the former 1")),
        ("deep folders in one go", |root| {
            fs::create_dir_all(root.join("n/e/w/e/r"))?;
            fs::write(root.join("n/e/w/e/r/file"), "at the bottom")?;
            fs::write(root.join("n/e/file"), "half way")
        }),
        ("a write in them", |root| fs::write(root.join("n/e/w/e/r/file"), "changed at the bottom")),
        ("ignore rules", |root| fs::write(root.join(".gitignore"), "*.log\nn/e/w\n")),
        ("deeper ignore rules", |root| fs::write(root.join("a/.gitignore"), "5\n")),
        ("no rules again", |root| fs::remove_file(root.join(".gitignore"))),
        ("a write in what is held again", |root| fs::write(root.join("n/e/w/e/r/file"), "held")),
        ("a removed folder", |root| fs::remove_dir_all(root.join("a/c"))),
        ("a link in its place", |root| symlink("../b", root.join("a/c"))),
        ("the rules of a repository inside", |root| {
            fs::create_dir_all(root.join("a/2/.git/info"))?;
            fs::write(root.join("a/2/.git/info/exclude"), "7\n")
        }),
    ];
    // Once immediately, once with all stamps in the past; each change is checked twice.
    for wait in [false, true] {
        let folder = root.join(if wait { "slow" } else { "fast" });
        fs::create_dir(&folder).expect("a folder");
        for name in ["a", "b"] {
            copy(&root.join(name), &folder.join(name));
        }
        watched.check("a copy");
        for (what, edit) in edits {
            if wait {
                settle();
            }
            edit(&folder).expect(what);
            watched.check(what);
            watched.check(what);
        }
        assert!(watched.watcher.is_watching());
    }
    fs::write(root.join("slow/a/2/.git/info/exclude"), "12\n").expect("a file that is not watched");
    watched.check("changed rules of a repository inside");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a file");
        }
    }
}

#[test]
fn a_change_is_reported_until_a_snapshot_is_stored() {
    let mut watched = Watched::new();
    watched.place.write("a/file", "one");
    watched.check("the first");
    settle();
    watched.place.write("a/file", "two");
    drop(watched.take());
    let again = watched.take();
    assert!(!again.is_stored(), "the change was never stored");
    drop(again);
    watched.check("stored at last");
    settle();
    watched.check("settled");
    assert!(watched.take().is_stored());
}

#[test]
fn watch_limits_fall_back_to_a_full_walk() {
    for limits in [
        Limits { watches: 3, ..Limits::default() },
        Limits { events: 5, ..Limits::default() },
        Limits { trust: Duration::ZERO, ..Limits::default() },
    ] {
        let mut watched = Watched::with(limits);
        for round in 0..4 {
            for number in 0..20 {
                watched.place.write(&format!("{}/{number}", number % 7), format!("{round} {number}"));
            }
            watched.check("many changes");
        }
        assert_eq!(watched.watcher.is_watching(), limits.watches > 3);
    }
}

#[test]
fn an_overflowing_queue_is_detected() {
    let mut watched = Watched::new();
    watched.place.write("a", "");
    watched.place.write("b", "");
    watched.place.write("deep/c", "");
    watched.check("the first");
    // Two alternating files, since equal events would be merged.
    let mut files = ["a", "b"].map(|name| fs::File::create(watched.root().join(name)).expect("a file"));
    for _ in 0..10_000 {
        for file in &mut files {
            file.write_all(b"x").expect("a write");
        }
    }
    fs::write(watched.root().join("deep/c"), "after the overflow").expect("a write");
    watched.check("after the overflow");
}

#[test]
fn a_moved_root_is_not_confused_with_another() {
    let mut watched = Watched::new();
    watched.place.write("a", "one");
    watched.check("the first");
    let aside = watched.root().with_file_name("aside");
    fs::rename(watched.root(), &aside).expect("a move");
    fs::create_dir(watched.root()).expect("another folder");
    let refused = snapshot_watched(&watched.place.store, &watched.workspace, &mut watched.watcher);
    assert!(refused.is_err());
    fs::remove_dir(watched.root()).expect("it is empty");
    fs::rename(&aside, watched.root()).expect("back");
    watched.place.write("a", "two");
    watched.check("back again");
}

#[test]
fn all_random_edits_are_seen() {
    for seed in 1..=6_u64 {
        let mut watched = Watched::new();
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for step in 0..60 {
            for _ in 0..=random.below(6) {
                edit(watched.root(), &mut random);
            }
            match random.below(8) {
                0 => drop(watched.take()),
                1 => settle(),
                _ => {}
            }
            watched.check(&format!("seed {seed}, step {step}"));
        }
    }
}

/// A random edit of an existing file; impossible edits do nothing.
fn edit(root: &Path, random: &mut Random) {
    let path = |random: &mut Random| -> PathBuf {
        let depth = 1 + random.below(4);
        (0..depth).fold(root.to_owned(), |path, _| path.join(["a", "b", "c", "d.log"][random.below(4)]))
    };
    let (first, second) = (path(random), path(random));
    let _ = match random.below(10) {
        0 | 1 => fs::write(&first, random.below(100).to_string()),
        2 => fs::create_dir_all(&first).and_then(|()| fs::write(first.join("file"), "new")),
        3 => fs::remove_file(&first),
        4 if random.below(3) == 0 => fs::remove_dir_all(&first),
        5 | 6 => fs::rename(&first, &second),
        7 => {
            let mode = [0o755, 0o700, 0o644, 0o600][random.below(4)];
            fs::set_permissions(&first, fs::Permissions::from_mode(mode | 0o100))
        }
        8 => {
            let rules = ["*.log\n", "c\n", "", "!d.log\n/b\n"][random.below(4)];
            fs::write(first.parent().unwrap_or(root).join(".gitignore"), rules)
        }
        _ => symlink("a", &first),
    };
}

/// A small deterministic random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }
}
