//! Reads every file of every folder, and every row of the store's databases.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;

use crate::violation::BoxError;

/// The type of a node. Unlike other campaigns, this one has pipes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File(Vec<u8>),
    Link(OsString),
    Folder,
    Special,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Permissions, including setuid, setgid and sticky bits.
    pub(super) mode: u32,
}

/// Everything below a folder, by path.
pub(super) type Tree = BTreeMap<PathBuf, Node>;

/// Everything that a command could change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) folders: BTreeMap<String, Tree>,
    /// The rows of each table as text.
    pub(super) store: BTreeMap<String, BTreeSet<String>>,
}

/// Columns with the time of last use, which every command may set.
const LAST_USED_COLUMNS: [(&str, &str); 1] = [("project", "last_seen")];

impl Observation {
    pub(super) fn of(world: &Path, store: &Path) -> Result<Self, BoxError> {
        let mut folders = BTreeMap::new();
        for entry in fs::read_dir(world)? {
            let entry = entry?;
            let mut tree = Tree::new();
            if entry.file_type()?.is_dir() {
                read_into(&entry.path(), Path::new(""), &mut tree)?;
            }
            folders.insert(entry.file_name().to_string_lossy().into_owned(), tree);
        }
        let mut tables = BTreeMap::new();
        for name in ["retake.db", "ledger.db"] {
            let path = store.join(name);
            if path.exists() {
                read_tables(&path, &mut tables)?;
            }
        }
        Ok(Self { folders, store: tables })
    }

    /// The tables that differ.
    pub(super) fn changed_tables(&self, other: &Self) -> Vec<String> {
        let tables: BTreeSet<&String> = self.store.keys().chain(other.store.keys()).collect();
        let differs = |table: &&String| self.store.get(*table) != other.store.get(*table);
        tables.into_iter().filter(differs).cloned().collect()
    }

    /// Describes the first difference of the stores.
    pub(super) fn store_difference(&self, other: &Self) -> Option<String> {
        let empty = BTreeSet::new();
        let tables: BTreeSet<&String> = self.store.keys().chain(other.store.keys()).collect();
        tables.into_iter().find_map(|table| {
            let before = self.store.get(table).unwrap_or(&empty);
            let after = other.store.get(table).unwrap_or(&empty);
            let row = after.difference(before).chain(before.difference(after)).next()?;
            let (was, is) = (before.len(), after.len());
            Some(format!("table {table} of the store ({was} rows before, {is} now): {row}"))
        })
    }
}

/// The paths that differ.
pub(super) fn differences<'tree>(before: &'tree Tree, after: &'tree Tree) -> Vec<&'tree Path> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
    paths.into_iter().filter(differs).map(PathBuf::as_path).collect()
}

fn read_into(top: &Path, below: &Path, found: &mut Tree) -> io::Result<()> {
    for entry in fs::read_dir(top.join(below))? {
        let entry = entry?;
        let (path, file_type) = (below.join(entry.file_name()), entry.file_type()?);
        let mode = entry.metadata()?.permissions().mode() & 0o7777;
        let kind = if file_type.is_dir() {
            Kind::Folder
        } else if file_type.is_symlink() {
            Kind::Link(fs::read_link(entry.path())?.into())
        } else if file_type.is_file() {
            Kind::File(fs::read(entry.path())?)
        } else {
            Kind::Special
        };
        let is_folder = kind == Kind::Folder;
        found.insert(path.clone(), Node { kind, mode });
        if is_folder {
            read_into(top, &path, found)?;
        }
    }
    Ok(())
}

fn read_tables(path: &Path, tables: &mut BTreeMap<String, BTreeSet<String>>) -> Result<(), BoxError> {
    let database = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let names: Vec<String> = {
        let mut statement = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<Result<_, _>>()?
    };
    for name in names {
        let mut statement = database.prepare(&format!("SELECT * FROM \"{name}\""))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        // The digest of a row also covers its time column.
        let passed = |column: &str| {
            LAST_USED_COLUMNS.contains(&(name.as_str(), column)) || (name == "project" && column == "digest")
        };
        let mut found = BTreeSet::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut text = String::new();
            for (index, column) in columns.iter().enumerate().filter(|(_, column)| !passed(column)) {
                text.push_str(&shown(column, row.get_ref(index)?));
            }
            found.insert(text);
        }
        tables.insert(name, found);
    }
    Ok(())
}

fn shown(column: &str, value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => format!("{column}=none "),
        ValueRef::Integer(number) => format!("{column}={number} "),
        ValueRef::Real(number) => format!("{column}={number} "),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
            format!("{column}={start:?} ({} bytes, {}) ", bytes.len(), &blake3::hash(bytes).to_hex()[..8])
        }
    }
}
