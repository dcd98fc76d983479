//! Errors of commands: a message that says what to do next, and an exit code.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use retake_model::command::CommandError;
use retake_store::{OpenError, RedactError, SearchError, StoreError};
use retake_timeline::{
    ChangeError, CreateError, ExportError, FileError, FindError, ImportError, PresetError, ProjectError,
    ReadError,
};
use retake_workspace::snapshot::SnapshotError;
use serde_json::{Map, Value, json};

use crate::arguments::GlobalOptions;
use crate::ui::confirm::ConfirmError;
use crate::ui::input::InputError;
use crate::ui::json::to_text;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::{Styles, stderr};

#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    details: Map<String, Value>,
    closed_pipe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Any other failure.
    Failed,
    /// An invalid command line or configuration.
    Usage,
    /// The named object does not exist.
    NotFound,
    /// The thread is not at the expected version.
    Conflict,
    /// The request breaks a rule.
    Refused,
    /// The store is damaged.
    Damaged,
    /// The disk or the store's files failed.
    Storage,
}

impl Code {
    fn exit(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Refused => 5,
            Self::Damaged => 6,
            Self::Storage => 7,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Damaged => "damaged",
            Self::Storage => "storage",
        }
    }
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string(), details: Map::new(), closed_pipe: false }
    }

    /// Adds a machine-readable field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether the reader of the output closed the pipe.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }

    /// Whether the thread changed concurrently, so that a retry can succeed.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code == Code::Conflict
    }

    /// Saves text that the user typed to a file and reports its path.
    pub(crate) fn preserving(mut self, text: &str) -> Self {
        let kept =
            tempfile::Builder::new().prefix("retake-").suffix(".md").tempfile().and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.keep().map_err(|error| error.error)
            });
        match kept {
            Ok((_, path)) => {
                self.message = format!("{}\nYour text was saved to {}", self.message, path.display());
                self.with("saved_to", path.display().to_string())
            }
            Err(error) => {
                self.message = format!("{}\nYour text could not be saved ({error}):\n{text}", self.message);
                self
            }
        }
    }

    pub(crate) fn preserving_if(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.preserving(text),
            None => self,
        }
    }

    /// SQLite needs write access to read a store in WAL mode, so a read-only store cannot be opened in place.
    fn not_writable(path: &Path, error: &std::io::Error) -> Self {
        let message = format!(
            "{}: {error}\nThe store must belong to you and be writable, even for reading. To read another store, \
             copy its folder and set RETAKE_HOME to the copy.",
            path.display()
        );
        Self::new(Code::Storage, message).with("path", path.display().to_string())
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn report(self, general: &GlobalOptions) -> ExitCode {
        let mut out = stderr(general.color);
        // A closed standard error is ignored.
        let _ = if general.json {
            let mut error = json!({"code": self.code.name(), "message": self.message});
            if let Value::Object(fields) = &mut error {
                fields.extend(self.details);
            }
            writeln!(out, "{}", to_text(&json!({"error": error})))
        } else {
            let style = Styles::new().error;
            writeln!(out, "{style}error:{style:#} {}", sanitize(&self.message, LineBreaks::Keep))
        };
        ExitCode::from(self.code.exit())
    }
}

/// Prints a usage error, or the requested help.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    // The message quotes the command line, which may contain pasted control sequences.
    let text = error.render().to_string();
    eprint!("{}", sanitize(&text, LineBreaks::Keep));
    ExitCode::from(Code::Usage.exit())
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::Unsure) {
            return Self::new(Code::Storage, error).with("outcome", "unknown");
        }
        if let StoreError::File { path, error } = &error
            && matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
        {
            return Self::not_writable(path, error);
        }
        let code = match &error {
            StoreError::Damaged(_) | StoreError::Unavailable(_) => Code::Damaged,
            StoreError::Panicked(_) => Code::Failed,
            _ => Code::Storage,
        };
        Self::new(code, error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            other => Self::new(Code::Refused, other),
        }
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Store(error) => error.into(),
            ChangeError::Files(error) => (*error).into(),
            ChangeError::Conflict { expected, current } => {
                Self::new(Code::Conflict, error).with("expected", expected).with("current", current)
            }
            ChangeError::NoSuchThread(_) | ChangeError::NoSuchVersion { .. } => {
                Self::new(Code::NotFound, error)
            }
            ChangeError::Refused(
                CommandError::NoSuchTake
                | CommandError::NoSuchEntry
                | CommandError::Setting(retake_model::settings::InvalidSettingError::Unknown(_)),
            ) => Self::new(Code::NotFound, error),
            other => Self::new(Code::Refused, other),
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Change(error) => error.into(),
            FileError::Read(error) => error.into(),
            FileError::Snapshot(SnapshotError::Store(error)) => error.into(),
            FileError::Unfinished(_) => Self::new(Code::Storage, error).with("outcome", "unfinished"),
            FileError::FolderGone(ref path) => {
                let path = path.display().to_string();
                Self::new(Code::Refused, error).with("folder", path)
            }
            FileError::NoPendingMove(_)
            | FileError::NoSuchSnapshot
            | FileError::NoSuchPath(_)
            | FileError::NotAWorktree => Self::new(Code::NotFound, error),
            FileError::Snapshot(_) | FileError::Apply(_) | FileError::Copy(_) => {
                Self::new(Code::Storage, with_causes(&error))
            }
            other => Self::new(Code::Refused, other),
        }
    }
}

impl From<retake_workspace::snapshot::OpenError> for Failure {
    fn from(error: retake_workspace::snapshot::OpenError) -> Self {
        Self::new(Code::Refused, error)
    }
}

/// Formats an error with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let text = deeper.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = deeper.source();
    }
    message
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            other => Self::new(Code::NotFound, other),
        }
    }
}

impl From<PresetError> for Failure {
    fn from(error: PresetError) -> Self {
        match error {
            PresetError::NoSuchPreset(_) | PresetError::NoFormerPreset(_) => Self::new(Code::NotFound, error),
            PresetError::Name(_) | PresetError::TooMany => Self::new(Code::Refused, error),
            PresetError::Change(error) => error.into(),
            PresetError::Read(error) => error.into(),
            PresetError::Store(error) => error.into(),
        }
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Read(error) => error.into(),
            FindError::Several { ref candidates, .. } => {
                let candidates = candidates.clone();
                Self::new(Code::Refused, error).with("candidates", candidates)
            }
            other => Self::new(Code::NotFound, other),
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Store(error) => error.into(),
            error @ (ProjectError::Unsuitable(_) | ProjectError::Inside { .. } | ProjectError::InUse(_)) => {
                Self::new(Code::Refused, error)
            }
            other => Self::new(Code::NotFound, other),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Project(error) => error.into(),
            CreateError::Change(error) => error.into(),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            ImportError::Project(error) => error.into(),
            ImportError::Refused(error) => (*error).into(),
            other => Self::new(Code::Refused, other),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Read(error) => error.into(),
            ExportError::Write(error) => error.into(),
            ExportError::NamesFiles => Self::new(Code::Refused, error),
        }
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Store(error) => error.into(),
            SearchError::TooManyWords { .. } => Self::new(Code::Usage, error),
            other => Self::new(Code::Storage, other),
        }
    }
}

impl From<RedactError> for Failure {
    fn from(error: RedactError) -> Self {
        match error {
            RedactError::Store(error) => error.into(),
            RedactError::Search(error) => error.into(),
            RedactError::Structure { .. } | RedactError::PendingMove => Self::new(Code::Refused, error),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let mut message = error.to_string();
        if let Some(cause) = std::error::Error::source(&error) {
            message = format!("{message}: {cause}");
        }
        Self::new(Code::Usage, message)
    }
}

impl From<ConfirmError> for Failure {
    fn from(error: ConfirmError) -> Self {
        Self::new(Code::Refused, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let closed_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { closed_pipe, ..Self::new(Code::Failed, error) }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.exit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_be_written_says_what_to_do() {
        for (kind, advised) in [
            (ErrorKind::PermissionDenied, true),
            (ErrorKind::ReadOnlyFilesystem, true),
            (ErrorKind::NotADirectory, false),
        ] {
            let error = StoreError::File { path: "/store".into(), error: kind.into() };
            let failure = Failure::from(error);
            assert_eq!(failure.code, Code::Storage);
            assert!(failure.message.starts_with("/store: "), "{}", failure.message);
            assert_eq!(failure.message.contains("RETAKE_HOME"), advised, "{}", failure.message);
        }
    }
}
