//! Who is let in.
//!
//! ```text
//!   Host        one of the server's own names        a page that re-points its name at this machine stays out
//!   Origin      none, or this very server            a page of another site stays out
//!   credential  the token, or a browser's cookie     everybody else stays out
//! ```
//!
//! The three are asked of every request, in this order, before anything else is looked at. The token is in a file that
//! only its owner can read, and is read for each request: a new one holds at once. A browser gets in by a link that
//! holds once and becomes a cookie; the cookie holds as long as the token that the link was made under.

mod host;
mod token;
mod visitor;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, USER_AGENT};
use axum::http::{HeaderMap, Method, Uri};
use retake_model::operation::Actor;
use retake_timeline::Timeline;
use retake_timeline::store::Ledger;

pub use host::reachable;
pub(crate) use host::{Hosts, name_of_address};
use token::HeldBack;
pub use token::{Token, TokenError, TokenFile};
pub(crate) use visitor::STAY_SECONDS;
pub use visitor::{TicketError, new_ticket};

use crate::dispatch::headers::{self, LONGEST_CLIENT};
use crate::endpoint::Who;
use crate::problem::{Code, Problem};

/// Where a browser's link leads.
pub(crate) const ENTER: &str = "/login/";

/// Decides who is let in.
pub(crate) struct Gate {
    token: TokenFile,
    hosts: Hosts,
    ledger: Ledger,
    timeline: Timeline,
    cookie: String,
}

impl Gate {
    pub(crate) fn new(timeline: &Timeline, token: TokenFile, hosts: Hosts) -> Result<Self, Problem> {
        let cookie = visitor::cookie_name(timeline.store().folder());
        Ok(Self { token, hosts, ledger: timeline.store().ledger()?, timeline: timeline.clone(), cookie })
    }

    /// What the cookie of browsers is called here.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Whether the request comes from where requests may come from.
    pub(crate) fn check_place(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let mut named = headers.get_all(HOST).iter();
        let host = match (named.next().and_then(|value| value.to_str().ok()), named.next()) {
            (Some(host), None) if self.hosts.allows(host) => host,
            _ => return Err(Problem::new(Code::HostNotAllowed, "the Host is not one of this server's")),
        };
        if uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host)) {
            return Err(Problem::new(Code::HostNotAllowed, "the address and the Host differ"));
        }
        let foreign = || Problem::new(Code::OriginNotAllowed, "a page of another site asks");
        for origin in headers.get_all(ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| host::is_same(origin, host)) {
                return Err(foreign());
            }
        }
        let fetch = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        match fetch("sec-fetch-site") {
            None | Some("same-origin" | "none") => Ok(()),
            // A link may be followed from anywhere: what it leads to has no effect, and no cookie comes along.
            Some(_) if *method == Method::GET && fetch("sec-fetch-mode") == Some("navigate") => Ok(()),
            Some(_) => Err(foreign()),
        }
    }

    /// Who asks, by the token or by a cookie.
    pub(crate) fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<Who, Problem> {
        let refused = || Problem::new(Code::Unauthorized, "the request has no credential that holds");
        let token = self.token_now()?;
        let hash = token.hash();
        if let Some(given) = headers.get(AUTHORIZATION) {
            let given = given.to_str().ok().and_then(|text| text.split_once(' '));
            return match given {
                Some((scheme, given)) if scheme.eq_ignore_ascii_case("bearer") && token.is(given.trim()) => {
                    Ok(Who { actor: client(headers)?, token: hash })
                }
                _ => Err(refused()),
            };
        }
        let since = visitor::since(self.timeline.now());
        for cookie in self.cookies(headers) {
            if self.ledger.visitor_token(&visitor::hash_of(cookie), since)? == Some(hash) {
                Self::check_page(method, headers)?;
                return Ok(Who { actor: Actor::Human, token: hash });
            }
        }
        Err(refused())
    }

    /// The token that holds now. Without one nobody is let in; why there is none is for who can read the log.
    fn token_now(&self) -> Result<Token, Problem> {
        self.token.read().map_err(|error| {
            tracing::warn!(%error, "there is no token, so that nobody is let in");
            match error.holds_back() {
                HeldBack::ForGood => Problem::new(
                    Code::Unauthorized,
                    "the server has no token that holds, so that nobody is let in; `retake serve token` on its machine \
                     says why, or makes one",
                ),
                HeldBack::ForNow => Problem::new(Code::Unavailable, "the server could not read its token"),
            }
        })
    }

    /// What a browser says to have been let in by.
    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let said = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        said.flat_map(|header| visitor::values(&self.cookie, header))
    }

    /// The hash of the token that holds now; none if there is none, and nobody is in.
    pub(crate) fn current(&self) -> Option<[u8; 32]> {
        self.token.read().ok().map(|token| token.hash())
    }

    /// Lets a browser in by a link that holds once; gives the cookie.
    pub(crate) fn enter(&self, ticket: &str) -> Result<String, Problem> {
        let token = self.token_now()?;
        visitor::enter(&self.ledger, ticket, token.hash(), self.timeline.now())
    }

    /// Lets a browser go.
    pub(crate) fn leave(&self, headers: &HeaderMap) -> Result<(), Problem> {
        for cookie in self.cookies(headers) {
            self.ledger.remove_visitor(&visitor::hash_of(cookie))?;
        }
        Ok(())
    }

    /// A cookie comes along by itself, so that a change must say that it comes from a page of this server.
    fn check_page(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        let same = headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
        if method.is_safe() || headers.contains_key(ORIGIN) || same {
            return Ok(());
        }
        Err(Problem::new(Code::OriginNotAllowed, "a change with a cookie must say which page it comes from"))
    }
}

/// The program that asks, by what it calls itself. What it says on purpose is taken as it is, or refused; what its
/// library says of itself only helps.
fn client(headers: &HeaderMap) -> Result<Actor, Problem> {
    if let Some(name) = headers::client(headers)? {
        return Ok(Actor::Client { name: name.to_owned() });
    }
    let said = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name: String =
        said.chars().filter(|character| !character.is_control()).take(LONGEST_CLIENT).collect();
    let name = name.trim();
    Ok(Actor::Client { name: if name.is_empty() { "api" } else { name }.to_owned() })
}
