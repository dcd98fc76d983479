//! Compares two layouts of the same content: a row for each object, and a row for each operation that holds its objects.
//!
//! ```text
//!   cargo run --release --package retake-bench --example layouts -- [operations]
//!
//!   rows      object, object ids in order of arrival, sorted ids, operation, its index, thread, take; auto_vacuum
//!   bundles   operation with its objects in one compressed frame, sorted ids, places of a thread beside its record
//! ```
//!
//! The content has the sizes of a change of a long conversation: a message of 2 KB and seven nodes of lists and states.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Id = [u8; 32];

/// The sizes of the nodes of a change, without its message. The leaf grows from one cell to thirty.
const NODES: [usize; 6] = [273, 112, 113, 74, 55, 126];
/// Ids are sorted when there are this many new ones.
const SORTED_AT: usize = 2_048;
/// Changes whose pages are counted.
const COUNTED: usize = 200;
/// A page in the log, with its header.
const FRAME: u64 = 4_096 + 24;

fn main() -> Outcome<()> {
    let operations = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let folder = tempfile::tempdir_in(".")?;
    for (name, layout) in [("rows", Layout::Rows), ("bundles", Layout::Bundles)] {
        measure(name, layout, operations, &folder.path().join(name))?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Rows,
    Bundles,
}

/// What one operation stores.
struct Change {
    objects: Vec<Vec<u8>>,
    operation: Vec<u8>,
}

fn measure(name: &str, layout: Layout, operations: usize, path: &Path) -> Outcome<()> {
    let mut random = Random(7);
    let mut store = Subject::open(&path.with_extension("db"), layout)?;
    let floor = open(
        &path.with_extension("floor"),
        "CREATE TABLE message (number INTEGER PRIMARY KEY, body TEXT);",
        layout,
    )?;
    let mut written = Vec::new();
    for batch in 0..operations.div_ceil(1_000) {
        store.connection.execute_batch("BEGIN")?;
        for number in batch * 1_000..((batch + 1) * 1_000).min(operations) {
            written.push(store.append(&random.change(number, true))?);
        }
        store.connection.execute_batch("COMMIT")?;
    }
    let bytes = store.bytes()?;
    println!("{name}: {operations} operations, {} bytes each in the file", bytes / operations as u64);

    for (what, message) in [("append", true), ("fork or move", false)] {
        let (mut ours, mut raw) = (Vec::new(), Vec::new());
        for number in 0..1_500 {
            let change = random.change(number, message);
            let clock = Instant::now();
            store.connection.execute_batch("BEGIN IMMEDIATE")?;
            written.push(store.append(&change)?);
            store.connection.execute_batch("COMMIT")?;
            ours.push(clock.elapsed());
            let text = random.text();
            let clock = Instant::now();
            floor.prepare_cached("INSERT INTO message (body) VALUES (?1)")?.execute([text])?;
            raw.push(clock.elapsed());
        }
        store.connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
        let mut pages = Vec::new();
        for number in 0..COUNTED {
            store.truncate_log()?;
            store.connection.execute_batch("BEGIN IMMEDIATE")?;
            written.push(store.append(&random.change(number, message))?);
            store.connection.execute_batch("COMMIT")?;
            pages.push(std::fs::metadata(path.with_extension("db-wal"))?.len() / FRAME);
        }
        store.connection.execute_batch("PRAGMA wal_autocheckpoint = 2000")?;
        pages.sort_unstable();
        let mean = pages.iter().sum::<u64>() as f64 / COUNTED as f64;
        println!(
            "  {what:12} {:?}, {:.2} times the raw insert; {} pages of log, {mean:.1} on average",
            middle(&mut ours),
            middle(&mut ours).as_secs_f64() / middle(&mut raw).as_secs_f64(),
            pages[COUNTED / 2],
        );
    }

    let clock = Instant::now();
    for _ in 0..2_000 {
        for id in &written[random.below(operations)] {
            store.read(*id)?.ok_or("an object is missing")?;
        }
    }
    println!("  read the objects of an old change {:?}", clock.elapsed() / 2_000);
    let clock = Instant::now();
    let checked = store.verify()?;
    println!("  verify {checked} objects {:?}", clock.elapsed());
    let clock = Instant::now();
    store.remove(&[written[operations / 2 + 1][0]])?;
    println!("  redact one message {:?}", clock.elapsed());
    let garbage: Vec<Id> = written.iter().step_by(10).flatten().copied().collect();
    let clock = Instant::now();
    store.remove(&garbage)?;
    store.reclaim()?;
    println!("  collect {} objects {:?}, then {} bytes", garbage.len(), clock.elapsed(), store.bytes()?);
    Ok(())
}

struct Subject {
    connection: Connection,
    layout: Layout,
    recent: HashMap<i64, i64>,
    packer: zstd::bulk::Compressor<'static>,
    unpacker: zstd::bulk::Decompressor<'static>,
    version: i64,
}

const ROWS: &str = "
    CREATE TABLE object (number INTEGER PRIMARY KEY, kind INTEGER, packing INTEGER, born INTEGER, body BLOB);
    CREATE TABLE sorted (prefix INTEGER, number INTEGER, PRIMARY KEY (prefix, number)) WITHOUT ROWID;
    CREATE TABLE recent (number INTEGER PRIMARY KEY, first INTEGER, names BLOB);
    CREATE TABLE operation (sequence INTEGER PRIMARY KEY, thread INTEGER, version INTEGER, id BLOB, body BLOB);
    CREATE UNIQUE INDEX operation_version ON operation (thread, version);
    CREATE TABLE thread (number INTEGER PRIMARY KEY, record BLOB);
    CREATE TABLE take (key BLOB, thread INTEGER, record BLOB, PRIMARY KEY (key, thread)) WITHOUT ROWID;
    INSERT INTO thread VALUES (1, zeroblob(330)); INSERT INTO take VALUES (x'01', 1, zeroblob(102));";

const BUNDLES: &str = "
    CREATE TABLE operation (sequence INTEGER PRIMARY KEY, thread INTEGER, version INTEGER, id BLOB, body BLOB,
        born INTEGER, names BLOB, objects BLOB);
    CREATE TABLE sorted (prefix INTEGER, number INTEGER, PRIMARY KEY (prefix, number)) WITHOUT ROWID;
    CREATE TABLE place (thread INTEGER, version INTEGER, sequence INTEGER, record BLOB,
        PRIMARY KEY (thread, version)) WITHOUT ROWID;
    INSERT INTO place VALUES (1, 9223372036854775807, 0, zeroblob(330));";

impl Subject {
    fn open(path: &Path, layout: Layout) -> Outcome<Self> {
        let schema = if layout == Layout::Rows { ROWS } else { BUNDLES };
        Ok(Self {
            connection: open(path, schema, layout)?,
            layout,
            recent: HashMap::new(),
            packer: zstd::bulk::Compressor::new(1)?,
            unpacker: zstd::bulk::Decompressor::new()?,
            version: 0,
        })
    }

    fn append(&mut self, change: &Change) -> Outcome<Vec<Id>> {
        let ids: Vec<Id> = change.objects.iter().map(|bytes| *blake3::hash(bytes).as_bytes()).collect();
        for id in &ids {
            assert!(self.row_of(*id)?.is_none(), "every object is new");
        }
        self.version += 1;
        match self.layout {
            Layout::Rows => self.append_rows(change, &ids)?,
            Layout::Bundles => self.append_bundle(change, &ids)?,
        }
        if self.recent.len() >= SORTED_AT {
            let mut names: Vec<(i64, i64)> = self.recent.drain().collect();
            names.sort_unstable();
            let mut statement = self.connection.prepare_cached("INSERT INTO sorted VALUES (?1, ?2)")?;
            for (prefix, number) in names {
                statement.execute([prefix, number])?;
            }
            if self.layout == Layout::Rows {
                self.connection.execute("DELETE FROM recent", [])?;
            }
        }
        Ok(ids)
    }

    fn append_rows(&mut self, change: &Change, ids: &[Id]) -> Outcome<()> {
        let run = |sql| self.connection.prepare_cached(sql);
        let mut first = 0;
        for (place, (bytes, id)) in change.objects.iter().zip(ids).enumerate() {
            let body = if bytes.len() > 1_500 { self.packer.compress(bytes)? } else { bytes.clone() };
            run("INSERT INTO object (kind, packing, born, body) VALUES (?1, ?2, 0, ?3)")?
                .execute(params![1, i64::from(bytes.len() > 1_500), body])?;
            let number = self.connection.last_insert_rowid();
            first = number - place as i64;
            self.recent.insert(prefix(*id), number);
        }
        let names: Vec<u8> = ids.iter().flat_map(|id| id[..8].to_vec()).collect();
        run("INSERT INTO recent (first, names) VALUES (?1, ?2)")?.execute(params![first, names])?;
        let id = blake3::hash(&change.operation);
        run("INSERT INTO operation (thread, version, id, body) VALUES (1, ?1, ?2, ?3)")?.execute(params![
            self.version,
            id.as_bytes(),
            change.operation
        ])?;
        let record = vec![self.version as u8; 330];
        run("UPDATE thread SET record = ?1 WHERE number = 1")?.execute([&record[..]])?;
        run("UPDATE take SET record = ?1 WHERE key = x'01' AND thread = 1")?.execute([&record[..102]])?;
        Ok(())
    }

    fn append_bundle(&mut self, change: &Change, ids: &[Id]) -> Outcome<()> {
        let run = |sql| self.connection.prepare_cached(sql);
        let names: Vec<u8> = ids.iter().flat_map(|id| id[..8].to_vec()).collect();
        let objects = self.packer.compress(&frame(&change.objects))?;
        let id = blake3::hash(&change.operation);
        run("INSERT INTO operation (thread, version, id, body, born, names, objects) VALUES (1, ?1, ?2, ?3, 0, ?4, ?5)")?
            .execute(params![self.version, id.as_bytes(), change.operation, names, objects])?;
        let number = self.connection.last_insert_rowid();
        self.recent.extend(ids.iter().map(|id| (prefix(*id), number)));
        run("INSERT INTO place (thread, version, sequence) VALUES (1, ?1, ?2)")?
            .execute([self.version, number])?;
        let record = vec![self.version as u8; 330];
        run("UPDATE place SET record = ?1 WHERE thread = 1 AND version = 9223372036854775807")?
            .execute([&record[..]])?;
        Ok(())
    }

    fn row_of(&self, id: Id) -> Outcome<Option<i64>> {
        if let Some(number) = self.recent.get(&prefix(id)) {
            return Ok(Some(*number));
        }
        let mut statement = self.connection.prepare_cached("SELECT number FROM sorted WHERE prefix = ?1")?;
        Ok(statement.query_row([prefix(id)], |row| row.get(0)).optional()?)
    }

    /// The bytes of an object, checked against its id.
    fn read(&mut self, id: Id) -> Outcome<Option<Vec<u8>>> {
        let Some(number) = self.row_of(id)? else { return Ok(None) };
        let found = self.objects_at(number)?;
        Ok(found.into_iter().find(|bytes| *blake3::hash(bytes).as_bytes() == id))
    }

    fn objects_at(&mut self, number: i64) -> Outcome<Vec<Vec<u8>>> {
        let unpacker = &mut self.unpacker;
        if self.layout == Layout::Rows {
            let mut statement =
                self.connection.prepare_cached("SELECT packing, body FROM object WHERE number = ?1")?;
            let (packing, body): (i64, Vec<u8>) =
                statement.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            return Ok(vec![if packing == 1 { unpacker.decompress(&body, 1 << 20)? } else { body }]);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT objects FROM operation WHERE sequence = ?1")?;
        let packed: Vec<u8> = statement.query_row([number], |row| row.get(0))?;
        Ok(unframe(&unpacker.decompress(&packed, 1 << 20)?))
    }

    /// Hashes every object and looks it up.
    fn verify(&mut self) -> Outcome<usize> {
        let sql = match self.layout {
            Layout::Rows => "SELECT number FROM object",
            Layout::Bundles => "SELECT sequence FROM operation",
        };
        let numbers: Vec<i64> =
            self.connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut checked = 0;
        for number in numbers {
            for bytes in self.objects_at(number)? {
                let id = *blake3::hash(&bytes).as_bytes();
                assert_eq!(self.row_of(id)?, Some(number), "the index finds the object");
                checked += 1;
            }
        }
        Ok(checked)
    }

    fn remove(&mut self, ids: &[Id]) -> Outcome<()> {
        let mut by_row: HashMap<i64, Vec<Id>> = HashMap::new();
        for id in ids {
            by_row.entry(self.row_of(*id)?.ok_or("an object is missing")?).or_default().push(*id);
        }
        let transaction = self.connection.unchecked_transaction()?;
        for (number, ids) in by_row {
            if self.layout == Layout::Rows {
                transaction.prepare_cached("DELETE FROM object WHERE number = ?1")?.execute([number])?;
            } else {
                let mut statement =
                    transaction.prepare_cached("SELECT objects FROM operation WHERE sequence = ?1")?;
                let packed: Vec<u8> = statement.query_row([number], |row| row.get(0))?;
                let mut objects = unframe(&self.unpacker.decompress(&packed, 1 << 20)?);
                objects.retain(|bytes| !ids.contains(blake3::hash(bytes).as_bytes()));
                let names: Vec<u8> =
                    objects.iter().flat_map(|bytes| blake3::hash(bytes).as_bytes()[..8].to_vec()).collect();
                let packed = self.packer.compress(&frame(&objects))?;
                transaction
                    .prepare_cached("UPDATE operation SET names = ?2, objects = ?3 WHERE sequence = ?1")?
                    .execute(params![number, names, packed])?;
            }
            for id in ids {
                self.recent.remove(&prefix(id));
                transaction.prepare_cached("DELETE FROM sorted WHERE prefix = ?1")?.execute([prefix(id)])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Gives free pages back to the file system.
    fn reclaim(&self) -> Outcome<()> {
        match self.layout {
            Layout::Rows => {
                let mut statement = self.connection.prepare("PRAGMA incremental_vacuum")?;
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
            }
            Layout::Bundles => self.connection.execute_batch("VACUUM")?,
        }
        self.truncate_log()
    }

    fn truncate_log(&self) -> Outcome<()> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }

    fn bytes(&self) -> Outcome<u64> {
        self.truncate_log()?;
        Ok(std::fs::metadata(self.connection.path().ok_or("a database in memory")?)?.len())
    }
}

fn open(path: &Path, schema: &str, layout: Layout) -> Outcome<Connection> {
    let connection = Connection::open(path)?;
    if layout == Layout::Rows {
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    }
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON;
         PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 2000;",
    )?;
    connection.execute_batch(schema)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn prefix(id: Id) -> i64 {
    i64::from_be_bytes([id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7]])
}

/// Objects behind each other, each with its length.
fn frame(objects: &[Vec<u8>]) -> Vec<u8> {
    objects.iter().flat_map(|bytes| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()).collect()
}

fn unframe(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut objects = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (object, after) = rest.split_at(u32::from_le_bytes(*length) as usize);
        objects.push(object.to_vec());
        bytes = after;
    }
    objects
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 12] = [
            "storage", "page", "let", "commit", "window", "theory", "branch", "undo", "=>", "of", "tree",
            "hash",
        ];
        let mut text = String::new();
        while text.len() < 2_000 {
            text.push_str(WORDS[self.below(WORDS.len())]);
            text.push(' ');
        }
        text
    }

    /// A change: a message, the leaf of its list, the nodes above it.
    fn change(&mut self, number: usize, message: bool) -> Change {
        let mut objects = Vec::new();
        if message {
            objects.push(self.text().into_bytes());
        }
        objects.push(self.bytes(52 * (1 + number % 30)));
        objects.extend(NODES.map(|length| self.bytes(length)));
        Change { objects, operation: self.bytes(270) }
    }
}
