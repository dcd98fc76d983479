//! Checks that a request follows its provider's rules, based on published documentation and not on the
//! encoders.
//!
//! The rules are stricter than any provider: everything that some provider or model refuses is a violation,
//! and so are unlisted fields. A request without violations is valid everywhere; a provider may still accept
//! one with violations.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::Wire;

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The position in the body.
    pub at: String,
    /// The rule.
    pub rule: &'static str,
}

/// All violations in a request.
pub fn check(wire: Wire, body: &Value) -> Vec<Violation> {
    let mut report = Report { found: Vec::new() };
    match wire {
        Wire::Anthropic => anthropic::check(body, &mut report),
        Wire::Chat => chat::check(body, &mut report),
        Wire::Responses => responses::check(body, &mut report),
        Wire::Gemini => gemini::check(body, &mut report),
    }
    report.found
}

/// Collects violations.
struct Report {
    found: Vec<Violation>,
}

impl Report {
    fn say(&mut self, at: &str, rule: &'static str) {
        self.found.push(Violation { at: at.to_owned(), rule });
    }

    fn must(&mut self, holds: bool, at: &str, rule: &'static str) {
        if !holds {
            self.say(at, rule);
        }
    }

    /// An object with only these fields.
    fn fields<'v>(&mut self, at: &str, value: &'v Value, known: &[&str]) -> Option<&'v Map<String, Value>> {
        let Some(object) = value.as_object() else {
            self.say(at, "must be an object");
            return None;
        };
        self.must(object.keys().all(|name| known.contains(&name.as_str())), at, "has an unknown field");
        Some(object)
    }

    /// A non-empty list; an empty slice if the value is not a list.
    fn list<'v>(&mut self, at: &str, value: Option<&'v Value>) -> &'v [Value] {
        let list = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.must(!list.is_empty(), at, "must be a list that is not empty");
        list
    }

    fn text<'v>(&mut self, at: &str, value: Option<&'v Value>) -> &'v str {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        self.must(!text.trim().is_empty(), at, "must be text that is not blank");
        text
    }

    fn one_of(&mut self, at: &str, value: Option<&Value>, known: &[&str]) {
        let good = value.and_then(Value::as_str).is_some_and(|text| known.contains(&text));
        self.must(good, at, "must be a known value");
    }

    fn exactly(&mut self, at: &str, value: Option<&Value>, expected: &Value) {
        self.must(value == Some(expected), at, "has another value than it must have");
    }

    fn count(&mut self, at: &str, value: Option<&Value>, least: u64) -> u64 {
        let count = value.and_then(Value::as_u64);
        self.must(count.is_some_and(|count| count >= least), at, "must be a whole number, and not too small");
        count.unwrap_or_default()
    }

    fn number(&mut self, at: &str, value: Option<&Value>, range: RangeInclusive<f64>) {
        let good = value.is_none_or(|value| value.as_f64().is_some_and(|number| range.contains(&number)));
        self.must(good, at, "must be a number in its range");
    }

    /// The name of a call or a tool.
    /// The id of a call where any visible characters are accepted.
    fn call_id<'v>(&mut self, at: &str, value: Option<&'v Value>, most: usize) -> &'v str {
        let id = value.and_then(Value::as_str).unwrap_or_default();
        let good = (1..=most).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        self.must(good, at, "must be an id of visible characters");
        id
    }

    fn name<'v>(&mut self, at: &str, value: Option<&'v Value>, most: usize) -> &'v str {
        let name = value.and_then(Value::as_str).unwrap_or_default();
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        self.must(
            !name.is_empty() && name.len() <= most && name.bytes().all(good),
            at,
            "must be a name of letters, digits, _ and -",
        );
        name
    }

    fn base64(&mut self, at: &str, value: Option<&Value>) {
        let good = value.and_then(Value::as_str).is_some_and(base64);
        self.must(good, at, "must be bytes in base64");
    }

    /// Arguments of a call, as a JSON string.
    fn arguments(&mut self, at: &str, value: Option<&Value>) {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        let good = serde_json::from_str::<Map<String, Value>>(text).is_ok();
        self.must(good, at, "must be an object in JSON, as text");
    }

    /// A PDF document in a data URL.
    fn document_url(&mut self, at: &str, value: Option<&Value>) {
        let data =
            value.and_then(Value::as_str).and_then(|url| url.strip_prefix("data:application/pdf;base64,"));
        self.must(data.is_some_and(base64), at, "must be a PDF document as a data address");
    }

    /// A picture in a data URL.
    fn data_url(&mut self, at: &str, value: Option<&Value>) {
        let parts =
            value.and_then(Value::as_str).and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
        let good = parts.is_some_and(|(media, data)| MEDIA.contains(&media) && base64(data));
        self.must(good, at, "must be a picture as a data address");
    }

    /// The schema of a tool's input.
    fn object_schema(&mut self, at: &str, value: Option<&Value>) {
        let good = value.is_some_and(|schema| schema["type"] == "object" && schema["properties"].is_object());
        self.must(good, at, "must be the schema of an object");
    }
}

/// The media types that Anthropic and `OpenAI` accept.
const MEDIA: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

fn base64(text: &str) -> bool {
    !text.is_empty() && data_encoding::BASE64.decode(text.as_bytes()).is_ok()
}
