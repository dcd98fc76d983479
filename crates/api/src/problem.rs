//! Problems: errors as clients see them, with a stable code, a detail and an action (RFC 9457).
//!
//! Every error of the timeline and of the agent is converted to a [`Code`] in this module only.

mod from;
mod over_http;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Why a request failed. Nothing was changed unless the code says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: String,
    pub(crate) facts: Map<String, Value>,
}

/// The kind of a problem, with a stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    /// The request is malformed.
    InvalidRequest,
    /// The credential is missing or invalid.
    Unauthorized,
    /// The Host header is not a name of this server.
    HostNotAllowed,
    /// The request comes from a page of another site.
    OriginNotAllowed,
    /// The route does not exist.
    NoSuchRoute,
    /// The named object does not exist.
    NotFound,
    /// The route does not support the method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// The current state does not allow it.
    Conflict,
    /// A turn is running or unfinished.
    TurnRunning,
    /// A request with the same idempotency key is running.
    RequestInProgress,
    /// The thread is no longer at the expected version.
    VersionConflict,
    /// The body is too large.
    BodyTooLarge,
    /// The media type of the body is not supported.
    UnsupportedMediaType,
    /// The request is well-formed but breaks a rule.
    Refused,
    /// The idempotency key was used for another request.
    KeyReused,
    /// A limit on concurrent requests or streams is reached.
    TooMany,
    /// Reading or writing the store failed.
    Storage,
    /// It is unknown whether the change was made.
    OutcomeUnknown,
    /// The store is damaged.
    Damaged,
    /// A bug in the server.
    Internal,
    /// The server is stopping or overloaded.
    Unavailable,
    /// The disk is full.
    DiskFull,
}

impl Code {
    pub(crate) const ALL: [Self; 23] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::HostNotAllowed,
        Self::OriginNotAllowed,
        Self::NoSuchRoute,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Conflict,
        Self::TurnRunning,
        Self::RequestInProgress,
        Self::VersionConflict,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::Refused,
        Self::KeyReused,
        Self::TooMany,
        Self::Storage,
        Self::OutcomeUnknown,
        Self::Damaged,
        Self::Internal,
        Self::Unavailable,
        Self::DiskFull,
    ];

    /// The HTTP status.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::HostNotAllowed | Self::OriginNotAllowed => StatusCode::FORBIDDEN,
            Self::NoSuchRoute | Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict | Self::TurnRunning | Self::RequestInProgress => StatusCode::CONFLICT,
            Self::VersionConflict => StatusCode::PRECONDITION_FAILED,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Refused | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Storage | Self::OutcomeUnknown | Self::Damaged | Self::Internal => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }

    /// The stable name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized => "unauthorized",
            Self::HostNotAllowed => "host_not_allowed",
            Self::OriginNotAllowed => "origin_not_allowed",
            Self::NoSuchRoute => "no_such_route",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::Conflict => "conflict",
            Self::TurnRunning => "turn_running",
            Self::RequestInProgress => "request_in_progress",
            Self::VersionConflict => "version_conflict",
            Self::BodyTooLarge => "body_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Refused => "refused",
            Self::KeyReused => "key_reused",
            Self::TooMany => "too_many",
            Self::Storage => "storage",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Damaged => "damaged",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::DiskFull => "disk_full",
        }
    }

    /// A short description.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "Invalid request",
            Self::Unauthorized => "Missing or invalid credential",
            Self::HostNotAllowed => "Host not allowed",
            Self::OriginNotAllowed => "Origin not allowed",
            Self::NoSuchRoute => "No such route",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::RequestTimeout => "The request arrived too slowly",
            Self::Conflict => "Conflict with the current state",
            Self::TurnRunning => "A turn is running or unfinished",
            Self::RequestInProgress => "The same request is in progress",
            Self::VersionConflict => "The thread has changed",
            Self::BodyTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::Refused => "Refused",
            Self::KeyReused => "Idempotency key already used",
            Self::TooMany => "Too many concurrent requests",
            Self::Storage => "Storage failed",
            Self::OutcomeUnknown => "Outcome unknown",
            Self::Damaged => "The store is damaged",
            Self::Internal => "Internal error",
            Self::Unavailable => "Temporarily unavailable",
            Self::DiskFull => "The disk is full",
        }
    }

    /// How to proceed.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::InvalidRequest => "Fix the request as the detail says; /openapi.json describes each route.",
            Self::Unauthorized => {
                "Send `Authorization: Bearer TOKEN`. `retake serve token` prints the token, and \
                 `retake serve link` prints a login link for a browser."
            }
            Self::HostNotAllowed => {
                "Use the address that the server printed, or allow the name with `--allow-host`."
            }
            Self::OriginNotAllowed => {
                "Send the request from a page of this server, or from a program without an Origin header."
            }
            Self::NoSuchRoute => "GET /openapi.json lists all routes.",
            Self::NotFound => "Check the id or name in the corresponding list; it may have been deleted.",
            Self::MethodNotAllowed => "Use one of the methods in the Allow header.",
            Self::RequestTimeout => "Send the whole request at once.",
            Self::Conflict => "Read the current state and adapt the request.",
            Self::TurnRunning => {
                "Wait until it ends, or interrupt it with POST /v1/threads/{thread}/turn/interrupt."
            }
            Self::RequestInProgress => "Retry shortly with the same key.",
            Self::VersionConflict => "Read the thread again, and retry with the version in `current`.",
            Self::BodyTooLarge => "Send a smaller body; the detail has the limit.",
            Self::UnsupportedMediaType => "Send the media type that /openapi.json lists, uncompressed.",
            Self::Refused => "Fix the request as the detail says.",
            Self::KeyReused => "Use a new Idempotency-Key for each new request.",
            Self::TooMany => "Close other streams, or retry after the time in Retry-After.",
            Self::Storage | Self::Damaged => "Run `retake verify` on the server's machine.",
            Self::OutcomeUnknown => "Restart the server, and check the thread before you retry.",
            Self::Internal => "Retry; if it fails again, report it with the id in `request`.",
            Self::Unavailable => "Retry after the time in Retry-After.",
            Self::DiskFull => "Free space on the server's disk and retry.",
        }
    }
}

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
    pub(crate) facts: &'a Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl ToString) -> Self {
        Self { code, detail: detail.to_string(), facts: Map::new() }
    }

    /// Adds a field for programs.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn not_found(detail: impl ToString) -> Self {
        Self::new(Code::NotFound, detail)
    }

    pub(crate) fn invalid(detail: impl ToString) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    pub(crate) fn refused(detail: impl ToString) -> Self {
        Self::new(Code::Refused, detail)
    }

    pub(crate) fn document<'a>(&'a self, request: &'a str) -> ProblemDocument<'a> {
        ProblemDocument {
            kind: format!("/docs#problem-{}", self.code.name()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            code: self.code,
            detail: &self.detail,
            action: over_http::action(self.code.action(), &self.detail),
            request,
            facts: &self.facts,
        }
    }
}
