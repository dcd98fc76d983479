//! A store with threads, built with the functions that commands use.

use std::cell::RefCell;

use retake_model::command::{Command, CommandContext, CommandOutcome, InsertPosition, NewEntry, apply};
use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::environment::Environment;
use retake_model::history::FIRST;
use retake_model::id::{EntryId, IdSource, ProjectId, TakeId, ThreadId, TurnId};
use retake_model::object::{Additions, load};
use retake_model::operation::{Actor, Operation, OperationKind, Provenance};
use retake_model::state::ThreadState;
use retake_model::time::Timestamp;
use retake_store::{Hit, Publication, PublishError, SearchIndex, SearchQuery, Store};
use tempfile::TempDir;

/// The time at which every world starts.
pub(crate) const BEGINNING: i64 = 1_700_000_000_000;

/// A clock that advances one second per call, and an rng that never repeats.
pub(crate) struct Clock(i64);

impl IdSource for Clock {
    fn now(&mut self) -> Timestamp {
        self.0 += 1;
        Timestamp::from_millis(BEGINNING + self.0 * 1000)
    }

    fn random(&mut self) -> [u8; 10] {
        self.0 += 1;
        let mut bytes = [7; 10];
        bytes[..8].copy_from_slice(&(self.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        bytes
    }
}

/// A store in a temporary folder, with its index.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) index: SearchIndex,
    pub(crate) project: ProjectId,
    pub(crate) around: Environment,
    clock: RefCell<Clock>,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut clock = Clock(0);
        Self {
            store: Store::open(folder.path()).expect("a new store"),
            index: SearchIndex::open(folder.path()).expect("a new index"),
            project: ProjectId::generate(&mut clock),
            around: Environment::default(),
            clock: RefCell::new(clock),
            folder,
        }
    }

    /// Creates a thread with one empty take.
    pub(crate) fn thread(&self, title: &str) -> ThreadId {
        let clock = &mut *self.clock.borrow_mut();
        let thread = ThreadId::generate(clock);
        let reading = self.store.read().expect("a read transaction");
        let queries = reading.queries();
        let mut additions = Additions::new(&queries);
        let state = ThreadState::new(title.to_owned(), &mut additions, clock).expect("a new state");
        let kind = OperationKind::ThreadCreated { project: self.project };
        self.publish(thread, 1, None, &state, kind, additions, clock);
        thread
    }

    /// Applies and publishes a command.
    pub(crate) fn command(&self, thread: ThreadId, command: Command) {
        let clock = &mut *self.clock.borrow_mut();
        let reading = self.store.read().expect("a read transaction");
        let queries = reading.queries();
        let row = queries.thread(thread).expect("readable").expect("row exists");
        let head = queries.head(row.number).expect("readable").expect("row exists");
        let state: ThreadState = load(&queries, head.operation.after).expect("readable");
        let mut additions = Additions::new(&queries);
        let take_named = |_: &str| Ok(false);
        let mut context = CommandContext {
            additions: &mut additions,
            fresh: clock,
            take_named: &take_named,
            git_commit: None,
        };
        let CommandOutcome::Changed { state, kind } =
            apply(&state, command, &mut context).expect("the command applies")
        else {
            return;
        };
        let version = head.operation.version + 1;
        self.publish(thread, version, Some(head.id), &state, kind, additions, clock);
    }

    #[expect(clippy::too_many_arguments, reason = "all that an operation is made of")]
    fn publish(
        &self,
        thread: ThreadId,
        version: u64,
        previous: Option<ContentId>,
        state: &ThreadState,
        kind: OperationKind,
        mut additions: Additions<'_, retake_store::Queries<'_>>,
        clock: &mut Clock,
    ) {
        let operation = Operation {
            thread,
            version,
            previous,
            after: additions.add(state),
            kind,
            turn: TurnId::generate(clock),
            actor: Actor::Human,
            time: clock.now(),
            place: Provenance { position: version, ..FIRST },
            environment: Some(additions.add(&self.around)),
            files: None,
            last_file_operation: None,
            request: None,
            chains: None,
        };
        let publication = Publication { operation, objects: additions.into_new() };
        self.store
            .write(move |writing| writing.publish(publication).map_err(|error: PublishError| error))
            .expect("operation published");
    }

    /// The active take.
    pub(crate) fn active(&self, thread: ThreadId) -> TakeId {
        let reading = self.store.read().expect("a read transaction");
        let row = reading.queries().thread(thread).expect("readable").expect("row exists");
        row.summary.active.id
    }

    /// Adds an entry to the active take.
    pub(crate) fn say(&self, thread: ThreadId, role: &str, text: &str) -> EntryId {
        self.say_all(thread, &[(role, text)])[0]
    }

    /// Adds entries to the active take in one operation.
    pub(crate) fn say_all(&self, thread: ThreadId, messages: &[(&str, &str)]) -> Vec<EntryId> {
        let entries: Vec<NewEntry> = messages
            .iter()
            .map(|(role, text)| {
                let clock = &mut *self.clock.borrow_mut();
                let created = clock.now();
                let version = EntryVersion::from_text(role, text, created);
                NewEntry { id: Some(EntryId::generate(clock)), ..version.into() }
            })
            .collect();
        let ids = entries.iter().filter_map(|entry| entry.id).collect();
        let take = self.active(thread);
        self.command(thread, Command::AddEntries { take, at: InsertPosition::End, entries });
        ids
    }

    pub(crate) fn edit(&self, thread: ThreadId, entry: EntryId, text: &str) {
        let take = self.active(thread);
        let text = text.to_owned();
        self.command(thread, Command::EditEntry { take, entry, text });
    }

    pub(crate) fn branch(&self, thread: ThreadId, at: EntryId, name: &str) {
        let from = self.active(thread);
        let name = Some(name.to_owned());
        self.command(thread, Command::Branch { from, at: Some(at), name });
    }

    pub(crate) fn find(&self, query: &SearchQuery) -> Vec<Hit> {
        let reading = self.store.read().expect("a read transaction");
        self.index.search(&reading.queries(), query).expect("a search")
    }

    /// Entries that match the words, best first.
    pub(crate) fn entries(&self, words: &str) -> Vec<EntryId> {
        self.find(&SearchQuery::words(words)).iter().map(|hit| hit.entry).collect()
    }

    /// Checks that the index matches the log.
    pub(crate) fn assert_sound(&self) {
        let reading = self.store.read().expect("a read transaction");
        let problems = self.index.check(&reading.queries()).expect("check succeeds");
        assert_eq!(problems, [], "the index is not what the log says");
    }

    /// Runs SQL on the store's database, to create states that no command creates.
    pub(crate) fn tamper(&self, sql: &str) {
        let connection =
            rusqlite::Connection::open(self.folder.path().join("retake.db")).expect("the database");
        connection.execute_batch(sql).expect("valid SQL");
    }
}
