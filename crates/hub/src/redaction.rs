//! `redact --everywhere` on the hub: content is removed from every bundle, index and page of a thread, and refused from then
//! on.
//!
//! ```text
//!   read bundles ──► rewrite them without the content ──► replace rows that are unchanged ──► feed: redacted
//!        ▲                                                        │ another push meanwhile
//!        └────────────────────────────────────────────────────────┘
//! ```
//!
//! Operations keep their ids, so that a device finds its place in the list of bundles again.

use std::collections::BTreeSet;

use retake_model::content::ContentId;
use retake_sync::bundle::{self, BundleId};
use retake_sync::wire::{FeedKind, ProblemCode, RedactionList};

use crate::access::AuthorizedThread;
use crate::audit;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::links;
use crate::threads::{Body, body_of, bundle_id, publish};
use crate::values;

/// The most ids of one request.
const MOST_CONTENT: usize = 10_000;

/// A bundle with its bytes.
pub(crate) struct StoredBundle {
    pub(crate) number: u64,
    pub(crate) id: BundleId,
    pub(crate) body: Body,
}

/// A bundle that replaces another one.
pub(crate) struct Replacement {
    pub(crate) number: u64,
    pub(crate) old: BundleId,
    pub(crate) id: BundleId,
    pub(crate) bytes: u64,
    pub(crate) body: Body,
}

/// Notes which content may not come back. From here on, pushes are searched for it.
pub(crate) fn begin(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    content: &[ContentId],
    now: i64,
) -> Result<(), HubError> {
    thread.require_control()?;
    if content.is_empty() || content.len() > MOST_CONTENT {
        return Err(HubError::new(ProblemCode::Invalid, "a redaction names 1 to 10,000 contents"));
    }
    let (space, id) = (thread.space(), thread.id().to_string());
    for content in content {
        let sql = "INSERT INTO redaction (space, content, thread, account, at) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT DO NOTHING";
        let account = &space.caller().account;
        connection.execute(sql, values![space.id(), content.to_string(), &id, account, now])?;
    }
    // The title and the index may have words of it; the next push brings them again.
    let sql = "UPDATE thread SET redacted = coalesce(redacted, 0) + 1, title = '', summary = '{}', summary_hash = $3
               WHERE space = $1 AND id = $2";
    connection.execute(sql, values![space.id(), &id, &[0; 32]])?;
    connection.execute("DELETE FROM facet WHERE space = $1 AND thread = $2", values![space.id(), &id])?;
    links::revoke_all(connection, space, &id, now)?;
    audit::record(connection, space, "content redacted", &format!("{} of {id}", content.len()), now)?;
    Ok(())
}

/// The redacted content of a thread.
pub(crate) fn list(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
) -> Result<RedactionList, HubError> {
    let content = content_of(connection, thread.space().id(), &thread.id().to_string())?;
    Ok(RedactionList { content: content.into_iter().collect() })
}

pub(crate) fn content_of(
    connection: &mut dyn Connection,
    space: &str,
    thread: &str,
) -> Result<BTreeSet<ContentId>, DatabaseError> {
    let sql = "SELECT content FROM redaction WHERE space = $1 AND thread = $2";
    let rows = connection.query(sql, values![space, thread])?;
    rows.iter().map(|row| row.text(0)?.parse().map_err(|_| DatabaseError::Shape)).collect()
}

/// A page of bundles, with what may not be in them.
pub(crate) fn bundles(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    after: u64,
) -> Result<Vec<StoredBundle>, HubError> {
    let sql = "SELECT number, id, body, place FROM bundle
               WHERE space = $1 AND thread = $2 AND number > $3 ORDER BY number LIMIT 100";
    let rows = connection.query(sql, values![thread.space().id(), thread.id().to_string(), after])?;
    let stored = |row: &Row| -> Result<StoredBundle, HubError> {
        Ok(StoredBundle { number: row.count(0)?, id: bundle_id(row.hash(1)?)?, body: body_of(row, 2)? })
    };
    rows.iter().map(stored).collect()
}

/// The bundle without the content; `None` if it has none of it.
pub(crate) fn rewrite(bytes: &[u8], content: &BTreeSet<ContentId>) -> Result<Option<Vec<u8>>, HubError> {
    let refused = |error| HubError::new(ProblemCode::Refused, format!("{error}"));
    bundle::redacted(bytes, content).map_err(refused)
}

/// Replaces a bundle.
pub(crate) fn replace(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    new: &Replacement,
    now: i64,
) -> Result<(), HubError> {
    let (space, id) = (thread.space(), thread.id().to_string());
    let sql = "SELECT bytes, place FROM bundle WHERE space = $1 AND thread = $2 AND number = $3 AND id = $4";
    let old = connection.row(sql, values![space.id(), &id, new.number, new.old.bytes()])?;
    // Another request replaced it already.
    let Some(old) = old else { return Ok(()) };
    if let Some(place) = old.optional_text(1)? {
        let sql = "INSERT INTO garbage (place, since) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        // Since long ago: removed at once.
        connection.execute(sql, values![place, 0_i64])?;
    }
    let (inline, place) = match &new.body {
        Body::Inline(bytes) => (Some(bytes.as_slice()), None),
        Body::Stored(name) => (None, Some(name.as_str())),
    };
    let sql = "UPDATE bundle SET id = $4, bytes = $5, body = $6, place = $7
               WHERE space = $1 AND thread = $2 AND number = $3 AND id = $8";
    let values =
        values![space.id(), &id, new.number, new.id.bytes(), new.bytes, inline, place, new.old.bytes()];
    connection.execute(sql, values)?;
    let less = old.int(0)? - new.bytes as i64;
    connection.execute("UPDATE space SET bytes = bytes - $2 WHERE id = $1", values![space.id(), less])?;
    let sql = "UPDATE thread SET bytes = bytes - $3, updated = $4 WHERE space = $1 AND id = $2";
    connection.execute(sql, values![space.id(), &id, less, now])?;
    Ok(())
}

/// Tells the devices.
pub(crate) fn finish(connection: &mut dyn Connection, thread: &AuthorizedThread) -> Result<(), HubError> {
    publish(connection, thread.space(), &thread.id().to_string(), FeedKind::Redacted, 0)?;
    Ok(())
}
