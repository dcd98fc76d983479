//! Browsers: a link that holds once becomes a cookie.
//!
//! A browser sends a cookie to every port of a machine. Its name is therefore another one for each store: servers of two
//! stores do not take each other's away, and those of one store know the same browsers.

use std::path::Path;

use retake_model::time::Timestamp;
use retake_timeline::store::Ledger;

use super::token::{Token, TokenError, secret};
use crate::problem::{Code, Problem};

/// A browser stays in for so long, unless the token changes.
pub(crate) const STAY_SECONDS: i64 = 30 * 24 * 60 * 60;

/// How long a link holds.
const LINK_MILLIS: i64 = 10 * 60 * 1000;

/// What the cookie of a store's servers is called.
pub(super) fn cookie_name(store: &Path) -> String {
    let place = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let hash = blake3::hash(place.as_os_str().as_encoded_bytes()).to_hex();
    format!("retake-{}", &hash[..12])
}

/// A link that holds once, for ten minutes and as long as the token does: what comes behind the server's address.
pub fn new_ticket(ledger: &Ledger, token: &Token, now: Timestamp) -> Result<String, TicketError> {
    let ticket = secret()?;
    let expires = Timestamp::from_millis(now.millis() + LINK_MILLIS);
    ledger.add_ticket(&hash_under(&ticket, &token.hash()), expires)?;
    Ok(format!("{}{ticket}", super::ENTER))
}

/// Browsers that came in before this moment are out.
pub(super) fn since(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.millis() - STAY_SECONDS * 1000)
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// There are no dice.
    #[error(transparent)]
    Dice(#[from] TokenError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] retake_timeline::store::StoreError),
}

/// Uses a link up; gives the cookie.
pub(super) fn enter(
    ledger: &Ledger,
    ticket: &str,
    token: [u8; 32],
    now: Timestamp,
) -> Result<String, Problem> {
    if !ledger.use_ticket(&hash_under(ticket, &token), now)? {
        let detail = "the link was used already, is older than ten minutes, or was made under another token; \
                      `retake serve link` makes a new one";
        return Err(Problem::new(Code::Unauthorized, detail));
    }
    let cookie = secret().map_err(|error| Problem::new(Code::Internal, error))?;
    ledger.add_visitor(&hash_of(&cookie), &token, now, since(now))?;
    Ok(cookie)
}

/// The values of the cookie of that name in a header.
pub(super) fn values<'a>(name: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    header.split(';').filter_map(move |pair| {
        pair.trim().split_once('=').filter(|(known, _)| *known == name).map(|(_, value)| value)
    })
}

/// What is kept of a secret that holds under one token alone.
fn hash_under(secret: &str, token: &[u8; 32]) -> [u8; 32] {
    *blake3::keyed_hash(token, secret.as_bytes()).as_bytes()
}

/// What is kept of a secret.
pub(super) fn hash_of(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}
