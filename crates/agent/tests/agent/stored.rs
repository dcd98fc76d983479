//! Searches for bytes in every file of a store, in any encoding.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use rusqlite::types::ValueRef;

/// All locations in a store's folder that contain the bytes: plain in a file, in a compressed frame, in a
/// database value, or in a compressed one.
pub(crate) fn places(store: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![store.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            // The owning process may still have the database open, so its write-ahead log is searched as a
            // file.
            if holds(&fs::read(&path).expect("a file"), bytes) {
                found.push(path.display().to_string());
            }
            if path.extension().is_some_and(|extension| extension == "db") {
                found.extend(values(&path, bytes));
            }
        }
    }
    found
}

fn values(path: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let database = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = database.expect("a database");
    let tables: Vec<String> = {
        let mut statement =
            database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("a query");
        let names = statement.query_map([], |row| row.get(0)).expect("rows");
        names.collect::<Result<_, _>>().expect("names")
    };
    for table in tables {
        let Ok(mut statement) = database.prepare(&format!("SELECT * FROM \"{table}\"")) else { continue };
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            for column in 0..columns {
                let (ValueRef::Text(value) | ValueRef::Blob(value)) = row.get_ref(column).expect("a value")
                else {
                    continue;
                };
                if holds(value, bytes) {
                    found.push(format!("{} {table} column {column}", path.display()));
                }
            }
        }
    }
    found
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
