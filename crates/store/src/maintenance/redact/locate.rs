//! Finds texts in all files of a store, including compressed content.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use memchr::memmem;
use retake_model::content::{ContentId, Kind, decode};
use retake_model::entry::EntryVersion;
use retake_model::reference::references;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::Secrets;
use crate::location::backups;
use crate::log::queries::Queries;
use crate::objects::bundle::Bundle;
use crate::objects::read_write::unpack;
use crate::{Store, StoreError};

/// The first bytes of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Maximum unpacked size of a compressed piece.
const MAX_UNPACKED: u64 = 64 << 20;
/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// A location in the store that contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretLocation {
    /// The file, relative to the store's folder.
    pub file: String,
    /// The table, if the file is a database and a row contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The kind of object that contains it: `entry`, `blob` (a captured file), `state` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The id of that object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ContentId>,
}

impl SecretLocation {
    fn content(file: &str, kind: Kind, id: ContentId) -> Self {
        let kind = Some(format!("{kind:?}").to_lowercase());
        Self { file: file.to_owned(), table: None, kind, id: Some(id) }
    }

    fn row(file: &str, table: String) -> Self {
        Self { file: file.to_owned(), table: Some(table), kind: None, id: None }
    }

    fn file(file: String) -> Self {
        Self { file, table: None, kind: None, id: None }
    }
}

impl Queries<'_> {
    /// The entry versions that contain one of these texts, whether or not anything refers to them.
    pub fn entries_holding(&self, secrets: &Secrets) -> Result<HashSet<ContentId>, StoreError> {
        let mut found = HashSet::new();
        if secrets.is_empty() {
            return Ok(found);
        }
        self.each_stored(Some(Kind::Entry), &mut |_, bytes| {
            if content_matches(Kind::Entry, bytes, secrets) {
                found.insert(ContentId::of(Kind::Entry, bytes));
            }
        })?;
        Ok(found)
    }

    /// The blobs among these that are captured files, or pictures in other entry versions.
    pub fn blobs_in_use(
        &self,
        blobs: &BTreeSet<ContentId>,
        versions: &BTreeSet<ContentId>,
    ) -> Result<BTreeSet<ContentId>, StoreError> {
        let mut found = BTreeSet::new();
        if blobs.is_empty() {
            return Ok(found);
        }
        // Large files have the id of a blob, but are stored in chunks.
        found.extend(
            self.chunked_files()?.into_iter().map(|file| file.content).filter(|id| blobs.contains(id)),
        );
        for kind in [Kind::Tree, Kind::Entry] {
            self.each_stored(Some(kind), &mut |_, bytes| {
                let used = references(kind, bytes).unwrap_or_default();
                let used = used.into_iter().filter(|(kind, id)| *kind == Kind::Blob && blobs.contains(id));
                let mut used = used.map(|(_, id)| id).peekable();
                if used.peek().is_some() && !versions.contains(&ContentId::of(kind, bytes)) {
                    found.extend(used);
                }
            })?;
        }
        Ok(found)
    }

    /// Passes the objects in the database, of one kind or of all, to `each`.
    pub(super) fn each_stored(
        &self,
        kind: Option<Kind>,
        each: &mut dyn FnMut(i64, &[u8]),
    ) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT kind, packing, body FROM object WHERE ?1 IS NULL OR kind = ?1")?;
        let mut rows = statement.query([kind.map(|kind| kind as i64)])?;
        while let Some(row) = rows.next()? {
            if let Some(bytes) = unpack(row.get(1)?, row.get_ref(2)?.as_blob().unwrap_or_default()) {
                each(row.get(0)?, &bytes);
            }
        }
        let mut statement =
            self.connection.prepare("SELECT bundle FROM operation WHERE bundle IS NOT NULL")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let Some(bundle) = row.get_ref(0)?.as_blob().ok().and_then(Bundle::parse) else { continue };
            for object in bundle.objects(|_, found| kind.is_none_or(|kind| kind == found)) {
                if let Some(bytes) = object.bytes {
                    each(object.kind as i64, &bytes);
                }
            }
        }
        Ok(())
    }
}

fn content_matches(kind: Kind, bytes: &[u8], secrets: &Secrets) -> bool {
    match kind {
        Kind::Entry => decode::<EntryVersion>(bytes)
            .map_or_else(|_| secrets.occur_verbatim_in(bytes), |entry| secrets.occur_in_entry(&entry, bytes)),
        _ => secrets.occur_verbatim_in(bytes),
    }
}

impl Store {
    /// All locations in the store's folder that contain one of these texts.
    pub(super) fn locate(&self, secrets: &Secrets) -> Result<Vec<SecretLocation>, StoreError> {
        let mut found = BTreeSet::new();
        if secrets.is_empty() {
            return Ok(Vec::new());
        }
        let reading = self.read()?;
        let queries = reading.queries();
        queries.each_stored(None, &mut |kind, bytes| {
            let Some(kind) = KINDS.into_iter().find(|known| *known as i64 == kind) else { return };
            if content_matches(kind, bytes, secrets) {
                found.insert(SecretLocation::content("retake.db", kind, ContentId::of(kind, bytes)));
            }
        })?;
        for row in queries.packed_rows(None)? {
            if let Some(bytes) = queries.packed_bytes(&row).filter(|bytes| secrets.occur_verbatim_in(bytes)) {
                let id = ContentId::of(Kind::Blob, &bytes);
                found.insert(SecretLocation::content(&row.file(), Kind::Blob, id));
            }
        }
        for content in queries.chunked_files_holding(secrets)? {
            found.insert(SecretLocation::content("retake.db", Kind::Blob, content));
        }
        // The objects in these were searched above.
        let is_searched = |table: &str, column: &str, value: &[u8]| {
            table == "object" || (table, column) == ("operation", "bundle") && is_intact_bundle(value)
        };
        let tables = tables_holding(queries.connection, secrets, &is_searched)?;
        found.extend(tables.into_iter().map(|table| SecretLocation::row("retake.db", table)));
        drop(reading);
        for file in files_below(&self.folder)? {
            let name = file.strip_prefix(&self.folder).unwrap_or(&file).to_string_lossy().into_owned();
            let is_aside = file.starts_with(backups(&self.folder));
            if name != "retake.db" && file.extension().is_some_and(|extension| extension == "db") {
                // A file that is not a readable database is still searched as a file.
                let tables = open(&file, is_aside)
                    .and_then(|database| tables_holding(&database, secrets, &|_, _, _| false));
                found.extend(
                    tables.unwrap_or_default().into_iter().map(|table| SecretLocation::row(&name, table)),
                );
            }
            // Closing a database file opened here would release SQLite's locks on it. Freed pages are overwritten, so
            // its rows are all it contains.
            let is_live = !is_aside && [".db", ".db-shm"].iter().any(|ending| name.ends_with(ending));
            let known = is_live || found.iter().any(|location| location.file == name);
            if !known
                && (occurs_in_file(&file, secrets)? || (is_aside && occurs_compressed_in(&file, secrets)?))
            {
                found.insert(SecretLocation::file(name));
            }
        }
        Ok(found.into_iter().collect())
    }
}

const KINDS: [Kind; 16] = [
    Kind::Blob,
    Kind::Entry,
    Kind::Entries,
    Kind::Take,
    Kind::Takes,
    Kind::Settings,
    Kind::State,
    Kind::Environment,
    Kind::Operation,
    Kind::Tree,
    Kind::Parts,
    Kind::Snapshot,
    Kind::Excluded,
    Kind::Sealed,
    Kind::SealedFiles,
    Kind::Chunks,
];

fn open(file: &Path, is_aside: bool) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if !is_aside {
        return Ok(Connection::open_with_flags(file, flags)?);
    }
    // A quarantined file has no writer, and SQLite must not create files next to it.
    let escaped: String = file
        .to_string_lossy()
        .chars()
        .map(|character| {
            if "%?#".contains(character) {
                format!("%{:02x}", u32::from(character))
            } else {
                character.to_string()
            }
        })
        .collect();
    let address = format!("file:{escaped}?immutable=1");
    Ok(Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI)?)
}

/// Whether every object of a bundle can be read.
fn is_intact_bundle(value: &[u8]) -> bool {
    Bundle::parse(value).is_some_and(|bundle| bundle.all().iter().all(|object| object.intact_id().is_some()))
}

/// The tables of a database with a value that contains a secret, except values that were searched already (by table and
/// column).
fn tables_holding(
    database: &Connection,
    secrets: &Secrets,
    is_searched: &dyn Fn(&str, &str, &[u8]) -> bool,
) -> Result<Vec<String>, StoreError> {
    let names: Vec<String> = {
        let mut statement =
            database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT NULL")?;
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
    };
    let mut found = Vec::new();
    for name in names {
        // A virtual table has no values; its shadow tables do.
        let Ok(mut statement) = database.prepare(&format!("SELECT * FROM \"{name}\"")) else { continue };
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([])?;
        let mut holds = false;
        while let Some(row) = rows.next()? {
            for (index, column) in columns.iter().enumerate() {
                let (ValueRef::Text(value) | ValueRef::Blob(value)) = row.get_ref(index)? else { continue };
                if is_searched(&name, column, value) {
                    continue;
                }
                // A bundle has a header before its frame.
                holds |= secrets.occur_verbatim_in(value)
                    || memmem::find_iter(value, &ZSTD_MAGIC)
                        .any(|start| unpacks_to(&value[start..], secrets));
            }
        }
        if holds {
            found.push(name);
        }
    }
    Ok(found)
}

/// Whether a file contains a secret uncompressed.
fn occurs_in_file(path: &Path, secrets: &Secrets) -> Result<bool, StoreError> {
    let fail = |error| StoreError::File { path: path.to_owned(), error };
    let mut file = match File::open(path) {
        Ok(file) => file,
        // SQLite deletes the write-ahead log when the last process closes the database.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(fail(error)),
    };
    let mut window = Vec::new();
    loop {
        let read = file.by_ref().take(CHUNK as u64).read_to_end(&mut window).map_err(fail)?;
        if secrets.occur_verbatim_in(&window) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        let passed = window.len().saturating_sub(secrets.longest());
        window.drain(..passed);
    }
}

/// Whether compressed data anywhere in a file contains a secret.
fn occurs_compressed_in(path: &Path, secrets: &Secrets) -> Result<bool, StoreError> {
    let bytes = fs::read(path).map_err(|error| StoreError::File { path: path.to_owned(), error })?;
    Ok(memmem::find_iter(&bytes, &ZSTD_MAGIC).any(|start| unpacks_to(&bytes[start..], secrets)))
}

fn unpacks_to(packed: &[u8], secrets: &Secrets) -> bool {
    let mut plain = Vec::new();
    if let Ok(decoder) = zstd::stream::read::Decoder::new(packed) {
        // A truncated frame is searched as far as it can be read.
        let _ = decoder.single_frame().take(MAX_UNPACKED).read_to_end(&mut plain);
    }
    secrets.occur_verbatim_in(&plain)
}

fn files_below(folder: &Path) -> Result<Vec<std::path::PathBuf>, StoreError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let fail = |error| StoreError::File { path: folder.clone(), error };
        for listed in fs::read_dir(&folder).map_err(fail)? {
            let listed = listed.map_err(fail)?;
            let kind = listed.file_type().map_err(fail)?;
            if kind.is_dir() {
                folders.push(listed.path());
            } else if kind.is_file() {
                files.push(listed.path());
            }
        }
    }
    files.sort();
    Ok(files)
}
