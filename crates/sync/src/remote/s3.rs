//! A bucket of an S3 server as a remote.
//!
//! An object is put under its name; the next head is put with `If-None-Match: *`, which fails if it exists. That is the only
//! ordering there is without a server, so `remote add` tries it, also with several writers at once: servers that ignore the
//! header, or check it without locking, are refused.
//!
//! Requests are signed here (AWS Signature Version 4, with the hash functions that TLS needs anyway): a client of Amazon's
//! would double the crates of the program.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use ring::{digest, hmac};

use super::connect::Credentials;
use super::http::{Answer, HttpClient, Request};
use super::objects::{ObjectRemote, ObjectSpace, OpenRemoteError};
use super::{OpenMode, RemoteError};
use crate::config::is_this_machine;

/// The most bytes of a list of names or an error.
const TEXT_BYTES: u64 = 4 << 20;

/// A remote in a bucket.
pub type BucketRemote = ObjectRemote<Bucket>;

/// Where a bucket is.
#[derive(Clone, Debug)]
pub struct BucketAddress {
    /// The name of the bucket.
    pub bucket: String,
    /// The first parts of the names of its objects.
    pub prefix: String,
    /// The server; Amazon's own without one.
    pub endpoint: Option<String>,
    /// The region.
    pub region: String,
}

/// Objects of a bucket.
#[derive(Debug)]
pub struct Bucket {
    base: Url,
    host: String,
    prefix: String,
    region: String,
    access_key: String,
    secret: String,
    place: String,
    http: HttpClient,
}

impl BucketRemote {
    /// Opens a bucket.
    pub fn in_bucket(
        address: &BucketAddress,
        credentials: &Credentials,
        mode: OpenMode,
    ) -> Result<Self, OpenRemoteError> {
        let bucket = Bucket::new(address, credentials)?;
        match mode {
            OpenMode::Existing => Self::open(bucket),
            OpenMode::Create => Self::open_or_create(bucket),
        }
    }
}

impl BucketRemote {
    /// Creates the bucket itself.
    pub fn create_bucket(address: &BucketAddress, credentials: &Credentials) -> Result<(), OpenRemoteError> {
        let bucket = Bucket::new(address, credentials)?;
        let answer = bucket.send(Method::PUT, "", &[], b"", None, TEXT_BYTES)?;
        Ok(bucket.done(&answer)?)
    }
}

impl Bucket {
    fn new(address: &BucketAddress, credentials: &Credentials) -> Result<Self, OpenRemoteError> {
        let BucketAddress { bucket, prefix, endpoint, region } = address;
        let place = format!("s3://{bucket}/{prefix}");
        let text = match endpoint {
            Some(endpoint) => format!("{}/{bucket}/", endpoint.trim_end_matches('/')),
            None => format!("https://{bucket}.s3.{region}.amazonaws.com/"),
        };
        let unknown = || OpenRemoteError::Address(crate::config::AddressError::Unknown(text.clone()));
        let base: Url = text.parse().map_err(|_| unknown())?;
        let host = base.host_str().ok_or_else(unknown)?.to_owned();
        if base.scheme() != "https" && !(base.scheme() == "http" && is_this_machine(&host)) {
            return Err(crate::config::AddressError::Unencrypted(text).into());
        }
        let host = base.port().map_or(host.clone(), |port| format!("{host}:{port}"));
        let (Some(access_key), Some(secret)) = (&credentials.access_key, &credentials.secret) else {
            let reason = "there are none; `retake remote login` stores them, or set AWS_ACCESS_KEY_ID and \
                          AWS_SECRET_ACCESS_KEY";
            return Err(RemoteError::Unauthorized { place, reason: reason.to_owned() }.into());
        };
        let http =
            HttpClient::new().map_err(|error| RemoteError::Unreachable { place: place.clone(), error })?;
        Ok(Self {
            base,
            host,
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            region: region.clone(),
            access_key: access_key.clone(),
            secret: secret.clone(),
            place,
            http,
        })
    }

    fn send(
        &self,
        method: Method,
        name: &str,
        query: &[(&str, &str)],
        body: &[u8],
        header: Option<(&'static str, &'static str)>,
        most: u64,
    ) -> Result<Answer, RemoteError> {
        let path = format!("{}{}", self.base.path(), escape(name, true));
        let query = canonical_query(query);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = amazon_time(now.as_secs());
        let signed = Signed {
            method: method.as_str(),
            path: &path,
            query: &query,
            host: &self.host,
            time: &time,
            region: &self.region,
            access_key: &self.access_key,
            secret: &self.secret,
        };
        let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put("x-amz-date", &time);
        put("x-amz-content-sha256", &hash);
        put("authorization", &signed.authorization(&hash));
        if let Some((name, value)) = header {
            put(name, value);
        }
        let mut url = self.base.clone();
        url.set_path(&path);
        url.set_query((!query.is_empty()).then_some(&query));
        let request = Request { method, url, headers, body, most, wait: Duration::ZERO };
        self.http.send(&self.place, request)
    }

    /// The error of an answer.
    fn refused(&self, answer: &Answer) -> RemoteError {
        let text = String::from_utf8_lossy(&answer.body);
        let code = elements(&text, "Code").next().unwrap_or_default();
        let message = elements(&text, "Message").next().unwrap_or_default();
        let reason = match code.as_str() {
            "" => format!("status {}", answer.status),
            code => format!("{code} {message}").trim().to_owned(),
        };
        let place = self.place.clone();
        match (answer.status, code.as_str()) {
            (_, "SignatureDoesNotMatch" | "InvalidAccessKeyId" | "ExpiredToken" | "InvalidToken")
            | (401, _) => RemoteError::Unauthorized { place, reason },
            (_, "RequestTimeTooSkewed") => {
                RemoteError::Refused { place, reason: "the clock of this machine is wrong".to_owned() }
            }
            (_, "QuotaExceeded") | (507, _) => RemoteError::Quota { place, reason },
            (403, _) => RemoteError::Forbidden { place, reason },
            (408 | 409 | 429 | 500.., _) => {
                let after = answer.headers.get("retry-after").and_then(|value| value.to_str().ok());
                let after = after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
                RemoteError::Busy { place, reason, after }
            }
            _ => RemoteError::Refused { place, reason },
        }
    }

    fn done(&self, answer: &Answer) -> Result<(), RemoteError> {
        if (200..300).contains(&answer.status) { Ok(()) } else { Err(self.refused(answer)) }
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl ObjectSpace for Bucket {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, RemoteError> {
        let answer = self.send(Method::GET, &self.name(name), &[], b"", None, most)?;
        if answer.status == 404 {
            let text = String::from_utf8_lossy(&answer.body);
            return match elements(&text, "Code").next().as_deref() {
                Some("NoSuchBucket") => Err(self.refused(&answer)),
                _ => Ok(None),
            };
        }
        self.done(&answer)?;
        // A body that ends early must not count as a shorter object.
        let declared = answer.headers.get("content-length").and_then(|value| value.to_str().ok());
        match declared.and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if length != answer.body.len() as u64 => {
                let error = io::ErrorKind::UnexpectedEof.into();
                Err(RemoteError::Unreachable { place: self.place.clone(), error })
            }
            _ => Ok(Some(answer.body)),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        let answer = self.send(Method::PUT, &self.name(name), &[], bytes, None, TEXT_BYTES)?;
        self.done(&answer)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, RemoteError> {
        let only_new = Some(("if-none-match", "*"));
        let answer = self.send(Method::PUT, &self.name(name), &[], bytes, only_new, TEXT_BYTES)?;
        if answer.status == 412 {
            return Ok(false);
        }
        self.done(&answer).map(|()| true)
    }

    fn list(&self, parts: &str) -> Result<Vec<String>, RemoteError> {
        let prefix = self.name(&if parts.is_empty() { String::new() } else { format!("{parts}/") });
        let (mut names, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![("delimiter", "/"), ("list-type", "2"), ("prefix", prefix.as_str())];
            if let Some(token) = &next {
                query.insert(0, ("continuation-token", token.as_str()));
            }
            let answer = self.send(Method::GET, "", &query, b"", None, TEXT_BYTES)?;
            self.done(&answer)?;
            let text = String::from_utf8_lossy(&answer.body);
            let below =
                |name: String| name.strip_prefix(&prefix).map(|name| name.trim_end_matches('/').to_owned());
            let folders =
                elements(&text, "CommonPrefixes").filter_map(|part| elements(&part, "Prefix").next());
            let found = elements(&text, "Key").chain(folders).filter_map(below);
            names.extend(found.filter(|name| !name.is_empty()));
            next = elements(&text, "NextContinuationToken").next().filter(|token| !token.is_empty());
            if next.is_none() {
                break;
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), RemoteError> {
        let answer = self.send(Method::DELETE, &self.name(name), &[], b"", None, TEXT_BYTES)?;
        if answer.status == 404 { Ok(()) } else { self.done(&answer) }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(5)
    }
}

/// What a signature covers.
struct Signed<'request> {
    method: &'request str,
    path: &'request str,
    query: &'request str,
    host: &'request str,
    time: &'request str,
    region: &'request str,
    access_key: &'request str,
    secret: &'request str,
}

impl Signed<'_> {
    fn authorization(&self, body: &str) -> String {
        let Self { method, path, query, host, time, region, access_key, secret } = self;
        let headers = "host;x-amz-content-sha256;x-amz-date";
        let canonical = format!(
            "{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{body}\nx-amz-date:{time}\n\n{headers}\n{body}"
        );
        let day = &time[..8];
        let scope = format!("{day}/{region}/s3/aws4_request");
        let hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [day, region, "s3", "aws4_request", &text] {
            key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
        }
        let signature = hex(&key);
        format!(
            "AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={headers},Signature={signature}"
        )
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Escapes all but the characters that a signature leaves as they are.
fn escape(text: &str, with_slashes: bool) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (with_slashes && byte == b'/') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

fn canonical_query(query: &[(&str, &str)]) -> String {
    let parts: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name, false), escape(value, false)))
        .collect();
    parts.join("&")
}

/// `20260131T235959Z`.
fn amazon_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // The civil calendar, counted from the first of March of the year 0.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The contents of all elements of a name, with their entities replaced.
fn elements<'text>(text: &'text str, name: &str) -> impl Iterator<Item = String> + use<'text> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let length = rest[start..].find(&close)?;
        let found = &rest[start..start + length];
        rest = &rest[start + length + close.len()..];
        let plain = found.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        Some(plain.replace("&#39;", "'").replace("&amp;", "&"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_documentation() {
        // "Example: GET Bucket (List Objects)" of the Amazon S3 API reference.
        let signed = Signed {
            method: "GET",
            path: "/",
            query: "max-keys=2&prefix=J",
            host: "examplebucket.s3.amazonaws.com",
            time: "20130524T000000Z",
            region: "us-east-1",
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        };
        let empty = hex(digest::digest(&digest::SHA256, b"").as_ref());
        let authorization = signed.authorization(&empty);
        let expected = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert!(authorization.ends_with(expected), "{authorization}");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (1_798_761_599, "20261231T235959Z"),
        ] {
            assert_eq!(amazon_time(seconds), expected);
        }
    }

    #[test]
    fn elements_are_found_in_order() {
        let text = "<A><Key>one</Key><Key>a&amp;lt;</Key><Key>open";
        assert_eq!(elements(text, "Key").collect::<Vec<_>>(), ["one", "a&lt;"]);
    }
}
