//! Observations with a watch equal snapshots of a full walk.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{TestFolder, read_tree, settle};
use retake_model::content::{ContentId, Kind};
use retake_model::object::{MemoryObjects, ObjectError, Objects};
use retake_store::{Queries, Store};
use retake_workspace::snapshot::{Observation, Workspace, snapshot};
use retake_workspace::watch::{FolderWatch, Limits};

type Edit = fn(&Path) -> std::io::Result<()>;

/// A watched folder, and a second store whose snapshots walk everything.
struct Watched {
    place: TestFolder,
    workspace: Workspace,
    watch: FolderWatch,
    other: Store,
}

/// The objects of an observation on top of those of the store.
struct Observed<'store>(MemoryObjects, Queries<'store>);

impl Objects for Observed<'_> {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        self.0.bytes(kind, id).or_else(|_| self.1.bytes(kind, id))
    }
}

impl Watched {
    fn new() -> Self {
        // A full walk would hide changes that the watch misses.
        Self::with(Limits { trust: Duration::from_hours(1), ..Limits::default() })
    }

    fn with(limits: Limits) -> Self {
        let place = TestFolder::new();
        let workspace = place.workspace();
        let other = Store::open(&place.temporary.path().join("other")).expect("a new store");
        Self { watch: FolderWatch::with_limits(limits), place, workspace, other }
    }

    fn root(&self) -> &Path {
        &self.place.root
    }

    fn observe(&mut self) -> Arc<Observation> {
        self.watch.observe(&self.place.store, &self.workspace).expect("an observation")
    }

    /// Compares an observation with a snapshot of a full walk. All its content must be readable.
    #[track_caller]
    fn check(&mut self, what: &str) {
        let observed = self.observe();
        let whole = snapshot(&self.other, &self.workspace).expect("a snapshot");
        assert_eq!((observed.id, &observed.snapshot), (whole.id, &whole.snapshot), "{what}");
        let mut new = MemoryObjects::default();
        new.insert_all(observed.objects.iter().cloned());
        let reading = self.place.store.read().expect("a read transaction");
        let objects = Observed(new, reading.queries());
        read_tree(&objects, observed.snapshot.roots[0].tree, "", &mut BTreeMap::new());
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
        assert!(watched.watch.is_watching());
        let _ = watched.place.keep();
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
fn nothing_is_read_while_nothing_changes() {
    let mut watched = Watched::new();
    watched.place.write("a/file", "one");
    watched.place.write("ignored/file", "one");
    watched.place.write(".gitignore", "ignored\n");
    settle();
    let first = watched.observe();
    assert!(!watched.watch.poll());
    assert!(Arc::ptr_eq(&first, &watched.observe()));
    // Recording the files does not change them.
    let _ = watched.place.keep();
    watched.place.write("ignored/file", "two");
    assert!(!watched.watch.poll());
    assert!(Arc::ptr_eq(&first, &watched.observe()));
    watched.place.write("a/file", "two");
    assert!(watched.watch.poll(), "a change is noticed");
    assert!(!watched.watch.poll(), "once");
    settle();
    let second = watched.observe();
    assert_ne!(first.id, second.id);
    assert_eq!(second.id, watched.observe().id);
    // A folder that appeared after the full walk is watched too.
    watched.place.write("new/deep/file", "one");
    assert!(watched.watch.poll());
    watched.check("a new folder");
    settle();
    watched.place.write("new/deep/file", "two");
    assert!(watched.watch.poll());
    watched.check("a change in it");
}

#[test]
fn git_facts_are_those_of_a_fresh_read() {
    let git = |root: &Path, arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let output = command.current_dir(root).output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let mut watched = Watched::new();
    watched.place.write("a/file", "one");
    let root = watched.root().to_owned();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "one"]);
    settle();
    let check = |watched: &mut Watched, what: &str, dirty: bool| {
        let _ = watched.observe();
        let facts = watched.watch.git(&root);
        assert_eq!(facts, retake_workspace::git::observe(&root), "{what}");
        assert_eq!(facts.dirty, Some(dirty), "{what}");
    };
    check(&mut watched, "clean", false);
    check(&mut watched, "still clean", false);
    watched.place.write("a/file", "two!");
    check(&mut watched, "changed", true);
    git(&root, &["add", "."]);
    check(&mut watched, "staged", true);
    git(&root, &["commit", "-qm", "two"]);
    check(&mut watched, "committed", false);
    git(&root, &["reset", "-q", "--soft", "HEAD~1"]);
    check(&mut watched, "another commit", true);
    git(&root, &["reset", "-q", "--hard"]);
    watched.place.write("b/new", "untracked");
    check(&mut watched, "untracked", true);
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
        assert_eq!(watched.watch.is_watching(), limits.watches > 3);
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
fn watches_are_set_again_after_that_failed() {
    let limits = Limits { watches: 3, retry: Duration::ZERO, ..Limits::default() };
    let mut watched = Watched::with(limits);
    for name in ["a/1", "b/1", "c/1", "d/1"] {
        watched.place.write(name, "one");
    }
    watched.check("too many folders");
    assert!(!watched.watch.is_watching() && !watched.watch.poll());
    fs::remove_dir_all(watched.root().join("c")).expect("it is there");
    fs::remove_dir_all(watched.root().join("d")).expect("it is there");
    watched.check("few enough");
    assert!(watched.watch.is_watching());
}

#[test]
fn a_removed_folder_ends_the_watch() {
    let mut watched = Watched::new();
    watched.place.write("a", "one");
    watched.check("the first");
    fs::remove_dir_all(watched.root()).expect("it is there");
    assert!(watched.watch.poll(), "it is noticed");
    assert!(!watched.watch.is_watching());
    assert!(watched.watch.observe(&watched.place.store, &watched.workspace).is_err());
    assert!(!watched.watch.is_watching() && !watched.watch.poll());
}

#[test]
fn a_moved_root_is_not_confused_with_another() {
    let mut watched = Watched::new();
    watched.place.write("a", "one");
    watched.check("the first");
    let aside = watched.root().with_file_name("aside");
    fs::rename(watched.root(), &aside).expect("a move");
    fs::create_dir(watched.root()).expect("another folder");
    let refused = watched.watch.observe(&watched.place.store, &watched.workspace);
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
                0 => drop(watched.place.keep()),
                2 => drop(watched.observe()),
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
