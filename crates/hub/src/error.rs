//! Why a request was not done.

use retake_sync::wire::{Problem, ProblemCode, ThreadHead};

use crate::database::DatabaseError;

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The request is the reason; the client gets these words.
    #[error("{}", .0.message)]
    Problem(Problem),
    /// The database failed; the client gets a general message.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The store of large objects failed.
    #[error("the store of objects failed: {0}")]
    Store(String),
}

impl HubError {
    /// A problem of the request.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self::Problem(Problem { code, message: message.into(), head: None, offset: None })
    }

    /// Absent, or not for this account: the two look the same.
    pub fn not_found() -> Self {
        Self::new(ProblemCode::NotFound, "not found; it does not exist, or this account may not see it")
    }

    /// The request has a form that no client sends.
    pub fn invalid(what: &str) -> Self {
        Self::new(ProblemCode::Invalid, format!("the request is malformed: {what}"))
    }

    /// The thread has another head.
    pub(crate) fn moved(head: Option<ThreadHead>) -> Self {
        let message = "another device has added a bundle; fetch it and push again".to_owned();
        Self::Problem(Problem { code: ProblemCode::Moved, message, head, offset: None })
    }

    /// The code of the problem, if it is one of the request.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            _ => None,
        }
    }
}

/// The HTTP status of a problem.
pub(crate) fn status(code: ProblemCode) -> u16 {
    match code {
        ProblemCode::Invalid => 400,
        ProblemCode::Unauthorized => 401,
        ProblemCode::Forbidden => 403,
        ProblemCode::NotFound => 404,
        ProblemCode::Moved | ProblemCode::Offset | ProblemCode::Exists => 409,
        ProblemCode::Purged => 410,
        ProblemCode::Quota | ProblemCode::TooLarge => 413,
        ProblemCode::Refused => 422,
        ProblemCode::Pending => 428,
        ProblemCode::TooMany => 429,
        ProblemCode::Unavailable | ProblemCode::Unknown => 503,
    }
}
