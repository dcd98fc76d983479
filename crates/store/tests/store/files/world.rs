//! A thread with files, made through the public interface.

use std::fs;
use std::path::Path;

use retake_model::content::{Content, ContentId, Kind, encode};
use retake_model::history::{link_change, link_note};
use retake_model::id::{FolderId, IdSource, ProjectId, ThreadId, TurnId};
use retake_model::intent::{FolderRecord, Intent};
use retake_model::object::{NewObject, Objects};
use retake_model::operation::{Actor, FileChange, Operation, OperationKind};
use retake_model::path::FileName;
use retake_model::time::Timestamp;
use retake_model::tree::{
    Excluded, ExcludedPath, ExclusionReason, Node, PART, Parts, Snapshot, SnapshotRoot, TreeEntry, TreeNode,
};
use retake_store::{CollectMode, Publication, PublishError, Queries, Store};

use crate::support::*;

/// A thread, its folder, and optionally a pending move of files.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) store: Store,
    pub(crate) project: ProjectId,
    pub(crate) thread: ThreadId,
    /// The folder's first and second snapshot.
    pub(crate) snapshots: [ContentId; 2],
}

impl World {
    /// A thread with messages and one change of files.
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let store = folder.open();
        let project = ProjectId::generate(&mut Rng::new());
        put_project(&store, project, None);
        let thread = create(&store, project, "With files");
        let take = active(&store, thread);
        publish(&store, thread, say(take, "User", "what is in this folder"));
        let snapshots =
            [snapshot(&store, &[noise(1, 900)]), snapshot(&store, &[noise(1, 900), noise(2, 900)])];
        look(&store, thread, snapshots[0], snapshots[0]);
        publish(&store, thread, say(take, "AI", "one file"));
        look(&store, thread, snapshots[0], snapshots[1]);
        publish(&store, thread, say(take, "User", "and now"));
        put_folder(&store, project, snapshots[1]);
        Self { folder, store, project, thread, snapshots }
    }

    /// Like `new`, with a pending move of files back to the first snapshot.
    pub(crate) fn moving() -> Self {
        let world = Self::new();
        begin(&world.store, world.thread, world.project, world.snapshots[1], world.snapshots[0]);
        world
    }
}

/// Incompressible bytes.
pub(crate) fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn blob(bytes: &[u8]) -> ContentId {
    ContentId::of(Kind::Blob, bytes)
}

pub(crate) fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(now.as_millis() as i64)
}

/// Stores files in one pack and the structure above them as objects: a nested folder, a file in parts, and an
/// excluded path.
pub(crate) fn snapshot(store: &Store, files: &[Vec<u8>]) -> ContentId {
    let writer = store.pack_writer().expect("a writer");
    for bytes in files {
        writer.add(blob(bytes), bytes).expect("blob added");
    }
    let batch = writer.finish().expect("pack finished");
    let mut objects = Vec::new();
    let parts = add(&mut objects, &Parts(vec![blob(&files[0]); 2]));
    let file = |content, size| Node::file(content, size, 0o644);
    let named = |name: &str, node| TreeEntry { name: FileName::new(name.as_bytes()).expect("a name"), node };
    let mut inner: Vec<TreeEntry> = (0..)
        .zip(files)
        .map(|(number, bytes)| named(&format!("file {number}"), file(blob(bytes), bytes.len() as u64)))
        .collect();
    inner.sort_by(|left, right| left.name.cmp(&right.name));
    inner.push(named("long", file(parts, PART + 1)));
    let inner = add(&mut objects, &TreeNode::Leaf(inner));
    let folder = Node::Folder { tree: inner, mode: 0o755 };
    let tree = add(&mut objects, &TreeNode::Leaf(vec![named("src", folder)]));
    let excluded = Excluded(vec![ExcludedPath {
        path: format!("{}.env", files.len()).into(),
        reason: ExclusionReason::Secret,
        kind: None,
    }]);
    let excluded = add(&mut objects, &excluded);
    let root = SnapshotRoot {
        name: String::new(),
        tree,
        excluded: Some(excluded),
        files: files.len() as u64 + 1,
        bytes: PART,
        sealed: None,
    };
    let snapshot = add(&mut objects, &Snapshot { roots: vec![root] });
    store
        .write(move |writing| {
            writing.put_packed(&batch, now())?;
            writing.put_contents(&objects, now())
        })
        .expect("content stored");
    snapshot
}

fn add<C: Content>(objects: &mut Vec<NewObject>, content: &C) -> ContentId {
    let bytes = encode(content);
    let id = ContentId::of(C::KIND, &bytes);
    objects.push(NewObject { id, kind: C::KIND, bytes: bytes.into() });
    id
}

/// The next operation of a thread, with files.
fn next(
    queries: &Queries<'_>,
    thread: ThreadId,
    before: ContentId,
    after: ContentId,
    kind: OperationKind,
) -> Operation {
    let mut rng = Rng::new();
    let row = queries.thread(thread).expect("readable").expect("the thread exists");
    let head = queries.head(row.number).expect("readable").expect("a head");
    let version = head.operation.version + 1;
    let (log, take) = (queries.log(row.number), row.summary.active.id);
    let (place, chains) = if kind.is_not_undoable() {
        link_note(&log, head.operation.version).expect("a location")
    } else {
        link_change(&log, head.operation.version, Some(take)).expect("a location")
    };
    Operation {
        thread,
        version,
        previous: Some(head.id),
        after: head.operation.after,
        kind,
        turn: TurnId::generate(&mut rng),
        actor: Actor::Human,
        time: rng.now(),
        place,
        environment: None,
        files: Some(FileChange { before, after, take, worktree: false, left: None, shared: None }),
        last_file_operation: Some(version),
        request: None,
        chains: Some(chains),
    }
}

/// Publishes a change of files.
pub(crate) fn look(store: &Store, thread: ThreadId, before: ContentId, after: ContentId) {
    store
        .write(move |writing| {
            let operation = next(writing, thread, before, after, OperationKind::ExternalEdits { paths: 1 });
            writing.publish(Publication { operation, objects: Vec::new() })
        })
        .map(drop)
        .expect("operation published");
}

/// Publishes a change of files with a wrong `last_file_operation`.
pub(crate) fn look_wrongly(store: &Store, thread: ThreadId, snapshot: ContentId) {
    store
        .write(move |writing| {
            let operation =
                next(writing, thread, snapshot, snapshot, OperationKind::ExternalEdits { paths: 1 });
            let operation = Operation { last_file_operation: Some(1), ..operation };
            writing.publish(Publication { operation, objects: Vec::new() })?;
            Ok::<_, PublishError>(())
        })
        .expect("operation published");
}

pub(crate) fn put_folder(store: &Store, project: ProjectId, snapshot: ContentId) {
    let record = FolderRecord {
        identity: None,
        removing: None,
        captured: None,
        other_runs: None,
        root_identities: None,
        id: FolderId::of_project(project),
        project,
        roots: vec![(String::new(), "/home/user/project".to_owned())],
        snapshot: Some(snapshot),
        worktree: None,
        running: None,
    };
    store.write(move |writing| writing.put_folder(&record)).expect("folder recorded");
}

/// Records the intent to move files.
pub(crate) fn begin(
    store: &Store,
    thread: ThreadId,
    project: ProjectId,
    before: ContentId,
    after: ContentId,
) -> i64 {
    store
        .write(move |writing| {
            let operation = next(writing, thread, before, after, OperationKind::FilesChanged { paths: 1 });
            let files = operation.files.expect("operation has files");
            writing.put_intent(&Intent {
                folder: FolderId::of_project(project),
                roots: vec![(String::new(), "/home/user/project".to_owned())],
                files,
                operation,
                token: "token".to_owned(),
            })
        })
        .expect("intent recorded")
}

/// Whether a blob can be read and is unchanged.
pub(crate) fn has(store: &Store, bytes: &[u8]) -> bool {
    let reading = store.read().expect("a read transaction");
    reading.queries().bytes(Kind::Blob, blob(bytes)).is_ok_and(|found| found[..] == *bytes)
}

/// Collects all garbage, regardless of age.
pub(crate) fn collect(store: &Store) -> retake_store::CollectReport {
    let later = Timestamp::from_millis(now().millis() + 10_000);
    store.collect(std::time::Duration::ZERO, later, CollectMode::Collect).expect("run succeeds")
}

/// Whether any file below a folder contains a part of these bytes.
pub(crate) fn is_on_disk(folder: &Path, bytes: &[u8]) -> bool {
    let needle = &bytes[bytes.len() / 2..][..16];
    fs::read_dir(folder).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            is_on_disk(&path, bytes)
        } else {
            contains(&fs::read(&path).expect("a file"), needle)
        }
    })
}

pub(crate) fn pack_files(store: &Store) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(store.folder().join("packs")).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}
