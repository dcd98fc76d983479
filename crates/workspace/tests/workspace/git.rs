//! Facts about repositories made by git, and about hostile ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use retake_workspace::git::{GitFacts, observe, origin};
use tempfile::TempDir;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let path = place.path().canonicalize().expect("it exists");
    (place, path)
}

/// Runs git without the configuration of the current user; `None` if it fails.
fn try_git(folder: &Path, arguments: &str) -> Option<String> {
    let output = Command::new("git")
        .args(arguments.split(' '))
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@example.org")))
        .output()
        .expect("git is installed");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn git(folder: &Path, arguments: &str) -> String {
    try_git(folder, arguments).unwrap_or_else(|| panic!("git {arguments} failed"))
}

/// A repository with one commit on `main`.
fn repository(path: &Path) {
    fs::create_dir_all(path).expect("a new folder");
    git(path, "init -q -b main");
    git(path, "commit -q --allow-empty -m first");
}

/// Compares with the output of git for the same folder.
#[track_caller]
fn check(what: &str, folder: &Path) -> GitFacts {
    let facts = observe(folder);
    let branch = try_git(folder, "branch --show-current").filter(|branch| !branch.is_empty());
    assert_eq!(facts.branch, branch, "branch, {what}");
    assert_eq!(facts.commit, try_git(folder, "rev-parse --verify -q HEAD"), "commit, {what}");
    let root = try_git(folder, "rev-parse --show-toplevel").map(PathBuf::from);
    assert_eq!(facts.root, root, "root, {what}");
    facts
}

#[test]
fn repositories_created_by_git_are_read() {
    let (_place, top) = place();
    let main = top.join("main");
    fs::create_dir(&main).expect("a new folder");
    check("no repository", &main);

    git(&main, "init -q -b first/branch");
    let unborn = check("unborn branch", &main);
    assert_eq!((unborn.branch.as_deref(), unborn.commit), (Some("first/branch"), None));

    git(&main, "commit -q --allow-empty -m first");
    check("loose", &main);
    git(&main, "tag -a -m annotated v1");
    git(&main, "pack-refs --all");
    check("packed", &main);
    git(&main, "commit -q --allow-empty -m second");
    check("loose over packed", &main);
    // `first/branch` keeps its folder while `first` exists only in the packed file.
    git(&main, "pack-refs --all");
    git(&main, "checkout -q -b other");
    git(&main, "branch -m first/branch first");
    git(&main, "checkout -q first");
    git(&main, "pack-refs --all");
    fs::create_dir_all(main.join(".git/refs/heads/first")).expect("a new folder");
    check("an empty folder in the place of a packed branch", &main);

    git(&main, "symbolic-ref refs/heads/alias refs/heads/first");
    git(&main, "symbolic-ref HEAD refs/heads/alias");
    check("a branch that stands for another", &main);
    git(&main, "checkout -q --detach first");
    assert_eq!(check("detached", &main).branch, None);
    git(&main, "checkout -q first");

    fs::create_dir_all(main.join("source/deep")).expect("a new folder");
    check("deep inside", &main.join("source/deep"));
    check("inside the git folder", &main.join(".git/refs"));
    symlink(main.join("source"), top.join("link")).expect("a free name");
    check("through a link", &top.join("link/deep"));

    git(&main, "worktree add -q -b side ../side");
    assert_eq!(check("another work tree", &top.join("side")).branch.as_deref(), Some("side"));
    git(&main, "worktree add -q --detach ../loose");
    check("another work tree, detached", &top.join("loose"));

    git(&top, "clone -q --bare main bare");
    check("bare", &top.join("bare"));
}

#[test]
fn submodules_and_nested_repositories_are_read() {
    let (_place, top) = place();
    repository(&top.join("inner"));
    let outer = top.join("outer");
    repository(&outer);
    git(&outer, "-c protocol.file.allow=always submodule --quiet add ../inner module");
    git(&outer, "commit -q -m module");
    let module = check("submodule", &outer.join("module"));
    assert_eq!(module.root, Some(outer.join("module")));
    assert_eq!(module.remote, Some(top.join("inner").display().to_string()));

    fs::create_dir_all(outer.join("empty/.git")).expect("a new folder");
    assert_eq!(check("an empty .git is passed by", &outer.join("empty")).root, Some(outer));
}

#[test]
fn other_repository_formats_are_read() {
    let (_place, top) = place();
    let long = top.join("long");
    fs::create_dir(&long).expect("a new folder");
    git(&long, "init -q -b main --object-format=sha256");
    git(&long, "commit -q --allow-empty -m first");
    assert_eq!(check("long hashes", &long).commit.map(|commit| commit.len()), Some(64));

    let tables = top.join("tables");
    fs::create_dir(&tables).expect("a new folder");
    if try_git(&tables, "init -q -b main --ref-format=reftable").is_some() {
        git(&tables, "commit -q --allow-empty -m first");
        git(&tables, "remote add origin https://example.org/a");
        let remote = Some("https://example.org/a".to_owned());
        let facts = GitFacts { dirty: None, ..observe(&tables) };
        assert_eq!(facts, GitFacts { remote, root: Some(tables), ..GitFacts::default() });
    }
}

#[test]
fn remotes_are_read() {
    let (_place, top) = place();
    repository(&top);
    let check = |expected: Option<&str>| assert_eq!(observe(&top).remote.as_deref(), expected);
    check(None);
    git(&top, "remote add upstream ssh://git@example.org/a");
    check(Some("ssh://git@example.org/a"));
    git(&top, "remote add origin https://user:secret@example.org/b");
    check(Some("https://example.org/b"));
    git(&top, "worktree add -q side");
    assert_eq!(observe(&top.join("side")).remote.as_deref(), Some("https://example.org/b"));
}

/// A hand-made repository: whatever its files contain, observing must return quickly.
struct Hostile {
    _place: TempDir,
    top: PathBuf,
}

impl Hostile {
    fn new() -> Self {
        let (place, top) = place();
        for folder in [".git/objects", ".git/refs/heads"] {
            fs::create_dir_all(top.join(folder)).expect("a new folder");
        }
        fs::write(top.join("secret"), COMMIT).expect("a new file");
        Self { _place: place, top }
    }

    fn write(self, file: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.top.join(".git").join(file), content).expect("a writable folder");
        self
    }

    fn sparse(self, file: &str, start: &str) -> Self {
        let this = self.write(file, start);
        let opened =
            fs::File::options().write(true).open(this.top.join(".git").join(file)).expect("it exists");
        opened.set_len(1 << 30).expect("a sparse file");
        this
    }

    fn link(self, file: &str, target: &str) -> Self {
        symlink(target, self.top.join(".git").join(file)).expect("a free name");
        self
    }

    fn pipe(self, file: &str) -> Self {
        let made = Command::new("mkfifo").arg(self.top.join(".git").join(file)).status().expect("coreutils");
        assert!(made.success());
        self
    }

    #[track_caller]
    fn check(&self, what: &str, branch: Option<&str>, commit: Option<&str>) {
        let start = Instant::now();
        let facts = observe(&self.top);
        assert_eq!((facts.branch.as_deref(), facts.commit.as_deref()), (branch, commit), "{what}");
        assert!(start.elapsed() < Duration::from_secs(2), "{what} took {:?}", start.elapsed());
    }
}

#[test]
fn a_hostile_head_does_no_harm() {
    let new = Hostile::new;
    new().write("HEAD", "").check("empty", None, None);
    new().write("HEAD", [0xff; 100]).check("bytes", None, None);
    new().write("HEAD", "ref: ../../secret").check("outside", None, None);
    new().write("HEAD", "ref: refs/../../secret").check("outside, below refs", None, None);
    new().write("HEAD", "ref: /etc/passwd").check("absolute", None, None);
    new().write("HEAD", "ref: refs/heads/a\0b").check("with a zero", None, None);
    new().write("HEAD", "ref: refs/heads/a\\b").check("with a backslash", None, None);
    new().write("HEAD", "ref: refs/heads/\u{1b}[31m").check("with an escape", None, None);
    new().write("HEAD", format!("{COMMIT}0")).check("too many digits", None, None);
    new().write("HEAD", format!("{COMMIT}\n")).check("detached", None, Some(COMMIT));
    new().write("HEAD", b"ref: refs/heads/a\xff").check("not Unicode", None, None);
    new().sparse("HEAD", "ref: refs/heads/main\n").check("a gigabyte", None, None);
    new().sparse("HEAD", COMMIT).check("a gigabyte after a commit", None, None);
    new().pipe("HEAD").check("a pipe", None, None);
    new().link("HEAD", "/dev/zero").check("a device", None, None);
    new().link("HEAD", "../secret").check("a link to a file", None, None);
    new().link("HEAD", "refs/../../secret").check("a link outside", None, None);
    new().link("HEAD", "HEAD").check("a link to itself", None, None);
    new().link("HEAD", "refs/heads/old").check("an old link", Some("old"), None);
}

#[test]
fn hostile_references_do_no_harm() {
    let new = || Hostile::new().write("HEAD", "ref: refs/heads/main\n");
    let main = Some("main");
    new().write("refs/heads/main", "").check("cut short", main, None);
    new().write("refs/heads/main", "ref: refs/heads/main").check("circular", None, None);
    new().write("refs/heads/main", "ref: ../secret").check("outside", None, None);
    new().link("refs/heads/main", "../../../secret").check("a link", main, None);
    new().pipe("refs/heads/main").check("a pipe", main, None);
    new().pipe("packed-refs").check("a pipe of packed references", main, None);
    new().link("packed-refs", "/dev/zero").check("a device of packed references", main, None);
    new().sparse("packed-refs", "# pack-refs with: sorted\n").check("one line of a gigabyte", main, None);

    let line = format!("{COMMIT} refs/heads/other\n");
    let last = format!("{COMMIT} refs/heads/main\n");
    let many = line.repeat(20_000) + &last;
    new().write("packed-refs", &many).check("many", main, Some(COMMIT));
    new().write("packed-refs", last.trim_end()).check("no end of line", main, Some(COMMIT));
    new()
        .write("packed-refs", format!("refs/heads/main\n {COMMIT} refs/heads/main\n"))
        .check("shifted", main, None);
    new().write("packed-refs", format!("{COMMIT} x refs/heads/main\n")).check("a longer name", main, None);
    new().write("packed-refs", format!("{COMMIT} refs/heads/mainx\n")).check("another name", main, None);
}

#[test]
fn hostile_gitdir_pointers_do_no_harm() {
    let (_place, top) = place();
    let check = |what: &str, content: &[u8]| {
        fs::write(top.join(".git"), content).expect("a writable folder");
        let expected = GitFacts { root: Some(top.clone()), ..GitFacts::default() };
        assert_eq!(observe(&top), expected, "{what}");
    };
    check("empty", b"");
    check("no pointer", b"hello");
    check("to nothing", b"gitdir: /nowhere");
    check("to itself", b"gitdir: .git");
    check("to a device", b"gitdir: /dev/zero");
    check("with a zero", b"gitdir: a\0b");
    check("endless", &b"gitdir: a".repeat(10_000));
    assert_eq!(observe(&top.join("gone")), GitFacts::default());
}

#[test]
fn a_hostile_configuration_does_no_harm() {
    let head = || Hostile::new().write("HEAD", "ref: refs/heads/main\n");
    for (what, hostile) in [
        ("a gigabyte", head().sparse("config", "[remote \"origin\"]\nurl = a\n")),
        ("a pipe", head().pipe("config")),
        ("bytes", head().write("config", [0xff; 1000])),
        ("an escape", head().write("config", "[remote \"origin\"]\nurl = \u{1b}]0;x\n")),
        ("an include", head().write("config", "[include]\npath = ../secret\n")),
    ] {
        assert_eq!(observe(&hostile.top).remote, None, "{what}");
    }
}

/// Compares with `git status`; an unknown result is wrong only where a known one is expected.
#[track_caller]
fn check_dirty(what: &str, folder: &Path, known: bool) {
    let found = observe(folder).dirty;
    let status = git(folder, "--no-optional-locks status --porcelain");
    if known || found.is_some() {
        assert_eq!(found, Some(!status.is_empty()), "{what}: {status}");
    }
}

#[test]
fn changed_files_match_git_status() {
    for version in [2, 3, 4] {
        let (_place, top) = place();
        repository(&top);
        git(&top, &format!("config index.version {version}"));
        for name in ["a", "deep/er/b", "deep/c", "with a rather long name that is filled up"] {
            let path = top.join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("folders");
            fs::write(path, format!("content of {name}")).expect("a file");
        }
        symlink("a", top.join("link")).expect("a link");
        git(&top, "add -A");
        check_dirty("added", &top, true);
        git(&top, "commit -q -m files");
        git(&top, &format!("update-index --index-version {version}"));
        check_dirty("as young as the index", &top, true);
        std::thread::sleep(Duration::from_millis(1100));
        fs::write(top.join("untracked"), "").expect("a file");
        check_dirty("a file that is not tracked", &top, true);
        fs::remove_file(top.join("untracked")).expect("it was a file");
        check_dirty("without it", &top, true);
        fs::write(top.join("a"), "content of a").expect("the same");
        check_dirty("written again", &top, true);
        fs::write(top.join("a"), "content of b").expect("a change");
        check_dirty("other content of the same length", &top, true);
        git(&top, "checkout -q a");
        check_dirty("back", &top, true);
        fs::write(top.join("deep/c"), "longer than it was before").expect("a change");
        check_dirty("another length", &top, true);
        git(&top, "add deep/c");
        check_dirty("staged", &top, true);
        git(&top, "commit -q -m more");
        check_dirty("committed", &top, true);
        fs::rename(top.join("deep"), top.join("aside")).expect("a move");
        check_dirty("a folder is gone", &top, true);
        symlink("aside", top.join("deep")).expect("a link");
        check_dirty("a link in its place", &top, true);
        fs::remove_file(top.join("deep")).expect("it was a link");
        fs::rename(top.join("aside"), top.join("deep")).expect("back");
        check_dirty("the folder is back", &top, true);
        fs::remove_file(top.join("link")).expect("a removal");
        symlink("b", top.join("link")).expect("another link");
        check_dirty("a link to elsewhere", &top, true);
        git(&top, "checkout -q link");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(top.join("a"), executable).expect("a mode");
        check_dirty("a mode", &top, true);
        git(&top, "checkout -q a");
        fs::write(top.join("intended"), "x").expect("a file");
        git(&top, "add -N intended");
        check_dirty("only meant to be added", &top, true);
    }
}

#[test]
fn staged_and_untracked_files_make_a_work_tree_dirty() {
    let (_place, top) = place();
    git(&top, "init -q -b main");
    check_dirty("nothing at all", &top, true);
    fs::write(top.join("a"), "one").expect("a file");
    check_dirty("untracked, without a commit", &top, true);
    git(&top, "add a");
    check_dirty("staged, without a commit", &top, true);
    for folder in ["a-b", "a.b", "z/deep/er", "z/deep-er"] {
        fs::create_dir_all(top.join(folder)).expect("folders");
        fs::write(top.join(folder).join("file"), folder).expect("a file");
    }
    git(&top, "add -A");
    git(&top, "commit -q -m first");
    check_dirty("committed", &top, true);
    git(&top, "repack -q -a -d");
    git(&top, "prune-packed -q");
    check_dirty("packed", &top, true);
    git(&top, "commit -q --allow-empty -m second");
    git(&top, "reset -q --soft HEAD~1");
    check_dirty("the same tree in another commit", &top, true);
    fs::write(top.join("a"), "two").expect("a change");
    git(&top, "add a");
    check_dirty("staged", &top, true);
    fs::write(top.join("a"), "one").expect("back");
    check_dirty("staged and changed back", &top, true);
    git(&top, "add a");
    check_dirty("staged back", &top, true);
    git(&top, "rm -q --cached z/deep/er/file");
    check_dirty("removed from the index", &top, true);
    git(&top, "reset -q --hard");
    fs::write(top.join(".gitignore"), "*.log\n/build/\n!keep.log\n").expect("a file");
    git(&top, "add -A");
    git(&top, "commit -q -m rules");
    for (what, path) in [
        ("ignored", "x.log"),
        ("ignored by its folder", "build/x"),
        ("an exception", "keep.log"),
        ("deep and ignored", "z/deep/x.log"),
        ("deep", "z/deep/x"),
        ("in a new folder", "new/folder/x"),
        ("ignored in a new folder", "newer/x.log"),
    ] {
        let path = top.join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("folders");
        fs::write(&path, "x").expect("a file");
        check_dirty(what, &top, true);
        fs::remove_file(&path).expect("it is there");
    }
    fs::write(top.join(".git/info/exclude"), "*.tmp\n").expect("a file");
    fs::write(top.join("x.tmp"), "x").expect("a file");
    check_dirty("excluded", &top, true);
    fs::write(top.join("z/.gitignore"), "!x.tmp\n").expect("a file");
    git(&top, "add z/.gitignore");
    git(&top, "commit -q -m more");
    check_dirty("as before", &top, true);
    fs::write(top.join("z/x.tmp"), "x").expect("a file");
    check_dirty("an exception below", &top, true);
}

#[test]
fn a_word_in_the_name_of_a_remote_changes_nothing() {
    let (_place, top) = place();
    repository(&top);
    for (name, address) in [("geology", "https://example.org/eol"), ("worktree", "ssh://filter/autocrlf")] {
        git(&top, &format!("remote add {name} {address}"));
        assert_eq!(observe(&top).dirty, Some(false), "{name}");
    }
    git(&top, "config core.autocrlf false");
    assert_eq!(observe(&top).dirty, Some(false), "switched off");
    git(&top, "config core.eol crlf");
    assert_eq!(observe(&top).dirty, None, "line endings that change");
    fs::write(top.join("new"), "").expect("a file");
    assert_eq!(observe(&top).dirty, Some(true), "an untracked file counts whatever its line endings");
}

#[test]
fn an_unreadable_index_leaves_dirty_unknown() {
    let (_place, top) = place();
    repository(&top);
    fs::write(top.join("a"), "one").expect("a file");
    git(&top, "add a");
    git(&top, "commit -q -m a");
    assert_eq!(observe(&top).dirty, Some(false));
    git(&top, "update-index --split-index");
    assert_eq!(observe(&top).dirty, None, "a split index");
    git(&top, "update-index --no-split-index");
    assert_eq!(observe(&top).dirty, Some(false));
    let whole = fs::read(top.join(".git/index")).expect("an index");
    for length in 0..whole.len() {
        fs::write(top.join(".git/index"), &whole[..length]).expect("a torn index");
        assert_ne!(observe(&top).dirty, Some(true), "torn at {length}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        fs::write(top.join(".git/index"), bytes).expect("a damaged index");
        let _ = observe(&top);
    }
    let other = top.join("other");
    fs::create_dir(&other).expect("a folder");
    if try_git(&other, "init -q --object-format=sha256").is_some() {
        fs::write(other.join("a"), "one").expect("a file");
        git(&other, "add a");
        assert_eq!(observe(&other).dirty, None, "another hash");
    }
}

/// Compares the first commit with the one that git finds.
#[track_caller]
fn check_origin(what: &str, folder: &Path) {
    let found = origin(folder).unwrap_or_else(|| panic!("no origin, {what}"));
    let root = git(folder, "rev-list --max-parents=0 --first-parent main");
    assert_eq!((found.remote.as_str(), found.root_commit), ("example.org/team/project", root), "{what}");
}

#[test]
fn the_origin_of_a_repository_is_the_same_in_every_clone() {
    let (_place, top) = place();
    let main = top.join("main");
    repository(&main);
    assert_eq!(origin(&main), None, "without a remote");
    git(&main, "remote add origin git@example.org:team/project.git");
    check_origin("one commit", &main);
    for number in 0..30 {
        git(&main, &format!("commit -q --allow-empty -m number{number}"));
    }
    check_origin("loose", &main);
    // Long equal messages are stored as deltas.
    let message = "word".repeat(300);
    for number in 0..20 {
        git(&main, &format!("commit -q --allow-empty -m {message}{number}"));
    }
    git(&main, "gc -q --aggressive --prune=now");
    let packed = git(&main, "cat-file --batch-all-objects --batch-check=%(objecttype):%(deltabase)");
    let is_delta = |line: &&str| line.starts_with("commit:") && !line.ends_with(&"0".repeat(40));
    assert!(packed.lines().filter(is_delta).count() > 0, "no commit is a delta");
    check_origin("packed with deltas", &main);

    let work = main.join("parts/one");
    fs::create_dir_all(&work).expect("a new folder");
    assert_eq!(origin(&work).map(|found| found.folder).as_deref(), Some("parts/one"));
    let clone = top.join("clone");
    git(&top, "clone -q main clone");
    git(&clone, "remote set-url origin https://user:secret@EXAMPLE.org/team/project");
    git(&clone, "checkout -q --orphan other");
    git(&clone, "commit -q --allow-empty -m unrelated");
    check_origin("another branch is checked out", &clone);

    let shallow = top.join("shallow");
    git(&top, &format!("clone -q --depth 2 file://{} shallow", main.display()));
    git(&shallow, "remote set-url origin git@example.org:team/project.git");
    assert_eq!(origin(&shallow), None, "a shallow clone does not know its first commit");
    let other = top.join("other");
    repository(&other);
    git(&other, "commit -q --allow-empty --amend -m unrelated");
    git(&other, "remote add origin git@example.org:team/project.git");
    let (one, two) = (origin(&main).expect("known"), origin(&other).expect("known"));
    assert_ne!(one.root_commit, two.root_commit, "another history at the same address");
}
