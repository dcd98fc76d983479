//! Hubs, accounts and bundles for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use retake_hub::access::Credentials;
use retake_hub::database::{Database, Postgres, Sqlite};
use retake_hub::error::HubError;
use retake_hub::service::{Hub, Settings};
use retake_hub::{accounts, secret};
use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::object::NewObject;
use retake_model::replica::ReplicaOperation;
use retake_sync::bundle::{BundleId, BundleWriter, operation_id};
use retake_sync::remote::Folder;
use retake_sync::wire::{BundleRow, ProblemCode, PushRequest, Role, ThreadSummary};
use tempfile::TempDir;

/// A hub whose clock stands until it is moved.
pub(crate) struct TestHub {
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<AtomicI64>,
    pub(crate) folder: TempDir,
}

/// The time at which a test begins.
pub(crate) const START: i64 = 1_800_000_000_000;

impl TestHub {
    pub(crate) fn on(database: impl FnOnce(&TempDir) -> Box<dyn Database>, settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        std::fs::create_dir(&store).expect("a folder");
        let clock = Arc::new(AtomicI64::new(START));
        let now = Arc::clone(&clock);
        let database = database(&folder);
        let hub = Hub::new(
            database,
            Box::new(Folder::at(&store)),
            settings,
            Arc::new(move || now.load(Ordering::SeqCst)),
        );
        Self { hub: Arc::new(hub), clock, folder }
    }

    pub(crate) fn wait(&self, milliseconds: i64) {
        self.clock.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// A new account with one device.
    pub(crate) fn account(&self, name: &str) -> Account {
        let now = self.hub.now();
        let quota = self.hub.settings.quota;
        let made = self.hub.write(|connection| {
            let id = accounts::create(connection, name, quota, now)?;
            accounts::add_device(connection, &id, "laptop", now)
        });
        let made = made.expect("an account");
        let credentials = Some(Credentials(secret::hash(&made.token)));
        let info = self.hub.read(|connection| {
            let caller = retake_hub::access::caller(connection, credentials)?;
            retake_hub::spaces::account(connection, &caller)
        });
        let space = info.expect("an account").spaces[0].id.clone();
        Account { name: name.to_owned(), token: made.token, device: made.device, credentials, space }
    }

    pub(crate) fn organization(&self, owner: &Account, members: &[(&Account, Role)]) -> String {
        let (now, quota) = (self.hub.now(), self.hub.settings.quota);
        let made = self.hub.write(|connection| {
            let caller = retake_hub::access::caller(connection, owner.credentials)?;
            let space = retake_hub::spaces::create_organization(connection, &caller, "team", quota, now)?;
            let authorized =
                retake_hub::access::space(connection, owner.credentials, &space.id, Role::Owner)?;
            for (member, role) in members {
                retake_hub::spaces::set_role(connection, &authorized, &member.name, *role, now)?;
            }
            Ok(space.id)
        });
        made.expect("a space")
    }

    pub(crate) fn push(&self, by: &Account, space: &str, bundle: &TestBundle) -> Result<u64, HubError> {
        let place = (space, bundle.thread);
        Ok(self.hub.push(by.credentials, place, &bundle.request, &bundle.bytes)?.seq)
    }

    /// Every file of the store and of an embedded database.
    pub(crate) fn all_bytes(&self) -> Vec<u8> {
        let (mut all, mut folders) = (Vec::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    all.extend(std::fs::read(path).expect("a file"));
                }
            }
        }
        all
    }
}

/// An account with a device.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) device: String,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) space: String,
}

/// A bundle that fits behind another one.
#[derive(Clone)]
pub(crate) struct TestBundle {
    pub(crate) thread: ThreadId,
    pub(crate) request: PushRequest,
    pub(crate) bytes: Vec<u8>,
    pub(crate) content: ContentId,
}

pub(crate) fn thread(number: u8) -> ThreadId {
    ThreadId::from_bytes([number; 16])
}

/// The next bundle of a thread, with one operation and one object.
pub(crate) fn next(thread: ThreadId, before: Option<&TestBundle>, text: &[u8]) -> TestBundle {
    let (number, first, previous) = match before {
        None => (1, 1, None),
        Some(before) => {
            let row = &before.request.row;
            (row.number + 1, row.last + 1, Some(row.head))
        }
    };
    let content = ContentId::of(Kind::Blob, text);
    let object = NewObject { id: content, kind: Kind::Blob, bytes: text.to_vec().into() };
    let mut operation = [b"operation ", text].concat();
    operation.truncate(60);
    operation.extend(first.to_be_bytes());
    let operation = ReplicaOperation { objects: vec![object], operation, ..ReplicaOperation::default() };
    let mut writer = BundleWriter::new(thread, first, previous).expect("a writer");
    writer.add(&operation).expect("room");
    let bytes = writer.finish().expect("a bundle");
    let row = BundleRow {
        number,
        first,
        last: first,
        head: operation_id(&operation),
        bundle: BundleId::of(&bytes),
        bytes: bytes.len() as u64,
    };
    let summary = ThreadSummary { title: format!("thread {number}"), ..ThreadSummary::default() };
    TestBundle { thread, request: PushRequest { row, previous, summary }, bytes, content }
}

pub(crate) fn code<T>(result: Result<T, HubError>) -> Option<ProblemCode> {
    match result {
        Ok(_) => None,
        Err(HubError::Problem(problem)) => Some(problem.code),
        Err(error) => panic!("{error}"),
    }
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn sqlite(folder: &TempDir) -> Box<dyn Database> {
    Box::new(Sqlite::open(&folder.path().join("hub.db")).expect("a database"))
}

pub(crate) fn postgres(address: &str) -> Box<dyn Database> {
    Box::new(Postgres::connect(address, 8).expect("a database"))
}
