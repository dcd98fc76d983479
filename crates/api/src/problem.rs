//! What goes wrong, as a client sees it: a stable code, what happened, and what to do (RFC 9457).
//!
//! Every refusal of the timeline and of the agent becomes one of the [`Code`]s here, and nowhere else.

mod from;
mod over_http;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Why a request was not answered with what it asked for. Nothing was changed, unless the code says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: String,
    pub(crate) facts: Map<String, Value>,
}

/// The stable name of a kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    /// The request makes no sense.
    InvalidRequest,
    /// No credential, or one that does not hold.
    Unauthorized,
    /// The name that the server was called by is not one of its own.
    HostNotAllowed,
    /// A page of another site asks.
    OriginNotAllowed,
    /// There is no such route.
    NoSuchRoute,
    /// What was named is not there.
    NotFound,
    /// The route has other methods.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// What is there stands against it.
    Conflict,
    /// A turn is running or unfinished there.
    TurnRunning,
    /// The same request is just being carried out.
    RequestInProgress,
    /// The thread has moved on since the caller looked.
    VersionConflict,
    /// The body is too large.
    BodyTooLarge,
    /// The body is of another kind.
    UnsupportedMediaType,
    /// It is against a rule.
    Refused,
    /// The key was used for another request.
    KeyReused,
    /// Too many at once.
    TooMany,
    /// The disk or the store's files failed.
    Storage,
    /// It is not known whether the change was made.
    OutcomeUnknown,
    /// The store is damaged.
    Damaged,
    /// A mistake in the server.
    Internal,
    /// The server is stopping, or has too much to do.
    Unavailable,
    /// The disk is full.
    DiskFull,
}

impl Code {
    /// All of them, for the document.
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

    /// The status that goes with it.
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

    /// The name that programs know it by.
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

    /// What happened, in general.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request makes no sense",
            Self::Unauthorized => "No credential that holds",
            Self::HostNotAllowed => "Called by a name that is not the server's",
            Self::OriginNotAllowed => "A page of another site asks",
            Self::NoSuchRoute => "There is no such route",
            Self::NotFound => "It is not there",
            Self::MethodNotAllowed => "The route has other methods",
            Self::RequestTimeout => "The request took too long to arrive",
            Self::Conflict => "What is there stands against it",
            Self::TurnRunning => "A turn is running or unfinished there",
            Self::RequestInProgress => "The same request is being carried out",
            Self::VersionConflict => "The thread has moved on",
            Self::BodyTooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body is of another kind",
            Self::Refused => "It is against a rule",
            Self::KeyReused => "The key was used for another request",
            Self::TooMany => "Too many at once",
            Self::Storage => "The disk or the store failed",
            Self::OutcomeUnknown => "It is not known whether it was done",
            Self::Damaged => "The store is damaged",
            Self::Internal => "A mistake in the server",
            Self::Unavailable => "The server cannot do it now",
            Self::DiskFull => "The disk is full",
        }
    }

    /// What a client can do about it.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::InvalidRequest => "Mend what the detail names; /openapi.json says what each route takes.",
            Self::Unauthorized => {
                "Send `Authorization: Bearer TOKEN`; `retake serve token` prints the token, \
                 `retake serve link` makes a link for a browser."
            }
            Self::HostNotAllowed => {
                "Call the server by the address that it printed, or allow the name with `--allow-host`."
            }
            Self::OriginNotAllowed => "Ask from a page of this server, or from a program without an Origin.",
            Self::NoSuchRoute => "GET /openapi.json lists all routes.",
            Self::NotFound => "Look for it in the list that it should be in; it may have been deleted.",
            Self::MethodNotAllowed => "The Allow header lists the methods.",
            Self::RequestTimeout => "Send the whole request at once.",
            Self::Conflict => "Look at what is there now, and ask for something that fits it.",
            Self::TurnRunning => "Wait for it, or end it with POST /v1/threads/{thread}/turn/interrupt.",
            Self::RequestInProgress => "Repeat the request in a moment, with the same key.",
            Self::VersionConflict => "Look again, and repeat with the version in `current`.",
            Self::BodyTooLarge => "Send less at once; the detail names the limit.",
            Self::UnsupportedMediaType => "Send the kind that the document names, uncompressed.",
            Self::Refused => "Mend what the detail names.",
            Self::KeyReused => "Make a new Idempotency-Key for every new request.",
            Self::TooMany => "Close some, or wait for the time in Retry-After.",
            Self::Storage | Self::Damaged => "Run `retake verify` on the server's machine.",
            Self::OutcomeUnknown => "Look at the thread before trying again; restart the server.",
            Self::Internal => "Repeat it; if it happens again, report it with the id in `request`.",
            Self::Unavailable => "Repeat it after the time in Retry-After.",
            Self::DiskFull => "Free some space on the server's disk, and repeat it.",
        }
    }
}

/// A problem as it is written, by RFC 9457, with a stable `code` and an `action`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Written<'a> {
    /// Where the kind of problem is explained.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// What happened, in general.
    pub(crate) title: &'a str,
    /// The status of the answer.
    #[schemars(range(min = 400, max = 599))]
    pub(crate) status: u16,
    /// The stable name of the kind of problem.
    pub(crate) code: Code,
    /// What happened here.
    pub(crate) detail: &'a str,
    /// What to do about it.
    pub(crate) action: String,
    /// The name of this request in the server's log.
    pub(crate) request: &'a str,
    /// Further facts: of a version conflict `expected` and `current`, of an ambiguous name `candidates`.
    #[serde(flatten)]
    pub(crate) facts: &'a Map<String, Value>,
}

impl Problem {
    /// A problem with that sentence.
    pub(crate) fn new(code: Code, detail: impl ToString) -> Self {
        Self { code, detail: detail.to_string(), facts: Map::new() }
    }

    /// The same with a fact that programs can read.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// What was named is not there.
    pub(crate) fn not_found(detail: impl ToString) -> Self {
        Self::new(Code::NotFound, detail)
    }

    /// The request makes no sense.
    pub(crate) fn invalid(detail: impl ToString) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// The request makes sense, and is against a rule.
    pub(crate) fn refused(detail: impl ToString) -> Self {
        Self::new(Code::Refused, detail)
    }

    /// The problem as it is written.
    pub(crate) fn written<'a>(&'a self, request: &'a str) -> Written<'a> {
        Written {
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
