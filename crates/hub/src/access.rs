//! Who may do what: the only place that decides it.
//!
//! ```text
//!   token ──► Caller ──► AuthorizedSpace ──► AuthorizedThread
//!             (device)    (member, role)      (exists here, not purged)
//! ```
//!
//! Queries take these types, which nothing else creates, so that a route cannot forget the check. One statement finds all
//! of it, in the transaction of the request itself. A space or thread of others is absent: same answer, same work.

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_sync::wire::{ProblemCode, Role, SpaceKind, ThreadHead};

use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::values;

/// The hash of a token that came with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials(pub [u8; 32]);

/// A device with a valid token.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(crate) account: String,
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) last_seen: i64,
    is_support: bool,
}

/// A space that the caller may use.
#[derive(Clone, Debug)]
pub struct AuthorizedSpace {
    caller: Caller,
    id: String,
    kind: SpaceKind,
    role: Role,
}

/// A thread that the caller may use.
#[derive(Clone, Debug)]
pub struct AuthorizedThread {
    space: AuthorizedSpace,
    id: ThreadId,
    state: ThreadState,
    by_support: bool,
}

/// A place for a thread: the thread, or nothing yet. Only pushes take it.
#[derive(Clone, Debug)]
pub struct AuthorizedPush {
    space: AuthorizedSpace,
    id: ThreadId,
    state: Option<ThreadState>,
}

/// The row of a thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadState {
    pub(crate) head: ThreadHead,
    pub(crate) owner: String,
    pub(crate) summary_hash: [u8; 32],
    /// How often content was redacted. A push that was checked before one of them fails.
    pub(crate) redactions: u64,
    is_purged: bool,
}

impl AuthorizedSpace {
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn kind(&self) -> SpaceKind {
        self.kind
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }
}

impl AuthorizedThread {
    pub(crate) fn space(&self) -> &AuthorizedSpace {
        &self.space
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.id
    }

    pub(crate) fn state(&self) -> &ThreadState {
        &self.state
    }

    /// Whether the caller sees it by a grant for support.
    pub(crate) fn by_support(&self) -> bool {
        self.by_support
    }

    /// Fails unless the caller created the thread or owns the space.
    pub(crate) fn require_control(&self) -> Result<(), HubError> {
        if self.state.owner == self.space.caller.account || self.space.role == Role::Owner {
            return Ok(());
        }
        Err(forbidden("only the account that created a thread, or an owner of the space, may do this"))
    }
}

impl AuthorizedPush {
    pub(crate) fn space(&self) -> &AuthorizedSpace {
        &self.space
    }

    pub(crate) fn id(&self) -> ThreadId {
        self.id
    }

    pub(crate) fn state(&self) -> Option<&ThreadState> {
        self.state.as_ref()
    }
}

/// The device of a token.
pub fn caller(connection: &mut dyn Connection, credentials: Option<Credentials>) -> Result<Caller, HubError> {
    Ok(find(connection, credentials, "", "")?.0)
}

/// A space in which the caller has at least this role.
pub fn space(
    connection: &mut dyn Connection,
    credentials: Option<Credentials>,
    space: &str,
    role: Role,
) -> Result<AuthorizedSpace, HubError> {
    let (caller, row) = find(connection, credentials, space, "")?;
    authorize(caller, &row, space, role)
}

/// A thread in a space in which the caller has at least this role.
pub fn thread(
    connection: &mut dyn Connection,
    credentials: Option<Credentials>,
    (space, id): (&str, ThreadId),
    role: Role,
    now: i64,
) -> Result<AuthorizedThread, HubError> {
    let (caller, row) = find(connection, credentials, space, &id.to_string())?;
    let by_support = caller.is_support && row.optional_text(6)?.is_none() && role == Role::Reader;
    if by_support {
        return support(connection, caller, (space, id), now);
    }
    let space = authorize(caller, &row, space, role)?;
    let state = state(&row)?.ok_or_else(HubError::not_found)?;
    if state.is_purged {
        return Err(purged());
    }
    Ok(AuthorizedThread { space, id, state, by_support: false })
}

/// A place for a push.
pub fn push(
    connection: &mut dyn Connection,
    credentials: Option<Credentials>,
    (space, id): (&str, ThreadId),
) -> Result<AuthorizedPush, HubError> {
    let (caller, row) = find(connection, credentials, space, &id.to_string())?;
    let space = authorize(caller, &row, space, Role::Member)?;
    let state = state(&row)?;
    if state.as_ref().is_some_and(|state| state.is_purged) {
        return Err(purged());
    }
    Ok(AuthorizedPush { space, id, state })
}

const FIND: &str = "
    SELECT d.id, d.account, a.name, a.support, d.last_seen, s.kind, m.role,
           t.number, t.version, t.head, t.owner, t.summary_hash, t.redacted, t.purged
    FROM device d JOIN account a ON a.id = d.account
    LEFT JOIN member m ON m.account = d.account AND m.space = $2
    LEFT JOIN space s ON s.id = m.space
    LEFT JOIN thread t ON t.space = s.id AND t.id = $3
    WHERE d.token_hash = $1 AND d.revoked IS NULL AND a.disabled IS NULL";

fn find(
    connection: &mut dyn Connection,
    credentials: Option<Credentials>,
    space: &str,
    thread: &str,
) -> Result<(Caller, Row), HubError> {
    let refused =
        || HubError::new(ProblemCode::Unauthorized, "no valid token; log in with `retake remote login`");
    let Credentials(hash) = credentials.ok_or_else(refused)?;
    let row = connection.row(FIND, values![&hash, space, thread])?.ok_or_else(refused)?;
    let caller = Caller {
        device: row.text(0)?.to_owned(),
        account: row.text(1)?.to_owned(),
        name: row.text(2)?.to_owned(),
        is_support: row.int(3)? != 0,
        last_seen: row.int(4)?,
    };
    Ok((caller, row))
}

fn authorize(caller: Caller, row: &Row, space: &str, needed: Role) -> Result<AuthorizedSpace, HubError> {
    let (Some(kind), Some(role)) = (row.optional_text(5)?, row.optional_text(6)?) else {
        return Err(HubError::not_found());
    };
    let (kind, role) = (parse_kind(kind)?, parse_role(role)?);
    if role < needed {
        return Err(forbidden("the role of this account in the space does not allow it; ask an owner"));
    }
    Ok(AuthorizedSpace { caller, id: space.to_owned(), kind, role })
}

fn state(row: &Row) -> Result<Option<ThreadState>, DatabaseError> {
    if row.optional_int(7)?.is_none() {
        return Ok(None);
    }
    let head = ContentId::from_bytes(row.hash(9)?);
    Ok(Some(ThreadState {
        head: ThreadHead { number: row.count(7)?, version: row.count(8)?, head },
        owner: row.text(10)?.to_owned(),
        summary_hash: row.hash(11)?,
        redactions: row.optional_int(12)?.unwrap_or(0).unsigned_abs(),
        is_purged: row.optional_int(13)?.is_some(),
    }))
}

/// A thread that its account shows to support for some days.
fn support(
    connection: &mut dyn Connection,
    caller: Caller,
    (space, id): (&str, ThreadId),
    now: i64,
) -> Result<AuthorizedThread, HubError> {
    let sql = "
        SELECT '', '', '', CAST(0 AS BIGINT), CAST(0 AS BIGINT), s.kind, 'reader',
               t.number, t.version, t.head, t.owner, t.summary_hash, t.redacted, t.purged
        FROM support_grant g JOIN space s ON s.id = g.space JOIN thread t ON t.space = g.space AND t.id = g.thread
        JOIN member m ON m.space = g.space AND m.account = g.account JOIN account a ON a.id = g.account
        WHERE g.space = $1 AND g.thread = $2 AND g.until > $3 AND t.purged IS NULL AND a.disabled IS NULL";
    let row = connection.row(sql, values![space, id.to_string(), now])?.ok_or_else(HubError::not_found)?;
    let space = authorize(caller, &row, space, Role::Reader)?;
    let state = state(&row)?.ok_or_else(HubError::not_found)?;
    Ok(AuthorizedThread { space, id, state, by_support: true })
}

fn purged() -> HubError {
    let message = "the thread was purged; keep it on this device only, or purge it here too";
    HubError::new(ProblemCode::Purged, message)
}

pub(crate) fn forbidden(message: &str) -> HubError {
    HubError::new(ProblemCode::Forbidden, message)
}

pub(crate) fn parse_role(text: &str) -> Result<Role, DatabaseError> {
    match text {
        "reader" => Ok(Role::Reader),
        "member" => Ok(Role::Member),
        "owner" => Ok(Role::Owner),
        _ => Err(DatabaseError::Shape),
    }
}

pub(crate) fn role_text(role: Role) -> &'static str {
    match role {
        Role::Reader => "reader",
        Role::Member => "member",
        Role::Owner => "owner",
    }
}

pub(crate) fn parse_kind(text: &str) -> Result<SpaceKind, DatabaseError> {
    match text {
        "personal" => Ok(SpaceKind::Personal),
        "organization" => Ok(SpaceKind::Organization),
        _ => Err(DatabaseError::Shape),
    }
}
