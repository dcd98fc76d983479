//! Packs of a project's files, which travel only if the project opted in. Opaque bytes, in a row for each project.

use retake_sync::wire::{PackList, PackRow, ProblemCode};

use crate::access::AuthorizedSpace;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::threads::{self, bundle_id};
use crate::values;

const PAGE: u64 = 1000;

/// The name of a project: the hash that devices compute from what identifies it.
#[derive(Clone, Debug)]
pub struct ProjectName(String);

impl ProjectName {
    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(hash.to_hex().to_string()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// The packs of a project after a position. A project without packs is an empty row.
pub fn list(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    project: &ProjectName,
    after: u64,
) -> Result<PackList, HubError> {
    let sql = "SELECT number, id, bytes FROM file_pack
               WHERE space = $1 AND project = $2 AND number > $3 ORDER BY number LIMIT $4";
    let rows = connection.query(sql, values![space.id(), project.text(), after, PAGE])?;
    let pack = |row: &Row| -> Result<PackRow, DatabaseError> {
        Ok(PackRow { number: row.count(0)?, pack: bundle_id(row.hash(1)?)?, bytes: row.count(2)? })
    };
    let more = rows.len() as u64 == PAGE;
    Ok(PackList { packs: rows.iter().map(pack).collect::<Result<_, _>>()?, more })
}

/// Where a pack is.
pub fn place(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    project: &ProjectName,
    number: u64,
) -> Result<String, HubError> {
    let sql = "SELECT place FROM file_pack WHERE space = $1 AND project = $2 AND number = $3";
    let row = connection.row(sql, values![space.id(), project.text(), number])?;
    Ok(row.ok_or_else(HubError::not_found)?.text(0)?.to_owned())
}

/// Adds a pack behind the last one. Its bytes are in the store.
pub fn push(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    project: &ProjectName,
    row: PackRow,
    place: &str,
    now: i64,
) -> Result<(), HubError> {
    let sql = "UPDATE space SET bytes = bytes + $2 WHERE id = $1 AND bytes + $2 <= quota";
    if connection.execute(sql, values![space.id(), row.bytes])? == 0 {
        return Err(HubError::new(ProblemCode::Quota, "the space has no room left for these files"));
    }
    // The row of the space is locked, so that the last number stays the last one.
    let sql = "SELECT coalesce(max(number), 0) FROM file_pack WHERE space = $1 AND project = $2";
    let last =
        connection.row(sql, values![space.id(), project.text()])?.ok_or(DatabaseError::Shape)?.count(0)?;
    if row.number != last + 1 {
        return Err(HubError::moved(None));
    }
    let sql = "INSERT INTO file_pack (space, project, number, id, bytes, place, created)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let values = values![space.id(), project.text(), row.number, row.pack.bytes(), row.bytes, place, now];
    connection.execute(sql, values)?;
    threads::claim(connection, place)?;
    Ok(())
}
