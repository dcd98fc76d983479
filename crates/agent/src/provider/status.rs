//! Interprets error responses, and suggests fixes.

use std::time::Duration;

use serde_json::Value;

use super::fault::{CallError, DecodeError, Fault};

/// Maximum characters shown of a server's message.
const MAX_MESSAGE_CHARS: usize = 300;

/// Phrases in messages about a conversation that is too long. There is no status for it.
const TOO_LONG: [&str; 11] = [
    "prompt is too long",
    "prompt too long",
    "messages is too long",
    "context_length_exceeded",
    "context length",
    "context limit",
    "context window",
    "exceed_context_size",
    "exceeds the available context size",
    "input token count",
    "input is too long",
];

/// Phrases in messages about an answer that may be longer than the model can write.
const TOO_MUCH_OUTPUT: [&str; 4] = [
    "max_tokens is too large",
    "max_completion_tokens' is too large",
    "maximum allowed number of output tokens",
    "supports at most",
];

/// Phrases in messages about an invalid key whose status does not show it.
const BAD_KEY: [&str; 6] = [
    "api_key_invalid",
    "invalid_api_key",
    "incorrect api key",
    "invalid api key",
    "api key not valid",
    "api key expired",
];

/// Phrases in messages about an unknown model.
const NO_MODEL: [&str; 7] = [
    "model_not_found",
    "model not found",
    "invalid_model",
    "invalid model",
    "is not a valid model id",
    "supported api model names",
    "requested model",
];

/// Phrases in messages about an account without credit, which a retry does not fix.
const NO_MONEY: [&str; 4] =
    ["insufficient_quota", "insufficient balance", "credit balance is too low", "billing_hard_limit_reached"];

/// The kind of fault, from the status and the server's message.
pub(super) fn fault(status: u16, kind: &str, message: &str) -> Fault {
    let error_text = format!("{kind} {message}").to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| error_text.contains(words));
    match status {
        // Such messages may name the context length too, but compression does not help.
        400 | 422 if says(&TOO_MUCH_OUTPUT) => Fault::Refused,
        400 | 413 | 422 if says(&TOO_LONG) => Fault::TooLong,
        413 => Fault::TooLong,
        402 => Fault::Billing,
        400 | 403 | 429 if says(&NO_MONEY) => Fault::Billing,
        400 if says(&BAD_KEY) => Fault::Key,
        400 if says(&NO_MODEL) => Fault::NotFound,
        401 | 403 => Fault::Key,
        404 => Fault::NotFound,
        408 => Fault::Stalled,
        425 | 429 | 503 | 529 => Fault::Busy,
        500.. => Fault::Server,
        _ => Fault::Refused,
    }
}

/// The error for a failed response: the server's message, then how to fix it. `key_hint` describes the source
/// of the key.
pub(super) fn refusal(provider: &str, model: &str, key_hint: &str, status: u16, body: &str) -> CallError {
    let (kind, error_text) = words(body);
    let fault = fault(status, &kind, &error_text);
    let advice = match fault {
        Fault::Key if status == 403 => {
            format!("The key has no permission for this: {key_hint}, or choose another model with --model.")
        }
        Fault::Key => format!("The key was refused: {key_hint}."),
        Fault::Billing => format!("The account has no credit left: add some at {provider}."),
        Fault::NotFound => {
            format!("There is no model {model:?}, or base_url is wrong: `retake models` lists models.")
        }
        Fault::TooLong => {
            "The conversation is too long for the model: `retake compress` shortens it, or choose a larger model."
                .to_owned()
        }
        Fault::Busy if status == 429 => "Too many requests: try again later.".to_owned(),
        Fault::Busy => "The service is overloaded: try again later.".to_owned(),
        Fault::Stalled => "The server waited too long for the request: try again.".to_owned(),
        Fault::Server => "The server failed: try again later.".to_owned(),
        _ if (300..400).contains(&status) => {
            "The server redirects, and requests with a key do not follow redirects: set base_url to the final address."
                .to_owned()
        }
        _ if TOO_MUCH_OUTPUT.iter().any(|phrase| error_text.to_lowercase().contains(phrase)) => {
            "The limit is too high for the model: `retake settings set max_tokens N` lowers it.".to_owned()
        }
        _ => "The request was not accepted: `retake trace` shows it.".to_owned(),
    };
    let error_text = if error_text.is_empty() { kind } else { error_text };
    let error_text = match error_text.as_str() {
        "" => format!("{provider} answered with status {status}."),
        error_text => format!("{provider}: {}", sentence(error_text, status)),
    };
    CallError {
        status: Some(status),
        retry_after: retry_info(body),
        ..CallError::new(fault, format!("{error_text} {advice}"))
    }
}

/// A server's message with the status, as a sentence.
pub(super) fn sentence(error_text: &str, status: u16) -> String {
    let end = if error_text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{error_text} [{status}]{end}")
}

/// The retry delay in the body of a Google error.
fn retry_info(body: &str) -> Option<Duration> {
    let value: Value = serde_json::from_str(body.trim()).ok()?;
    let value = value.get(0).unwrap_or(&value);
    let details = value.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// Parses a failure reported inside a stream.
pub(super) fn reported(data: &str) -> DecodeError {
    let (kind, message) = words(data);
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let error = value.get("error").unwrap_or(&value);
    let code = error.get("code").or_else(|| value.get("code")).and_then(Value::as_u64);
    let status = match code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code))
    {
        Some(code) => code,
        None => status_of(&kind),
    };
    DecodeError::Server { status, kind, message }
}

/// Whether a body reports a failure.
pub(super) fn is_report(body: &str) -> bool {
    let value: Value = serde_json::from_str(body.trim()).unwrap_or_default();
    let value = value.get(0).unwrap_or(&value);
    value.get("error").is_some_and(|error| !error.is_null())
}

/// The HTTP status that corresponds to a provider's error type.
fn status_of(kind: &str) -> u16 {
    match kind {
        "overloaded_error" => 529,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "insufficient_quota" | "billing_error" => 402,
        "authentication_error" | "invalid_api_key" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "invalid_request_error" | "context_length_exceeded" | "invalid_prompt" | "INVALID_ARGUMENT" => 400,
        "timeout_error" => 504,
        "UNAVAILABLE" => 503,
        _ => 500,
    }
}

/// A provider's error type and message, on one short line.
fn words(body: &str) -> (String, String) {
    let value: Value = serde_json::from_str(body.trim()).unwrap_or_default();
    // One provider wraps its response in a list.
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
    let kind = ["code", "status", "type", "__type"].iter().find_map(|name| error.get(name)?.as_str());
    let error_text = match message(value) {
        Some(error_text) => error_text,
        // The kind alone is more readable than the object that contains it.
        None if value.is_object() && kind.is_some() => String::new(),
        None if matches!(body.trim(), "null" | "[]" | "{}" | "\"\"") => String::new(),
        None if body.trim_start().starts_with('<') => "an HTML page".to_owned(),
        None => body.to_owned(),
    };
    let error_text = match upstream(error) {
        Some(more) if !error_text.contains(&more) => format!("{error_text}: {more}"),
        _ => error_text,
    };
    (shorten(kind.unwrap_or_default()), shorten(&error_text))
}

/// Fields with a message, or with objects that have one, the most specific first.
const MESSAGE_FIELDS: [&str; 9] = [
    "message",
    "Message",
    "error",
    "errors",
    "detail",
    "details",
    "msg",
    "error_message",
    "error_description",
];

/// The message in an error, wherever its server puts it: a text, an object, or a list of several.
fn message(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(message).take(3).collect();
            Some(texts.join("; ")).filter(|text| !text.is_empty())
        }
        Value::Object(fields) => {
            let text = MESSAGE_FIELDS.iter().find_map(|name| message(fields.get(*name)?))?;
            let beside = match (fields.get("error"), fields.get("error_description")) {
                // A code of OAuth and its explanation.
                (Some(Value::String(_)), Some(Value::String(more))) => Some(more),
                _ => None,
            };
            Some(match (path(fields.get("loc")), beside) {
                (Some(path), _) => format!("{path}: {text}"),
                (None, Some(more)) if *more != text => format!("{text}: {more}"),
                _ => text,
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The path of the invalid field, in the errors of servers that validate with Pydantic.
fn path(location: Option<&Value>) -> Option<String> {
    let steps = location?.as_array()?.iter();
    let steps = steps.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned));
    Some(steps.collect::<Vec<_>>().join(".")).filter(|path| !path.is_empty())
}

/// The error of the provider behind `OpenRouter`: text, or JSON.
fn upstream(error: &Value) -> Option<String> {
    let raw = error.get("metadata")?.get("raw")?;
    let error_text = match raw {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(_)) => words(text).1,
            _ => text.clone(),
        },
        Value::Object(_) => words(&raw.to_string()).1,
        _ => return None,
    };
    (!error_text.is_empty()).then_some(error_text)
}

/// A text on one line, without control characters, limited in length.
pub(super) fn shorten(text: &str) -> String {
    let calm: String =
        text.chars().take(MAX_MESSAGE_CHARS * 8).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let folded = calm.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= MAX_MESSAGE_CHARS {
        return folded;
    }
    let mut cut: String = folded.chars().take(MAX_MESSAGE_CHARS - 1).collect();
    cut.push('…');
    cut
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn retry_after(text: &str, now: jiff::Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    // A date in the past means now.
    Some(Duration::try_from(now.duration_until(date.timestamp())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_maps_to_a_fault_with_an_action() {
        let check = |status: u16, body: &str, fault: Fault, words: &str| {
            let error = refusal("acme", "big-1", "set ACME_KEY", status, body);
            assert_eq!(error.fault, fault, "{status} {body}");
            assert!(error.message.contains(words), "{}", error.message);
            assert_eq!(error.status, Some(status));
            assert_eq!(error.retryable, fault.is_retryable());
        };
        check(
            401,
            r#"{"error":{"message":"bad key"}}"#,
            Fault::Key,
            "acme: bad key [401]. The key was refused: set ACME_KEY.",
        );
        check(403, "", Fault::Key, "no permission");
        check(
            404,
            r#"{"error":"no such model"}"#,
            Fault::NotFound,
            "no such model [404]. There is no model \"big-1\"",
        );
        check(
            400,
            r#"{"code":"invalid-argument","error":"Incorrect API key provided."}"#,
            Fault::Key,
            "refused",
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"API key not valid.","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            Fault::Key,
            "acme: API key not valid. [400] The key was refused",
        );
        check(400, r#"{"error":{"code":"model_not_found","message":"x"}}"#, Fault::NotFound, "big-1");
        check(400, r#"{"error":{"message":"Your credit balance is too low"}}"#, Fault::Billing, "credit");
        check(
            429,
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"m is rate-limited upstream"}}}"#,
            Fault::Busy,
            "Provider returned error: m is rate-limited upstream [429]",
        );
        check(
            429,
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"slow\"}}"}}}"#,
            Fault::Busy,
            "Provider returned error: slow [429]",
        );
        check(402, "", Fault::Billing, "credit");
        check(413, "", Fault::TooLong, "too long");
        check(
            400,
            r#"{"type":"error","error":{"message":"prompt is too long: 9 > 8"}}"#,
            Fault::TooLong,
            "9 > 8",
        );
        check(
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#,
            Fault::TooLong,
            "compress",
        );
        // Recorded from Ollama and Perplexity.
        for message in [
            "prompt too long; exceeded max context length by 1119046 tokens",
            "The total length of all messages is too long.",
        ] {
            check(400, &format!(r#"{{"error":{{"message":"{message}"}}}}"#), Fault::TooLong, message);
        }
        check(400, r#"{"message":"what"}"#, Fault::Refused, "acme: what [400]. ");
        check(429, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, Fault::Billing, "credit");
        check(429, "", Fault::Busy, "Too many");
        check(408, "", Fault::Stalled, "waited");
        for status in [500, 502, 504] {
            check(status, "<html><h1>Bad</h1>", Fault::Server, "an HTML page");
        }
        check(
            503,
            r#"[{"error":{"code":503,"message":"later","status":"UNAVAILABLE"}}]"#,
            Fault::Busy,
            "later",
        );
        check(529, "not JSON\n\u{1b}[31m at all", Fault::Busy, "not JSON [31m at all");
        check(302, "", Fault::Refused, "base_url");
        assert_eq!(
            refusal("acme", "m", "", 500, "").message,
            "acme answered with status 500. The server failed: try again later."
        );
        let long = refusal("acme", "m", "", 500, &"word ".repeat(10_000));
        assert!(long.message.chars().count() < MAX_MESSAGE_CHARS + 100);
    }

    #[test]
    fn a_limit_that_the_model_cannot_reach_is_no_conversation_that_is_too_long() {
        let check = |body: &str, fault: Fault, words: &str| {
            let error = refusal("acme", "big-1", "set ACME_KEY", 400, body);
            assert_eq!(error.fault, fault, "{body}");
            assert!(error.message.contains(words), "{}", error.message);
        };
        for message in [
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. The maximum context length is 8192 tokens",
            "max_tokens is too large: 32000. This model supports at most 16384 completion tokens",
            "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for big-1",
        ] {
            let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
            check(&body, Fault::Refused, "`retake settings set max_tokens N`");
        }
        check(
            r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 198000 + 21333 > 200000"}}"#,
            Fault::TooLong,
            "compress",
        );
    }

    #[test]
    fn the_words_of_a_server_are_found_wherever_it_puts_them() {
        let check = |body: &str, expected: &str| {
            let error = refusal("acme", "m", "", 422, body);
            assert!(error.message.starts_with(&format!("acme: {expected} [422]")), "{}", error.message);
        };
        check(
            r#"{"detail":[{"loc":["body","tools",0],"msg":"field required"},{"loc":[],"msg":"what"}]}"#,
            "body.tools.0: field required; what",
        );
        check(r#"{"success":false,"errors":[{"code":7003,"message":"no route"}],"result":null}"#, "no route");
        check(r#"{"Message":"not authorized"}"#, "not authorized");
        check(r#"{"__type":"ValidationException","message":"bad id"}"#, "bad id");
        check(r#"{"__type":"ThrottlingException"}"#, "ThrottlingException");
        check(r#"{"error":{"message":{"detail":"nested"}}}"#, "nested");
        check(r#"{"error":{"errors":[{"message":"inner"}]}}"#, "inner");
        check(r#"{"error_message":"odd","error_code":7}"#, "odd");
        check(r#"{"error":null,"msg":"beside"}"#, "beside");
        check(r#"{"error":["first","second"]}"#, "first; second");
        check(r#"{"error":"invalid_grant","error_description":"expired"}"#, "invalid_grant: expired");
        check(r#"{"problem":{"why":"unknown shape"}}"#, r#"{"problem":{"why":"unknown shape"}}"#);
        check("\"only a text\"", "only a text");
        for nothing in ["null", "[]", "{}", ""] {
            let error = refusal("acme", "m", "", 422, nothing);
            assert!(error.message.starts_with("acme answered with status 422."), "{}", error.message);
        }
        let deep = "[".repeat(60_000);
        assert!(refusal("acme", "m", "", 422, &deep).message.chars().count() < MAX_MESSAGE_CHARS + 100);
    }

    #[test]
    fn the_retry_delay_of_google_is_read_from_the_body() {
        let check = |delay: &str, millis: Option<u128>| {
            let body = format!(
                r#"[{{"error":{{"message":"x","details":[{{"@type":"a"}},{{"@type":"b","retryDelay":"{delay}"}}]}}}}]"#
            );
            let error = refusal("gemini", "m", "", 429, &body);
            assert_eq!(error.retry_after.map(|wait| wait.as_millis()), millis, "{delay}");
        };
        check("3s", Some(3_000));
        check("34.5s", Some(34_500));
        check("3", None);
        check("-1s", None);
    }

    #[test]
    fn a_failure_inside_a_stream_maps_to_a_status() {
        let check = |data: &str, expected: u16| {
            let DecodeError::Server { status, .. } = reported(data) else { panic!("a report") };
            assert_eq!(status, expected, "{data}");
        };
        check(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, 529);
        check(r#"{"error":{"code":502,"message":"upstream"}}"#, 502);
        check(r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#, 429);
        check(r#"{"error":"what"}"#, 500);
        check(r#"{"error":{"code":99999999}}"#, 500);
        check("nonsense", 500);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_a_date() {
        let now: jiff::Timestamp = "2026-11-16T10:00:00Z".parse().expect("a time");
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(retry_after(text, now).map(|wait| wait.as_secs()), expected, "{text}");
        };
        check("7", Some(7));
        check(" 0.5 ", Some(0));
        check("Mon, 16 Nov 2026 10:01:30 GMT", Some(90));
        check("Mon, 16 Nov 2026 09:00:00 GMT", Some(0));
        for bad in ["", "-1", "soon", "NaN", "inf", "1e300"] {
            check(bad, None);
        }
    }
}
