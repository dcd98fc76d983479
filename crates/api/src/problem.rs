//! Problems: failures as HTTP clients see them (RFC 9457).

mod over_http;

use axum::http::StatusCode;
pub(crate) use retake_surface::{Code, Failure as Problem};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A problem as sent to clients (RFC 9457), with a stable `code` and an `action`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemDocument<'a> {
    /// URL that describes the kind of problem.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Short description of the kind of problem.
    pub(crate) title: &'a str,
    /// HTTP status.
    #[schemars(range(min = 400, max = 599))]
    pub(crate) status: u16,
    /// Stable name of the kind of problem.
    pub(crate) code: Code,
    /// What happened.
    pub(crate) detail: &'a str,
    /// What to do next.
    pub(crate) action: String,
    /// Id of this request in the server's log.
    pub(crate) request: &'a str,
    /// Further fields: `expected` and `current` of a version conflict, `candidates` of an ambiguous name.
    #[serde(flatten)]
    pub(crate) details: &'a Map<String, Value>,
}

/// The HTTP status of a code.
pub(crate) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// What to do next, with the routes of the commands that the texts mention.
pub(crate) fn action(code: Code, detail: &str) -> String {
    over_http::action(code.action(), detail)
}

/// A problem as it is sent.
pub(crate) fn document<'a>(problem: &'a Problem, request: &'a str) -> ProblemDocument<'a> {
    let Problem { code, message, details, .. } = problem;
    ProblemDocument {
        kind: format!("/docs#problem-{}", code.name()),
        title: code.title(),
        status: code.http_status(),
        code: *code,
        detail: message,
        action: action(*code, message),
        request,
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_code_the_message_and_the_details_of_every_error() {
        for failure in retake_surface::samples::failures() {
            let shown = serde_json::to_value(document(&failure, "1")).expect("JSON");
            assert_eq!(shown["code"], failure.code.name());
            assert_eq!(shown["detail"], failure.message);
            assert_eq!(shown["status"], failure.code.http_status());
            assert!(failure.details.iter().all(|(name, value)| &shown[name] == value), "{shown}");
        }
    }
}
