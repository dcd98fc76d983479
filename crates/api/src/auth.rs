//! Authentication.
//!
//! ```text
//!   Host        one of the server's own names        prevents DNS rebinding
//!   Origin      none, or this server                 prevents cross-site requests
//!   credential  the token, or a session cookie
//! ```
//!
//! Every request passes these three checks, in this order, before anything else. The token is in a file that only its
//! owner can read. It is read for each request, so that rotation takes effect at once. A browser logs in with a
//! single-use link and gets a cookie, which is valid as long as the token that the link was created with.

mod browser_session;
mod host;
mod token;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, USER_AGENT};
use axum::http::{HeaderMap, Method, Uri};
use retake_model::operation::Actor;
use retake_store::runtime::RuntimeDatabase;
use retake_timeline::Timeline;

pub(crate) use browser_session::SESSION_SECONDS;
pub use browser_session::{LoginLinkError, new_login_link};
pub use host::reachable;
pub(crate) use host::{Hosts, name_of_address};
use token::TokenUnavailable;
pub use token::{Token, TokenError, TokenFile};

use crate::dispatch::headers::{self, MAX_CLIENT_LENGTH};
use crate::endpoint::Identity;
use crate::problem::{Code, Problem};

/// The path of login links.
pub(crate) const LOGIN_PATH: &str = "/login/";

/// Authenticates requests.
pub(crate) struct Auth {
    token: TokenFile,
    hosts: Hosts,
    runtime_database: RuntimeDatabase,
    timeline: Timeline,
    cookie: String,
}

impl Auth {
    pub(crate) fn new(timeline: &Timeline, token: TokenFile, hosts: Hosts) -> Result<Self, Problem> {
        let cookie = browser_session::cookie_name(timeline.store().folder());
        Ok(Self {
            token,
            hosts,
            runtime_database: timeline.store().runtime_database()?,
            timeline: timeline.clone(),
            cookie,
        })
    }

    /// The name of the session cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Checks the Host and the Origin of a request.
    pub(crate) fn check_host(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let mut named = headers.get_all(HOST).iter();
        let host = match (named.next().and_then(|value| value.to_str().ok()), named.next()) {
            (Some(host), None) if self.hosts.allows(host) => host,
            _ => {
                return Err(Problem::new(
                    Code::HostNotAllowed,
                    "the Host header is not a name of this server",
                ));
            }
        };
        if uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host)) {
            return Err(Problem::new(Code::HostNotAllowed, "the request target and the Host header differ"));
        }
        let foreign =
            || Problem::new(Code::OriginNotAllowed, "the request comes from a page of another site");
        for origin in headers.get_all(ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| host::is_same(origin, host)) {
                return Err(foreign());
            }
        }
        let fetch = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        match fetch("sec-fetch-site") {
            None | Some("same-origin" | "none") => Ok(()),
            // Links may be followed from other sites: GET has no effect, and SameSite keeps the cookie out.
            Some(_) if *method == Method::GET && fetch("sec-fetch-mode") == Some("navigate") => Ok(()),
            Some(_) => Err(foreign()),
        }
    }

    /// Identifies the caller by the token or a session cookie.
    pub(crate) fn authenticate(&self, method: &Method, headers: &HeaderMap) -> Result<Identity, Problem> {
        let refused = || Problem::new(Code::Unauthorized, "the request has no valid credential");
        let token = self.current_token()?;
        let hash = token.hash();
        if let Some(given) = headers.get(AUTHORIZATION) {
            let given = given.to_str().ok().and_then(|text| text.split_once(' '));
            return match given {
                Some((scheme, given)) if scheme.eq_ignore_ascii_case("bearer") && token.is(given.trim()) => {
                    Ok(Identity { actor: client(headers)?, token: hash })
                }
                _ => Err(refused()),
            };
        }
        let since = browser_session::since(self.timeline.now());
        for cookie in self.cookies(headers) {
            if self.runtime_database.browser_session_token(&browser_session::hash_of(cookie), since)?
                == Some(hash)
            {
                Self::check_page(method, headers)?;
                return Ok(Identity { actor: Actor::Human, token: hash });
            }
        }
        Err(refused())
    }

    /// The current token. Without one every request is refused; only the log says why.
    fn current_token(&self) -> Result<Token, Problem> {
        self.token.read().map_err(|error| {
            tracing::warn!(%error, "no token: all requests are refused");
            match error.unavailability() {
                TokenUnavailable::Permanent => Problem::new(
                    Code::Unauthorized,
                    "the server has no valid token, so it refuses all requests; run `retake serve token` on its machine to see why, or to create one",
                ),
                TokenUnavailable::Temporary => Problem::new(Code::Unavailable, "the server cannot read its token file"),
            }
        })
    }

    /// The session cookies of a request.
    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|header| browser_session::values(&self.cookie, header))
    }

    /// The hash of the current token; `None` if there is no token.
    pub(crate) fn current_token_hash(&self) -> Option<[u8; 32]> {
        self.token.read().ok().map(|token| token.hash())
    }

    /// Logs a browser in with a single-use link; returns the cookie.
    pub(crate) fn login(&self, ticket: &str) -> Result<String, Problem> {
        let token = self.current_token()?;
        browser_session::login(&self.runtime_database, ticket, token.hash(), self.timeline.now())
    }

    /// Ends a browser session.
    pub(crate) fn logout(&self, headers: &HeaderMap) -> Result<(), Problem> {
        for cookie in self.cookies(headers) {
            self.runtime_database.remove_browser_session(&browser_session::hash_of(cookie))?;
        }
        Ok(())
    }

    /// Browsers send cookies automatically, so that a change must prove that it comes from a page of this server.
    fn check_page(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        let same = headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
        if method.is_safe() || headers.contains_key(ORIGIN) || same {
            return Ok(());
        }
        Err(Problem::new(
            Code::OriginNotAllowed,
            "a change with a session cookie needs an Origin or Sec-Fetch-Site header of this server",
        ))
    }
}

/// The actor of a client program. An explicit Retake-Client name must be valid; the User-Agent is only a fallback.
fn client(headers: &HeaderMap) -> Result<Actor, Problem> {
    if let Some(name) = headers::client(headers)? {
        return Ok(Actor::Client { name: name.to_owned() });
    }
    let value = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name: String =
        value.chars().filter(|character| !character.is_control()).take(MAX_CLIENT_LENGTH).collect();
    let name = name.trim();
    Ok(Actor::Client { name: if name.is_empty() { "api" } else { name }.to_owned() })
}
