//! Browsers: a link that holds once becomes a cookie.

use retake_model::time::Timestamp;
use retake_timeline::store::Ledger;

use super::token::{TokenError, secret};
use crate::problem::{Code, Problem};

/// What the cookie is called.
pub(crate) const COOKIE_NAME: &str = "retake";

/// How long a link holds.
const LINK_MILLIS: i64 = 10 * 60 * 1000;

/// A link that holds once, for ten minutes: what comes behind the server's address.
pub fn new_ticket(ledger: &Ledger, now: Timestamp) -> Result<String, TicketError> {
    let ticket = secret()?;
    ledger.add_ticket(&hash_of(&ticket), Timestamp::from_millis(now.millis() + LINK_MILLIS))?;
    Ok(format!("{}{ticket}", super::ENTER))
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
    if !ledger.use_ticket(&hash_of(ticket), now)? {
        let detail =
            "the link was used already, or is older than ten minutes; `retake serve link` makes a new one";
        return Err(Problem::new(Code::Unauthorized, detail));
    }
    let cookie = secret().map_err(|error| Problem::new(Code::Internal, error))?;
    ledger.add_visitor(&hash_of(&cookie), &token, now)?;
    Ok(cookie)
}

/// The values of our cookie in a header.
pub(super) fn values(header: &str) -> impl Iterator<Item = &str> {
    header.split(';').filter_map(|pair| match pair.trim().split_once('=') {
        Some((COOKIE_NAME, value)) => Some(value),
        _ => None,
    })
}

/// What is kept of a secret.
pub(super) fn hash_of(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}
