//! Shared helpers: build threads through the public interface, and dump them.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use retake_model::command::{Command, CommandContext, CommandOutcome, InsertPosition, NewEntry, apply};
use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::environment::Environment;
use retake_model::history::{FIRST, HistoryCursor, HistoryView, Unit, link_change, link_move, link_note};
use retake_model::id::{EntryId, IdSource, ProjectId, TakeId, ThreadId, TurnId};
use retake_model::object::{Additions, load};
use retake_model::operation::{Actor, Chains, Operation, OperationKind, Provenance};
use retake_model::settings::Settings;
use retake_model::state::ThreadState;
use retake_model::take::Take;
use retake_model::time::Timestamp;
use retake_store::{
    DeletedFilter, Facet, Problem, ProjectRow, Publication, PublishError, PublishedOperation, Queries, Store,
    StoreError, ThreadFilter, ThreadRow, VerifyReport, WriteTransaction,
};

/// A deterministic clock and rng.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    seed: u64,
    rolled: u64,
}

static NEXT_SEED: AtomicU64 = AtomicU64::new(1);

impl Rng {
    pub(crate) fn new() -> Self {
        Self { seed: NEXT_SEED.fetch_add(1, Ordering::Relaxed), rolled: 0 }
    }
}

pub(crate) const START: i64 = 1_790_000_000_000;

impl IdSource for Rng {
    fn now(&mut self) -> Timestamp {
        Timestamp::from_millis(START + self.seed as i64)
    }

    fn random(&mut self) -> [u8; 10] {
        self.rolled += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&self.rolled.to_le_bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&hasher.finalize().as_bytes()[..10]);
        random
    }
}

/// The size of a page of the database.
pub(crate) const PAGE: usize = 2048;
/// The pages with the definitions of all tables are among the first ones.
pub(crate) const SCHEMA_BYTES: usize = 16 * PAGE;

/// A temporary folder for a store.
pub(crate) struct Folder {
    _temporary: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let path = temporary.path().join("home");
        Self { _temporary: temporary, path }
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.path).expect("the store opens")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("retake.db")
    }

    /// A plain SQLite connection for planting damage. Moves all objects into rows of their own and all names to the
    /// sorted index first, where tests find them easily: the layout of a store that was migrated.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        let mut raw = self.raw_bundled();
        // Fails on files that are no store, or a damaged one; these have nothing to move.
        let _ = spread_bundles(&mut raw);
        raw
    }

    /// The same, with bundles as they are.
    pub(crate) fn raw_bundled(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.database()).expect("the database opens")
    }
}

/// An object of a bundle: name, kind and bytes.
pub(crate) type Bundled = (i64, u8, Vec<u8>);

/// Decodes a bundle, without the code of the store.
pub(crate) fn unbundle(mut bytes: &[u8]) -> Vec<Bundled> {
    fn take<'bytes>(bytes: &mut &'bytes [u8], length: usize) -> &'bytes [u8] {
        let (taken, rest) = bytes.split_at(length);
        *bytes = rest;
        taken
    }
    fn number(bytes: &mut &[u8]) -> usize {
        let byte = take(bytes, 1)[0];
        if byte < 0x80 { usize::from(byte) } else { usize::from(byte & 0x7f) + (number(bytes) << 7) }
    }
    assert_eq!(take(&mut bytes, 1), [1], "the format");
    let count = number(&mut bytes);
    let header: Vec<(i64, u8, usize)> = (0..count)
        .map(|_| {
            let name = i64::from_be_bytes(take(&mut bytes, 8).try_into().expect("eight bytes"));
            (name, take(&mut bytes, 1)[0], number(&mut bytes))
        })
        .collect();
    let is_text = |kind: u8| kind != 2 && kind != 4;
    let packed = number(&mut bytes);
    let texts = match packed {
        0 => {
            let length = header.iter().filter(|(_, kind, _)| is_text(*kind)).map(|(.., length)| length).sum();
            take(&mut bytes, length).to_vec()
        }
        _ => zstd::bulk::decompress(take(&mut bytes, packed), 1 << 20).expect("a frame"),
    };
    let mut texts = texts.as_slice();
    let objects = header.into_iter().map(|(name, kind, length)| {
        let content = if is_text(kind) { take(&mut texts, length) } else { take(&mut bytes, length) };
        (name, kind, content.to_vec())
    });
    objects.collect()
}

/// The bundles of a database, by sequence number.
pub(crate) fn bundles(raw: &rusqlite::Connection) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
    let mut statement =
        raw.prepare("SELECT sequence, bundle FROM operation WHERE bundle IS NOT NULL ORDER BY sequence")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Gives the objects of all bundles rows of their own, and moves recent names to the sorted index.
fn spread_bundles(raw: &mut rusqlite::Connection) -> rusqlite::Result<()> {
    // Tests look for rows by their bytes: no copies may stay.
    raw.execute_batch("PRAGMA secure_delete = ON")?;
    let transaction = raw.transaction()?;
    let recent: Vec<(i64, i64, Vec<u8>)> = transaction
        .prepare("SELECT number, first, names FROM object_recent")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (_, first, names) in recent.iter().filter(|row| row.1 >= 0) {
        for (number, name) in (*first..).zip(names.chunks_exact(8)) {
            let prefix = i64::from_be_bytes(name.try_into().expect("eight bytes"));
            transaction.execute("INSERT OR IGNORE INTO object_index VALUES (?1, ?2)", [prefix, number])?;
        }
    }
    for (_, bundle) in bundles(&transaction)? {
        for (prefix, kind, bytes) in unbundle(&bundle) {
            transaction.execute(
                "INSERT INTO object (kind, packing, born, body) VALUES (?1, 0, ?2, ?3)",
                rusqlite::params![kind, START / 1000, bytes],
            )?;
            let number = transaction.last_insert_rowid();
            transaction.execute("INSERT INTO object_index VALUES (?1, ?2)", [prefix, number])?;
        }
    }
    transaction.execute("UPDATE operation SET bundle = NULL WHERE bundle IS NOT NULL", [])?;
    transaction.execute("DELETE FROM object_index WHERE number < 0", [])?;
    transaction.execute("DELETE FROM object_recent", [])?;
    let last = recent.last().map_or(0, |row| row.0);
    transaction.execute(
        "INSERT INTO object_recent SELECT ?1, -max(sequence), x'' FROM operation HAVING count(*) > 0",
        [last + 1],
    )?;
    transaction.commit()
}

/// Creates a thread.
pub(crate) fn create(store: &Store, project: ProjectId, title: &str) -> ThreadId {
    let mut rng = Rng::new();
    let title = title.to_owned();
    store
        .write(move |writing| {
            let thread = ThreadId::generate(&mut rng);
            let mut additions = Additions::new(&**writing);
            let state = ThreadState::new(title, &mut additions, &mut rng)?;
            let after = additions.add(&state);
            let environment = additions.add(&Environment {
                git_branch: Some("main".to_owned()),
                working_directory: Some("/home/user/project".to_owned()),
                ..Environment::default()
            });
            let operation = Operation {
                thread,
                version: 1,
                previous: None,
                after,
                kind: OperationKind::ThreadCreated { project },
                turn: TurnId::generate(&mut rng),
                actor: Actor::Human,
                time: rng.now(),
                place: FIRST,
                environment: Some(environment),
                files: None,
                last_file_operation: None,
                request: None,
                chains: None,
            };
            let objects = additions.into_new();
            writing.publish(Publication { operation, objects })?;
            Ok::<_, PublishError>(thread)
        })
        .expect("a new thread")
}

/// The next operation to publish.
pub(crate) enum NextOperation {
    Do(Command),
    Undo,
    Redo,
    /// A command on another checked-out Git branch.
    On(&'static str, Command),
}

impl From<Command> for NextOperation {
    fn from(command: Command) -> Self {
        Self::Do(command)
    }
}

/// Publishes the next operation of a thread.
pub(crate) fn publish(store: &Store, thread: ThreadId, next: impl Into<NextOperation>) -> PublishedOperation {
    let next = next.into();
    store.write(move |writing| publish_inside(writing, thread, next)).expect("the operation is published")
}

pub(crate) fn publish_inside(
    writing: &WriteTransaction<'_>,
    thread: ThreadId,
    next: NextOperation,
) -> Result<PublishedOperation, PublishError> {
    let mut rng = Rng::new();
    let row = writing.thread(thread)?.expect("the thread exists");
    let head = writing.head(row.number)?.expect("a thread has operations");
    let log = writing.log(row.number);
    let state: ThreadState = load(&**writing, head.operation.after)?;
    let mut additions = Additions::new(&**writing);
    let mut environment = None;
    let (after, kind, (place, chains)) = match next {
        NextOperation::Undo | NextOperation::Redo => {
            let undoing = matches!(next, NextOperation::Undo);
            let version = head.operation.version;
            let view = HistoryView { take: state.active, worktree: false, worktrees: [].into() };
            let mut cursor = HistoryCursor::new(&log, version, view)?;
            let from = cursor.position(&log)?;
            let moved =
                if undoing { cursor.undo(&log, Unit::Turn)? } else { cursor.redo(&log, Unit::Turn)? };
            assert!(moved, "there is something to move to");
            let to = cursor.position(&log)?;
            // With a single take, the resulting state is an earlier one.
            let target = writing.operation(row.number, to)?.expect("operation exists");
            let kind =
                if undoing { OperationKind::Undone { from, to } } else { OperationKind::Redone { from, to } };
            let linked = link_move(&log, version, cursor.view(), cursor.moves(&log)?)?;
            (target.operation.after, kind, linked)
        }
        NextOperation::Do(command) => {
            change(writing, &row, &head.operation, &state, command, &mut additions, &mut rng)?
        }
        NextOperation::On(branch, command) => {
            environment = Some(additions.add(&Environment {
                git_branch: Some(branch.to_owned()),
                git_commit: Some("0123456789abcdef".to_owned()),
                ..Environment::default()
            }));
            change(writing, &row, &head.operation, &state, command, &mut additions, &mut rng)?
        }
    };
    let operation = Operation {
        thread,
        version: head.operation.version + 1,
        previous: Some(head.id),
        after,
        kind,
        turn: TurnId::generate(&mut rng),
        actor: Actor::Human,
        time: rng.now(),
        place,
        environment,
        files: None,
        last_file_operation: head.operation.last_file_operation,
        request: None,
        chains: Some(chains),
    };
    let objects = additions.into_new();
    writing.publish(Publication { operation, objects })
}

fn change(
    writing: &WriteTransaction<'_>,
    row: &ThreadRow,
    head: &Operation,
    state: &ThreadState,
    command: Command,
    additions: &mut Additions<'_, Queries<'_>>,
    rng: &mut Rng,
) -> Result<(ContentId, OperationKind, (Provenance, Chains)), PublishError> {
    let take_named = |name: &str| Ok(writing.take_named(row.number, name)?.is_some());
    let mut context = CommandContext { additions, fresh: rng, take_named: &take_named, git_commit: None };
    let applied = apply(state, command, &mut context).expect("the command applies");
    let CommandOutcome::Changed { state, kind } = applied else {
        panic!("the command changes something");
    };
    let after = additions.add(&state);
    let log = writing.log(row.number);
    let linked = if kind.is_not_undoable() {
        link_note(&log, head.version)?
    } else {
        link_change(&log, head.version, kind.take())?
    };
    Ok((after, kind, linked))
}

/// A command that appends an entry to a take.
pub(crate) fn say(take: TakeId, role: &str, text: &str) -> Command {
    let version = EntryVersion::from_text(role, text, Timestamp::from_millis(START));
    Command::AddEntries { take, at: InsertPosition::End, entries: vec![NewEntry::from(version)] }
}

/// The active take.
pub(crate) fn active(store: &Store, thread: ThreadId) -> TakeId {
    let reading = store.read().expect("a read transaction");
    let row = reading.queries().thread(thread).expect("readable");
    row.expect("the thread exists").summary.active.id
}

/// Entries of the active take: id, content id of the version, text.
pub(crate) fn entries(store: &Store, thread: ThreadId) -> Vec<(EntryId, ContentId, String)> {
    let reading = store.read().expect("a read transaction");
    let queries = reading.queries();
    let row = queries.thread(thread).expect("readable").expect("the thread exists");
    let head = queries.head(row.number).expect("readable").expect("the thread has a head");
    let state: ThreadState = load(&queries, head.operation.after).expect("readable");
    let take = state.active_take(&queries).expect("readable");
    take.entries
        .iter(&queries, 0)
        .map(|cell| {
            let cell = cell.expect("readable");
            let version: EntryVersion = load(&queries, cell.version).expect("readable");
            (cell.entry, cell.version, version.text())
        })
        .collect()
}

pub(crate) fn number_of(store: &Store, thread: ThreadId) -> i64 {
    let reading = store.read().expect("a read transaction");
    let row = reading.queries().thread(thread).expect("readable");
    row.expect("the thread exists").number
}

/// A project with three threads that cover most kinds of operations.
pub(crate) struct SampleProject {
    pub(crate) project: ProjectId,
    pub(crate) threads: Vec<ThreadId>,
}

pub(crate) fn grow(store: &Store) -> SampleProject {
    let project = ProjectId::generate(&mut Rng::new());
    put_project(store, project, None);
    let threads: Vec<ThreadId> =
        ["Fix login", "Write docs", "Old idea"].iter().map(|title| create(store, project, title)).collect();
    let first = threads[0];
    let main = active(store, first);
    for turn in 0..12 {
        publish(store, first, say(main, "User", &format!("question {turn} {}", "why ".repeat(turn * 40))));
        publish(store, first, say(main, "AI", &format!("answer {turn}")));
    }
    let all = entries(store, first);
    let edit = |index: usize, text: &str| Command::EditEntry {
        take: main,
        entry: all[index].0,
        text: text.to_owned(),
    };
    publish(store, first, edit(3, "a better answer"));
    publish(store, first, NextOperation::Undo);
    publish(store, first, NextOperation::Undo);
    publish(store, first, NextOperation::Redo);
    publish(store, first, NextOperation::On("feature/login", edit(2, "another question")));
    publish(store, first, Command::Fork { from: main, at: all[4].0, name: None });
    publish(store, first, Command::Branch { from: main, at: Some(all[1].0), name: Some("short".to_owned()) });
    let tag = |add: &[&str], remove: &[&str]| Command::Tag {
        add: add.iter().map(|&tag| tag.to_owned()).collect(),
        remove: remove.iter().map(|&tag| tag.to_owned()).collect(),
    };
    publish(store, first, tag(&["bug", "auth"], &[]));
    publish(store, first, tag(&[], &["auth"]));
    publish(store, first, Command::Save { name: "before the rewrite".to_owned() });
    publish(store, first, Command::SetDraft { take: main, text: "half a thou".to_owned() });
    let second = threads[1];
    let take = active(store, second);
    publish(store, second, say(take, "User", "document the parser"));
    publish(
        store,
        second,
        Command::RecordSend {
            take,
            markdown: "# everything that was sent".to_owned(),
            system_prompt: "be brief".to_owned(),
        },
    );
    publish(store, threads[2], Command::Delete);
    put_project(store, project, Some(first));
    SampleProject { project, threads }
}

pub(crate) fn put_project(store: &Store, id: ProjectId, current: Option<ThreadId>) {
    let project = ProjectRow {
        id,
        path: "/home/user/project".to_owned(),
        device: 1,
        inode: 2,
        born: Some(3),
        remote: Some("https://example.org/project.git".to_owned()),
        last_seen: Timestamp::from_millis(START),
        current,
    };
    store.write(move |writing| writing.put_project(&project)).expect("the project is recorded");
}

pub(crate) fn verify(store: &Store) -> VerifyReport {
    store.verify(&mut |_| {}).expect("verification runs")
}

/// The distinct codes of the problems.
pub(crate) fn codes(verified: &VerifyReport) -> Vec<&'static str> {
    let mut codes: Vec<&str> = verified.problems.iter().map(Problem::code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[track_caller]
pub(crate) fn assert_clean(store: &Store) -> VerifyReport {
    let verified = verify(store);
    let problems: Vec<String> = verified.problems.iter().map(ToString::to_string).collect();
    assert!(verified.is_clean(), "{problems:#?}");
    verified
}

/// All readable data by name, or the first error.
pub(crate) fn dump(store: &Store) -> Result<BTreeMap<String, String>, StoreError> {
    let reading = store.read()?;
    let queries = reading.queries();
    let mut found = BTreeMap::new();
    for project in queries.projects()? {
        found.insert(format!("project {}", project.id), format!("{project:?}"));
    }
    let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
    let mut seen = HashSet::new();
    for row in queries.threads(&filter)? {
        let thread = row.summary.id;
        found.insert(format!("thread {thread}"), format!("{:?}", row.summary));
        for take in queries.takes_of(row.number)? {
            found.insert(format!("take {thread} {}", take.summary.id), format!("{:?}", take.summary));
        }
        for facet in [Facet::Tag, Facet::Branch, Facet::Commit, Facet::Directory] {
            let values = queries.facets(row.number, facet)?;
            found.insert(format!("facet {thread} {facet:?}"), format!("{values:?}"));
        }
        for stored in queries.operations_back(row.number, u64::MAX, usize::MAX)? {
            let version = stored.operation.version;
            found.insert(format!("operation {thread} {version}"), format!("{:?}", stored.operation));
            dump_state(&queries, stored.operation.after, &mut seen, &mut found)?;
        }
    }
    Ok(found)
}

/// All readable data of the current states, skipping unreadable parts.
pub(crate) fn dump_what_is_left(store: &Store) -> BTreeMap<String, String> {
    let reading = store.read().expect("a read transaction");
    let queries = reading.queries();
    let filter = ThreadFilter { deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
    let mut found = BTreeMap::new();
    for row in queries.threads(&filter).expect("readable") {
        for stored in queries.operations_back(row.number, u64::MAX, usize::MAX).expect("readable") {
            // Versions that a repair could not save stay in the log.
            let _ = dump_state(&queries, stored.operation.after, &mut HashSet::new(), &mut found);
        }
    }
    found
}

fn dump_state(
    queries: &Queries<'_>,
    id: ContentId,
    seen: &mut HashSet<ContentId>,
    found: &mut BTreeMap<String, String>,
) -> Result<(), StoreError> {
    let state: ThreadState = load(queries, id)?;
    found.insert(format!("state {id}"), format!("{state:?}"));
    let settings: Settings = load(queries, state.settings)?;
    found.insert(format!("settings {}", state.settings), format!("{settings:?}"));
    for cell in state.takes.iter(queries, 0) {
        let content = cell?.content;
        if !seen.insert(content) {
            continue;
        }
        let take: Take = load(queries, content)?;
        found.insert(format!("take {content}"), format!("{take:?}"));
        for (position, cell) in take.entries.iter(queries, 0).enumerate() {
            let cell = cell?;
            let version: EntryVersion = load(queries, cell.version)?;
            found.insert(format!("entry {content} {position}"), format!("{cell:?} {version:?}"));
        }
    }
    Ok(())
}

/// The bytes of all files of a folder that can contain content.
pub(crate) fn raw_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in ["retake.db", "retake.db-wal"] {
        bytes.extend(std::fs::read(folder.join(name)).unwrap_or_default());
    }
    bytes
}

pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// A deterministic random number generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
