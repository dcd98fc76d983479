//! Uploads that can be resumed, for bundles and packs that are too large for one request.
//!
//! Each part is an object of the store before its row exists. The last part puts them together, and the whole must have the
//! hash that is its name. An upload belongs to one account in one space; what expires is removed.

use retake_sync::bundle::BundleId;
use retake_sync::wire::{PART_BYTES, Problem, ProblemCode, UploadState};

use crate::access::AuthorizedSpace;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::{threads, values};

/// How long an upload may take, and wait for its push.
const LIFETIME: i64 = 24 * 60 * 60 * 1000;
/// The most uploads of an account in a space.
const MOST_UPLOADS: u64 = 100;

/// One part of an upload.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Name of the whole.
    pub id: BundleId,
    /// Where the part begins.
    pub start: u64,
    /// Its size.
    pub bytes: u64,
    /// The size of the whole.
    pub whole: u64,
}

/// What an upload has.
pub fn state(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    id: BundleId,
    now: i64,
) -> Result<UploadState, HubError> {
    let sql =
        "SELECT received, bytes FROM upload WHERE space = $1 AND account = $2 AND id = $3 AND expires > $4";
    let row = connection.row(sql, values![space.id(), &space.caller().account, id.bytes(), now])?;
    let row = row.ok_or_else(HubError::not_found)?;
    let (received, bytes) = (row.count(0)?, row.count(1)?);
    Ok(UploadState { received, complete: received == bytes })
}

/// Refuses a part that [`add_part`] will refuse, before its bytes are stored. Bytes of unfinished uploads count like those
/// of bundles.
pub fn check_part(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    part: Part,
    limit: u64,
) -> Result<(), HubError> {
    check_size(part, limit)?;
    let sql = "SELECT received FROM upload WHERE space = $1 AND account = $2 AND id = $3";
    let row = connection.row(sql, values![space.id(), &space.caller().account, part.id.bytes()])?;
    let received = row.map_or(Ok(0), |row| row.count(0))?;
    if received != part.start {
        return Err(other_offset(received));
    }
    let sql = "SELECT id FROM space WHERE id = $1 AND quota < bytes + $2 +
                 (SELECT coalesce(CAST(sum(received) AS BIGINT), 0) FROM upload WHERE space = $1)";
    match connection.row(sql, values![space.id(), part.bytes])? {
        Some(_) => Err(HubError::new(ProblemCode::Quota, "the space has no room left for this upload")),
        None => Ok(()),
    }
}

fn check_size(part: Part, limit: u64) -> Result<(), HubError> {
    let fits = (1..=PART_BYTES).contains(&part.bytes)
        && part.whole <= limit
        && part.start.checked_add(part.bytes).is_some_and(|end| end <= part.whole);
    if fits {
        return Ok(());
    }
    Err(HubError::new(ProblemCode::TooLarge, "a part or the whole of the upload is too large, or empty"))
}

fn other_offset(offset: u64) -> HubError {
    HubError::Problem(Problem {
        code: ProblemCode::Offset,
        message: "the upload continues at another offset".to_owned(),
        head: None,
        offset: Some(offset),
    })
}

/// Adds a part whose bytes are in the store.
pub fn add_part(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    part: Part,
    (place, limit): (&str, u64),
    now: i64,
) -> Result<UploadState, HubError> {
    check_size(part, limit)?;
    let (id, account) = (part.id.bytes(), &space.caller().account);
    if part.start == 0 {
        let sql = "SELECT count(*) FROM upload WHERE space = $1 AND account = $2 AND id <> $3";
        let open =
            connection.row(sql, values![space.id(), account, id])?.ok_or(DatabaseError::Shape)?.count(0)?;
        if open >= MOST_UPLOADS {
            return Err(HubError::new(ProblemCode::TooMany, "100 uploads are open; finish them first"));
        }
        let sql =
            "INSERT INTO upload (space, account, id, bytes, received, expires) VALUES ($1, $2, $3, $4, 0, $5)
                   ON CONFLICT DO NOTHING";
        connection.execute(sql, values![space.id(), account, id, part.whole, now + LIFETIME])?;
    }
    let sql = "UPDATE upload SET received = received + $4, expires = $6
               WHERE space = $1 AND account = $2 AND id = $3 AND received = $5 AND bytes = $7";
    let values = values![space.id(), account, id, part.bytes, part.start, now + LIFETIME, part.whole];
    if connection.execute(sql, values)? == 0 {
        let sql = "SELECT received FROM upload WHERE space = $1 AND account = $2 AND id = $3";
        let row = connection.row(sql, values![space.id(), account, id])?;
        return Err(other_offset(row.map_or(Ok(0), |row| row.count(0))?));
    }
    let sql =
        "INSERT INTO upload_part (space, account, id, start, bytes, place) VALUES ($1, $2, $3, $4, $5, $6)";
    connection.execute(sql, values![space.id(), account, id, part.start, part.bytes, place])?;
    // The object has a row now.
    threads::claim(connection, place)?;
    let received = part.start + part.bytes;
    Ok(UploadState { received, complete: received == part.whole })
}

/// The objects of a complete upload, in order.
pub fn parts(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    id: BundleId,
) -> Result<Vec<String>, HubError> {
    let sql = "SELECT p.place FROM upload_part p JOIN upload u ON u.space = p.space AND u.account = p.account AND u.id = p.id
               WHERE p.space = $1 AND p.account = $2 AND p.id = $3 AND u.received = u.bytes ORDER BY p.start";
    let rows = connection.query(sql, values![space.id(), &space.caller().account, id.bytes()])?;
    Ok(rows.iter().map(|row| row.text(0).map(str::to_owned)).collect::<Result<_, _>>()?)
}

/// Forgets an upload; its objects become garbage.
pub fn forget(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    id: BundleId,
) -> Result<(), HubError> {
    remove(connection, space.id(), &space.caller().account, id.bytes())
}

fn remove(connection: &mut dyn Connection, space: &str, account: &str, id: &[u8]) -> Result<(), HubError> {
    let sql = "INSERT INTO garbage (place, since) SELECT place, CAST(0 AS BIGINT) FROM upload_part
               WHERE space = $1 AND account = $2 AND id = $3 ON CONFLICT DO NOTHING";
    connection.execute(sql, values![space, account, id])?;
    for table in ["upload_part", "upload"] {
        let sql = format!("DELETE FROM {table} WHERE space = $1 AND account = $2 AND id = $3");
        connection.execute(&sql, values![space, account, id])?;
    }
    Ok(())
}

/// Forgets uploads that expired, some at a time.
pub fn expire(connection: &mut dyn Connection, now: i64) -> Result<u64, HubError> {
    let rows = connection
        .query("SELECT space, account, id FROM upload WHERE expires <= $1 LIMIT 100", values![now])?;
    let each = |row: &Row| remove(connection, row.text(0)?, row.text(1)?, row.bytes(2)?);
    rows.iter().try_for_each(each)?;
    Ok(rows.len() as u64)
}
