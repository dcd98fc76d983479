//! Browser sessions: a single-use login link becomes a cookie.
//!
//! Browsers send cookies to every port of a machine, so that the cookie name depends on the store: servers of different
//! stores do not overwrite each other's cookies, and servers of one store share sessions.

use std::path::Path;

use retake_model::time::Timestamp;
use retake_store::runtime::RuntimeDatabase;

use super::token::{Token, TokenError, secret};
use crate::problem::{Code, Problem};

/// Lifetime of a session, unless the token changes.
pub(crate) const SESSION_SECONDS: i64 = 30 * 24 * 60 * 60;

/// Lifetime of a login link.
const LINK_LIFETIME_MILLIS: i64 = 10 * 60 * 1000;

/// The cookie name of a store.
pub(super) fn cookie_name(store: &Path) -> String {
    let place = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let hash = blake3::hash(place.as_os_str().as_encoded_bytes()).to_hex();
    format!("retake-{}", &hash[..12])
}

/// Creates a single-use login link, valid for ten minutes and as long as the token; returns the path below the server's
/// address.
pub fn new_login_link(
    runtime_database: &RuntimeDatabase,
    token: &Token,
    now: Timestamp,
) -> Result<String, LoginLinkError> {
    let ticket = secret()?;
    let expires = Timestamp::from_millis(now.millis() + LINK_LIFETIME_MILLIS);
    runtime_database.add_ticket(&hash_under(&ticket, &token.hash()), expires)?;
    Ok(format!("{}{ticket}", super::LOGIN_PATH))
}

/// Sessions created before this time have expired.
pub(super) fn since(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.millis() - SESSION_SECONDS * 1000)
}

/// Why no login link could be created.
#[derive(Debug, thiserror::Error)]
pub enum LoginLinkError {
    /// The system has no random numbers.
    #[error(transparent)]
    Random(#[from] TokenError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] retake_timeline::StoreError),
}

impl From<LoginLinkError> for Problem {
    fn from(error: LoginLinkError) -> Self {
        match error {
            LoginLinkError::Random(error) => error.into(),
            LoginLinkError::Store(error) => error.into(),
        }
    }
}

/// Consumes a login link; returns the cookie.
pub(super) fn login(
    runtime_database: &RuntimeDatabase,
    ticket: &str,
    token: [u8; 32],
    now: Timestamp,
) -> Result<String, Problem> {
    if !runtime_database.use_ticket(&hash_under(ticket, &token), now)? {
        let detail = "the link was used already, is older than ten minutes, or belongs to an earlier token; `retake serve link` prints a new one";
        return Err(Problem::new(Code::Unauthorized, detail));
    }
    let cookie = secret().map_err(|error| Problem::new(Code::Internal, error))?;
    runtime_database.add_browser_session(&hash_of(&cookie), &token, now, since(now))?;
    Ok(cookie)
}

/// The values of the named cookie in a header.
pub(super) fn values<'a>(name: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    header.split(';').filter_map(move |pair| {
        pair.trim().split_once('=').filter(|(known, _)| *known == name).map(|(_, value)| value)
    })
}

/// The stored hash of a secret that is valid for one token only.
fn hash_under(secret: &str, token: &[u8; 32]) -> [u8; 32] {
    *blake3::keyed_hash(token, secret.as_bytes()).as_bytes()
}

/// The stored hash of a secret.
pub(super) fn hash_of(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}
