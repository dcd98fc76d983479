//! The rows of bundles: pushes, logs, deletion and purge.
//!
//! ```text
//!   UPDATE thread … WHERE number = n - 1 AND head = previous     the only way that a head moves
//!   INSERT bundle n                                              its range begins behind the version before
//!   UPDATE space SET seq = seq + 1 … RETURNING seq               one counter row for each space, last: it is the most
//!   INSERT feed (seq, thread)                                    contended one
//! ```
//!
//! All of it is one transaction, so that the feed has no gaps and no event without its bundle.

use retake_model::content::ContentId;
use retake_sync::bundle::BundleId;
use retake_sync::wire::{
    BundleList, BundleRow, FeedKind, ProblemCode, PushRequest, Pushed, ThreadHead, ThreadSummary,
};

use crate::access::{AuthorizedPush, AuthorizedSpace, AuthorizedThread};
use crate::audit;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::search;
use crate::values;

/// How many bundles one answer lists.
const PAGE: u64 = 1000;

/// Where the bytes of a bundle are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In the row.
    Inline(Vec<u8>),
    /// In the store, durably, under this name.
    Stored(String),
}

/// Adds a bundle behind the last one. Its bytes were checked against its row.
pub fn push(
    connection: &mut dyn Connection,
    place: &AuthorizedPush,
    request: &PushRequest,
    body: &Body,
    now: i64,
) -> Result<Pushed, HubError> {
    let PushRequest { row, previous, summary } = request;
    let (space, thread) = (place.space().id(), place.id().to_string());
    let (summary_hash, summary_text) = summary_record(summary);
    let project = search::project_text(&summary.project);
    let changed = match (place.state(), previous) {
        (None, None) if row.number == 1 && row.first == 1 => {
            let sql = "
                INSERT INTO thread (space, id, owner, number, version, head, bytes, project, title, agent_state,
                                    messages, summary, summary_hash, created, updated)
                VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13) ON CONFLICT DO NOTHING";
            let details = &summary.details;
            let owner = &place.space().caller().account;
            let values = values![
                space,
                &thread,
                owner,
                row.last,
                row.head.bytes(),
                row.bytes,
                project,
                &summary.title,
                &details.agent_state,
                details.messages,
                summary_text,
                &summary_hash,
                now
            ];
            connection.execute(sql, values)?
        }
        (Some(state), Some(previous)) if row.number > 1 => {
            let sql = "
                UPDATE thread SET number = $1, version = $2, head = $3, bytes = bytes + $4, project = $5, title = $6,
                                  agent_state = $7, messages = $8, summary = $9, summary_hash = $10, updated = $11
                WHERE space = $12 AND id = $13 AND number = $14 AND head = $15 AND version = $16
                  AND coalesce(redacted, 0) = $17 AND purged IS NULL";
            let details = &summary.details;
            let values = values![
                row.number,
                row.last,
                row.head.bytes(),
                row.bytes,
                project,
                &summary.title,
                &details.agent_state,
                details.messages,
                summary_text,
                &summary_hash,
                now,
                space,
                &thread,
                row.number - 1,
                previous.bytes(),
                row.first - 1,
                state.redactions
            ];
            connection.execute(sql, values)?
        }
        _ => 0,
    };
    if changed == 0 {
        return Err(HubError::moved(head(connection, space, &thread)?));
    }
    let (inline, stored) = match body {
        Body::Inline(bytes) => (Some(bytes.as_slice()), None),
        Body::Stored(name) => (None, Some(name.as_str())),
    };
    let sql = "
        INSERT INTO bundle (space, thread, number, first, last, head, id, bytes, body, place)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values = values![
        space,
        &thread,
        row.number,
        row.first,
        row.last,
        row.head.bytes(),
        row.bundle.bytes(),
        row.bytes,
        inline,
        stored
    ];
    connection.execute(sql, values)?;
    if let Some(place) = stored {
        // The object has a row now.
        claim(connection, place)?;
    }
    if place.state().is_none_or(|state| state.summary_hash != summary_hash) {
        search::index(connection, space, &thread, summary)?;
    }
    let seq = publish(connection, place.space(), &thread, FeedKind::Moved, row.bytes)?;
    Ok(Pushed { seq })
}

/// An object has a row now and is no garbage. Fails if the clean-up is about to remove it.
pub(crate) fn claim(connection: &mut dyn Connection, place: &str) -> Result<(), HubError> {
    let sql = "DELETE FROM garbage WHERE place = $1 AND since > 0";
    match connection.execute(sql, values![place])? {
        1 => Ok(()),
        _ => Err(HubError::Store(format!("the object {place} was removed before its row was written"))),
    }
}

/// Counts an event, and the bytes that it adds, in the counter row of its space.
pub(crate) fn publish(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    thread: &str,
    what: FeedKind,
    added: u64,
) -> Result<u64, HubError> {
    let sql = "UPDATE space SET seq = seq + 1, bytes = bytes + $2
               WHERE id = $1 AND ($2 = 0 OR bytes + $2 <= quota) RETURNING seq";
    let Some(row) = connection.row(sql, values![space.id(), added])? else {
        let message = "the space has no room left; purge threads, or ask the operator of the hub for more";
        return Err(HubError::new(ProblemCode::Quota, message));
    };
    let seq = row.count(0)?;
    let sql = "INSERT INTO feed (space, seq, thread, what) VALUES ($1, $2, $3, $4)";
    connection.execute(sql, values![space.id(), seq, thread, what_text(what)])?;
    Ok(seq)
}

/// The end of a thread.
fn head(
    connection: &mut dyn Connection,
    space: &str,
    thread: &str,
) -> Result<Option<ThreadHead>, DatabaseError> {
    let sql = "SELECT number, version, head FROM thread WHERE space = $1 AND id = $2";
    let Some(row) = connection.row(sql, values![space, thread])? else { return Ok(None) };
    let head = ContentId::from_bytes(row.hash(2)?);
    Ok(Some(ThreadHead { number: row.count(0)?, version: row.count(1)?, head }))
}

/// The bundles of a thread after a position.
pub fn log(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    after: u64,
) -> Result<BundleList, HubError> {
    let (space, id) = (thread.space().id(), thread.id().to_string());
    let sql = "SELECT number, first, last, head, id, bytes FROM bundle
               WHERE space = $1 AND thread = $2 AND number > $3 ORDER BY number LIMIT $4";
    let rows = connection.query(sql, values![space, &id, after, PAGE])?;
    let bundles = rows.iter().map(|row| bundle_row(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let row =
        connection.row("SELECT summary FROM thread WHERE space = $1 AND id = $2", values![space, &id])?;
    let row = row.ok_or_else(HubError::not_found)?;
    let more = bundles.last().is_some_and(|last| last.number < thread.state().head.number);
    Ok(BundleList { bundles, summary: read_summary(row.text(0)?), more })
}

/// The bundle in six columns.
pub(crate) fn bundle_row(row: &Row, column: usize) -> Result<BundleRow, DatabaseError> {
    Ok(BundleRow {
        number: row.count(column)?,
        first: row.count(column + 1)?,
        last: row.count(column + 2)?,
        head: ContentId::from_bytes(row.hash(column + 3)?),
        bundle: bundle_id(row.hash(column + 4)?)?,
        bytes: row.count(column + 5)?,
    })
}

pub(crate) fn bundle_id(hash: [u8; 32]) -> Result<BundleId, DatabaseError> {
    blake3::Hash::from_bytes(hash).to_hex().parse().map_err(|_| DatabaseError::Shape)
}

/// Where the bytes of a bundle of a thread are.
pub fn bundle(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    number: u64,
    id: BundleId,
) -> Result<Body, HubError> {
    let sql = "SELECT body, place FROM bundle WHERE space = $1 AND thread = $2 AND number = $3 AND id = $4";
    let values = values![thread.space().id(), thread.id().to_string(), number, id.bytes()];
    let row = connection.row(sql, values)?.ok_or_else(HubError::not_found)?;
    body_of(&row, 0)
}

/// The body in two columns.
pub(crate) fn body_of(row: &Row, column: usize) -> Result<Body, HubError> {
    Ok(match (row.optional_bytes(column)?, row.optional_text(column + 1)?) {
        (Some(body), None) => Body::Inline(body.to_vec()),
        (None, Some(place)) => Body::Stored(place.to_owned()),
        _ => return Err(DatabaseError::Shape.into()),
    })
}

/// Deletes a thread, so that it can be restored, or restores it.
pub fn set_deleted(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    deleted: bool,
    now: i64,
) -> Result<(), HubError> {
    let (space, id) = (thread.space(), thread.id().to_string());
    let sql = "UPDATE thread SET deleted = $3
               WHERE space = $1 AND id = $2 AND purged IS NULL AND (deleted IS NULL) <> ($3 IS NULL)";
    let at = deleted.then_some(now);
    // Postgres needs the type of a parameter that it only compares with NULL.
    let sql = sql.replace("($3 IS NULL)", "(CAST($3 AS BIGINT) IS NULL)");
    if connection.execute(&sql, values![space.id(), &id, at])? == 0 {
        return Ok(());
    }
    let (what, action) =
        if deleted { (FeedKind::Deleted, "thread deleted") } else { (FeedKind::Restored, "thread restored") };
    audit::record(connection, space, action, &id, now)?;
    publish(connection, space, &id, what, 0)?;
    Ok(())
}

/// Removes everything of a thread but the fact that it was purged.
pub fn purge(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    expect: Option<u64>,
    now: i64,
) -> Result<(), HubError> {
    thread.require_control()?;
    let (space, id) = (thread.space(), thread.id().to_string());
    let sql = "
        UPDATE thread SET purged = $3, title = '', summary = '{}', project = '{}', agent_state = '', messages = 0,
                          bytes = 0, updated = $3
        WHERE space = $1 AND id = $2 AND purged IS NULL AND ($4 = 0 OR version = $4)";
    if connection.execute(sql, values![space.id(), &id, now, expect.unwrap_or(0)])? == 0 {
        return Err(HubError::moved(head(connection, space.id(), &id)?));
    }
    // The lock on the row of the thread keeps pushes out from here on, so that these are all bundles.
    let sql = "SELECT coalesce(CAST(sum(bytes) AS BIGINT), 0) FROM bundle WHERE space = $1 AND thread = $2";
    let freed = connection.row(sql, values![space.id(), &id])?.ok_or(DatabaseError::Shape)?.count(0)?;
    // Since long ago: removed at once.
    let sql = "INSERT INTO garbage (place, since) SELECT place, CAST(0 AS BIGINT) FROM bundle
               WHERE space = $1 AND thread = $2 AND place IS NOT NULL ON CONFLICT DO NOTHING";
    connection.execute(sql, values![space.id(), &id])?;
    for table in ["bundle", "facet", "link", "support_grant", "redaction"] {
        let sql = format!("DELETE FROM {table} WHERE space = $1 AND thread = $2");
        connection.execute(&sql, values![space.id(), &id])?;
    }
    let sql = "UPDATE space SET bytes = bytes - $2 WHERE id = $1";
    connection.execute(sql, values![space.id(), freed])?;
    audit::record(connection, space, "thread purged", &id, now)?;
    publish(connection, space, &id, FeedKind::Purged, 0)?;
    Ok(())
}

pub(crate) fn read_summary(text: &str) -> ThreadSummary {
    serde_json::from_str(text).unwrap_or_default()
}

/// The summary as it is stored, and its hash. The text is in the index only.
pub(crate) fn summary_record(summary: &ThreadSummary) -> ([u8; 32], String) {
    let mut listed = summary.clone();
    listed.details.text = String::new();
    // A time alone is no change of what a search finds.
    listed.updated = 0;
    let hash = blake3::keyed_hash(
        blake3::hash(summary.details.text.as_bytes()).as_bytes(),
        serde_json::to_string(&listed).unwrap_or_default().as_bytes(),
    );
    listed.updated = summary.updated;
    (*hash.as_bytes(), serde_json::to_string(&listed).unwrap_or_default())
}

pub(crate) fn what_text(what: FeedKind) -> &'static str {
    match what {
        FeedKind::Moved => "moved",
        FeedKind::Deleted => "deleted",
        FeedKind::Restored => "restored",
        FeedKind::Purged => "purged",
        FeedKind::Redacted => "redacted",
        FeedKind::Unknown => "unknown",
    }
}
