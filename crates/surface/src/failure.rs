//! An error as users and clients see it.

use std::error::Error;
use std::io::{self, ErrorKind};

use serde_json::{Map, Value};

use crate::Code;

/// Why a command or a request failed. Nothing was changed unless the code says otherwise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind.
    pub code: Code,
    /// What happened and why.
    pub message: String,
    /// Further fields for programs.
    pub details: Map<String, Value>,
    closed_pipe: bool,
}

impl Failure {
    /// A failure with a message.
    pub fn new(code: Code, message: impl ToString) -> Self {
        Self { code, message: message.to_string(), details: Map::new(), closed_pipe: false }
    }

    /// An error and its causes.
    pub fn caused_by(code: Code, error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(deeper) = cause {
            let text = deeper.to_string();
            if !message.ends_with(&text) {
                message = format!("{message}: {text}");
            }
            cause = deeper.source();
        }
        Self::new(code, message)
    }

    /// The named object does not exist.
    pub fn not_found(message: impl ToString) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// The request is malformed.
    pub fn invalid(message: impl ToString) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// The request breaks a rule.
    pub fn refused(message: impl ToString) -> Self {
        Self::new(Code::Refused, message)
    }

    /// Adds a field for programs.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Puts the name of the file or argument before the message.
    #[must_use]
    pub fn at(self, name: impl std::fmt::Display) -> Self {
        Self { message: format!("{name}: {}", self.message), ..self }
    }

    /// Whether the reader of the output closed the pipe.
    pub fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
            _ => Code::Storage,
        };
        Self { closed_pipe: error.kind() == ErrorKind::BrokenPipe, ..Self::new(code, error) }
    }
}
