//! Measures snapshots, compared with a git side repository and a bare walk, in the same run.
//!
//! `cargo run --release -p retake-workspace --example snapshot_speed -- FOLDER [ROUNDS]`
//!
//! The folder is copied first and never changed itself. Without a folder, one is generated.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use retake_model::time::Timestamp;
use retake_store::Store;
use retake_workspace::snapshot::{CapturedSnapshot, Workspace, snapshot};
use retake_workspace::watch::FolderWatch;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let source = arguments.next().map(PathBuf::from);
    let rounds = arguments.next().and_then(|rounds| rounds.to_str()?.parse().ok()).unwrap_or(5);
    let place = tempfile::tempdir().expect("a temporary folder");
    let root = place.path().join("tree");
    match &source {
        Some(source) => run(Command::new("cp").arg("-a").arg("--reflink=auto").arg(source).arg(&root)),
        None => generate(&root, 20_000),
    }
    let files = all_files(&root);
    println!("{} files in {}", files.len(), source.as_deref().unwrap_or(Path::new("a made tree")).display());
    // The stamps of the copy must be in the past, and its bytes in the page cache for every candidate.
    std::thread::sleep(Duration::from_millis(100));
    run(Command::new("sync").stdout(Stdio::null()));
    let warm: u64 = files.iter().filter_map(|file| fs::read(file).ok()).map(|bytes| bytes.len() as u64).sum();
    println!("{} MB", warm / 1_000_000);

    let git = Git { folder: place.path().join("side.git"), tree: root.clone() };
    git.run(&["init", "-q"]);
    let store = Store::open(&place.path().join("store")).expect("a store");
    let workspace = Workspace::of(&root).expect("a workspace");

    let own_first = time(|| keep(&store, &workspace));
    let git_first = time(|| git.snapshot());
    line("first", own_first, git_first, None);
    println!(
        "  stored: {} MB, git {} MB, peak memory {} MB",
        size(store.folder()) / 1_000_000,
        size(&git.folder) / 1_000_000,
        peak_memory() / 1000
    );

    let (mut own, mut gits, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        floor.push(time(|| lstat_walk(&root)));
        own.push(time(|| keep(&store, &workspace)));
        gits.push(time(|| git.snapshot()));
    }
    line("no change", median(&mut own), median(&mut gits), Some(median(&mut floor)));

    for count in [1, 100] {
        let (mut own, mut gits, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            change(&files, count, &format!("{round}"));
            floor.push(time(|| lstat_walk(&root)));
            own.push(time(|| keep(&store, &workspace)));
            gits.push(time(|| git.snapshot()));
        }
        line(&format!("{count} changed"), median(&mut own), median(&mut gits), Some(median(&mut floor)));
    }

    let mut watch = FolderWatch::new();
    let first = time(|| observe(&store, &workspace, &mut watch));
    println!("watches set  retake {first:>10.1?}");
    for count in [0, 1, 100] {
        let (mut own, mut gits, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            change(&files, count, &format!("watched {round}"));
            floor.push(time(|| lstat_walk(&root)));
            own.push(time(|| observe(&store, &workspace, &mut watch)));
            gits.push(time(|| git.snapshot()));
        }
        line(&format!("watched, {count}"), median(&mut own), median(&mut gits), Some(median(&mut floor)));
        let whole = snapshot(&store, &workspace).expect("a snapshot");
        let narrowed = watch.observe(&store, &workspace).expect("an observation");
        assert_eq!(whole.id, narrowed.id, "a watch finds what a walk over everything finds");
    }
    println!("  peak memory {} MB", peak_memory() / 1000);
}

/// Changes some files, spread over the tree, and waits until their stamps are in the past.
fn change(files: &[PathBuf], count: usize, what: &str) {
    for index in 0..count.min(files.len()) {
        let file = &files[index * (files.len() / count)];
        let mut bytes = fs::read(file).expect("a file");
        bytes.extend(format!("\nchanged {what}\n").bytes());
        fs::write(file, bytes).expect("a change");
    }
    std::thread::sleep(Duration::from_millis(50));
}

fn observe(store: &Store, workspace: &Workspace, watch: &mut FolderWatch) {
    let _ = watch.observe(store, workspace).expect("an observation");
}

fn keep(store: &Store, workspace: &Workspace) {
    finish(store, snapshot(store, workspace).expect("a snapshot"));
}

fn finish(store: &Store, taken: CapturedSnapshot) {
    let taken = Arc::new(taken);
    if !taken.is_stored() {
        let job = Arc::clone(&taken);
        store.write(move |writing| job.store(writing, Timestamp::from_millis(1))).expect("it is stored");
    }
    taken.save_cache().expect("stored");
}

struct Git {
    folder: PathBuf,
    tree: PathBuf,
}

impl Git {
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env("GIT_DIR", &self.folder).env("GIT_WORK_TREE", &self.tree);
        command.args(["-c", "core.autocrlf=false", "-c", "gc.auto=0"]).current_dir(&self.tree);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) {
        run(self.command().args(arguments));
    }

    fn snapshot(&self) {
        self.run(&["add", "-A"]);
        self.run(&["write-tree"]);
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("it runs");
    assert!(status.success(), "{command:?}");
}

/// Lower bound: lists and stats every name, on all cores.
fn lstat_walk(root: &Path) -> u64 {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let queue = Mutex::new((vec![root.to_owned()], 0_usize));
    let count = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let folder = {
                        let mut queue = queue.lock().expect("no panic");
                        match queue.0.pop() {
                            Some(folder) => {
                                queue.1 += 1;
                                folder
                            }
                            None if queue.1 == 0 => return,
                            None => {
                                drop(queue);
                                std::thread::yield_now();
                                continue;
                            }
                        }
                    };
                    let mut found = Vec::new();
                    let mut files = 0;
                    for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                        let metadata = entry.metadata().expect("it is there");
                        files += 1;
                        if metadata.is_dir() {
                            found.push(entry.path());
                        }
                    }
                    count.fetch_add(files, std::sync::atomic::Ordering::Relaxed);
                    let mut queue = queue.lock().expect("no panic");
                    queue.0.extend(found);
                    queue.1 -= 1;
                }
            });
        }
    });
    count.into_inner()
}

fn time<T>(job: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let _ = job();
    start.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn line(what: &str, own: Duration, git: Duration, floor: Option<Duration>) {
    let ratio = git.as_secs_f64() / own.as_secs_f64();
    print!("{what:<12} retake {own:>10.1?}   git {git:>10.1?} ({ratio:.1}x)");
    match floor {
        Some(floor) => {
            println!("   lstat walk {floor:>8.1?} (retake {:.2}x)", own.as_secs_f64() / floor.as_secs_f64());
        }
        None => println!(),
    }
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        if metadata.is_dir() {
            files.extend(all_files(&path));
        } else if metadata.is_file() {
            files.push(path);
        }
    }
    files
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| {
            let metadata = entry.metadata().expect("it is there");
            if metadata.is_dir() { size(&entry.path()) } else { metadata.blocks() * 512 }
        })
        .sum()
}

/// Peak memory of this process, in kilobytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn generate(root: &Path, count: usize) {
    for number in 0..count {
        let folder = root.join(format!("{:02}/{:02}", number % 40, number / 40 % 40));
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("a line of file {number}\n").repeat(number % 400);
        fs::write(folder.join(format!("file-{number}.txt")), text).expect("a file");
    }
}
