//! Measures restoring files and creating a worktree, compared with git and `cp` in the same run.
//!
//! `cargo run --release -p retake-workspace --example apply_speed [FILES]`

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{Additions, MemoryObjects, ObjectError, Objects};
use retake_model::path::{FileName, TreePath};
use retake_model::tree::{Difference, Node, Tree, TreeEntry};
use retake_workspace::apply::{OpenRoot, Outcome, Request, Token, apply};
use retake_workspace::copy::{self, CopySource, materialise};

const PER_FOLDER: usize = 50;
/// Folders per top folder: 5,000 files.
const PER_TOP: usize = 100;
const ROUNDS: usize = 3;

/// Content that is generated on demand, about as fast as a store decompresses it.
struct GeneratedContent {
    trees: MemoryObjects,
    seeds: HashMap<ContentId, u64>,
}

fn text(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::new();
    for line in 0..40 + seed % 120 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(format!("line {line} of {seed}: {state:016x}\n").as_bytes());
    }
    bytes
}

impl Objects for GeneratedContent {
    fn bytes(&self, kind: Kind, id: ContentId) -> Result<Arc<[u8]>, ObjectError> {
        match self.seeds.get(&id) {
            Some(seed) => Ok(text(*seed).into()),
            None => self.trees.bytes(kind, id),
        }
    }
}

impl GeneratedContent {
    fn file(&mut self, seed: u64) -> Node {
        let bytes = text(seed);
        let content = ContentId::of(Kind::Blob, &bytes);
        self.seeds.insert(content, seed);
        Node::file(content, bytes.len() as u64, 0o644)
    }

    /// The tree and all its paths.
    fn tree(&mut self, files: usize) -> (ContentId, Vec<(TreePath, Node)>) {
        let empty = MemoryObjects::default();
        let mut additions = Additions::new(&empty);
        let mut paths = Vec::new();
        let mut tops = Vec::new();
        for top in 0..files.div_ceil(PER_FOLDER * PER_TOP) {
            let top_path = TreePath::of(name(&format!("top{top}")));
            let mut folders = Vec::new();
            let place = paths.len();
            for folder in 0..PER_TOP {
                let folder_path = top_path.join(name(&format!("folder{folder}")));
                let mut entries = Vec::new();
                let place = paths.len();
                for file in 0..PER_FOLDER {
                    let node = self.file((top * PER_TOP * PER_FOLDER + folder * PER_FOLDER + file) as u64);
                    let name = name(&format!("file{file}.txt"));
                    paths.push((folder_path.join(name.clone()), node.clone()));
                    entries.push(TreeEntry { name, node });
                }
                let node = Node::Folder { tree: Tree::new(entries).add_to(&mut additions), mode: 0o755 };
                paths.insert(place, (folder_path.clone(), node.clone()));
                folders.push(TreeEntry { name: folder_path.name().clone(), node });
            }
            let node = Node::Folder { tree: Tree::new(folders).add_to(&mut additions), mode: 0o755 };
            paths.insert(place, (top_path.clone(), node.clone()));
            tops.push(TreeEntry { name: top_path.name().clone(), node });
        }
        let tree = Tree::new(tops).add_to(&mut additions);
        self.trees.insert_all(additions.into_new());
        (tree, paths)
    }
}

fn name(text: &str) -> FileName {
    FileName::new(text.as_bytes()).expect("a plain name")
}

fn main() {
    let files = std::env::args().nth(1).map_or(80_000, |text| text.parse().expect("a number of files"));
    let place = tempfile::tempdir().expect("a temporary folder");
    let work = place.path().join("work");
    std::fs::create_dir(&work).expect("a new folder");
    let mut made = GeneratedContent { trees: MemoryObjects::default(), seeds: HashMap::new() };
    let (tree, paths) = made.tree(files);

    let time = Instant::now();
    lay_out(&made, tree, &work, None);
    println!("{files} files written from content: {:.0} ms", milliseconds(time));
    let git = Git { directory: place.path().join("git"), work: work.clone() };
    git.run(&["init", "-q"]);
    let time = Instant::now();
    git.run(&["add", "-A"]);
    let whole = git.run(&["write-tree"]);
    println!("git add -A: {:.0} ms", milliseconds(time));

    println!("{:32} {:>9} {:>9} {:>7}", "", "retake", "git", "ratio");
    for (label, count) in [("restore 1 file", 1), ("restore 100 files", 100)] {
        let chosen: Vec<&(TreePath, Node)> =
            paths.iter().filter(|(_, node)| !node.is_folder()).step_by(files / count).take(count).collect();
        let steps: Vec<Difference> = chosen
            .iter()
            .enumerate()
            .map(|(index, (path, node))| Difference {
                path: path.clone(),
                before: Some(made.file(1_000_000 + index as u64)),
                after: Some(node.clone()),
            })
            .collect();
        let change = || {
            for (index, (path, _)) in chosen.iter().enumerate() {
                let file = work.join(path.to_string());
                std::fs::write(file, text(1_000_000 + index as u64)).expect("a file");
            }
        };
        compare(label, &made, &work, &git, &whole, &steps, &change);
    }
    let steps: Vec<Difference> = paths
        .iter()
        .filter(|(path, _)| path.names()[0].bytes() == b"top0")
        .map(|(path, node)| Difference { path: path.clone(), before: None, after: Some(node.clone()) })
        .collect();
    let change = || std::fs::remove_dir_all(work.join("top0")).expect("a folder");
    compare("restore a folder of 5,000 files", &made, &work, &git, &whole, &steps, &change);

    open_worktree(&made, tree, &work, place.path());
}

fn compare(
    label: &str,
    made: &GeneratedContent,
    work: &Path,
    git: &Git,
    whole: &str,
    steps: &[Difference],
    change: &dyn Fn(),
) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let root = OpenRoot::open(work).expect("a folder");
    for _ in 0..ROUNDS {
        change();
        git.run(&["add", "-A"]);
        sync(work);
        let time = Instant::now();
        git.run(&["read-tree", "-u", "--reset", whole]);
        theirs.push(milliseconds(time));

        change();
        sync(work);
        let time = Instant::now();
        let report = apply(&Request {
            root: &root,
            steps,
            objects: made,
            token: &Token::new("speed").expect("a token"),
            unchanged: None,
            progress: None,
            cancel: &AtomicBool::new(false),
            all_or_nothing: false,
        });
        ours.push(milliseconds(time));
        let report = report.expect("no failure");
        assert!(report.results.iter().all(|result| result.outcome == Outcome::Written));
    }
    print(label, &mut ours, &mut theirs);
}

fn open_worktree(made: &GeneratedContent, tree: ContentId, work: &Path, place: &Path) {
    let (mut ours, mut theirs, mut durable) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let copy = place.join("copy");
        sync(work);
        let time = Instant::now();
        let copied = Command::new("cp").args(["-a", "--reflink=auto"]).arg(work).arg(&copy).status();
        assert!(copied.is_ok_and(|status| status.success()));
        theirs.push(milliseconds(time));
        sync(work);
        durable.push(milliseconds(time));
        std::fs::remove_dir_all(&copy).expect("a writable file");

        std::fs::create_dir(&copy).expect("a new folder");
        sync(work);
        let time = Instant::now();
        lay_out(made, tree, &copy, Some(work));
        ours.push(milliseconds(time));
        std::fs::remove_dir_all(&copy).expect("a writable file");
    }
    print("open copy, durable, and cp -a", &mut ours.clone(), &mut theirs);
    print("the same, and cp -a with a sync", &mut ours, &mut durable);
}

fn lay_out(made: &GeneratedContent, tree: ContentId, target: &Path, copy_source: Option<&Path>) {
    let root = copy_source.map(|copy_source| OpenRoot::open(copy_source).expect("a folder"));
    let done = materialise(&copy::Request {
        target: &OpenRoot::open(target).expect("a folder"),
        tree,
        objects: made,
        copy_source: root.as_ref().map(|root| CopySource { root, unchanged: &|_, _, _| true }),
        progress: None,
        cancel: &AtomicBool::new(false),
    });
    println!("  {:?}", done.expect("no failure"));
}

fn sync(place: &Path) {
    rustix::fs::syncfs(OpenRoot::open(place).expect("a folder")).expect("a disk that works");
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn print(label: &str, ours: &mut [f64], theirs: &mut [f64]) {
    ours.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let (ours, theirs) = (ours[ours.len() / 2], theirs[theirs.len() / 2]);
    println!("{label:32} {ours:7.1}ms {theirs:7.1}ms {:6.2}x", ours / theirs);
}

struct Git {
    directory: std::path::PathBuf,
    work: std::path::PathBuf,
}

impl Git {
    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .env("GIT_DIR", &self.directory)
            .env("GIT_WORK_TREE", &self.work)
            .current_dir(&self.work)
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .expect("git is there");
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }
}
