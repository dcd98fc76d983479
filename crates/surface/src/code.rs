//! The kinds of errors: one table with their names, statuses and actions.

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

/// The properties of a code.
struct Row {
    name: &'static str,
    exit: u8,
    http: u16,
    title: &'static str,
    action: &'static str,
}

macro_rules! codes {
    ($($(#[$attribute:meta])* $code:ident = $name:literal, $exit:literal, $http:literal, $title:literal, $action:literal;)*) => {
        /// The kind of an error, with a stable name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $($(#[$attribute])* $code,)*
        }

        impl Code {
            /// All codes, in the order of this table.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            fn row(self) -> Row {
                match self {
                    $(Self::$code => Row { name: $name, exit: $exit, http: $http, title: $title, action: $action },)*
                }
            }
        }
    };
}

// Columns: name, exit status, HTTP status, title, what to do next.
codes! {
    /// The request is malformed.
    InvalidRequest = "invalid_request", 2, 400, "Invalid request",
        "Fix the request as described; over HTTP, /openapi.json describes each route.";
    /// The command line or the configuration is invalid.
    #[schemars(skip)]
    Usage = "usage", 2, 400, "Invalid command line or configuration",
        "Fix the command line or the configuration as described; `--help` lists the options.";
    /// The credential is missing or invalid.
    Unauthorized = "unauthorized", 5, 401, "Missing or invalid credential",
        "Send `Authorization: Bearer TOKEN`. `retake serve token` prints the token, and `retake serve link` prints a \
         login link for a browser.";
    /// The Host header is not a name of this server.
    HostNotAllowed = "host_not_allowed", 5, 403, "Host not allowed",
        "Use the address that the server printed, or allow the name with `--allow-host`.";
    /// The request comes from a page of another site.
    OriginNotAllowed = "origin_not_allowed", 5, 403, "Origin not allowed",
        "Send the request from a page of this server, or from a program without an Origin header.";
    /// The route does not exist.
    NoSuchRoute = "no_such_route", 3, 404, "No such route", "GET /openapi.json lists all routes.";
    /// The named object does not exist.
    NotFound = "not_found", 3, 404, "Not found",
        "Check the id or name in the corresponding list; it may have been deleted.";
    /// The route does not support the method.
    MethodNotAllowed = "method_not_allowed", 2, 405, "Method not allowed",
        "Use one of the methods in the Allow header.";
    /// The body did not arrive in time.
    RequestTimeout = "request_timeout", 1, 408, "The request arrived too slowly", "Send the whole request at once.";
    /// The current state does not allow it.
    Conflict = "conflict", 5, 409, "Conflict with the current state",
        "Read the current state and adapt the request.";
    /// A turn is running or unfinished.
    TurnRunning = "turn_running", 5, 409, "A turn is running or unfinished",
        "Wait until it ends, or end it with `retake stop`.";
    /// There is no turn to continue, stop or answer.
    NoTurn = "no_turn", 3, 409, "No such turn or question",
        "Read the state of the take; the turn may have ended, or the question may have been answered.";
    /// The model could not be reached, or gave no usable answer.
    ModelFailed = "model_failed", 1, 409, "The model failed",
        "Retry, or choose another model; `retake trace` shows the requests.";
    /// A remote could not be used.
    RemoteFailed = "remote_failed", 1, 409, "The remote failed",
        "Nothing is lost: it is tried again. `retake sync status` shows what waits.";
    /// Files of the project could not be read or written. The store is intact.
    FilesFailed = "files_failed", 7, 409, "Files could not be read or written",
        "Check the folder, its permissions and its disk, and retry.";
    /// A request with the same idempotency key is running.
    RequestInProgress = "request_in_progress", 5, 409, "The same request is in progress",
        "Retry shortly with the same key.";
    /// The thread is no longer at the expected version.
    VersionConflict = "version_conflict", 4, 412, "The thread has changed",
        "Read the thread again, and retry with the version in `current`.";
    /// The body is too large.
    BodyTooLarge = "body_too_large", 5, 413, "The body is too large",
        "Send a smaller body; the detail has the limit.";
    /// The media type of the body is not supported.
    UnsupportedMediaType = "unsupported_media_type", 5, 415, "Unsupported media type",
        "Send the media type that /openapi.json lists, uncompressed.";
    /// The request is well-formed but breaks a rule.
    Refused = "refused", 5, 422, "Refused", "Change the request as described.";
    /// The idempotency key was used for another request.
    KeyReused = "key_reused", 5, 422, "Idempotency key already used",
        "Use a new Idempotency-Key for each new request.";
    /// A limit on concurrent requests or streams is reached.
    TooMany = "too_many", 5, 429, "Too many concurrent requests",
        "Close other streams, or retry after the time in Retry-After.";
    /// Reading or writing the store failed.
    Storage = "storage", 7, 500, "Storage failed", "Check the disk, and run `retake verify` on the store's machine.";
    /// It is unknown whether the change was made.
    OutcomeUnknown = "outcome_unknown", 7, 500, "Outcome unknown",
        "Restart the program, and check the thread before you retry.";
    /// The change was made, but the answer could not be written.
    #[schemars(skip)]
    AnswerNotWritten = "answer_not_written", 7, 500, "The answer could not be written",
        "Do not repeat the command: it was carried out. `retake history` shows its change.";
    /// The store is damaged.
    Damaged = "damaged", 6, 500, "The store is damaged", "Run `retake verify` on the store's machine.";
    /// Any other failure.
    #[schemars(skip)]
    Failed = "failed", 1, 500, "Failed", "Remove the cause and retry.";
    /// A bug in Retake.
    Internal = "internal", 1, 500, "Internal error",
        "Retry; if it fails again, report it, over HTTP with the id in `request`.";
    /// The server is stopping or overloaded, or another program uses the store.
    Unavailable = "unavailable", 7, 503, "Temporarily unavailable",
        "Retry later; over HTTP, after the time in Retry-After.";
    /// The disk is full.
    DiskFull = "disk_full", 7, 507, "The disk is full", "Free space on the store's disk and retry.";
}

impl Code {
    /// The codes that the HTTP API uses.
    pub fn over_http() -> impl Iterator<Item = Self> {
        let local = [Self::Usage, Self::Failed, Self::AnswerNotWritten];
        Self::ALL.iter().copied().filter(move |code| !local.contains(code))
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The exit status of a command.
    pub fn exit_status(self) -> u8 {
        self.row().exit
    }

    /// The HTTP status.
    pub fn http_status(self) -> u16 {
        self.row().http
    }

    /// A short description.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// What to do next.
    pub fn action(self) -> &'static str {
        self.row().action
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.exit_status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_serialized_names_and_statuses_are_errors() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).ok(), Some(code.name().into()));
            assert!((1..=7).contains(&code.exit_status()), "{code:?}");
            assert!((400..=599).contains(&code.http_status()), "{code:?}");
            assert!(code.action().ends_with('.'), "{code:?}");
        }
    }
}
