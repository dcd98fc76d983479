//! Scans the leaf pages of a table whose interior pages are damaged.
//!
//! SQLite finds a leaf only through the pages above it. Without them, a leaf can still be read by itself. Its content
//! tells which table it belongs to: the id of an operation matches the hash of its bytes, and an object unpacks to a
//! known kind.
//!
//! ```text
//!   leaf      13 │ … │ cells: n │ … │ offset offset …     rows grow from the end of the page
//!   row       length │ number │ types of columns │ columns ─► overflow pages, if it is long
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;

use retake_model::content::{ContentId, Kind};
use retake_model::reference::references;
use rusqlite::params;
use rusqlite::types::Value;

use super::failed;
use crate::objects::read_write::unpack;
use crate::{StoreError, WriteTransaction};
use std::path::Path;

/// The page type of a table leaf.
const LEAF: u8 = 13;
/// Limits the row size, so that damage cannot exhaust memory.
const MAX_ROW: usize = crate::objects::read_write::MAX_UNPACKED;

/// Copies missing objects and operations from all leaves of a file; returns how many.
pub(super) fn copy_rows(
    damaged: &Path,
    page_bytes: usize,
    writing: &WriteTransaction<'_>,
) -> Result<u64, StoreError> {
    let file = Pages { file: File::open(damaged).map_err(failed(damaged))?, bytes: page_bytes };
    let pages = file.file.metadata().map_err(failed(damaged))?.len() / page_bytes as u64;
    let mut copied = 0;
    for number in 2..=pages {
        let Some(page) = file.page(number) else { continue };
        for (number, columns) in rows(&file, &page) {
            copied += put(writing, number, &columns)?;
        }
    }
    Ok(copied)
}

fn put(writing: &WriteTransaction<'_>, number: i64, columns: &[Value]) -> Result<u64, StoreError> {
    let inserted = match columns {
        [
            Value::Null,
            Value::Integer(kind),
            Value::Integer(packing),
            Value::Integer(_),
            Value::Blob(body),
        ] if is_object(*kind, *packing, body) => writing
            .connection
            .prepare_cached(
                "INSERT OR IGNORE INTO object (number, kind, packing, born, body)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![number, kind, packing, columns[3], body])?,
        [
            Value::Null,
            Value::Integer(thread),
            Value::Integer(version),
            Value::Blob(id),
            Value::Blob(body),
            bundle @ ..,
        ] if ContentId::of(Kind::Operation, body).bytes() == id.as_slice() => writing
            .connection
            .prepare_cached(
                "INSERT OR IGNORE INTO operation (sequence, thread, version, id, body, bundle)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            // Rows of schema 1 have no such column.
            .execute(params![number, thread, version, id, body, bundle.first()])?,
        _ => 0,
    };
    Ok(inserted as u64)
}

fn is_object(kind: i64, packing: i64, body: &[u8]) -> bool {
    let kind = u8::try_from(kind).ok().and_then(Kind::from_number);
    kind.zip(unpack(packing, body)).is_some_and(|(kind, bytes)| references(kind, &bytes).is_ok())
}

/// A file of pages.
struct Pages {
    file: File,
    /// The size of a page.
    bytes: usize,
}

impl Pages {
    fn page(&self, number: u64) -> Option<Vec<u8>> {
        let mut page = vec![0; self.bytes];
        self.file.read_exact_at(&mut page, number.checked_sub(1)?.checked_mul(self.bytes as u64)?).ok()?;
        Some(page)
    }

    /// The most bytes of a row stored on its leaf.
    fn most_local(&self) -> usize {
        self.bytes - 35
    }

    /// The least bytes on its leaf if it overflows.
    fn least_local(&self) -> usize {
        (self.bytes - 12) * 32 / 255 - 23
    }
}

/// The readable rows of a leaf; none for other pages.
fn rows(file: &Pages, page: &[u8]) -> Vec<(i64, Vec<Value>)> {
    if page[0] != LEAF {
        return Vec::new();
    }
    let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
    let offsets = page[8..].chunks_exact(2).take(cells);
    offsets
        .filter_map(|offset| {
            let cell = page.get(usize::from(u16::from_be_bytes([offset[0], offset[1]]))..)?;
            let (length, rest) = number(cell)?;
            let (key, rest) = number(rest)?;
            let payload = payload(file, rest, usize::try_from(length).ok()?)?;
            Some((key, columns(&payload)?))
        })
        .collect()
}

/// The payload of a row: the local part, then the overflow pages.
fn payload(file: &Pages, local: &[u8], length: usize) -> Option<Vec<u8>> {
    if length <= file.most_local() {
        return local.get(..length).map(<[u8]>::to_vec);
    }
    if length > MAX_ROW {
        return None;
    }
    let least = file.least_local();
    let rest = least + (length - least) % (file.bytes - 4);
    let kept = if rest <= file.most_local() { rest } else { least };
    let mut bytes = local.get(..kept)?.to_vec();
    let mut next = u32::from_be_bytes(local.get(kept..kept + 4)?.try_into().ok()?);
    while bytes.len() < length {
        let page = file.page(u64::from(next))?;
        next = u32::from_be_bytes(page[..4].try_into().ok()?);
        let wanted = (length - bytes.len()).min(file.bytes - 4);
        bytes.extend_from_slice(&page[4..4 + wanted]);
    }
    Some(bytes)
}

fn columns(payload: &[u8]) -> Option<Vec<Value>> {
    let (length, mut types) = number(payload)?;
    let length = usize::try_from(length).ok()?;
    let mut values = payload.get(length..)?;
    let mut left = length.checked_sub(payload.len() - types.len())?;
    let mut columns = Vec::new();
    while left > 0 {
        let (kind, rest) = number(types)?;
        left = left.checked_sub(types.len() - rest.len())?;
        types = rest;
        let (value, rest) = column(kind, values)?;
        values = rest;
        columns.push(value);
    }
    Some(columns)
}

fn column(kind: i64, bytes: &[u8]) -> Option<(Value, &[u8])> {
    let size = match kind {
        0 | 8 | 9 => 0,
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        12.. => (kind - 12) / 2,
        _ => return None,
    };
    let (own, rest) = bytes.split_at_checked(usize::try_from(size).ok()?)?;
    let value = match kind {
        0 => Value::Null,
        8 | 9 => Value::Integer(kind - 8),
        1..=6 => {
            let sign = if own[0] & 0x80 == 0 { 0 } else { -1 };
            Value::Integer(own.iter().fold(sign, |number: i64, byte| number << 8 | i64::from(*byte)))
        }
        // The scanned tables have no floating-point columns.
        7 => return None,
        _ if kind % 2 == 0 => Value::Blob(own.to_vec()),
        _ => Value::Text(String::from_utf8(own.to_vec()).ok()?),
    };
    Some((value, rest))
}

/// Decodes SQLite's varint: seven bits per byte, eight in the ninth.
fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut number: u64 = 0;
    for place in 0..9 {
        let byte = *bytes.get(place)?;
        if place == 8 {
            return Some(((number << 8 | u64::from(byte)) as i64, &bytes[9..]));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number as i64, &bytes[place + 1..]));
        }
    }
    None
}
