//! What is shared outside a space: links to one take at one version, and access for support.
//!
//! A link shows text that its device chose and searched for secrets, never bundles: history contains what was edited out.

use retake_sync::wire::{LinkCreated, LinkInfo, NewLink, ProblemCode, SharedPage, SupportGrant};

use crate::access::{AuthorizedSpace, AuthorizedThread, Caller};
use crate::audit;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::secret::{self, Token};
use crate::values;

const DAY: i64 = 24 * 60 * 60 * 1000;
const MOST_DAYS: u32 = 365;
const MOST_SUPPORT_DAYS: u32 = 31;
/// The most bytes of a shared page.
const MOST_BYTES: usize = 4 << 20;
/// The most links of an account that are valid at a time.
const MOST_LINKS: u64 = 1000;

/// Creates a link. Its token is not stored.
pub fn create(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    new: &NewLink,
    now: i64,
) -> Result<LinkCreated, HubError> {
    if new.days == 0 || new.days > MOST_DAYS {
        return Err(HubError::new(ProblemCode::Invalid, "a link is valid for 1 to 365 days"));
    }
    if new.version == 0 || new.version > thread.state().head.version {
        return Err(HubError::new(
            ProblemCode::Invalid,
            "the hub does not have this version; run `retake sync` first",
        ));
    }
    let content = serde_json::to_string(&new.page).unwrap_or_default();
    if content.len() > MOST_BYTES {
        return Err(HubError::new(ProblemCode::TooLarge, "a shared page has at most 4 MiB of text"));
    }
    let space = thread.space();
    let account = &space.caller().account;
    let sql = "SELECT count(*) FROM link WHERE account = $1 AND revoked IS NULL AND expires > $2";
    let valid = connection.row(sql, values![account, now])?.ok_or(DatabaseError::Shape)?.count(0)?;
    if valid >= MOST_LINKS {
        return Err(HubError::new(ProblemCode::TooMany, "this account has 1000 links; revoke some"));
    }
    // Waits for a purge or redaction under way; a later one finds this link.
    let sql = "UPDATE thread SET updated = updated
               WHERE space = $1 AND id = $2 AND purged IS NULL AND coalesce(redacted, 0) = $3";
    let redactions = thread.state().redactions;
    if connection.execute(sql, values![space.id(), thread.id().to_string(), redactions])? == 0 {
        return Err(HubError::moved(Some(thread.state().head)));
    }
    let (token, id) = (Token::generate("rtl"), secret::new_id());
    let expires = now + i64::from(new.days) * DAY;
    let sql = "
        INSERT INTO link (hash, id, space, thread, account, take, version, title, content, created, expires)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let values = values![
        &token.hash(),
        &id,
        space.id(),
        thread.id().to_string(),
        account,
        &new.take,
        new.version,
        &new.page.title,
        content,
        now,
        expires
    ];
    connection.execute(sql, values)?;
    audit::record(connection, space, "link created", &format!("{id} to {}", thread.id()), now)?;
    Ok(LinkCreated { id, path: format!("/l/{}", token.text()), expires })
}

/// The links of the caller's account in all spaces, also of threads that are gone.
pub fn list(connection: &mut dyn Connection, caller: &Caller) -> Result<Vec<LinkInfo>, HubError> {
    let sql = "SELECT id, space, thread, take, version, title, created, expires, revoked
               FROM link WHERE account = $1 ORDER BY created DESC, id LIMIT 2000";
    let rows = connection.query(sql, values![&caller.account])?;
    let link = |row: &Row| -> Result<LinkInfo, DatabaseError> {
        Ok(LinkInfo {
            id: row.text(0)?.to_owned(),
            space: row.text(1)?.to_owned(),
            thread: row.text(2)?.parse().map_err(|_| DatabaseError::Shape)?,
            take: row.text(3)?.to_owned(),
            version: row.count(4)?,
            title: row.text(5)?.to_owned(),
            created: row.int(6)?,
            expires: row.int(7)?,
            revoked: row.optional_int(8)?,
        })
    };
    Ok(rows.iter().map(link).collect::<Result<_, _>>()?)
}

/// Revokes a link of the caller, or of a space that the caller owns, and removes what it showed.
pub fn revoke(connection: &mut dyn Connection, caller: &Caller, id: &str, now: i64) -> Result<(), HubError> {
    let sql = "UPDATE link SET revoked = $3, content = NULL
               WHERE id = $2 AND revoked IS NULL AND (account = $1 OR space IN
                 (SELECT space FROM member WHERE account = $1 AND role = 'owner'))
               RETURNING space";
    let row = connection.row(sql, values![&caller.account, id, now])?.ok_or_else(HubError::not_found)?;
    let who = (caller.account.as_str(), caller.device.as_str());
    audit::record_as(connection, row.text(0)?, who, ("link revoked", id), now)?;
    Ok(())
}

/// What a link shows. The token is the permission, so nothing else is checked.
pub fn open(connection: &mut dyn Connection, token: &str, now: i64) -> Result<SharedPage, HubError> {
    let sql = "
        SELECT l.content FROM link l JOIN thread t ON t.space = l.space AND t.id = l.thread
        JOIN member m ON m.space = l.space AND m.account = l.account JOIN account a ON a.id = l.account
        WHERE l.hash = $1 AND l.revoked IS NULL AND l.expires > $2 AND t.purged IS NULL AND t.deleted IS NULL
              AND a.disabled IS NULL";
    let row = connection.row(sql, values![&secret::hash(token), now])?.ok_or_else(HubError::not_found)?;
    serde_json::from_str(row.text(0)?).map_err(|_| DatabaseError::Shape.into())
}

/// Shows a thread to support for some days, or, with none, no longer.
pub fn grant_support(
    connection: &mut dyn Connection,
    thread: &AuthorizedThread,
    grant: SupportGrant,
    now: i64,
) -> Result<(), HubError> {
    if grant.days > MOST_SUPPORT_DAYS {
        return Err(HubError::new(ProblemCode::Invalid, "support may read a thread for at most 31 days"));
    }
    thread.require_control()?;
    let (space, id) = (thread.space(), thread.id().to_string());
    let until = now + i64::from(grant.days) * DAY;
    let sql = "INSERT INTO support_grant (space, thread, account, until) VALUES ($1, $2, $3, $4)
               ON CONFLICT (space, thread) DO UPDATE SET account = excluded.account, until = excluded.until";
    connection.execute(sql, values![space.id(), &id, &space.caller().account, until])?;
    let action = format!("support may read for {} days", grant.days);
    audit::record(connection, space, &action, &id, now)?;
    Ok(())
}

/// Removes what expired links showed, everywhere.
pub fn expire(connection: &mut dyn Connection, now: i64) -> Result<u64, HubError> {
    let sql = "UPDATE link SET content = NULL WHERE content IS NOT NULL AND expires <= $1";
    Ok(connection.execute(sql, values![now])?)
}

/// Removes what the links of a thread show: it may contain what was redacted.
pub(crate) fn revoke_all(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    thread: &str,
    now: i64,
) -> Result<(), HubError> {
    let sql = "UPDATE link SET revoked = coalesce(revoked, $3), content = NULL, title = '', take = ''
               WHERE space = $1 AND thread = $2";
    connection.execute(sql, values![space.id(), thread, now])?;
    Ok(())
}
