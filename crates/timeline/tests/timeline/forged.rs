//! Forged exports, each with exactly one fault: all are rejected without a trace.

use data_encoding::BASE64;
use retake_model::content::{ContentId, Kind, encode};
use retake_model::entry::EntryVersion;
use retake_model::history::FIRST;
use retake_model::id::{EntryId, ProjectId, TakeId, ThreadId, TurnId};
use retake_model::list::{EntryCell, List, TakeCell};
use retake_model::object::{Additions, MemoryObjects, load};
use retake_model::operation::{
    Actor, AddedEntries, ChainPosition, Chains, FileChange, Operation, OperationKind, Provenance,
    TakePosition, TurnStep,
};
use retake_model::path::FileName;
use retake_model::settings::Settings;
use retake_model::state::{ThreadState, Visibility};
use retake_model::take::Take;
use retake_model::time::Timestamp;
use retake_model::tree::{Node, Snapshot, SnapshotRoot, Tree, TreeEntry, differences, graft};
use retake_timeline::{ImportMode, Timeline};
use serde_json::json;

use crate::exchange::{elsewhere, import};

const NOW: Timestamp = Timestamp::from_millis(1_763_239_740_000);

/// An export with one operation, in parts.
struct Forgery<'base> {
    additions: Additions<'base, MemoryObjects>,
    state: ThreadState,
    operation: Operation,
    /// Lines that replace omitted objects.
    lines: Vec<String>,
    excluded: Vec<ContentId>,
    /// A second operation, which changes nothing.
    second: Option<OperationKind>,
    /// Position of the second operation, unless it is as in an old log.
    linked: Option<(Provenance, Chains)>,
}

fn take_of(number: u8, name: &str) -> Take {
    Take::empty(TakeId::from_bytes([number; 16]), name.to_owned(), NOW)
}

fn cell(number: u64, version: ContentId) -> EntryCell {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    EntryCell { entry: EntryId::from_bytes(id), version, files: None }
}

impl<'base> Forgery<'base> {
    fn new(base: &'base MemoryObjects) -> Self {
        let mut additions = Additions::new(base);
        let take = take_of(1, "main");
        let content = additions.add(&take);
        let state = ThreadState {
            title: "Forged".to_owned(),
            tags: ["tag".to_owned()].into(),
            pinned: false,
            visibility: Visibility::default(),
            private: false,
            shared_with_support: false,
            roles: vec!["User".to_owned()],
            settings: additions.add(&Settings::default()),
            takes: List::from_cells(&mut additions, [TakeCell { take: take.id, content }]),
            active: take.id,
            deleted: None,
            parent: None,
        };
        let operation = Operation {
            thread: ThreadId::from_bytes([3; 16]),
            version: 1,
            previous: None,
            after: ContentId::from_bytes([0; 32]),
            kind: OperationKind::ThreadCreated { project: ProjectId::from_bytes([4; 16]) },
            turn: TurnId::from_bytes([5; 16]),
            actor: Actor::Human,
            time: NOW,
            place: FIRST,
            environment: None,
            files: None,
            last_file_operation: None,
            request: None,
            chains: None,
        };
        Self {
            additions,
            state,
            operation,
            lines: Vec::new(),
            excluded: Vec::new(),
            second: None,
            linked: None,
        }
    }

    fn with_takes(&mut self, takes: &[Take]) {
        let cells: Vec<TakeCell> =
            takes.iter().map(|take| TakeCell { take: take.id, content: self.additions.add(take) }).collect();
        self.state.takes = List::from_cells(&mut self.additions, cells);
    }

    fn with_entries(&mut self, entries: List<EntryCell>) {
        self.with_takes(&[Take { entries, ..take_of(1, "main") }]);
    }

    fn entry(&mut self, text: &str) -> ContentId {
        self.additions.add(&EntryVersion::from_text("User", text, NOW))
    }

    fn file(mut self) -> Vec<u8> {
        self.operation.after = self.additions.add(&self.state);
        let mut text = String::new();
        let mut line = |line: &str| text.extend([line, "\n"]);
        let thread = self.operation.thread;
        let last = if self.second.is_some() { 2 } else { 1 };
        line(&json!({"retake": "thread", "format": 1, "thread": thread, "version": last}).to_string());
        self.lines.iter().for_each(|forged| line(forged));
        for object in self.additions.into_new() {
            if !self.excluded.contains(&object.id) {
                let kind = format!("{:?}", object.kind).to_lowercase();
                line(&json!({"object": kind, "data": BASE64.encode(&object.bytes)}).to_string());
            }
        }
        line(&json!({"operation": 1, "data": BASE64.encode(&encode(&self.operation))}).to_string());
        if let Some(kind) = self.second {
            let previous = Some(ContentId::of(Kind::Operation, &encode(&self.operation)));
            let place = if kind.is_not_undoable() {
                Provenance { parent: 1, depth: 0, jump: 0, position: 1, tip: 1 }
            } else {
                Provenance { parent: 1, depth: 1, jump: 1, position: 2, tip: 2 }
            };
            let (place, chains) = match self.linked {
                Some((place, chains)) => (place, Some(chains)),
                None => (place, None),
            };
            let second = Operation { version: 2, previous, kind, place, chains, ..self.operation };
            line(&json!({"operation": 2, "data": BASE64.encode(&encode(&second))}).to_string());
        }
        let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
        let end = json!({"end": true, "lines": text.lines().count(), "digest": digest});
        text.extend([&end.to_string(), "\n"]);
        text.into_bytes()
    }
}

fn threads(timeline: &Timeline) -> usize {
    let filter = retake_store::ThreadFilter::default();
    timeline.read().expect("a reader").threads(&filter).expect("a list").len()
}

fn refused(what: &str, because: &str, forge: impl Fn(&mut Forgery<'_>)) {
    let base = MemoryObjects::default();
    let mut forgery = Forgery::new(&base);
    forge(&mut forgery);
    let file = forgery.file();
    let (_folder, timeline) = elsewhere();
    for importing in [ImportMode::Same, ImportMode::Copy] {
        let error = import(file.clone(), &timeline, importing).expect_err(what).to_string();
        assert!(error.contains(because), "{what}: {error}");
        assert_eq!(threads(&timeline), 0, "{what}");
    }
}

/// Id and number of cells of a list, as in a take.
fn rooted(root: ContentId, count: u64) -> List<EntryCell> {
    let mut bytes = Vec::new();
    let mut encoder = minicbor::Encoder::new(&mut bytes);
    encoder.array(2).and_then(|encoder| encoder.bytes(root.bytes())).expect("into memory");
    encoder.u64(count).expect("into memory");
    minicbor::decode(&bytes).expect("a list")
}

/// The bytes of a leaf.
fn leaf(cells: &[EntryCell]) -> Vec<u8> {
    let mut bytes = vec![0x82, 0];
    minicbor::encode(cells, &mut bytes).expect("into memory");
    bytes
}

/// The bytes of a branch over nodes with their number of cells and the prefixes of their first and last key.
fn branch(level: u8, children: &[(ContentId, u64, u64, u64)]) -> Vec<u8> {
    let mut bytes = vec![0x82, level];
    minicbor::Encoder::new(&mut bytes).array(children.len() as u64).expect("into memory");
    for (id, count, low, high) in children {
        let mut encoder = minicbor::Encoder::new(&mut bytes);
        encoder.array(4).and_then(|encoder| encoder.bytes(id.bytes())).expect("into memory");
        for number in [count, low, high] {
            encoder.u64(*number).expect("into memory");
        }
    }
    bytes
}

/// Returns whether a hash ends a chunk of entries.
fn ends(hash: &[u8; 32]) -> bool {
    hash[31].trailing_zeros() >= 3
}

fn cell_ends(cell: &EntryCell) -> bool {
    ends(blake3::hash(&minicbor::to_vec(cell).expect("into memory")).as_bytes())
}

#[test]
fn a_valid_forged_export_is_accepted() {
    let base = MemoryObjects::default();
    let mut forgery = Forgery::new(&base);
    let version = forgery.entry("hello");
    let entries = List::from_cells(&mut forgery.additions, (0..500).map(|number| cell(number, version)));
    forgery.with_entries(entries);
    let (_folder, timeline) = elsewhere();
    import(forgery.file(), &timeline, ImportMode::Same).expect("an import");
    assert_eq!(threads(&timeline), 1);
}

#[test]
fn forged_file_links_are_refused() {
    for last_file_operation in [0, 1, 7] {
        refused("an operation with files that are not", "last operation with files", |forgery| {
            forgery.operation.last_file_operation = Some(last_file_operation);
        });
    }
}

#[test]
fn takes_are_distinct_and_one_is_active() {
    refused("one name twice", "same name", |forgery| {
        forgery.with_takes(&[take_of(1, "main"), take_of(2, "main")]);
    });
    refused("one take twice", "twice", |forgery| {
        forgery.with_takes(&[take_of(1, "main"), take_of(1, "other")]);
    });
    refused("another identity", "different id", |forgery| {
        let content = forgery.additions.add(&take_of(2, "main"));
        let cells = [TakeCell { take: forgery.state.active, content }];
        forgery.state.takes = List::from_cells(&mut forgery.additions, cells);
    });
    refused("no active take", "active", |forgery| forgery.state.active = TakeId::from_bytes([9; 16]));
    refused("no take", "active", |forgery| forgery.state.takes = List::empty());
}

#[test]
fn only_entries_and_blobs_can_be_redacted_in_an_export() {
    for kind in ["entry", "blob", "entries"] {
        refused("a list node said to be redacted", "", |forgery| {
            let version = forgery.entry("hello");
            let entries =
                List::from_cells(&mut forgery.additions, (0..9).map(|number| cell(number, version)));
            forgery.with_entries(entries);
            let root = entries.root().expect("a root");
            forgery.excluded.push(root);
            forgery.lines.push(json!({"redacted": root, "kind": kind}).to_string());
        });
    }
    refused("an entry said to be a blob", "a referenced object is missing", |forgery| {
        let version = forgery.entry("hello");
        let entries = List::from_cells(&mut forgery.additions, [cell(1, version)]);
        forgery.with_entries(entries);
        forgery.excluded.push(version);
        forgery.lines.push(json!({"redacted": version, "kind": "blob"}).to_string());
    });
}

#[test]
fn exports_cannot_claim_millions_of_entries_with_few_nodes() {
    let started = std::time::Instant::now();
    refused("a bomb", "twice", |forgery| {
        let version = forgery.entry("boom");
        let mut count = 64;
        let quiet = (0..100).map(|number| cell(number, version)).find(|cell| !cell_ends(cell));
        let bytes = leaf(&[quiet.expect("most cells end nothing"); 64]);
        let start =
            u64::from_be_bytes(*quiet.expect("as above").entry.bytes().first_chunk().expect("16 bytes"));
        let mut node = forgery.additions.add_bytes(Kind::Entries, bytes);
        for level in 1..=3 {
            let width = if ends(node.bytes()) { 2 } else { 64 };
            let children = vec![(node, count, start, start); width];
            node = forgery.additions.add_bytes(Kind::Entries, branch(level, &children));
            count *= width as u64;
        }
        forgery.with_entries(rooted(node, count));
    });
    refused("one entry twice", "twice", |forgery| {
        let version = forgery.entry("again");
        let cells = (0..300).chain([7]).map(|number| cell(number, version));
        let entries = List::from_cells(&mut forgery.additions, cells);
        forgery.with_entries(entries);
    });
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn one_list_cannot_have_two_encodings() {
    refused("a list cut at will", "chunk boundary", |forgery| {
        let version = forgery.entry("hello");
        let quiet = (0..).map(|number| cell(number, version)).filter(|cell| !cell_ends(cell));
        let cells: Vec<EntryCell> = quiet.take(5).collect();
        let start = |at: usize| u64::from_be_bytes(*cells[at].entry.bytes().first_chunk().expect("16 bytes"));
        let left = forgery.additions.add_bytes(Kind::Entries, leaf(&cells[..2]));
        let right = forgery.additions.add_bytes(Kind::Entries, leaf(&cells[2..]));
        let children = [(left, 2, start(0), start(1)), (right, 3, start(2), start(4))];
        let root = forgery.additions.add_bytes(Kind::Entries, branch(1, &children));
        forgery.with_entries(rooted(root, 5));
    });
}

#[test]
fn names_times_and_values_have_the_limits_of_commands() {
    for title in ["", " x", "a\nb", "\u{1b}[31m", "\u{202e}", &"A".repeat(1_000_000)] {
        refused("a title", "", |forgery| forgery.state.title = title.to_owned());
    }
    refused("a take's name", "must not contain", |forgery| forgery.with_takes(&[take_of(1, "a/b")]));
    refused("a tag", "", |forgery| forgery.state.tags = ["two words".to_owned()].into());
    refused("too many tags", "at most", |forgery| {
        forgery.state.tags = (0..1000).map(|number| number.to_string()).collect();
    });
    refused("a role", "must not contain", |forgery| forgery.state.roles.push("\u{7}".to_owned()));
    refused("an entry's role", "must not contain", |forgery| {
        let version = forgery.additions.add(&EntryVersion::from_text("\u{1b}c", "hello", NOW));
        let entries = List::from_cells(&mut forgery.additions, [cell(1, version)]);
        forgery.with_entries(entries);
    });
    refused("settings", "temperature", |forgery| {
        forgery.state.settings =
            forgery.additions.add(&Settings { temperature: Some(1e9), ..Settings::default() });
    });
    for millis in [i64::MAX, i64::MIN, -1] {
        let time = Timestamp::from_millis(millis);
        refused("an operation's time", "out of range", |forgery| forgery.operation.time = time);
        refused("a time of deletion", "out of range", |forgery| forgery.state.deleted = Some(time));
        refused("a take's time", "out of range", |forgery| {
            forgery.with_takes(&[Take { created: time, ..take_of(1, "main") }]);
        });
    }
    refused("an operation that makes no thread", "first operation", |forgery| {
        forgery.operation.kind = OperationKind::Reset;
    });
}

/// A tree of nested folders around a file.
fn nested(forgery: &mut Forgery<'_>, names: &[&str], deep: usize) -> ContentId {
    let mut tree = plain_tree(forgery, 5);
    for _ in 0..deep {
        let node = Node::Folder { tree, mode: 0o755 };
        let entries = names.iter().map(|name| TreeEntry {
            name: FileName::new(name.as_bytes()).expect("a name"),
            node: node.clone(),
        });
        tree = Tree::new(entries.collect()).add_to(&mut forgery.additions);
    }
    tree
}

fn plain_tree(forgery: &mut Forgery<'_>, size: u64) -> ContentId {
    let content = forgery.additions.add_bytes(Kind::Blob, b"hello".to_vec());
    let node = Node::file(content, size, 0o644);
    Tree::new(vec![TreeEntry { name: FileName::new(b"file").expect("a name"), node }])
        .add_to(&mut forgery.additions)
}

fn with_files(forgery: &mut Forgery<'_>, tree: ContentId) {
    let root = SnapshotRoot { name: String::new(), tree, excluded: None, files: 1, bytes: 5, sealed: None };
    let after = forgery.additions.add(&Snapshot { roots: vec![root] });
    let take = forgery.state.active;
    forgery.operation.files =
        Some(FileChange { before: after, after, take, worktree: false, left: None, shared: None });
    forgery.operation.last_file_operation = Some(1);
}

#[test]
fn exports_cannot_claim_too_many_files_with_few_trees() {
    let started = std::time::Instant::now();
    refused("trees that double", "paths in a tree of files: at most 4194304", |forgery| {
        let tree = nested(forgery, &["a", "b"], 60);
        with_files(forgery, tree);
    });
    refused("folders within folders", "bytes of a path in a tree of files: at most 4096", |forgery| {
        let tree = nested(forgery, &["d"], 5000);
        with_files(forgery, tree);
    });
    let long = "n".repeat(255);
    refused("long names", "bytes of a path in a tree of files: at most 4096", |forgery| {
        let tree = nested(forgery, &[&long], 16);
        with_files(forgery, tree);
    });
    for size in [0, 4, 6, 5 << 20] {
        refused("another size", "", |forgery| {
            let tree = plain_tree(forgery, size);
            with_files(forgery, tree);
        });
    }
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn an_import_with_data_of_a_version_control_system_is_refused() {
    for name in [".git", ".hg", ".HG", "hg~1", ".svn", ".jj", ".bzr", "CVS", "cvs.", "_darcs"] {
        for deep in [false, true] {
            refused(name, "", |forgery| {
                let file = plain_tree(forgery, 5);
                // A tree of one folder, encoded manually, since such a name cannot be constructed.
                let mut bytes = Vec::new();
                let mut encoder = minicbor::Encoder::new(&mut bytes);
                let written = encoder.array(1).and_then(|encoder| encoder.array(2));
                let written = written.and_then(|encoder| encoder.bytes(name.as_bytes()));
                written.expect("into memory");
                minicbor::encode(Node::Folder { tree: file, mode: 0o755 }, &mut bytes).expect("into memory");
                let mut tree = forgery.additions.add_bytes(Kind::Tree, bytes);
                if deep {
                    let node = Node::Folder { tree, mode: 0o755 };
                    let name = FileName::new(b"deep").expect("a name");
                    tree = Tree::new(vec![TreeEntry { name, node }]).add_to(&mut forgery.additions);
                }
                with_files(forgery, tree);
            });
        }
    }
}

#[test]
fn files_within_the_limits_are_accepted_at_any_depth() {
    let base = MemoryObjects::default();
    let mut forgery = Forgery::new(&base);
    let tree = nested(&mut forgery, &["d"], 2000);
    with_files(&mut forgery, tree);
    let (thread, active) = (forgery.operation.thread, forgery.state.active);
    let (_folder, timeline) = elsewhere();
    import(forgery.file(), &timeline, ImportMode::Same).expect("an import");
    let reader = timeline.read().expect("a reader");
    let files = reader.files(thread).of_take(active).expect("a reader").expect("files");
    let snapshot: Snapshot = load(&reader.queries(), files).expect("captured");
    // A quarter of the default stack of a thread.
    let compared = std::thread::scope(|scope| {
        let compare = || {
            let reading = timeline.read().expect("a reader");
            let objects = reading.queries();
            let found = differences(&objects, None, Some(snapshot.roots[0].tree)).expect("captured");
            let path = found.last().expect("a file").path.clone();
            let mut additions = Additions::new(&objects);
            graft(&mut additions, snapshot.roots[0].tree, &[(path, None)].into()).expect("captured");
            found.len()
        };
        let spawned = std::thread::Builder::new().stack_size(512 << 10).spawn_scoped(scope, compare);
        spawned.expect("a thread").join().expect("no overflow")
    });
    assert_eq!(compared, 2001);
}

/// Every kind of operation that names versions of entries.
fn naming(take: TakeId, from: ContentId, to: ContentId) -> Vec<OperationKind> {
    let entry = cell(1, to).entry;
    let added = Some(AddedEntries { entry, version: to, count: 1, position: 0 });
    vec![
        OperationKind::EntriesAdded { take, entry, version: to, count: 1, position: 0 },
        OperationKind::EntryEdited { take, entry, from, to },
        OperationKind::EntryEdited { take, entry, from: to, to: from },
        OperationKind::EntriesDeleted { take, entry, version: to, count: 1 },
        OperationKind::Compressed { take, entry, version: to, removed: 1 },
        OperationKind::TurnAdvanced { take, step: TurnStep::Answered, added },
    ]
}

#[test]
fn an_operation_that_names_a_missing_version_is_refused() {
    for number in
        0..naming(TakeId::from_bytes([1; 16]), ContentId::from_bytes([8; 32]), ContentId::from_bytes([9; 32]))
            .len()
    {
        let second = |forgery: &mut Forgery<'_>, to: ContentId| {
            let from = forgery.entry("hello");
            let entries = List::from_cells(&mut forgery.additions, [cell(1, from)]);
            forgery.with_entries(entries);
            forgery.second = Some(naming(forgery.state.active, from, to).swap_remove(number));
        };
        let missing = ContentId::of(Kind::Entry, b"never written");
        refused("a version that does not exist", "a referenced object is missing", |forgery| {
            second(forgery, missing);
        });
        refused("a version that is left out", "a referenced object is missing", |forgery| {
            let other = forgery.entry("other");
            second(forgery, other);
            forgery.excluded.push(other);
        });
        // Control: the same operation, with the version present or marked as erased.
        for destroyed in [false, true] {
            let base = MemoryObjects::default();
            let mut forgery = Forgery::new(&base);
            let other = forgery.entry("other");
            second(&mut forgery, other);
            if destroyed {
                forgery.excluded.push(other);
                forgery.lines.push(json!({"redacted": other, "kind": "entry"}).to_string());
            }
            let (_folder, timeline) = elsewhere();
            import(forgery.file(), &timeline, ImportMode::Same).expect("an import");
            let verified = timeline.store().verify(&mut |_| {}).expect("verified");
            assert!(verified.is_clean(), "{number}: {:?}", verified.problems);
        }
    }
}

#[test]
fn only_references_to_existing_versions_are_imported() {
    let mut taken = 0;
    for round in 0..120_u8 {
        let rng = *blake3::hash(&[round]).as_bytes();
        let base = MemoryObjects::default();
        let mut forgery = Forgery::new(&base);
        let first = forgery.entry("hello");
        let entries = List::from_cells(&mut forgery.additions, [cell(1, first)]);
        forgery.with_entries(entries);
        let [(from, has_from), (to, has_to)] = [0, 1].map(|which| {
            let other = forgery.entry(&format!("{which} {round}"));
            let how = rng[which] % 5;
            if how == 1 || how == 2 {
                forgery.excluded.push(other);
            }
            if how == 1 {
                forgery.lines.push(json!({"redacted": other, "kind": "entry"}).to_string());
            }
            let id = if how == 3 { ContentId::of(Kind::Blob, b"hello") } else { other };
            (if how == 4 { first } else { id }, how != 2 && how != 3)
        });
        let kind = naming(forgery.state.active, from, to).swap_remove(usize::from(rng[2] % 6));
        let is_whole = has_to && (has_from || !matches!(kind, OperationKind::EntryEdited { .. }));
        forgery.second = Some(kind.clone());
        let (_folder, timeline) = elsewhere();
        let imported = import(forgery.file(), &timeline, ImportMode::Same);
        assert_eq!(imported.is_ok(), is_whole, "round {round}: {kind:?}: {imported:?}");
        assert_eq!(threads(&timeline), usize::from(is_whole));
        assert!(timeline.store().verify(&mut |_| {}).expect("verified").is_clean(), "round {round}");
        taken += usize::from(is_whole);
    }
    assert!((20..100).contains(&taken), "{taken}: both must happen");
}

#[test]
fn a_move_records_the_versions_it_leads_between() {
    type Make = fn(u64, u64) -> OperationKind;
    let kinds: [Make; 4] = [
        |from, to| OperationKind::Undone { from, to },
        |from, to| OperationKind::Redone { from, to },
        |from, to| OperationKind::Jumped { from, to },
        |from, to| OperationKind::FilesMoved { from, to, paths: 0 },
    ];
    for kind in kinds {
        for (from, to) in [(0, 1), (1, 0), (2, 1), (1, 2), (1, u64::MAX), (u64::MAX, 1)] {
            refused("a move to nowhere", "versions that do not exist", |forgery| {
                forgery.second = Some(kind(from, to));
            });
        }
        let base = MemoryObjects::default();
        let mut forgery = Forgery::new(&base);
        forgery.second = Some(kind(1, 1));
        let (_folder, timeline) = elsewhere();
        import(forgery.file(), &timeline, ImportMode::Same).expect("the control");
    }
}

/// Position and chains of a second operation that changes a take.
fn linked() -> (Provenance, Chains) {
    let place = Provenance { parent: 0, depth: 0, jump: 2, position: 2, tip: 2 };
    let take = Some(TakeId::from_bytes([1; 16]));
    (place, Chains { take, thread: ChainPosition::at(1), takes: Vec::new(), other: 1, order: None })
}

#[test]
fn an_operation_in_the_wrong_chain_is_refused() {
    type Forge = fn(&mut Provenance, &mut Chains);
    let wrong: [(&str, Forge); 9] = [
        ("a parent of another chain", |place, _| place.parent = 1),
        ("a depth that is none", |place, _| place.depth = 7),
        ("a hop to nowhere", |place, _| place.jump = 9),
        ("a position that is not reached", |place, _| place.position = 1),
        ("another take's", |_, chains| chains.take = Some(TakeId::from_bytes([2; 16]))),
        ("the thread's", |_, chains| chains.take = None),
        ("a chain of the thread elsewhere", |_, chains| chains.thread.position = 2),
        ("a hop over nothing", |_, chains| chains.other = 2),
        ("a take that is moved by a change", |_, chains| {
            let take = TakeId::from_bytes([1; 16]);
            chains.takes.push(TakePosition { take, at: ChainPosition::at(1) });
        }),
    ];
    for (what, forge) in wrong {
        refused(what, "in the wrong place", |forgery| {
            forgery.second = Some(OperationKind::DraftChanged { take: forgery.state.active });
            let (mut place, mut chains) = linked();
            forge(&mut place, &mut chains);
            forgery.linked = Some((place, chains));
        });
    }
    // Control: correctly linked.
    let base = MemoryObjects::default();
    let mut forgery = Forgery::new(&base);
    forgery.second = Some(OperationKind::DraftChanged { take: forgery.state.active });
    forgery.linked = Some(linked());
    let (_folder, timeline) = elsewhere();
    import(forgery.file(), &timeline, ImportMode::Same).expect("a valid import");
}
