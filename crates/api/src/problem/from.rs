//! Converts errors into problems.

use retake_agent::{CompressError, SendError, SetupError, TurnError};
use retake_model::command::CommandError;
use retake_model::object::ObjectError;
use retake_model::settings::InvalidSettingError;
use retake_timeline::store::{RedactError, SearchError, StoreError};
use retake_timeline::{
    BlameError, ChangeError, CreateError, ExportError, FileError, FindError, ImportError, PresetError,
    ProjectError, ReadError, RevisionError,
};

use super::{Code, Problem};

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::DiskFull => Code::DiskFull,
            StoreError::Unsure => Code::OutcomeUnknown,
            StoreError::Damaged(_) | StoreError::Unavailable(_) => Code::Damaged,
            StoreError::InUse => Code::Unavailable,
            StoreError::Panicked(_) => Code::Internal,
            _ => Code::Storage,
        };
        Self::new(code, error)
    }
}

impl From<ObjectError> for Problem {
    fn from(error: ObjectError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::Store(error) => return error.into(),
            ChangeError::Files(error) => return (*error).into(),
            ChangeError::Refused(refusal) => return refusal.into(),
            ChangeError::Conflict { expected, current } => {
                return Self::new(Code::VersionConflict, error)
                    .with("expected", expected)
                    .with("current", current);
            }
            ChangeError::NoSuchThread(_) | ChangeError::NoSuchVersion { .. } => Code::NotFound,
            ChangeError::Title(_) => Code::Refused,
            ChangeError::TurnRuns(_) | ChangeError::CommandRuns(_) => Code::TurnRunning,
            ChangeError::Moving(_)
            | ChangeError::ThreadDeleted
            | ChangeError::LastThread
            | ChangeError::TitleTaken(_)
            | ChangeError::NothingToUndo
            | ChangeError::NothingToRedo
            | ChangeError::TooDeep(_) => Code::Conflict,
        };
        Self::new(code, error)
    }
}

impl From<CommandError> for Problem {
    fn from(refusal: CommandError) -> Self {
        let code = match &refusal {
            CommandError::NoSuchTake
            | CommandError::NoSuchEntry
            | CommandError::NotAttached(_)
            | CommandError::Setting(InvalidSettingError::Unknown(_)) => Code::NotFound,
            CommandError::TurnGone | CommandError::TurnUnfinished => Code::TurnRunning,
            CommandError::EntryExists(_)
            | CommandError::NameTaken(_)
            | CommandError::LastTake
            | CommandError::OnlyTake
            | CommandError::EmptyDraft { .. }
            | CommandError::SummaryOutdated
            | CommandError::NothingToCompress => Code::Conflict,
            CommandError::Unavailable(_) => Code::Damaged,
            _ => Code::Refused,
        };
        Self::new(code, refusal)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            ReadError::NoSuchSequence { last, .. } => Self::new(Code::Conflict, error).with("newest", last),
            other => Self::new(Code::NotFound, other),
        }
    }
}

impl From<PresetError> for Problem {
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

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Read(error) => error.into(),
            FindError::Several { ref candidates, .. } => {
                let candidates = candidates.clone();
                Self::new(Code::Conflict, error).with("candidates", candidates)
            }
            other => Self::new(Code::NotFound, other),
        }
    }
}

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Store(error) => error.into(),
            // A conflict and not 404: the request names an existing project, whose folder may come back.
            ProjectError::Folder(error) => {
                let detail = format!("cannot use the project's folder: {}", with_causes(&error));
                Self::new(Code::Conflict, detail)
            }
            other @ ProjectError::NoSuchProject(_) => Self::new(Code::NotFound, other),
            other @ (ProjectError::Unsuitable(_) | ProjectError::Inside { .. }) => {
                Self::new(Code::Refused, other)
            }
            other @ ProjectError::InUse(_) => Self::new(Code::Conflict, other),
        }
    }
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Project(error) => error.into(),
            CreateError::Change(error) => error.into(),
        }
    }
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        let code = match error {
            FileError::Change(error) => return error.into(),
            FileError::Read(error) => return error.into(),
            FileError::Unfinished(_) => Code::Storage,
            FileError::NoPendingMove(_)
            | FileError::NoSuchSnapshot
            | FileError::NoSuchPath(_)
            | FileError::NotAWorktree => Code::NotFound,
            FileError::TurnRuns(_) | FileError::Running(_) => Code::TurnRunning,
            // A missing folder or an unreadable file is neither a fault of the request nor of the server.
            _ => Code::Conflict,
        };
        Self::new(code, with_causes(&error))
    }
}

impl From<TurnError> for Problem {
    fn from(error: TurnError) -> Self {
        let code = match error {
            TurnError::Change(error) => return error.into(),
            TurnError::Files(error) => return error.into(),
            TurnError::Read(error) => return error.into(),
            TurnError::Busy => Code::TurnRunning,
            TurnError::NoSuchTake => Code::NotFound,
            TurnError::Provider(_) | TurnError::Attachment(_) | TurnError::TooLong { .. } => Code::Refused,
            _ => Code::Conflict,
        };
        Self::new(code, error)
    }
}

impl From<SendError> for Problem {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Store(error) => error.into(),
            SendError::Read(error) => error.into(),
            error @ (SendError::NoTurnRunning | SendError::NotWaiting(_) | SendError::AlreadyDecided(_)) => {
                Self::new(Code::Conflict, error)
            }
        }
    }
}

impl From<CompressError> for Problem {
    fn from(error: CompressError) -> Self {
        match error {
            CompressError::Turn(error) => error.into(),
            error @ CompressError::Model(_) => Self::new(Code::Conflict, with_causes(&error)),
        }
    }
}

impl From<SetupError> for Problem {
    fn from(error: SetupError) -> Self {
        Self::new(Code::Refused, with_causes(&error))
    }
}

impl From<BlameError> for Problem {
    fn from(error: BlameError) -> Self {
        match error {
            BlameError::Read(error) => error.into(),
            BlameError::NoSuchFile => Self::new(Code::NotFound, error),
            // A folder, or a file without lines.
            other => Self::new(Code::Conflict, other),
        }
    }
}

impl From<ImportError> for Problem {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            ImportError::Project(error) => error.into(),
            ImportError::Refused(error) => (*error).into(),
            ImportError::Read(error) => error.into(),
            error @ ImportError::Diverged { .. } => Self::new(Code::Conflict, error),
            other => Self::new(Code::Refused, with_causes(&other)),
        }
    }
}

impl From<ExportError> for Problem {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Read(error) => error.into(),
            ExportError::Write(error) => error.into(),
            error @ ExportError::NamesFiles => Self::new(Code::Refused, error),
        }
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Store(error) => error.into(),
            SearchError::TooManyWords { .. } => Self::new(Code::InvalidRequest, error),
            other => Self::new(Code::Storage, other),
        }
    }
}

impl From<RedactError> for Problem {
    fn from(error: RedactError) -> Self {
        match error {
            RedactError::Store(error) => error.into(),
            RedactError::Search(error) => error.into(),
            other @ (RedactError::Structure { .. } | RedactError::PendingMove) => {
                Self::new(Code::Conflict, other)
            }
        }
    }
}

impl From<RevisionError> for Problem {
    fn from(error: RevisionError) -> Self {
        match error {
            RevisionError::Find(error) => error.into(),
            RevisionError::Read(error) => error.into(),
            error @ RevisionError::Several { .. } => Self::new(Code::Conflict, error),
            other => Self::new(Code::NotFound, other),
        }
    }
}

/// Only for the server's own files.
impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        let full =
            matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        Self::new(if full { Code::DiskFull } else { Code::Storage }, error)
    }
}

/// An error message with its causes.
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
