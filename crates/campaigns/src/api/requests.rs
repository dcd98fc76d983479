//! Generates valid, faulty and hostile requests.

use retake_api::client::ClientRequest;
use serde_json::{Value, json};

use super::operations::{Operation, ParameterLocation};
use super::values::KnownValues;
use crate::rng::Rng;

pub(super) struct RequestGenerator {
    pub(super) operations: Vec<Operation>,
    pub(super) seen: KnownValues,
    pub(super) token: String,
    /// Number of generated requests, for unique names.
    pub(super) made: u64,
    /// The folder that contains every path a request may name.
    pub(super) place: String,
    /// The last export, which imports use.
    pub(super) exported: Vec<u8>,
}

/// A request and its operation.
#[derive(Clone, Debug)]
pub(super) struct GeneratedRequest {
    pub(super) asked: ClientRequest,
    /// Index of the operation; `None` if the route is arbitrary.
    pub(super) operation: Option<usize>,
}

/// A request before serialization.
struct Draft {
    method: String,
    path: String,
    path_values: Vec<(String, String)>,
    query: Vec<(String, String)>,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Value>,
    kind: String,
}

const ODD_STRINGS: [&str; 18] = [
    "",
    "\0",
    "a\0b",
    "..",
    "../../../../etc/passwd",
    "/",
    "%",
    "%00",
    "%2e%2e%2f",
    "'; DROP TABLE threads; --",
    "\u{202e}\u{feff}\u{1b}[31m",
    "-1",
    "18446744073709551616",
    "9223372036854775808",
    "1e400",
    "NaN",
    "null",
    "00000000000000000000000000",
];

impl RequestGenerator {
    pub(super) fn next(&mut self, rng: &mut Rng) -> GeneratedRequest {
        self.made += 1;
        let index = rng.index(self.operations.len());
        let operation = self.operations[index].clone();
        let mut draft = self.right(&operation, rng);
        match rng.below(20) {
            0..=11 => GeneratedRequest { asked: self.write(draft, rng), operation: Some(index) },
            12..=16 => {
                self.mistake(&mut draft, rng);
                GeneratedRequest { asked: self.write(draft, rng), operation: Some(index) }
            }
            _ => self.hostile(draft, index, rng),
        }
    }

    /// A valid request.
    fn right(&self, operation: &Operation, rng: &mut Rng) -> Draft {
        let mut draft = Draft {
            method: operation.method.clone(),
            path: operation.path.clone(),
            path_values: Vec::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            kind: String::new(),
        };
        for parameter in &operation.parameters {
            if !parameter.required
                && !rng.once_in(if parameter.place == ParameterLocation::Header { 8 } else { 4 })
            {
                continue;
            }
            let value = text(&self.seen.value(&parameter.name, &parameter.schema, rng));
            let name = parameter.name.clone();
            match parameter.place {
                ParameterLocation::Path => draft.path_values.push((name, value)),
                ParameterLocation::Query => draft.query.push((name, value)),
                ParameterLocation::Header if name == "If-Match" => {
                    let value = if rng.once_in(4) { "*".to_owned() } else { format!("\"{value}\"") };
                    draft.headers.push((name, value.into_bytes()));
                }
                ParameterLocation::Header => {
                    // Reuses some keys.
                    let number = if rng.once_in(3) { rng.below(5) } else { self.made };
                    draft.headers.push((name, format!("key-{number}").into_bytes()));
                }
            }
        }
        if let Some(body) = &operation.body
            && (body.required || rng.once_in(2))
        {
            draft.kind = body.kind.clone();
            draft.body = Some(self.seen.value("", &body.schema, rng));
        }
        draft
    }

    /// Makes one part of a valid request invalid.
    fn mistake(&self, draft: &mut Draft, rng: &mut Rng) {
        let odd = || -> String { String::new() };
        match rng.below(6) {
            0 if !draft.path_values.is_empty() => {
                let index = rng.index(draft.path_values.len());
                draft.path_values[index].1 = rng.pick(&ODD_STRINGS).map_or_else(odd, |odd| (*odd).to_owned());
            }
            1 if !draft.query.is_empty() => {
                let index = rng.index(draft.query.len());
                draft.query[index].1 = rng.pick(&ODD_STRINGS).map_or_else(odd, |odd| (*odd).to_owned());
                if rng.once_in(4) {
                    let again = draft.query[index].clone();
                    draft.query.push(again);
                }
            }
            2 => draft.query.push(("unknown".to_owned(), "1".to_owned())),
            3 => {
                let name = *rng
                    .pick(&["If-Match", "Idempotency-Key", "Last-Event-ID", "Content-Type"])
                    .unwrap_or(&"X");
                let value = rng.pick(&ODD_STRINGS).map_or_else(odd, |odd| odd.replace('\0', ""));
                draft.headers.push((name.to_owned(), value.into_bytes()));
            }
            _ => {
                if let Some(body) = &mut draft.body {
                    spoil(body, rng);
                    self.keep_inside(body);
                }
            }
        }
    }

    /// An arbitrary request.
    fn hostile(&self, mut draft: Draft, index: usize, rng: &mut Rng) -> GeneratedRequest {
        let kind = draft.kind.clone();
        let mut operation = None;
        let mut asked = match rng.below(12) {
            0 => {
                draft.method = (*rng
                    .pick(&["HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "GET"])
                    .unwrap_or(&"PUT"))
                .to_owned();
                self.write(draft, rng)
            }
            1 => {
                let mut asked = self.write(draft, rng);
                asked.target = format!(
                    "{}/{}",
                    asked.target,
                    rng.pick(&["%00", "%ff%fe", "..", "//", "a%2fb"]).unwrap_or(&"x")
                );
                asked
            }
            2 => {
                let mut asked = self.write(draft, rng);
                asked.target = format!("/{}", "a/".repeat(rng.index(400)));
                asked
            }
            3 => {
                operation = Some(index);
                let mut asked = self.write(draft, rng);
                let depth = 1 << rng.below(17);
                asked.body = [b"{\"a\":".as_slice(), b"[", b"[{\"b\":"][rng.index(3)].repeat(depth);
                with_kind(asked, "application/json")
            }
            4 => {
                operation = Some(index);
                let mut asked = self.write(draft, rng);
                asked.body = (0..rng.index(300)).map(|_| rng.next_u64() as u8).collect();
                with_kind(asked, if kind.is_empty() { "application/json" } else { &kind })
            }
            5 => {
                operation = Some(index);
                let mut asked = self.write(draft, rng);
                asked.body.truncate(rng.index(asked.body.len().max(1)));
                asked
            }
            6 => {
                let mut asked = self.write(draft, rng);
                asked.headers.retain(|(name, _)| name != "Authorization");
                if rng.once_in(2) {
                    let value =
                        *rng.pick(&["Bearer", "Bearer x", "Basic YTpi", "Bearer \u{e9}"]).unwrap_or(&"");
                    asked.headers.push(("Authorization".to_owned(), value.as_bytes().to_vec()));
                }
                asked
            }
            7 => {
                let mut asked = self.write(draft, rng);
                asked.headers.retain(|(name, _)| name != "Host");
                let value = *rng
                    .pick(&["evil.example", "", "127.0.0.1:99999999", "[::1", "localhost:1@evil"])
                    .unwrap_or(&"");
                asked.headers.push(("Host".to_owned(), value.as_bytes().to_vec()));
                asked
            }
            8 => {
                let mut asked = self.write(draft, rng);
                let value = *rng.pick(&["http://evil.example", "null", "file://", "://"]).unwrap_or(&"");
                asked.headers.push(("Origin".to_owned(), value.as_bytes().to_vec()));
                asked
            }
            9 => {
                let mut asked = self.write(draft, rng);
                let value = *rng.pick(&["gzip", "identity", "br, gzip"]).unwrap_or(&"");
                asked.headers.push(("Content-Encoding".to_owned(), value.as_bytes().to_vec()));
                asked
            }
            10 => {
                let mut asked = self.write(draft, rng);
                for number in 0..rng.below(60) {
                    asked.headers.push((format!("X-{number}"), vec![b'x'; rng.index(900)]));
                }
                asked
            }
            _ => {
                operation = Some(index);
                // Long, but rarely so long that it slows the campaign down.
                let doublings = if rng.once_in(50) { 21 } else { 14 };
                let long = "x".repeat(1 << rng.below(doublings));
                if let Some(Value::Object(fields)) = &mut draft.body {
                    let name = fields.keys().nth(rng.index(fields.len())).cloned();
                    fields.insert(name.unwrap_or_else(|| "x".to_owned()), json!(long));
                }
                if let Some(body) = &mut draft.body {
                    self.keep_inside(body);
                }
                self.write(draft, rng)
            }
        };
        if asked.target.is_empty() {
            asked.target.push('/');
        }
        GeneratedRequest { asked, operation }
    }

    /// Keeps all paths inside the campaign's folder.
    fn keep_inside(&self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.keep_inside(value)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "folder" && !text.starts_with(&self.place) => {
                            *text = format!("{}/{}", self.place, text.replace(['/', '.'], "_"));
                        }
                        other => self.keep_inside(other),
                    }
                }
            }
            _ => {}
        }
    }

    fn write(&self, draft: Draft, rng: &mut Rng) -> ClientRequest {
        let mut target = draft.path;
        for (name, value) in &draft.path_values {
            target = target.replace(&format!("{{{name}}}"), &escape(value));
        }
        for (number, (name, value)) in draft.query.iter().enumerate() {
            target.push(if number == 0 { '?' } else { '&' });
            target.push_str(&escape(name));
            target.push('=');
            target.push_str(&escape(value));
        }
        let mut headers = vec![
            ("Host".to_owned(), b"127.0.0.1:7878".to_vec()),
            ("Authorization".to_owned(), format!("Bearer {}", self.token).into_bytes()),
        ];
        let body = match (draft.body, draft.kind.as_str()) {
            (None, _) => Vec::new(),
            (Some(body), "application/json") => serde_json::to_vec(&body).unwrap_or_default(),
            (Some(body), _) if rng.once_in(4) => text(&body).into_bytes(),
            (Some(_), _) => {
                let mut exported = self.exported.clone();
                if rng.once_in(3) && !exported.is_empty() {
                    let index = rng.index(exported.len());
                    exported[index] = rng.next_u64() as u8;
                }
                exported
            }
        };
        if !draft.kind.is_empty() {
            headers.push(("Content-Type".to_owned(), draft.kind.into_bytes()));
        }
        headers.extend(draft.headers);
        ClientRequest { method: draft.method, target, headers, body }
    }
}

fn with_kind(mut asked: ClientRequest, kind: &str) -> ClientRequest {
    asked.headers.retain(|(name, _)| name != "Content-Type");
    asked.headers.push(("Content-Type".to_owned(), kind.as_bytes().to_vec()));
    asked
}

/// Makes a random part of the body invalid.
fn spoil(value: &mut Value, rng: &mut Rng) {
    let deeper = match value {
        Value::Object(fields) if !fields.is_empty() && !rng.once_in(3) => {
            let index = rng.index(fields.len());
            fields.values_mut().nth(index)
        }
        Value::Array(values) if !values.is_empty() && !rng.once_in(3) => {
            let index = rng.index(values.len());
            values.get_mut(index)
        }
        _ => None,
    };
    if let Some(deeper) = deeper {
        return spoil(deeper, rng);
    }
    if let Value::Object(fields) = value
        && rng.once_in(2)
    {
        let name = fields.keys().nth(rng.index(fields.len())).cloned();
        match name.filter(|_| rng.once_in(2)) {
            Some(name) => drop(fields.remove(&name)),
            None => drop(fields.insert("unknown".to_owned(), json!(1))),
        }
        return;
    }
    let odd = rng.pick(&ODD_STRINGS).map_or(Value::Null, |odd| json!(odd));
    let wrong = [
        odd,
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5e300),
        json!([]),
        json!({}),
        json!([[[[[[1]]]]]]),
        json!("\u{0}\u{1}\u{7f}"),
    ];
    *value = rng.pick(&wrong).cloned().unwrap_or_default();
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Escapes text for a URL.
fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |escaped, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped + char::from(byte).encode_utf8(&mut [0; 4])
        } else {
            escaped + &format!("%{byte:02X}")
        }
    })
}
