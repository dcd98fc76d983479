//! The tables, and their migrations.
//!
//! A migration is never changed after a release; a new one is added behind it. Each runs in one transaction together with
//! the number of the schema, under a lock, so that several hubs may start at once.

use super::{Connection, DatabaseError};
use crate::values;

/// All migrations, in order. `BYTEA` is `BLOB` in SQLite.
const MIGRATIONS: &[&[&str]] = &[&[
    // Counters that belong to no space. `access` counts changes of who may do what; open streams check again.
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "INSERT INTO counter VALUES ('access', 0)",
    "CREATE TABLE account (
       id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created BIGINT NOT NULL, disabled BIGINT,
       support BIGINT NOT NULL DEFAULT 0, oidc_subject TEXT UNIQUE)",
    "CREATE TABLE device (
       id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES account (id), name TEXT NOT NULL,
       token_hash BYTEA NOT NULL UNIQUE, created BIGINT NOT NULL, last_seen BIGINT NOT NULL, revoked BIGINT)",
    "CREATE INDEX device_account ON device (account)",
    // A login that waits for approval. Its code is short, so wrong tries are counted per account.
    "CREATE TABLE login (
       hash BYTEA PRIMARY KEY, code TEXT NOT NULL UNIQUE, name TEXT NOT NULL, expires BIGINT NOT NULL,
       polled BIGINT NOT NULL, account TEXT REFERENCES account (id))",
    "CREATE INDEX login_expires ON login (expires)",
    "CREATE TABLE login_try (account TEXT PRIMARY KEY, tries BIGINT NOT NULL, since BIGINT NOT NULL)",
    // `seq` is a row and not a sequence: sequences commit out of order, and a reader of the feed would skip rows.
    "CREATE TABLE space (
       id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, quota BIGINT NOT NULL, bytes BIGINT NOT NULL,
       seq BIGINT NOT NULL, sealed BIGINT NOT NULL DEFAULT 0, created BIGINT NOT NULL)",
    "CREATE TABLE member (
       space TEXT NOT NULL REFERENCES space (id), account TEXT NOT NULL REFERENCES account (id), role TEXT NOT NULL,
       PRIMARY KEY (space, account))",
    "CREATE INDEX member_account ON member (account)",
    "CREATE TABLE thread (
       space TEXT NOT NULL REFERENCES space (id), id TEXT NOT NULL, owner TEXT NOT NULL, number BIGINT NOT NULL,
       version BIGINT NOT NULL, head BYTEA NOT NULL, bytes BIGINT NOT NULL, project TEXT NOT NULL, title TEXT NOT NULL,
       agent_state TEXT NOT NULL, messages BIGINT NOT NULL, summary TEXT NOT NULL, summary_hash BYTEA NOT NULL,
       created BIGINT NOT NULL, updated BIGINT NOT NULL, deleted BIGINT, purged BIGINT, redacted BIGINT,
       PRIMARY KEY (space, id))",
    "CREATE INDEX thread_updated ON thread (space, updated)",
    // The ranges of the bundles of a thread tile its versions, and each names the head before it.
    "CREATE TABLE bundle (
       space TEXT NOT NULL, thread TEXT NOT NULL, number BIGINT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
       head BYTEA NOT NULL, id BYTEA NOT NULL, bytes BIGINT NOT NULL, body BYTEA, place TEXT,
       PRIMARY KEY (space, thread, number), FOREIGN KEY (space, thread) REFERENCES thread (space, id))",
    "CREATE TABLE file_pack (
       space TEXT NOT NULL, project TEXT NOT NULL, number BIGINT NOT NULL, id BYTEA NOT NULL, bytes BIGINT NOT NULL,
       place TEXT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (space, project, number))",
    "CREATE TABLE upload (
       space TEXT NOT NULL, account TEXT NOT NULL, id BYTEA NOT NULL, bytes BIGINT NOT NULL, received BIGINT NOT NULL,
       expires BIGINT NOT NULL, PRIMARY KEY (space, account, id))",
    "CREATE INDEX upload_expires ON upload (expires)",
    "CREATE TABLE upload_part (
       space TEXT NOT NULL, account TEXT NOT NULL, id BYTEA NOT NULL, start BIGINT NOT NULL, bytes BIGINT NOT NULL,
       place TEXT NOT NULL, PRIMARY KEY (space, account, id, start))",
    // Values are bytes, because texts are compared in the order of some language in Postgres.
    "CREATE TABLE facet (
       space TEXT NOT NULL, kind TEXT NOT NULL, value BYTEA NOT NULL, thread TEXT NOT NULL,
       PRIMARY KEY (space, kind, value, thread))",
    "CREATE INDEX facet_thread ON facet (space, thread)",
    "CREATE TABLE feed (
       space TEXT NOT NULL, seq BIGINT NOT NULL, thread TEXT NOT NULL, what TEXT NOT NULL, PRIMARY KEY (space, seq))",
    "CREATE TABLE redaction (
       space TEXT NOT NULL, content TEXT NOT NULL, thread TEXT NOT NULL, account TEXT NOT NULL, at BIGINT NOT NULL,
       PRIMARY KEY (space, thread, content))",
    "CREATE TABLE support_grant (
       space TEXT NOT NULL, thread TEXT NOT NULL, account TEXT NOT NULL, until BIGINT NOT NULL,
       PRIMARY KEY (space, thread))",
    "CREATE TABLE link (
       hash BYTEA PRIMARY KEY, id TEXT NOT NULL UNIQUE, space TEXT NOT NULL, thread TEXT NOT NULL, account TEXT NOT NULL,
       take TEXT NOT NULL, version BIGINT NOT NULL, title TEXT NOT NULL, content TEXT, created BIGINT NOT NULL,
       expires BIGINT NOT NULL, revoked BIGINT)",
    "CREATE INDEX link_account ON link (account)",
    "CREATE INDEX link_thread ON link (space, thread)",
    "CREATE TABLE audit (
       space TEXT NOT NULL, at BIGINT NOT NULL, nonce TEXT NOT NULL, account TEXT NOT NULL, device TEXT NOT NULL,
       action TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (space, at, nonce))",
    // Objects of the store that no row refers to any more, or does not refer to yet.
    "CREATE TABLE garbage (place TEXT PRIMARY KEY, since BIGINT NOT NULL)",
    "CREATE INDEX garbage_since ON garbage (since)",
]];

/// Brings the tables up to date. `prepare` is the type of bytes of the engine.
pub(super) fn migrate(connection: &mut dyn Connection, bytes_type: &str) -> Result<(), DatabaseError> {
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (number BIGINT NOT NULL)", &[])?;
    let found = connection.row("SELECT number FROM schema_version", &[])?;
    let found = found.map(|row| row.int(0)).transpose()?;
    let known = MIGRATIONS.len() as i64;
    if found.unwrap_or(0) > known {
        return Err(DatabaseError::Newer { found: found.unwrap_or(0), known });
    }
    for migration in &MIGRATIONS[found.unwrap_or(0) as usize..] {
        for statement in *migration {
            connection.execute(&statement.replace("BYTEA", bytes_type), &[])?;
        }
    }
    match found {
        None => connection.execute("INSERT INTO schema_version VALUES ($1)", values![known])?,
        Some(_) => connection.execute("UPDATE schema_version SET number = $1", values![known])?,
    };
    Ok(())
}
