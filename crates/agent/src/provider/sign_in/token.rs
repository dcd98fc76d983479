//! Short-lived tokens: fetched when needed, cached in memory until shortly before they expire.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::{Secret, SignInError};
use crate::provider::config::run_key_command;

/// Replace a token this long before it expires, so that it does not expire in transit.
const MARGIN: Duration = Duration::from_mins(2);

/// Lifetime of a token without a known expiry.
const UNKNOWN_LIFE: Duration = Duration::from_mins(5);

/// Timeout for a command. Some commands call a service themselves.
const COMMAND: Duration = Duration::from_mins(1);

/// The tokens of this process by source. Each turn has a new endpoint; the token outlives it.
static TOKENS: Mutex<BTreeMap<String, Token>> = Mutex::new(BTreeMap::new());

/// A source of tokens.
#[derive(Clone)]
pub struct TokenSource {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// A user's command that prints a token.
    Command(String),
    #[cfg(feature = "vertex")]
    Google(Box<super::google::GoogleCredentials>),
}

/// A token and its expiry.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) secret: Secret,
    pub(super) until: Timestamp,
}

impl TokenSource {
    /// A command that prints a token, such as `az account get-access-token … --output tsv`.
    pub fn command(command: &str) -> Self {
        Self { kind: Kind::Command(command.to_owned()) }
    }

    /// Google's token service.
    #[cfg(feature = "vertex")]
    pub(crate) fn google(credentials: super::google::GoogleCredentials) -> Self {
        Self { kind: Kind::Google(Box::new(credentials)) }
    }

    /// Returns a valid token.
    pub(super) async fn token(&self, connector: &reqwest::Client) -> Result<Secret, SignInError> {
        let name = self.name();
        let now = Timestamp::now();
        if let Some(token) = tokens(|tokens| tokens.get(&name).cloned()).filter(|token| token.until > now) {
            return Ok(token.secret);
        }
        let token = match &self.kind {
            Kind::Command(command) => {
                let _ = connector;
                by_command(command.clone(), now).await?
            }
            #[cfg(feature = "vertex")]
            Kind::Google(credentials) => credentials.fetch(connector, now).await?,
        };
        tokens(|tokens| tokens.insert(name, token.clone()));
        Ok(token.secret)
    }

    /// The address of the token service, if the source is one.
    pub(super) fn address(&self) -> Option<&reqwest::Url> {
        match &self.kind {
            Kind::Command(_) => None,
            #[cfg(feature = "vertex")]
            Kind::Google(credentials) => Some(credentials.token_uri()),
        }
    }

    pub(super) fn secrets(&self) -> Vec<Secret> {
        let name = self.name();
        let token = tokens(|tokens| tokens.get(&name).map(|token| token.secret.clone()));
        let fixed = match &self.kind {
            Kind::Command(_) => Vec::new(),
            #[cfg(feature = "vertex")]
            Kind::Google(credentials) => credentials.secrets(),
        };
        token.into_iter().chain(fixed).collect()
    }

    pub(super) fn forget(&self) {
        let name = self.name();
        // Remember the refused token, so that it is still redacted in the server's messages.
        tokens(|tokens| {
            if let Some(token) = tokens.get_mut(&name) {
                token.until = Timestamp::MIN;
            }
        });
    }

    /// Identifies the source: sources with the same name share tokens.
    fn name(&self) -> String {
        match &self.kind {
            Kind::Command(command) => format!("command {command}"),
            #[cfg(feature = "vertex")]
            Kind::Google(credentials) => credentials.name(),
        }
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.kind {
            Kind::Command(_) => "TokenSource::Command",
            #[cfg(feature = "vertex")]
            Kind::Google(_) => "TokenSource::Google",
        })
    }
}

#[cfg(feature = "vertex")]
impl Token {
    /// A token that expires in `seconds`.
    pub(super) fn lasting(secret: Secret, now: Timestamp, seconds: u64) -> Self {
        let life = Duration::from_secs(seconds).saturating_sub(MARGIN).max(Duration::from_secs(10));
        Self { secret, until: now.checked_add(life).unwrap_or(now) }
    }
}

fn tokens<T>(with: impl FnOnce(&mut BTreeMap<String, Token>) -> T) -> T {
    with(&mut TOKENS.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn by_command(command: String, now: Timestamp) -> Result<Token, SignInError> {
    let shown = command.clone();
    let run = tokio::task::spawn_blocking(move || run_key_command(&command));
    let Ok(Ok(ran)) = tokio::time::timeout(COMMAND, run).await else {
        let message = format!("the command {shown:?} did not finish within {} seconds", COMMAND.as_secs());
        return Err(SignInError::refused(message));
    };
    let secret = ran.map_err(|error| SignInError::refused(error.to_string()))?;
    let until = match expiry(secret.reveal()) {
        Some(end) => end.checked_sub(MARGIN).unwrap_or(now),
        None => now.checked_add(UNKNOWN_LIFE).unwrap_or(now),
    };
    Ok(Token { secret, until })
}

/// The expiry of a JSON Web Token, if it has one. Nothing else in the token is trusted.
fn expiry(token: &str) -> Option<Timestamp> {
    #[derive(serde::Deserialize)]
    struct Claims {
        exp: i64,
    }
    let claims = token.split('.').nth(1)?;
    let claims = data_encoding::BASE64URL_NOPAD.decode(claims.trim_end_matches('=').as_bytes()).ok()?;
    Timestamp::from_second(serde_json::from_slice::<Claims>(&claims).ok()?.exp).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expiry_of_a_token_is_read() {
        let claims = data_encoding::BASE64URL_NOPAD.encode(br#"{"exp":1800000000,"aud":"x"}"#);
        assert_eq!(expiry(&format!("h.{claims}.s")), Timestamp::from_second(1_800_000_000).ok());
        for token in ["", "opaque", "a.b.c", "a.e30.c"] {
            assert_eq!(expiry(token), None, "{token}");
        }
    }

    #[cfg(feature = "vertex")]
    #[test]
    fn a_token_is_replaced_before_it_expires() {
        let now = Timestamp::now();
        let token = Token::lasting(Secret::new("t"), now, 3600);
        assert_eq!(now.duration_until(token.until).as_secs(), 3600 - 120);
        assert!(Token::lasting(Secret::new("t"), now, 5).until > now);
    }
}
