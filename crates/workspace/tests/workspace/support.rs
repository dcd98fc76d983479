//! Helpers for snapshot tests: a folder with a store next to it, and access to captured content.

// Each test binary uses a part of this module, and its items are public only there.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use retake_model::content::ContentId;
use retake_model::object::{Objects, load};
use retake_model::time::Timestamp;
use retake_model::tree::{Excluded, ExclusionReason, Node, Tree, read};
use retake_store::Store;
use retake_workspace::snapshot::{CapturedSnapshot, Options, Workspace, snapshot};

pub const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// A folder with a store next to it, removed after the test.
pub struct TestFolder {
    pub temporary: tempfile::TempDir,
    pub root: PathBuf,
    pub store: Store,
    pub options: Options,
}

impl TestFolder {
    pub fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let root = temporary.path().canonicalize().expect("it exists").join("project");
        fs::create_dir(&root).expect("a new folder");
        let store = Store::open(&temporary.path().join("store")).expect("a new store");
        Self { temporary, root, store, options: Options::default() }
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    pub fn workspace(&self) -> Workspace {
        Workspace::open(&self.root, &[], self.options.clone()).expect("a workspace")
    }

    pub fn take(&self) -> CapturedSnapshot {
        snapshot(&self.store, &self.workspace()).expect("a snapshot")
    }

    /// Takes and stores a snapshot and saves its cache.
    pub fn keep(&self) -> Arc<CapturedSnapshot> {
        commit(&self.store, self.take())
    }

    /// Content of a stored snapshot: bytes of files, `-> target` of links, `/` for folders.
    pub fn captured(&self, taken: &CapturedSnapshot) -> BTreeMap<String, String> {
        let reading = self.store.read().expect("a read transaction");
        let mut captured = BTreeMap::new();
        read_tree(&reading.queries(), taken.snapshot.roots[0].tree, "", &mut captured);
        captured
    }

    /// Its excluded paths.
    pub fn excluded(&self, taken: &CapturedSnapshot) -> BTreeMap<String, ExclusionReason> {
        let reading = self.store.read().expect("a read transaction");
        let Some(id) = taken.snapshot.roots[0].excluded else { return BTreeMap::new() };
        let left: Excluded = load(&reading.queries(), id).expect("it is stored");
        left.0.into_iter().map(|left| (left.path.escape_ascii().to_string(), left.reason)).collect()
    }
}

pub fn commit(store: &Store, taken: CapturedSnapshot) -> Arc<CapturedSnapshot> {
    let taken = Arc::new(taken);
    let job = Arc::clone(&taken);
    store.write(move |writing| job.store(writing, NOW)).expect("it is stored");
    taken.save_cache().expect("stored");
    taken
}

pub fn read_tree(
    objects: &impl Objects,
    tree: ContentId,
    path: &str,
    captured: &mut BTreeMap<String, String>,
) {
    let tree = Tree::load(objects, tree).expect("it is stored");
    tree.check().expect("it is well-formed");
    for entry in tree.entries() {
        let path = format!("{path}{}", entry.name);
        let text = match &entry.node {
            file @ Node::File { size, .. } => {
                let bytes = read(objects, file).expect("it is stored");
                assert_eq!(bytes.len() as u64, *size, "{path}");
                bytes.escape_ascii().to_string()
            }
            Node::Link { target } => format!("-> {}", target.escape_ascii()),
            Node::Folder { tree, .. } => {
                read_tree(objects, *tree, &format!("{path}/"), captured);
                "/".to_owned()
            }
        };
        captured.insert(path, text);
    }
}

/// Waits until stamps made now are clearly in the past.
pub fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(60));
}

/// All bytes of a store's folder.
pub fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            bytes.extend(all_bytes(&entry.path()));
        } else {
            bytes.extend(fs::read(entry.path()).expect("a file"));
        }
    }
    bytes
}
