//! The audit log: who did what to which thread, member or link of a space.

use retake_sync::wire::AuditRow;

use crate::access::AuthorizedSpace;
use crate::database::{Connection, DatabaseError};
use crate::error::HubError;
use crate::{secret, values};

/// Records an action in the transaction that does it.
pub(crate) fn record(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    action: &str,
    subject: &str,
    now: i64,
) -> Result<(), DatabaseError> {
    let caller = space.caller();
    record_as(connection, space.id(), (&caller.account, &caller.device), (action, subject), now)
}

/// Records an action of an account, or of the operator.
pub(crate) fn record_as(
    connection: &mut dyn Connection,
    space: &str,
    (account, device): (&str, &str),
    (action, subject): (&str, &str),
    now: i64,
) -> Result<(), DatabaseError> {
    let sql = "INSERT INTO audit (space, at, nonce, account, device, action, subject)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    connection.execute(sql, values![space, now, secret::new_id(), account, device, action, subject])?;
    Ok(())
}

/// The newest lines.
pub fn list(connection: &mut dyn Connection, space: &AuthorizedSpace) -> Result<Vec<AuditRow>, HubError> {
    let sql = "
        SELECT u.at, coalesce(a.name, u.account), u.device, u.action, u.subject
        FROM audit u LEFT JOIN account a ON a.id = u.account
        WHERE u.space = $1 ORDER BY u.at DESC, u.nonce LIMIT 1000";
    let rows = connection.query(sql, values![space.id()])?;
    let row = |row: &crate::database::Row| -> Result<AuditRow, DatabaseError> {
        Ok(AuditRow {
            at: row.int(0)?,
            account: row.text(1)?.to_owned(),
            device: row.text(2)?.to_owned(),
            action: row.text(3)?.to_owned(),
            subject: row.text(4)?.to_owned(),
        })
    };
    Ok(rows.iter().map(row).collect::<Result<_, _>>()?)
}
