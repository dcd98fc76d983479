//! Spaces and their members.
//!
//! Where a thread is decides who sees it: in a personal space its account, in an organization all members. There is no
//! second rule for single threads, which the gaps of a feed would contradict anyway.

use retake_sync::wire::{AccountInfo, MemberInfo, ProblemCode, Role, SpaceInfo, SpaceKind};

use crate::access::{AuthorizedSpace, Caller, forbidden, parse_kind, parse_role, role_text};
use crate::accounts::access_changed;
use crate::audit;
use crate::database::{Connection, DatabaseError, Row};
use crate::error::HubError;
use crate::{accounts, secret, values};

/// The most organizations that an account may create.
const MOST_SPACES: u64 = 100;

/// Creates the personal space of an account.
pub(crate) fn create_personal(
    connection: &mut dyn Connection,
    account: &str,
    name: &str,
    quota: u64,
    now: i64,
) -> Result<(), HubError> {
    let id = insert(connection, "personal", name, quota, now)?;
    let sql = "INSERT INTO member (space, account, role) VALUES ($1, $2, 'owner')";
    connection.execute(sql, values![&id, account])?;
    Ok(())
}

fn insert(
    connection: &mut dyn Connection,
    kind: &str,
    name: &str,
    quota: u64,
    now: i64,
) -> Result<String, HubError> {
    let id = secret::new_id();
    let sql =
        "INSERT INTO space (id, kind, name, quota, bytes, seq, created) VALUES ($1, $2, $3, $4, 0, 0, $5)";
    connection.execute(sql, values![&id, kind, name, quota, now])?;
    Ok(id)
}

/// Creates an organization that the caller owns.
pub fn create_organization(
    connection: &mut dyn Connection,
    caller: &Caller,
    name: &str,
    quota: u64,
    now: i64,
) -> Result<SpaceInfo, HubError> {
    let name = name.trim();
    if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
        return Err(HubError::new(ProblemCode::Invalid, "the name of a space has 1 to 100 characters"));
    }
    let sql = "SELECT count(*) FROM member m JOIN space s ON s.id = m.space
               WHERE m.account = $1 AND m.role = 'owner' AND s.kind = 'organization'";
    let owned = connection.row(sql, values![&caller.account])?.ok_or(DatabaseError::Shape)?.count(0)?;
    if owned >= MOST_SPACES {
        return Err(forbidden("an account may own 100 organizations"));
    }
    let id = insert(connection, "organization", name, quota, now)?;
    let sql = "INSERT INTO member (space, account, role) VALUES ($1, $2, 'owner')";
    connection.execute(sql, values![&id, &caller.account])?;
    let who = (caller.account.as_str(), caller.device.as_str());
    audit::record_as(connection, &id, who, ("space created", name), now)?;
    Ok(SpaceInfo {
        id,
        kind: SpaceKind::Organization,
        name: name.to_owned(),
        role: Role::Owner,
        quota,
        bytes: 0,
        seq: 0,
    })
}

/// The calling account, and the spaces that it may use; the personal one first.
pub fn account(connection: &mut dyn Connection, caller: &Caller) -> Result<AccountInfo, HubError> {
    let sql = "
        SELECT s.id, s.kind, s.name, m.role, s.quota, s.bytes, s.seq
        FROM member m JOIN space s ON s.id = m.space WHERE m.account = $1
        ORDER BY CASE s.kind WHEN 'personal' THEN 0 ELSE 1 END, s.name, s.id";
    let rows = connection.query(sql, values![&caller.account])?;
    let spaces = rows.iter().map(space_info).collect::<Result<_, _>>()?;
    Ok(AccountInfo { account: caller.name.clone(), device: caller.device.clone(), spaces })
}

/// One space.
pub fn info(connection: &mut dyn Connection, space: &AuthorizedSpace) -> Result<SpaceInfo, HubError> {
    let sql = "SELECT s.id, s.kind, s.name, m.role, s.quota, s.bytes, s.seq
               FROM member m JOIN space s ON s.id = m.space WHERE m.space = $1 AND m.account = $2";
    let row = connection.row(sql, values![space.id(), &space.caller().account])?;
    Ok(space_info(&row.ok_or_else(HubError::not_found)?)?)
}

fn space_info(row: &Row) -> Result<SpaceInfo, DatabaseError> {
    Ok(SpaceInfo {
        id: row.text(0)?.to_owned(),
        kind: parse_kind(row.text(1)?)?,
        name: row.text(2)?.to_owned(),
        role: parse_role(row.text(3)?)?,
        quota: row.count(4)?,
        bytes: row.count(5)?,
        seq: row.count(6)?,
    })
}

/// The members of a space, by name.
pub fn members(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
) -> Result<Vec<MemberInfo>, HubError> {
    let sql = "SELECT a.name, m.role FROM member m JOIN account a ON a.id = m.account
               WHERE m.space = $1 ORDER BY a.name";
    let rows = connection.query(sql, values![space.id()])?;
    let member = |row: &Row| -> Result<MemberInfo, DatabaseError> {
        Ok(MemberInfo { account: row.text(0)?.to_owned(), role: parse_role(row.text(1)?)? })
    };
    Ok(rows.iter().map(member).collect::<Result<_, _>>()?)
}

/// Adds a member to an organization, or changes the role.
pub fn set_role(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    name: &str,
    role: Role,
    now: i64,
) -> Result<(), HubError> {
    require_organization(space)?;
    let account = accounts::id_of(connection, name)?;
    let sql = "INSERT INTO member (space, account, role) VALUES ($1, $2, $3)
               ON CONFLICT (space, account) DO UPDATE SET role = excluded.role";
    connection.execute(sql, values![space.id(), &account, role_text(role)])?;
    changed(connection, space, &format!("member {name} is {}", role_text(role)), now)
}

/// Removes a member from an organization.
pub fn remove_member(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    name: &str,
    now: i64,
) -> Result<(), HubError> {
    require_organization(space)?;
    // Before the name is looked up: the answer says nothing about accounts.
    let leaves = name == space.caller().name;
    if !leaves && space.role() < Role::Owner {
        return Err(forbidden("only an owner of the space removes other members"));
    }
    let sql = "DELETE FROM member WHERE space = $1 AND account IN (SELECT id FROM account WHERE name = $2)";
    if connection.execute(sql, values![space.id(), name])? == 0 {
        return Err(HubError::not_found());
    }
    changed(connection, space, &format!("member {name} removed"), now)
}

fn require_organization(space: &AuthorizedSpace) -> Result<(), HubError> {
    match space.kind() {
        SpaceKind::Organization => Ok(()),
        SpaceKind::Personal => {
            Err(forbidden("a personal space has no other members; create an organization"))
        }
    }
}

/// A space without an owner could never be managed again.
fn changed(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    subject: &str,
    now: i64,
) -> Result<(), HubError> {
    // Two owners who remove each other at once: the second waits for this row.
    connection.execute("UPDATE space SET name = name WHERE id = $1", values![space.id()])?;
    let sql = "SELECT count(*) FROM member WHERE space = $1 AND role = 'owner'";
    let owners = connection.row(sql, values![space.id()])?.ok_or(DatabaseError::Shape)?.count(0)?;
    if owners == 0 {
        return Err(forbidden("a space needs an owner; make another member one first"));
    }
    audit::record(connection, space, "members changed", subject, now)?;
    access_changed(connection)
}

/// All spaces, for the operator.
pub fn list(connection: &mut dyn Connection) -> Result<Vec<SpaceInfo>, HubError> {
    let rows = connection
        .query("SELECT id, kind, name, 'owner', quota, bytes, seq FROM space ORDER BY kind, name, id", &[])?;
    Ok(rows.iter().map(space_info).collect::<Result<_, _>>()?)
}

/// Sets the most bytes of a space, for the operator.
pub fn set_quota(connection: &mut dyn Connection, space: &str, quota: u64) -> Result<(), HubError> {
    let sql = "UPDATE space SET quota = $2 WHERE id = $1";
    match connection.execute(sql, values![space, quota])? {
        0 => Err(HubError::not_found()),
        _ => Ok(()),
    }
}
