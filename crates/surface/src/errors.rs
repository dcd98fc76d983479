//! Converts each error of the crates below to one [`Failure`].
//!
//! The matches list every variant, so that a new one does not compile until it has a code.

use std::io::{self, ErrorKind};
use std::path::Path;

use retake_agent::{BackendError, CompressError, SendError, SetupError, TurnError};
use retake_model::command::CommandError;
use retake_model::object::ObjectError;
use retake_model::settings::InvalidSettingError;
use retake_store::{BackupError, OpenError, RedactError, SearchError, StoreError};
use retake_sync::config::ConfigError;
use retake_sync::remote::OpenRemoteError;
use retake_sync::session::RoundError;
use retake_timeline::{
    BlameError, ChangeError, CreateError, ExportError, FileError, FindError, GitBranchError, ImportError,
    PresetError, ProjectError, ReadError, RevisionError,
};
use retake_workspace::apply::{ApplyError, Cause};
use retake_workspace::copy::MaterialiseError;
use retake_workspace::git::BranchError;
use retake_workspace::snapshot::{OpenError as WorkspaceError, SnapshotError};

use crate::{Code, Failure};

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::DiskFull => Code::DiskFull,
            StoreError::OutcomeUnknown => {
                return Self::new(Code::OutcomeUnknown, error).with("outcome", "unknown");
            }
            StoreError::Damaged(_) | StoreError::Unavailable(_) => Code::Damaged,
            StoreError::InUse => Code::Unavailable,
            StoreError::Panicked(_) => Code::Internal,
            StoreError::File { path, error } => return file_of_store(path, error),
            StoreError::Poisoned | StoreError::Newer { .. } | StoreError::Database(_) => Code::Storage,
        };
        Self::caused_by(code, &error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let code = match error {
            ConfigError::File { .. } => Code::Storage,
            ConfigError::NoSuchRemote(_) => Code::NotFound,
            ConfigError::Exists(_) => Code::Refused,
            ConfigError::Address(_) | ConfigError::Name(_) => Code::InvalidRequest,
        };
        Self::caused_by(code, &error)
    }
}

impl From<RoundError> for Failure {
    fn from(error: RoundError) -> Self {
        let code = match error {
            RoundError::Config(error) => return error.into(),
            RoundError::Read(error) => return error.into(),
            RoundError::Open(OpenRemoteError::Address(_)) => Code::InvalidRequest,
            RoundError::Open(OpenRemoteError::NotEmpty(_) | OpenRemoteError::Unordered(_)) => Code::Refused,
            RoundError::Open(OpenRemoteError::Missing(_) | OpenRemoteError::Remote(_))
            | RoundError::Sync(_)
            | RoundError::Waiting(_) => Code::RemoteFailed,
        };
        Self::caused_by(code, &error)
    }
}

fn file_of_store(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        // SQLite needs write access to read a store in WAL mode, so a read-only store cannot be opened in place.
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "\nThe store must belong to you and be writable, even for reading. To read another store, \
             copy its folder and set RETAKE_HOME to the copy."
        }
        _ => "",
    };
    let path = path.display().to_string();
    Failure::new(Code::Storage, format!("{path}: {error}{hint}")).with("path", path)
}

impl From<ObjectError> for Failure {
    fn from(error: ObjectError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Newer { .. }
            | OpenError::NotEmpty(_)
            | OpenError::Foreign(_)
            | OpenError::OldSqlite(_) => Self::caused_by(Code::Refused, &error),
        }
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let code = match error {
            BackupError::Store(error) => return error.into(),
            BackupError::AlreadyExists(_)
            | BackupError::InsideStore(_)
            | BackupError::Running(_)
            | BackupError::OtherFormat { .. } => Code::Refused,
            BackupError::Unsettled => Code::Conflict,
            BackupError::NotABackup { .. } => Code::Damaged,
        };
        Self::caused_by(code, &error)
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let code = match error {
            SearchError::Store(error) => return error.into(),
            SearchError::TooManyWords { .. } => Code::InvalidRequest,
            SearchError::OtherVersion | SearchError::OtherStore | SearchError::Index(_) => Code::Storage,
        };
        Self::caused_by(code, &error)
    }
}

impl From<RedactError> for Failure {
    fn from(error: RedactError) -> Self {
        match error {
            RedactError::Store(error) => error.into(),
            RedactError::Search(error) => error.into(),
            RedactError::Structure { .. } | RedactError::PendingMove => {
                Self::caused_by(Code::Conflict, &error)
            }
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        let code = match error {
            WorkspaceError::NotAFolder { .. }
            | WorkspaceError::Home { .. }
            | WorkspaceError::System { .. }
            | WorkspaceError::Name { .. }
            | WorkspaceError::Inside { .. }
            | WorkspaceError::Pattern { .. } => Code::Refused,
        };
        Self::caused_by(code, &error)
    }
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Store(error) => error.into(),
            SnapshotError::Root { .. } | SnapshotError::Own { .. } | SnapshotError::Cancelled => {
                Self::caused_by(Code::FilesFailed, &error)
            }
        }
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        match error.cause {
            Cause::Content(error) => error.into(),
            Cause::Cancelled
            | Cause::Root(_)
            | Cause::Path { .. }
            | Cause::Sync(_)
            | Cause::Twice(_)
            | Cause::Skipped(_) => Self::caused_by(Code::FilesFailed, &error),
        }
    }
}

impl From<MaterialiseError> for Failure {
    fn from(error: MaterialiseError) -> Self {
        match error {
            MaterialiseError::Content(error) => error.into(),
            MaterialiseError::NotEmpty | MaterialiseError::Cancelled | MaterialiseError::Write(_) => {
                Self::caused_by(Code::FilesFailed, &error)
            }
        }
    }
}

impl From<GitBranchError> for Failure {
    fn from(error: GitBranchError) -> Self {
        match error {
            GitBranchError::Read(error) => error.into(),
            GitBranchError::Branch(error) => error.into(),
        }
    }
}

impl From<BranchError> for Failure {
    fn from(error: BranchError) -> Self {
        let code = match error {
            BranchError::Content(error) => return error.into(),
            BranchError::InvalidName(_) => Code::InvalidRequest,
            BranchError::NoRepository(_)
            | BranchError::Unsupported(_)
            | BranchError::OtherOwner
            | BranchError::Linked(_)
            | BranchError::Exists(_)
            | BranchError::CheckedOut(_)
            | BranchError::NoAuthor => Code::Refused,
            BranchError::Unreadable { .. } | BranchError::Write(_) => Code::FilesFailed,
        };
        Self::caused_by(code, &error)
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::Store(error) => return error.into(),
            ChangeError::Files(error) => return (*error).into(),
            ChangeError::Refused(refusal) => return refusal.into(),
            ChangeError::Conflict { expected, current } => {
                return Self::caused_by(Code::VersionConflict, &error)
                    .with("expected", expected)
                    .with("current", current);
            }
            ChangeError::NoSuchThread(_)
            | ChangeError::NoSuchVersion { .. }
            | ChangeError::NoSuchTakeThen { .. } => Code::NotFound,
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
        Self::caused_by(code, &error)
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        let code = match error {
            CommandError::Unavailable(error) => return error.into(),
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
            CommandError::NoSuchPicture(_)
            | CommandError::SameTake
            | CommandError::EmptyPrompt
            | CommandError::EmptySummary
            | CommandError::NotAUserMessage { .. }
            | CommandError::AssistantPrompt { .. }
            | CommandError::Name(_)
            | CommandError::Setting(InvalidSettingError::Value { .. })
            | CommandError::TooMuch { .. } => Code::Refused,
        };
        Self::caused_by(code, &error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            ReadError::NoSuchSequence { last, .. } => {
                Self::caused_by(Code::Conflict, &error).with("newest", last)
            }
            ReadError::NoSuchThread(_) | ReadError::NoSuchVersion { .. } => {
                Self::caused_by(Code::NotFound, &error)
            }
        }
    }
}

impl From<PresetError> for Failure {
    fn from(error: PresetError) -> Self {
        let code = match error {
            PresetError::Change(error) => return error.into(),
            PresetError::Read(error) => return error.into(),
            PresetError::Store(error) => return error.into(),
            PresetError::NoSuchPreset(_) | PresetError::NoFormerPreset(_) => Code::NotFound,
            PresetError::Name(_) | PresetError::TooMany => Code::Refused,
        };
        Self::caused_by(code, &error)
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Read(error) => error.into(),
            FindError::Several { ref candidates, .. } => {
                Self::caused_by(Code::Conflict, &error).with("candidates", candidates.clone())
            }
            FindError::NoThread(_)
            | FindError::NoTake { .. }
            | FindError::NoEntry(_)
            | FindError::NoTurn { .. }
            | FindError::NoVersion(_) => Self::caused_by(Code::NotFound, &error),
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        let code = match error {
            ProjectError::Store(error) => return error.into(),
            // Not "not found": the request names an existing project, whose folder may come back.
            ProjectError::Folder(error) => {
                return Self::caused_by(Code::FilesFailed, &error).at("cannot use the project's folder");
            }
            ProjectError::NoSuchProject(_) => Code::NotFound,
            ProjectError::Unsuitable(_) | ProjectError::Inside { .. } => Code::Refused,
            ProjectError::InUse(_) => Code::Conflict,
        };
        Self::caused_by(code, &error)
    }
}

/// The same for a folder that the request names: a missing one is not found.
pub fn named_folder(error: ProjectError) -> Failure {
    match error {
        ProjectError::Folder(error) => Failure::caused_by(Code::NotFound, &error),
        other => other.into(),
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

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let code = match error {
            FileError::Change(error) => return error.into(),
            FileError::Read(error) => return error.into(),
            FileError::Snapshot(error) => return error.into(),
            FileError::Apply(error) => return error.into(),
            FileError::Copy(error) => return error.into(),
            FileError::Unfinished(_) => {
                return Self::caused_by(Code::Storage, &error).with("outcome", "unfinished");
            }
            FileError::FolderGone(ref path) => {
                return Self::caused_by(Code::Conflict, &error).with("folder", path.display().to_string());
            }
            FileError::FilesNotDeleted { ref skipped, .. } => {
                let paths: Vec<String> = skipped.iter().map(|(path, _)| path.to_string()).collect();
                return Self::caused_by(Code::FilesFailed, &error).with("paths", paths);
            }
            FileError::NoSuchProject(_)
            | FileError::NoPendingMove(_)
            | FileError::NoSuchSnapshot
            | FileError::NoSuchPath(_)
            | FileError::NotAWorktree => Code::NotFound,
            FileError::TurnRuns(_) | FileError::Running(_) => Code::TurnRunning,
            FileError::CommandRuns { ref program, process } => {
                let running = Self::caused_by(Code::Conflict, &error).with("program", program.clone());
                return running.with("process", process);
            }
            FileError::ProjectFolderMissing(_)
            | FileError::ProjectForgotten(_)
            | FileError::Open(_)
            | FileError::FolderExists(_)
            | FileError::Outdated
            | FileError::NothingMoves
            | FileError::FilesOnlyUnsupported
            | FileError::TakeInWorktree(_)
            | FileError::NoFolder(_)
            | FileError::NoCommonFork { .. }
            | FileError::TakeIsActive
            | FileError::TakeHasWorktree { .. }
            | FileError::FilesWouldStay { .. }
            | FileError::PathExcluded(..)
            | FileError::NotSealedAtVersion(_)
            | FileError::PathExists(_)
            | FileError::InsideProject(_)
            | FileError::InsideFolder { .. }
            | FileError::BadLocation { .. }
            | FileError::WorktreeMoved { .. }
            | FileError::WorktreeReplaced(_)
            | FileError::RootReplaced { .. }
            | FileError::ContainsFolder { .. }
            | FileError::Elsewhere
            | FileError::InProjectFolder(_)
            | FileError::OtherTake
            | FileError::RootTaken { .. }
            | FileError::RootIsStore { .. }
            | FileError::RootsInWorktree
            | FileError::PlanOutdated
            | FileError::MoveUnfinished(_)
            | FileError::SharedChanges(_)
            | FileError::EmptiedFiles(_)
            | FileError::WrongFolder { .. }
            | FileError::FilesDisabled
            | FileError::Unchanged(_) => Code::Conflict,
        };
        Self::caused_by(code, &error)
    }
}

impl From<BlameError> for Failure {
    fn from(error: BlameError) -> Self {
        let code = match error {
            BlameError::Read(error) => return error.into(),
            BlameError::NoSuchFile => Code::NotFound,
            BlameError::NotAFile | BlameError::Incomparable(_) => Code::Conflict,
        };
        Self::caused_by(code, &error)
    }
}

impl From<RevisionError> for Failure {
    fn from(error: RevisionError) -> Self {
        let code = match error {
            RevisionError::Find(error) => return error.into(),
            RevisionError::Read(error) => return error.into(),
            RevisionError::Several { .. } => Code::Conflict,
            RevisionError::NoSuchRevision(ref text) => {
                return Self::caused_by(Code::NotFound, &error).with("revision", text.clone());
            }
            RevisionError::NoFileChanges(_) | RevisionError::NoFiles | RevisionError::NoFilesOfTake(_) => {
                Code::NotFound
            }
        };
        Self::caused_by(code, &error)
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let code = match error {
            ImportError::Store(error) => return error.into(),
            ImportError::Project(error) => return error.into(),
            ImportError::Refused(error) => return (*error).into(),
            ImportError::Read(error) => return error.into(),
            ImportError::Diverged { .. } => Code::Conflict,
            ImportError::NotAnExport { .. }
            | ImportError::Newer { .. }
            | ImportError::Damaged { .. }
            | ImportError::CutOff(_) => Code::Refused,
        };
        Self::caused_by(code, &error)
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Read(error) => error.into(),
            ExportError::Write(error) => error.into(),
            ExportError::NamesFiles => Self::caused_by(Code::Refused, &error),
        }
    }
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        let code = match error {
            TurnError::Change(error) => return error.into(),
            TurnError::Files(error) => return error.into(),
            TurnError::Read(error) => return error.into(),
            TurnError::Busy => Code::TurnRunning,
            TurnError::Nothing => Code::NoTurn,
            TurnError::NoSuchTake => Code::NotFound,
            TurnError::Folder(_) => Code::FilesFailed,
            TurnError::Provider(_) | TurnError::Attachment(_) | TurnError::TooLong { .. } => Code::Refused,
            TurnError::NotActive
            | TurnError::InWorktree
            | TurnError::Gone
            | TurnError::OtherCommit { .. }
            | TurnError::NoStartCommit => Code::Conflict,
        };
        Self::caused_by(code, &error)
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Store(error) => error.into(),
            SendError::Read(error) => error.into(),
            SendError::NoTurnRunning | SendError::NotWaiting(_) | SendError::AlreadyDecided(_) => {
                Self::caused_by(Code::NoTurn, &error)
            }
        }
    }
}

impl From<CompressError> for Failure {
    fn from(error: CompressError) -> Self {
        match error {
            CompressError::Turn(error) => error.into(),
            CompressError::Model(_) => Self::caused_by(Code::ModelFailed, &error),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let code = match error {
            SetupError::NoProviderForModel(_)
            | SetupError::NoSuchProvider { .. }
            | SetupError::Provider(_)
            | SetupError::Rule(_) => Code::Refused,
            SetupError::Client(_) => Code::Internal,
        };
        Self::caused_by(code, &error)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::caused_by(Code::Refused, &error)
    }
}
