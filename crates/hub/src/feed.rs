//! The feed of a space: what happened, in order and without gaps.

use retake_sync::wire::{Feed, FeedEvent, FeedKind};

use crate::access::AuthorizedSpace;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::values;

const PAGE: u64 = 1000;

/// The events after a position.
pub fn read(connection: &mut dyn Connection, space: &AuthorizedSpace, after: u64) -> Result<Feed, HubError> {
    let sql = "SELECT seq, thread, what FROM feed WHERE space = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let rows = connection.query(sql, values![space.id(), after, PAGE])?;
    let events = rows.iter().map(event).collect::<Result<Vec<_>, _>>()?;
    let seq = match events.last() {
        Some(last) => last.seq,
        // A hub that was restored from a backup is behind its devices, which then begin again.
        None => position(connection, space.id())?.min(after),
    };
    Ok(Feed { events, seq })
}

/// The position of the last event.
pub(crate) fn position(connection: &mut dyn Connection, space: &str) -> Result<u64, DatabaseError> {
    let row = connection.row("SELECT seq FROM space WHERE id = $1", values![space])?;
    row.ok_or(DatabaseError::Shape)?.count(0)
}

fn event(row: &Row) -> Result<FeedEvent, DatabaseError> {
    Ok(FeedEvent {
        seq: row.count(0)?,
        thread: row.text(1)?.parse().map_err(|_| DatabaseError::Shape)?,
        what: match row.text(2)? {
            "moved" => FeedKind::Moved,
            "deleted" => FeedKind::Deleted,
            "restored" => FeedKind::Restored,
            "purged" => FeedKind::Purged,
            "redacted" => FeedKind::Redacted,
            _ => FeedKind::Unknown,
        },
    })
}
