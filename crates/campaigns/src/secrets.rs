//! Searches every file of a store for bytes, in any stored form. Shares no code with the store.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use rusqlite::types::ValueRef;

use crate::violation::BoxError;

/// Every place in a store's folder that contains the bytes: in a file, in a compressed frame, or in a plain or
/// compressed value of a database.
pub fn places(store: &Path, bytes: &[u8]) -> Result<Vec<String>, BoxError> {
    let mut found = Vec::new();
    let mut open = vec![store.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            // Also reads the write-ahead log as a file, while another process has the database open.
            if holds(&fs::read(&path)?, bytes) {
                found.push(path.display().to_string());
            }
            if path.extension().is_some_and(|extension| extension == "db") {
                found.extend(values(&path, bytes)?);
            }
        }
    }
    Ok(found)
}

fn values(path: &Path, bytes: &[u8]) -> Result<Vec<String>, BoxError> {
    let mut found = Vec::new();
    let database = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let tables: Vec<String> = {
        let mut statement = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<Result<_, _>>()?
    };
    for table in tables {
        let Ok(mut statement) = database.prepare(&format!("SELECT * FROM \"{table}\"")) else { continue };
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let (ValueRef::Text(value) | ValueRef::Blob(value)) = row.get_ref(column)? else { continue };
                if holds(value, bytes) {
                    found.push(format!("{} {table} column {column}", path.display()));
                }
            }
        }
    }
    Ok(found)
}

fn holds(value: &[u8], bytes: &[u8]) -> bool {
    let contains = |value: &[u8]| value.windows(bytes.len()).any(|window| window == bytes);
    let frames = value.windows(4).enumerate().filter(|(_, window)| *window == [0x28, 0xb5, 0x2f, 0xfd]);
    contains(value)
        || frames.into_iter().any(|(start, _)| {
            let mut unpacked = Vec::new();
            if let Ok(decoder) = zstd::stream::read::Decoder::new(&value[start..]) {
                let _ = decoder.single_frame().take(64 << 20).read_to_end(&mut unpacked);
            }
            contains(&unpacked)
        })
}
