//! Accounts, devices and logins.
//!
//! ```text
//!   new device                      hub                         a device that is logged in, or the operator
//!     │ POST auth/device ───────────►│
//!     │◄──── secret, code ABCDEFGH ──│
//!     │                              │◄──────── approve ABCDEFGH ───────────│
//!     │ POST auth/token (every 5 s) ►│
//!     │◄──────────── token ──────────│     stored as its hash
//! ```
//!
//! This is the device flow of RFC 8628. The code is short, so an account may be wrong five times in a quarter of an hour.
//! Every change of who may do what adds one to the counter `access`, at which open streams check again.

use retake_sync::wire::{DeviceInfo, LoggedIn, LoginStarted, ProblemCode};

use crate::access::Caller;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::secret::{self, Token};
use crate::{spaces, values};

/// How long a login waits for its approval, in milliseconds.
const LOGIN_LIFETIME: i64 = 15 * 60 * 1000;
/// Between two questions of a device, in seconds.
const INTERVAL: u64 = 5;
/// Wrong codes of an account within [`LOGIN_LIFETIME`].
const TRIES: i64 = 5;
/// The most logins that wait at a time.
const MOST_LOGINS: u64 = 10_000;
const LONGEST_NAME: usize = 100;

/// Creates an account with its personal space, and returns its id.
pub fn create(connection: &mut dyn Connection, name: &str, quota: u64, now: i64) -> Result<String, HubError> {
    let name = account_name(name)?;
    let id = secret::new_id();
    let sql = "INSERT INTO account (id, name, created) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    if connection.execute(sql, values![&id, name, now])? == 0 {
        return Err(HubError::new(ProblemCode::Exists, format!("the account {name} exists")));
    }
    spaces::create_personal(connection, &id, name, quota, now)?;
    Ok(id)
}

/// Names are part of addresses and of what people type.
fn account_name(name: &str) -> Result<&str, HubError> {
    let allowed =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_.@".contains(letter);
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed);
    if fits && !name.starts_with(['.', '-']) {
        return Ok(name);
    }
    let message = "a name has 1 to 100 small letters, digits, and the signs - _ . @";
    Err(HubError::new(ProblemCode::Invalid, message))
}

/// The id of an account.
pub fn id_of(connection: &mut dyn Connection, name: &str) -> Result<String, HubError> {
    let row = connection.row("SELECT id FROM account WHERE name = $1", values![name])?;
    Ok(row.ok_or_else(HubError::not_found)?.text(0)?.to_owned())
}

/// An account in the list of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// When it was created.
    pub created: i64,
    /// When it was disabled.
    pub disabled: Option<i64>,
    /// Whether it belongs to support.
    pub support: bool,
    /// Number of its devices that may log in.
    pub devices: u64,
}

/// All accounts, by name.
pub fn list(connection: &mut dyn Connection) -> Result<Vec<Account>, HubError> {
    let sql = "
        SELECT a.id, a.name, a.created, a.disabled, a.support,
               (SELECT count(*) FROM device d WHERE d.account = a.id AND d.revoked IS NULL)
        FROM account a ORDER BY a.name";
    let rows = connection.query(sql, &[])?;
    let account = |row: &Row| -> Result<Account, DatabaseError> {
        Ok(Account {
            id: row.text(0)?.to_owned(),
            name: row.text(1)?.to_owned(),
            created: row.int(2)?,
            disabled: row.optional_int(3)?,
            support: row.int(4)? != 0,
            devices: row.count(5)?,
        })
    };
    Ok(rows.iter().map(account).collect::<Result<_, _>>()?)
}

/// Disables an account, so that none of its tokens is accepted, or enables it.
pub fn set_disabled(
    connection: &mut dyn Connection,
    name: &str,
    disabled: Option<i64>,
) -> Result<(), HubError> {
    let sql = "UPDATE account SET disabled = $2 WHERE name = $1";
    if connection.execute(sql, values![name, disabled])? == 0 {
        return Err(HubError::not_found());
    }
    access_changed(connection)
}

/// Makes an account one of support, which can read threads that were shared with support.
pub fn set_support(connection: &mut dyn Connection, name: &str, support: bool) -> Result<(), HubError> {
    let sql = "UPDATE account SET support = $2 WHERE name = $1";
    if connection.execute(sql, values![name, i64::from(support)])? == 0 {
        return Err(HubError::not_found());
    }
    access_changed(connection)
}

/// Adds a device and returns its token.
pub fn add_device(
    connection: &mut dyn Connection,
    account: &str,
    name: &str,
    now: i64,
) -> Result<LoggedIn, HubError> {
    let (token, id) = (Token::generate("rth"), secret::new_id());
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
    let sql = "INSERT INTO device (id, account, name, token_hash, created, last_seen) VALUES ($1, $2, $3, $4, $5, $5)";
    connection.execute(sql, values![&id, account, name, &token.hash(), now])?;
    let row = connection.row("SELECT name FROM account WHERE id = $1", values![account])?;
    let account = row.ok_or_else(HubError::not_found)?.text(0)?.to_owned();
    Ok(LoggedIn { token: token.text().to_owned(), device: id, account })
}

/// The devices of the caller.
pub fn devices(connection: &mut dyn Connection, caller: &Caller) -> Result<Vec<DeviceInfo>, HubError> {
    devices_of(connection, &caller.account)
}

/// The devices of an account, for the operator.
pub fn devices_of(connection: &mut dyn Connection, account: &str) -> Result<Vec<DeviceInfo>, HubError> {
    let sql =
        "SELECT id, name, created, last_seen, revoked FROM device WHERE account = $1 ORDER BY created, id";
    let rows = connection.query(sql, values![account])?;
    let device = |row: &Row| -> Result<DeviceInfo, DatabaseError> {
        Ok(DeviceInfo {
            id: row.text(0)?.to_owned(),
            name: row.text(1)?.to_owned(),
            created: row.int(2)?,
            last_seen: row.int(3)?,
            revoked: row.optional_int(4)?,
        })
    };
    Ok(rows.iter().map(device).collect::<Result<_, _>>()?)
}

/// Revokes the token of a device of the caller.
pub fn revoke(
    connection: &mut dyn Connection,
    caller: &Caller,
    device: &str,
    now: i64,
) -> Result<(), HubError> {
    revoke_of(connection, &caller.account, device, now)
}

/// Revokes the token of a device of an account, for the operator.
pub fn revoke_of(
    connection: &mut dyn Connection,
    account: &str,
    device: &str,
    now: i64,
) -> Result<(), HubError> {
    let sql = "UPDATE device SET revoked = $3 WHERE account = $1 AND id = $2 AND revoked IS NULL";
    if connection.execute(sql, values![account, device, now])? == 1 {
        return access_changed(connection);
    }
    // Revoked already, or of nobody.
    let sql = "SELECT id FROM device WHERE account = $1 AND id = $2";
    connection.row(sql, values![account, device])?.map(drop).ok_or_else(HubError::not_found)
}

/// Notes when a device was seen.
pub(crate) fn seen(connection: &mut dyn Connection, device: &str, now: i64) -> Result<(), HubError> {
    connection.execute("UPDATE device SET last_seen = $2 WHERE id = $1", values![device, now])?;
    Ok(())
}

/// Lets open streams check again whether they may go on.
pub(crate) fn access_changed(connection: &mut dyn Connection) -> Result<(), HubError> {
    connection.execute("UPDATE counter SET value = value + 1 WHERE name = 'access'", &[])?;
    Ok(())
}

/// Starts a login.
pub fn start_login(connection: &mut dyn Connection, name: &str, now: i64) -> Result<LoginStarted, HubError> {
    connection.execute("DELETE FROM login WHERE expires < $1", values![now])?;
    let waiting = connection.row("SELECT count(*) FROM login", &[])?.ok_or(DatabaseError::Shape)?.count(0)?;
    if waiting >= MOST_LOGINS {
        return Err(HubError::new(ProblemCode::TooMany, "too many logins wait; try again in a minute"));
    }
    let secret = Token::generate("rtd");
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
    loop {
        let code = secret::user_code();
        let sql = "INSERT INTO login (hash, code, name, expires, polled) VALUES ($1, $2, $3, $4, 0) ON CONFLICT DO NOTHING";
        let values = values![&secret.hash(), &code, &name, now + LOGIN_LIFETIME];
        if connection.execute(sql, values)? == 1 {
            return Ok(LoginStarted {
                device_code: secret.text().to_owned(),
                user_code: format!("{}-{}", &code[..4], &code[4..]),
                interval: INTERVAL,
                expires_in: (LOGIN_LIFETIME / 1000) as u64,
            });
        }
    }
}

/// Approves a login for the account of the caller. Wrong codes are counted, so the result of a wrong one is no error of
/// the transaction.
pub fn approve(
    connection: &mut dyn Connection,
    caller: &Caller,
    typed: &str,
    now: i64,
) -> Result<Result<(), HubError>, HubError> {
    let sql = "INSERT INTO login_try (account, tries, since) VALUES ($1, 0, $2) ON CONFLICT DO NOTHING";
    connection.execute(sql, values![&caller.account, now])?;
    let sql = "UPDATE login_try SET tries = 0, since = $2 WHERE account = $1 AND since < $3";
    connection.execute(sql, values![&caller.account, now, now - LOGIN_LIFETIME])?;
    let sql = "UPDATE login_try SET tries = tries + 1 WHERE account = $1 AND tries < $2";
    if connection.execute(sql, values![&caller.account, TRIES])? == 0 {
        let message = "too many wrong codes; start the login again in 15 minutes";
        return Ok(Err(HubError::new(ProblemCode::TooMany, message)));
    }
    if !approve_for(connection, &caller.account, typed, now)? {
        return Ok(Err(HubError::not_found()));
    }
    // Only wrong codes count.
    let sql = "UPDATE login_try SET tries = tries - 1 WHERE account = $1";
    connection.execute(sql, values![&caller.account])?;
    Ok(Ok(()))
}

/// Approves a login for an account, for the operator. Returns false if no login has this code.
pub fn approve_for(
    connection: &mut dyn Connection,
    account: &str,
    typed: &str,
    now: i64,
) -> Result<bool, HubError> {
    let sql = "UPDATE login SET account = $2 WHERE code = $1 AND account IS NULL AND expires >= $3";
    Ok(connection.execute(sql, values![secret::normalized_code(typed), account, now])? == 1)
}

/// Gives a device its token, once, if its login was approved. The outcome of a question that comes too early is stored, so it
/// is no error of the transaction.
pub fn finish_login(
    connection: &mut dyn Connection,
    device_code: &str,
    now: i64,
) -> Result<Result<LoggedIn, HubError>, HubError> {
    let hash = secret::hash(device_code);
    let row =
        connection.row("SELECT account, name, polled, expires FROM login WHERE hash = $1", values![&hash])?;
    let Some(row) = row.filter(|row| row.int(3).is_ok_and(|expires| expires >= now)) else {
        let message = "the login expired or is not known; start it again";
        return Ok(Err(HubError::new(ProblemCode::Unauthorized, message)));
    };
    let polled = row.int(2)?;
    connection.execute("UPDATE login SET polled = $2 WHERE hash = $1", values![&hash, now])?;
    // Half a second of tolerance for the way.
    if now - polled < INTERVAL as i64 * 1000 - 500 {
        let message = format!("ask every {INTERVAL} seconds");
        return Ok(Err(HubError::new(ProblemCode::TooMany, message)));
    }
    let Some(account) = row.optional_text(0)? else {
        return Ok(Err(HubError::new(ProblemCode::Pending, "the login waits for its approval")));
    };
    // Two questions at once: one of them removes the row.
    if connection.execute("DELETE FROM login WHERE hash = $1", values![&hash])? == 0 {
        return Ok(Err(HubError::new(ProblemCode::Unauthorized, "the login was finished already")));
    }
    Ok(Ok(add_device(connection, account, row.text(1)?, now)?))
}
