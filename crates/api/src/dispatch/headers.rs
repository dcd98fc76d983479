//! Request headers, and the headers of every response.

use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, IF_MATCH,
    REFERRER_POLICY, TRANSFER_ENCODING, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use retake_model::operation::Version;

use crate::endpoint::{Endpoint, JSON, RequestBodyKind};
use crate::problem::{Code, Problem};

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const CLIENT_NAME: &str = "Retake-Client";
const LAST_EVENT_ID: &str = "last-event-id";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of an idempotency key.
const MAX_KEY_LENGTH: usize = 200;
/// Maximum length of a client name.
pub(crate) const MAX_CLIENT_LENGTH: usize = 60;

/// The expected version; `None` for any.
pub(super) fn expected(headers: &HeaderMap) -> Result<Option<Version>, Problem> {
    let Some(value) = one(headers, IF_MATCH.as_str())? else { return Ok(None) };
    let value = value.trim();
    if value == "*" {
        return Ok(None);
    }
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let digits = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
    match bare.parse() {
        Ok(version) if digits => Ok(Some(version)),
        _ => Err(Problem::invalid("If-Match must be one version, as in the ETag of a response: \"17\"")),
    }
}

/// The idempotency key.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    Ok(name(headers, IDEMPOTENCY_KEY, MAX_KEY_LENGTH)?.map(str::to_owned))
}

/// The name of the client program, if given.
pub(crate) fn client(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    name(headers, CLIENT_NAME, MAX_CLIENT_LENGTH)
}

/// The last event that a client of a stream received.
pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    Ok(one(headers, LAST_EVENT_ID)?.map(str::to_owned))
}

/// Checks the media type of the body.
pub(super) fn check_kind(headers: &HeaderMap, endpoint: &Endpoint) -> Result<(), Problem> {
    let wanted = match endpoint.takes {
        RequestBodyKind::Json(_) | RequestBodyKind::Nothing => JSON,
        RequestBodyKind::File(kind) => kind,
    };
    let plain = |coding: &str| coding.eq_ignore_ascii_case("chunked");
    if headers.contains_key(CONTENT_ENCODING) || !one(headers, TRANSFER_ENCODING.as_str())?.is_none_or(plain)
    {
        return Err(Problem::new(Code::UnsupportedMediaType, "the body must not be compressed"));
    }
    let Some(header_value) = one(headers, CONTENT_TYPE.as_str())? else {
        // A body must have an explicit JSON type, which HTML forms of other sites cannot send.
        let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let has_body = headers.contains_key("transfer-encoding") || length.is_some_and(|length| length > 0);
        return if has_body { Err(kind_needed(wanted)) } else { Ok(()) };
    };
    let mut parts = header_value.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let text = parts.all(|part| {
        part.is_empty()
            || part.split_once('=').is_some_and(|(name, value)| {
                !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
            })
    });
    if kind.eq_ignore_ascii_case(wanted) && text { Ok(()) } else { Err(kind_needed(wanted)) }
}

/// A version as an entity tag.
pub(super) fn version(version: Version) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes are a header")
}

/// Whether the client is a browser that wants a page; programs accept anything or JSON.
pub(super) fn wants_page(method: &Method, headers: &HeaderMap) -> bool {
    let header_values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds =
        header_values.flat_map(|value| value.split(',')).filter_map(|kind| kind.split(';').next());
    method.is_safe() && kinds.any(|kind| kind.trim().eq_ignore_ascii_case("text/html"))
}

/// Allows a page to load its own style sheet only.
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Sets the content type.
pub(super) fn kind(headers: &mut HeaderMap, kind: &'static str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if kind == crate::page::HTML {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    }
}

/// Sets the headers of every response.
pub(super) fn finish(headers: &mut HeaderMap, request: &str) {
    let set = |headers: &mut HeaderMap, name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(headers, CACHE_CONTROL, "no-store");
    set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(headers, REFERRER_POLICY, "no-referrer");
    set(headers, CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    set(headers, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(headers, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(headers, VARY, "Accept, Authorization, Cookie, Origin");
    if let Ok(request) = HeaderValue::from_str(request) {
        headers.insert(REQUEST_ID, request);
    }
}

fn kind_needed(wanted: &str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, format!("the Content-Type must be {wanted}"))
}

/// The single value of a header that is a short name.
fn name<'a>(
    headers: &'a HeaderMap,
    header: &'static str,
    longest: usize,
) -> Result<Option<&'a str>, Problem> {
    let Some(name) = one(headers, header)? else { return Ok(None) };
    let plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if name.is_empty() || name.len() > longest || !plain {
        return Err(Problem::invalid(format!("{header} must be 1 to {longest} printable ASCII characters")));
    }
    Ok(Some(name))
}

/// The single value of a header.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Problem::invalid(format!("{name} is not ASCII text")))?;
            Ok(Some(text))
        }
        _ => Err(Problem::invalid(format!("{name} is given twice"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn if_match_is_one_version() {
        let check = |values: &[&'static str], wanted: Option<Option<Version>>| {
            assert_eq!(expected(&with(IF_MATCH, values)).ok(), wanted, "{values:?}");
        };
        check(&[], Some(None));
        check(&["*"], Some(None));
        check(&["\"17\""], Some(Some(17)));
        check(&["17"], Some(Some(17)));
        for bad in ["", "\"\"", "W/\"17\"", "\"17\", \"18\"", "+1", "-1", "\"1", "99999999999999999999"] {
            check(&[bad], None);
        }
        check(&["1", "2"], None);
    }

    #[test]
    fn a_key_is_short_and_plain() {
        let name: HeaderName = IDEMPOTENCY_KEY.parse().expect("a header's name");
        assert_eq!(key(&with(name.clone(), &["a b-1"])).ok(), Some(Some("a b-1".to_owned())));
        assert!(key(&with(name.clone(), &[""])).is_err());
        assert!(key(&with(name.clone(), &["one", "two"])).is_err());
        let mut long = HeaderMap::new();
        long.insert(name, HeaderValue::from_str(&"k".repeat(MAX_KEY_LENGTH + 1)).expect("a header"));
        assert!(key(&long).is_err());
    }

    #[test]
    fn a_client_name_is_optional_and_single() {
        let check = |values: &[&'static str], wanted: Option<Option<&str>>| {
            let headers = with(CLIENT_NAME.parse().expect("a header's name"), values);
            assert_eq!(client(&headers).ok(), wanted, "{values:?}");
        };
        check(&[], Some(None));
        check(&["an editor/1.0"], Some(Some("an editor/1.0")));
        check(&[""], None);
        check(&["one", "two"], None);
        check(&["0123456789012345678901234567890123456789012345678901234567891"], None);
    }
}
