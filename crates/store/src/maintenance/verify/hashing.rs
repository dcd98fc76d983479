//! Unpacks and hashes objects on all processors, while another thread reads them from the database.
//!
//! ```text
//!   database ─► rows ─► batch ─┬─► unpack, hash, references ─┬─► checks, in the order of the batches
//!               one thread     └─► …, one for each processor ┘   the thread that reads
//! ```

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use retake_model::content::{ContentId, Kind};
use retake_model::reference::{Reference, references};

use crate::StoreError;
use crate::objects::bundle::Bundle;
use crate::objects::read_write::unpack;

/// Bytes of a batch, so that handing it over costs little beside hashing it.
const BATCH_BYTES: usize = 256 * 1024;
/// Rows of a batch.
const BATCH_ROWS: usize = 1024;
/// Batches that wait for each processor, which bounds memory.
const WAITING: usize = 4;

/// A row that contains objects.
pub(super) enum StoredRow {
    /// An object of its own.
    Object { number: i64, kind: Option<Kind>, packing: i64, body: Vec<u8> },
    /// The objects of an operation.
    Bundle { number: i64, bytes: Vec<u8> },
}

impl StoredRow {
    fn len(&self) -> usize {
        match self {
            Self::Object { body, .. } => body.len(),
            Self::Bundle { bytes, .. } => bytes.len(),
        }
    }
}

/// A row whose objects were hashed.
pub(super) struct HashedRow {
    pub(super) number: i64,
    pub(super) in_bundle: bool,
    /// `None` if the row cannot be unpacked.
    pub(super) objects: Option<Vec<HashedObject>>,
}

/// An object with the id of its bytes.
pub(super) struct HashedObject {
    /// The name that a bundle gives it.
    pub(super) name: Option<i64>,
    pub(super) kind: Kind,
    /// `None` if its bytes are damaged.
    pub(super) id: Option<ContentId>,
    pub(super) bytes: u64,
    /// `None` if it is malformed.
    pub(super) below: Option<Vec<Reference>>,
}

impl HashedRow {
    fn of(row: &StoredRow) -> Self {
        match row {
            StoredRow::Object { number, kind, packing, body } => {
                let content = kind.zip(unpack(*packing, body));
                let objects = content.map(|(kind, bytes)| {
                    let id = ContentId::of(kind, &bytes);
                    vec![HashedObject::new(None, kind, id, &bytes)]
                });
                Self { number: *number, in_bundle: false, objects }
            }
            StoredRow::Bundle { number, bytes } => {
                let objects = Bundle::parse(bytes).map(|bundle| {
                    let objects = bundle.all().into_iter();
                    objects
                        .map(|object| match (object.intact_id(), &object.bytes) {
                            (Some(id), Some(bytes)) => {
                                HashedObject::new(Some(object.name), object.kind, id, bytes)
                            }
                            _ => HashedObject {
                                name: Some(object.name),
                                kind: object.kind,
                                id: None,
                                bytes: 0,
                                below: None,
                            },
                        })
                        .collect()
                });
                Self { number: *number, in_bundle: true, objects }
            }
        }
    }
}

impl HashedObject {
    fn new(name: Option<i64>, kind: Kind, id: ContentId, bytes: &[u8]) -> Self {
        Self { name, kind, id: Some(id), bytes: bytes.len() as u64, below: references(kind, bytes).ok() }
    }
}

type Batch<T> = (usize, Vec<T>);

/// Hands rows to all processors, and passes the hashed ones on in the order in which they were added.
pub(super) struct Hashing<'visit> {
    batch: Vec<StoredRow>,
    bytes: usize,
    sent: usize,
    passed: usize,
    most: usize,
    work: SyncSender<Batch<StoredRow>>,
    done: Receiver<Batch<HashedRow>>,
    early: BTreeMap<usize, Vec<HashedRow>>,
    visit: &'visit mut dyn FnMut(HashedRow),
}

impl Hashing<'_> {
    /// Runs `read`, which adds rows, and passes each to `visit` once it is hashed.
    pub(super) fn run<T>(
        visit: &mut dyn FnMut(HashedRow),
        read: impl FnOnce(&mut Hashing<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let most = processors * WAITING;
        let (work, waiting) = sync_channel::<Batch<StoredRow>>(most);
        let (sender, done) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        std::thread::scope(|scope| {
            for _ in 0..processors {
                let (waiting, sender) = (Arc::clone(&waiting), sender.clone());
                scope.spawn(move || hash_batches(&waiting, &sender));
            }
            drop(sender);
            let mut hashing = Hashing {
                batch: Vec::new(),
                bytes: 0,
                sent: 0,
                passed: 0,
                most,
                work,
                done,
                early: BTreeMap::new(),
                visit,
            };
            let read = read(&mut hashing);
            hashing.finish()?;
            read
        })
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: StoredRow) {
        self.bytes += row.len();
        self.batch.push(row);
        if self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_ROWS {
            self.send();
        }
    }

    fn send(&mut self) {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        // Without a receiver all threads panicked, which `finish` reports.
        if !batch.is_empty() && self.work.send((self.sent, batch)).is_ok() {
            self.sent += 1;
        }
        while let Ok(batch) = self.done.try_recv() {
            self.pass(batch);
        }
        while self.sent - self.passed > 2 * self.most {
            let Ok(batch) = self.done.recv() else { break };
            self.pass(batch);
        }
    }

    fn pass(&mut self, (number, batch): Batch<HashedRow>) {
        self.early.insert(number, batch);
        while let Some(batch) = self.early.remove(&self.passed) {
            self.passed += 1;
            batch.into_iter().for_each(&mut self.visit);
        }
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.send();
        while self.passed < self.sent {
            match self.done.recv() {
                Ok(batch) => self.pass(batch),
                Err(_) => return Err(StoreError::panicked(&"a thread that hashes objects panicked")),
            }
        }
        Ok(())
    }
}

/// Hashes batches until there are no more.
fn hash_batches(waiting: &Mutex<Receiver<Batch<StoredRow>>>, done: &Sender<Batch<HashedRow>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, rows)) = next else { return };
        let hashed = rows.iter().map(HashedRow::of).collect();
        if done.send((number, hashed)).is_err() {
            return;
        }
    }
}
