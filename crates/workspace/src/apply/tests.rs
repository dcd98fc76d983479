//! Moves folders from one state to another, with every kind of difference, failure and race.

mod basics;
mod faults;
mod hostile;
mod late;
mod races;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use retake_model::content::{ContentId, Kind};
use retake_model::object::{Additions, MemoryObjects};
use retake_model::path::{FileName, TreePath};
use retake_model::tree::{Difference, Node, PART, Parts, Tree, TreeEntry, add_file, differences};

use super::*;

/// Expected content by path: `f` a file, `l` a link, `d` a folder.
pub(crate) type Shape = BTreeMap<Vec<u8>, TestNode>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TestNode {
    File(Vec<u8>, u16),
    Link(Vec<u8>),
    Folder(u16),
}

pub(crate) fn f(bytes: &str) -> TestNode {
    TestNode::File(bytes.as_bytes().to_vec(), 0o644)
}

pub(crate) fn l(target: &str) -> TestNode {
    TestNode::Link(target.as_bytes().to_vec())
}

pub(crate) fn d() -> TestNode {
    TestNode::Folder(0o755)
}

pub(crate) fn shape<const N: usize>(things: [(&str, TestNode); N]) -> Shape {
    things.into_iter().map(|(path, thing)| (path.as_bytes().to_vec(), thing)).collect()
}

/// A folder, and the objects of every requested shape.
pub(crate) struct Fixture {
    pub(crate) place: tempfile::TempDir,
    pub(crate) objects: MemoryObjects,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    pub(crate) fn within(place: &Path) -> Self {
        let place = tempfile::tempdir_in(place).expect("a temporary folder");
        std::fs::create_dir(place.path().join("root")).expect("a new folder");
        Self { place, objects: MemoryObjects::default() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// The tree of a shape. Parent folders are implied.
    pub(crate) fn tree(&mut self, shape: &Shape) -> ContentId {
        let base = self.objects.clone();
        let mut additions = Additions::new(&base);
        let entries: Vec<(Vec<FileName>, &TestNode)> = shape
            .iter()
            .map(|(path, thing)| (TreePath::new(path).expect("a path").names().to_vec(), thing))
            .collect();
        let tree = build(&mut additions, &entries);
        self.objects.insert_all(additions.into_new());
        tree
    }

    pub(crate) fn steps(&mut self, before: &Shape, after: &Shape) -> Vec<Difference> {
        let (before, after) = (self.tree(before), self.tree(after));
        differences(&self.objects, Some(before), Some(after)).expect("captured")
    }

    /// Makes the folder exactly that shape.
    pub(crate) fn write(&self, shape: &Shape) {
        for (path, thing) in shape {
            let path = self.root().join(OsStr::from_bytes(path));
            std::fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
            match thing {
                TestNode::File(bytes, mode) => {
                    std::fs::write(&path, bytes).expect("a file");
                    set_mode(&path, *mode);
                }
                TestNode::Link(target) => {
                    std::os::unix::fs::symlink(OsStr::from_bytes(target), &path).expect("a link");
                }
                TestNode::Folder(_) => std::fs::create_dir_all(&path).expect("a folder"),
            }
        }
        for (path, thing) in shape.iter().rev() {
            if let TestNode::Folder(mode) = thing {
                set_mode(&self.root().join(OsStr::from_bytes(path)), *mode);
            }
        }
    }

    pub(crate) fn read(&self) -> Shape {
        read(&self.root())
    }

    pub(crate) fn apply(&self, steps: &[Difference]) -> Result<Report, ApplyError> {
        let root = OpenRoot::open(&self.root()).expect("a folder");
        self.apply_to(&root, steps)
    }

    pub(crate) fn apply_to(&self, root: &OpenRoot, steps: &[Difference]) -> Result<Report, ApplyError> {
        let token = Token::new("test").expect("a token");
        let cancel = AtomicBool::new(false);
        apply(&Request {
            root,
            steps,
            objects: &self.objects,
            token: &token,
            unchanged: None,
            progress: None,
            cancel: &cancel,
            all_or_nothing: false,
        })
    }

    /// Outcome of each path, by name.
    pub(crate) fn outcomes(&self, steps: &[Difference]) -> BTreeMap<String, Outcome> {
        let report = self.apply(steps).expect("no failure");
        assert_eq!(report.left, []);
        report.results.into_iter().map(|result| (result.path.to_string(), result.outcome)).collect()
    }
}

/// A folder in memory, so that many rounds are fast: these tests do not check durability.
pub(crate) fn fast() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

pub(crate) fn set_mode(path: &Path, mode: u16) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode.into())).expect("a writable file");
}

fn build(additions: &mut Additions<'_, MemoryObjects>, entries: &[(Vec<FileName>, &TestNode)]) -> ContentId {
    let mut made = Vec::new();
    for group in entries.chunk_by(|left, right| left.0[0] == right.0[0]) {
        let below: Vec<(Vec<FileName>, &TestNode)> = group
            .iter()
            .filter(|(names, _)| names.len() > 1)
            .map(|(names, thing)| (names[1..].to_vec(), *thing))
            .collect();
        let here = group.iter().find(|(names, _)| names.len() == 1).map(|(_, thing)| *thing);
        let node = match here {
            Some(TestNode::File(bytes, mode)) => {
                let size = bytes.len() as u64;
                if size > PART && size % 2 == 1 {
                    // As older versions stored it.
                    let parts = bytes
                        .chunks(PART as usize)
                        .map(|part| additions.add_bytes(Kind::Blob, part.to_vec()))
                        .collect();
                    Node::file(additions.add(&Parts(parts)), size, *mode)
                } else {
                    add_file(additions, bytes.clone(), *mode)
                }
            }
            Some(TestNode::Link(target)) => Node::Link { target: target.clone() },
            folder => {
                let mode = if let Some(TestNode::Folder(mode)) = folder { *mode } else { 0o755 };
                Node::Folder { tree: build(additions, &below), mode }
            }
        };
        made.push(TreeEntry { name: group[0].0[0].clone(), node });
    }
    Tree::new(made).add_to(additions)
}

/// The shape of a folder on disk.
pub(crate) fn read(top: &Path) -> Shape {
    let mut found = Shape::new();
    read_into(top, top, &mut found);
    found
}

fn read_into(top: &Path, folder: &Path, found: &mut Shape) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(top).expect("below").as_os_str().as_bytes().to_vec();
        let metadata = path.symlink_metadata().expect("it is there");
        let mode = (metadata.mode() & 0o777) as u16;
        if metadata.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec();
            found.insert(name, TestNode::Link(target));
        } else if metadata.is_dir() {
            found.insert(name, TestNode::Folder(mode));
            read_into(top, &path, found);
        } else if metadata.is_file() {
            found.insert(name, TestNode::File(std::fs::read(&path).expect("a file"), mode));
        }
    }
}

/// A shape including its implied folders, as `read` returns it.
pub(crate) fn whole(shape: &Shape) -> Shape {
    let mut whole = shape.clone();
    for path in shape.keys() {
        for (slash, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            whole.entry(path[..slash].to_vec()).or_insert_with(d);
        }
    }
    whole
}
