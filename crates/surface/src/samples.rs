//! One sample of every error variant, for the tests of the surfaces.

use std::io::{self, ErrorKind};

use retake_agent::approval::RuleError;
use retake_agent::provider::config::ResolveError;
use retake_agent::provider::{Answer, CallError, EndpointError, Fault};
use retake_agent::{AttachmentError, BackendError, CompressError, SendError, SetupError, TurnError};
use retake_model::command::CommandError;
use retake_model::content::{ContentId, Kind};
use retake_model::diff::DiffError;
use retake_model::environment::Environment;
use retake_model::id::{EntryId, FolderId, ProjectId, TakeId, ThreadId};
use retake_model::name::{InvalidNameError, NameKind};
use retake_model::object::ObjectError;
use retake_model::path::{RootPath, TreePath};
use retake_model::settings::InvalidSettingError;
use retake_model::state::Visibility;
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_model::time::Timestamp;
use retake_store::{BackupError, OpenError, RedactError, SearchError, StoreError};
use retake_sync::config::{AddressError, ConfigError};
use retake_sync::engine::SyncError;
use retake_sync::links::{Pending, PendingOperation};
use retake_sync::remote::{OpenRemoteError, Remedy, RemoteError};
use retake_sync::session::RoundError;
use retake_timeline::{
    BlameError, ChangeError, ChangeOutcome, CreateError, ExportError, FileError, FindError, GitBranchError,
    ImportError, PresetError, ProjectError, ReadError, RevisionError,
};
use retake_workspace::apply::{ApplyError, Cause, SkipReason};
use retake_workspace::copy::MaterialiseError;
use retake_workspace::folder::FolderError;
use retake_workspace::git::BranchError;
use retake_workspace::snapshot::{OpenError as WorkspaceError, SnapshotError};

use crate::Failure;

/// Converts one sample per pattern. The patterns must cover the enum, so that a new variant needs a sample.
macro_rules! samples {
    ($into:ident, $of:ty { $($pattern:pat => $sample:expr,)* }) => {{
        fn covers_all_variants(error: &$of) -> &'static str {
            match error { $($pattern => stringify!($pattern),)* }
        }
        $({
            let sample: $of = $sample;
            assert_eq!(covers_all_variants(&sample), stringify!($pattern), "the sample is of another variant");
            $into.push((stringify!($pattern), Failure::from(sample)));
        })*
    }};
}

/// The failure of every error variant.
pub fn failures() -> Vec<Failure> {
    named_failures().into_iter().map(|(_, failure)| failure).collect()
}

/// The same, with the pattern of the variant.
pub fn named_failures() -> Vec<(&'static str, Failure)> {
    let mut all = Vec::new();
    of_store(&mut all);
    of_workspace(&mut all);
    of_changes(&mut all);
    of_files(&mut all);
    of_reading(&mut all);
    of_agent(&mut all);
    of_sync(&mut all);
    all
}

type NamedFailures = Vec<(&'static str, Failure)>;

fn text() -> String {
    "NAME".to_owned()
}

fn denied() -> io::Error {
    ErrorKind::PermissionDenied.into()
}

fn thread() -> ThreadId {
    ThreadId::from_bytes([1; 16])
}

fn project() -> ProjectId {
    ProjectId::from_bytes([2; 16])
}

fn content() -> ContentId {
    ContentId::from_bytes([3; 32])
}

fn missing() -> ObjectError {
    ObjectError::Missing { kind: Kind::Entry, id: content() }
}

fn tree_path() -> TreePath {
    TreePath::new(b"src/a.rs").expect("a valid path")
}

fn root_path() -> RootPath {
    RootPath::main(tree_path())
}

fn of_store(all: &mut NamedFailures) {
    samples!(all, StoreError {
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::OutcomeUnknown => StoreError::OutcomeUnknown,
        StoreError::Poisoned => StoreError::Poisoned,
        StoreError::Panicked(_) => StoreError::Panicked(text()),
        StoreError::Damaged(_) => StoreError::Damaged(text()),
        StoreError::Newer { .. } => StoreError::Newer { file: "FILE", found: 2, known: 1 },
        StoreError::InUse => StoreError::InUse,
        StoreError::Database(_) => StoreError::Database(rusqlite::Error::InvalidQuery),
        StoreError::File { .. } => StoreError::File { path: "/store".into(), error: denied() },
        StoreError::Unavailable(_) => StoreError::Unavailable(missing()),
    });
    samples!(all, ObjectError {
        ObjectError::Missing { .. } => missing(),
        ObjectError::Damaged { .. } => ObjectError::Damaged { kind: Kind::Entry, id: content() },
        ObjectError::Unreadable(_) => ObjectError::Unreadable(std::sync::Arc::new(denied())),
    });
    samples!(all, OpenError {
        OpenError::Newer { .. } => OpenError::Newer { found: 2, wanted: 1 },
        OpenError::NotEmpty(_) => OpenError::NotEmpty(text()),
        OpenError::Foreign(_) => OpenError::Foreign(text()),
        OpenError::OldSqlite(_) => OpenError::OldSqlite("3.0"),
        OpenError::Store(_) => OpenError::Store(StoreError::DiskFull),
    });
    samples!(all, BackupError {
        BackupError::AlreadyExists(_) => BackupError::AlreadyExists("/backup".into()),
        BackupError::InsideStore(_) => BackupError::InsideStore("/store/backup".into()),
        BackupError::Running(_) => BackupError::Running("/backup".into()),
        BackupError::Unsettled => BackupError::Unsettled,
        BackupError::NotABackup { .. } => BackupError::NotABackup { path: "/backup".into(), reason: text() },
        BackupError::OtherFormat { .. } => BackupError::OtherFormat { found: 1, wanted: 2 },
        BackupError::Store(_) => BackupError::Store(StoreError::DiskFull),
    });
    samples!(all, SearchError {
        SearchError::TooManyWords { .. } => SearchError::TooManyWords { limit: 9 },
        SearchError::OtherVersion => SearchError::OtherVersion,
        SearchError::OtherStore => SearchError::OtherStore,
        SearchError::Index(_) => SearchError::Index(rusqlite::Error::InvalidQuery),
        SearchError::Store(_) => SearchError::Store(StoreError::DiskFull),
    });
    samples!(all, RedactError {
        RedactError::Structure { .. } => RedactError::Structure { kind: Kind::State, id: content() },
        RedactError::PendingMove => RedactError::PendingMove,
        RedactError::Store(_) => RedactError::Store(StoreError::DiskFull),
        RedactError::Search(_) => RedactError::Search(SearchError::OtherStore),
    });
}

fn of_workspace(all: &mut NamedFailures) {
    samples!(all, WorkspaceError {
        WorkspaceError::NotAFolder { .. } => WorkspaceError::NotAFolder { path: "/a".into(), error: denied() },
        WorkspaceError::Home { .. } => WorkspaceError::Home { path: "/home".into() },
        WorkspaceError::System { .. } => WorkspaceError::System { path: "/usr".into() },
        WorkspaceError::Name { .. } => WorkspaceError::Name { name: text() },
        WorkspaceError::Inside { .. } => WorkspaceError::Inside { inner: "/a/b".into(), outer: "/a".into() },
        WorkspaceError::Pattern { .. } => WorkspaceError::Pattern { pattern: text(), reason: text() },
    });
    samples!(all, SnapshotError {
        SnapshotError::Root { .. } => SnapshotError::Root { path: "/a".into(), error: denied() },
        SnapshotError::Own { .. } => SnapshotError::Own { path: "/a".into() },
        SnapshotError::Cancelled => SnapshotError::Cancelled,
        SnapshotError::Store(_) => SnapshotError::Store(StoreError::DiskFull),
    });
    let failed = |cause| ApplyError { cause, not_put_back: Vec::new() };
    samples!(all, ApplyError {
        ApplyError { cause: Cause::Cancelled, .. } => failed(Cause::Cancelled),
        ApplyError { cause: Cause::Root(_), .. } => failed(Cause::Root(denied())),
        ApplyError { cause: Cause::Path { .. }, .. } => failed(Cause::Path { path: tree_path(), source: denied() }),
        ApplyError { cause: Cause::Content(_), .. } => failed(Cause::Content(missing())),
        ApplyError { cause: Cause::Sync(_), .. } => failed(Cause::Sync(denied())),
        ApplyError { cause: Cause::Twice(_), .. } => failed(Cause::Twice(tree_path())),
        ApplyError { cause: Cause::Skipped(_), .. } => failed(Cause::Skipped(vec![(tree_path(), SkipReason::Denied)])),
    });
    samples!(all, MaterialiseError {
        MaterialiseError::NotEmpty => MaterialiseError::NotEmpty,
        MaterialiseError::Cancelled => MaterialiseError::Cancelled,
        MaterialiseError::Content(_) => MaterialiseError::Content(missing()),
        MaterialiseError::Write(_) => MaterialiseError::Write(denied()),
    });
    samples!(all, GitBranchError {
        GitBranchError::Read(_) => GitBranchError::Read(ReadError::NoSuchThread(thread())),
        GitBranchError::Branch(_) => GitBranchError::Branch(BranchError::NoAuthor),
    });
    samples!(all, BranchError {
        BranchError::NoRepository(_) => BranchError::NoRepository("/project".to_owned()),
        BranchError::Unsupported(_) => BranchError::Unsupported("uses SHA-256"),
        BranchError::OtherOwner => BranchError::OtherOwner,
        BranchError::Linked(_) => BranchError::Linked("/project/.git/refs".to_owned()),
        BranchError::InvalidName(_) => BranchError::InvalidName("a b".to_owned()),
        BranchError::Exists(_) => BranchError::Exists("main".to_owned()),
        BranchError::CheckedOut(_) => BranchError::CheckedOut("main".to_owned()),
        BranchError::NoAuthor => BranchError::NoAuthor,
        BranchError::Unreadable { .. } => BranchError::Unreadable { kind: "tree", id: "4b825dc6".to_owned() },
        BranchError::Content(_) => BranchError::Content(missing()),
        BranchError::Write(_) => BranchError::Write(denied()),
    });
}

fn of_changes(all: &mut NamedFailures) {
    samples!(all, ChangeError {
        ChangeError::Conflict { .. } => ChangeError::Conflict { expected: 7, current: 8 },
        ChangeError::NoSuchThread(_) => ChangeError::NoSuchThread(thread()),
        ChangeError::Moving(_) => ChangeError::Moving(FolderId::from_bytes([4; 16])),
        ChangeError::ThreadDeleted => ChangeError::ThreadDeleted,
        ChangeError::LastThread => ChangeError::LastThread,
        ChangeError::TurnRuns(_) => ChangeError::TurnRuns(text()),
        ChangeError::CommandRuns(_) => ChangeError::CommandRuns("/project".into()),
        ChangeError::TitleTaken(_) => ChangeError::TitleTaken(text()),
        ChangeError::Title(_) => ChangeError::Title(InvalidNameError::Empty(NameKind::Save)),
        ChangeError::NothingToUndo => ChangeError::NothingToUndo,
        ChangeError::NothingToRedo => ChangeError::NothingToRedo,
        ChangeError::TooDeep(_) => ChangeError::TooDeep(9),
        ChangeError::NoSuchVersion { .. } => ChangeError::NoSuchVersion { asked: 9, current: 8 },
        ChangeError::NoSuchTakeThen { .. } =>
            ChangeError::NoSuchTakeThen { take: text(), asked: 3, first: 8 },
        ChangeError::Refused(_) => ChangeError::Refused(CommandError::LastTake),
        ChangeError::Files(_) => ChangeError::Files(Box::new(FileError::Outdated)),
        ChangeError::Store(_) => ChangeError::Store(StoreError::DiskFull),
    });
    samples!(all, CommandError {
        CommandError::NoSuchTake => CommandError::NoSuchTake,
        CommandError::SameTake => CommandError::SameTake,
        CommandError::NoSuchEntry => CommandError::NoSuchEntry,
        CommandError::EntryExists(_) => CommandError::EntryExists(EntryId::from_bytes([5; 16])),
        CommandError::NoSuchPicture(_) => CommandError::NoSuchPicture(content()),
        CommandError::NotAttached(_) => CommandError::NotAttached(content()),
        CommandError::EmptyDraft { .. } => CommandError::EmptyDraft { take: text() },
        CommandError::NameTaken(_) => CommandError::NameTaken(text()),
        CommandError::LastTake => CommandError::LastTake,
        CommandError::OnlyTake => CommandError::OnlyTake,
        CommandError::EmptyPrompt => CommandError::EmptyPrompt,
        CommandError::EmptySummary => CommandError::EmptySummary,
        CommandError::TurnGone => CommandError::TurnGone,
        CommandError::TurnUnfinished => CommandError::TurnUnfinished,
        CommandError::SummaryOutdated => CommandError::SummaryOutdated,
        CommandError::NothingToCompress => CommandError::NothingToCompress,
        CommandError::NotAUserMessage { .. } => CommandError::NotAUserMessage { role: text() },
        CommandError::AssistantPrompt { .. } => CommandError::AssistantPrompt { role: text() },
        CommandError::Name(_) => CommandError::Name(InvalidNameError::Empty(NameKind::Save)),
        CommandError::Setting(InvalidSettingError::Unknown(_)) =>
            CommandError::Setting(InvalidSettingError::Unknown(text())),
        CommandError::Setting(InvalidSettingError::Value { .. }) =>
            CommandError::Setting(InvalidSettingError::Value { name: "model", expected: "a name" }),
        CommandError::TooMuch { .. } => CommandError::TooMuch { what: "tags", limit: 9 },
        CommandError::Unavailable(_) => CommandError::Unavailable(missing()),
    });
    samples!(all, PresetError {
        PresetError::NoSuchPreset(_) => PresetError::NoSuchPreset(text()),
        PresetError::NoFormerPreset(_) => PresetError::NoFormerPreset(text()),
        PresetError::Name(_) => PresetError::Name(InvalidNameError::Empty(NameKind::Preset)),
        PresetError::TooMany => PresetError::TooMany,
        PresetError::Change(_) => PresetError::Change(ChangeError::ThreadDeleted),
        PresetError::Read(_) => PresetError::Read(ReadError::NoSuchThread(thread())),
        PresetError::Store(_) => PresetError::Store(StoreError::DiskFull),
    });
    samples!(all, ProjectError {
        ProjectError::Folder(_) => ProjectError::Folder(FolderError::Unreadable { path: "/a".into(), source: denied() }),
        ProjectError::NoSuchProject(_) => ProjectError::NoSuchProject(project()),
        ProjectError::Unsuitable(_) => ProjectError::Unsuitable(WorkspaceError::Home { path: "/home".into() }),
        ProjectError::Inside { .. } => ProjectError::Inside { path: "/a".into(), what: "the store" },
        ProjectError::InUse(_) => ProjectError::InUse(text()),
        ProjectError::Store(_) => ProjectError::Store(StoreError::DiskFull),
    });
    samples!(all, CreateError {
        CreateError::Project(_) => CreateError::Project(ProjectError::InUse(text())),
        CreateError::Change(_) => CreateError::Change(ChangeError::TitleTaken(text())),
    });
    samples!(all, ImportError {
        ImportError::Read(_) => ImportError::Read(denied()),
        ImportError::NotAnExport { .. } => ImportError::NotAnExport { line: 1, reason: text() },
        ImportError::Newer { .. } => ImportError::Newer { found: 9 },
        ImportError::Damaged { .. } => ImportError::Damaged { line: 1, reason: text() },
        ImportError::CutOff(_) => ImportError::CutOff(1),
        ImportError::Diverged { .. } => ImportError::Diverged { thread: thread(), common: 7 },
        ImportError::Refused(_) => ImportError::Refused(Box::new(ChangeError::ThreadDeleted)),
        ImportError::Project(_) => ImportError::Project(ProjectError::InUse(text())),
        ImportError::Store(_) => ImportError::Store(StoreError::DiskFull),
    });
}

fn of_files(all: &mut NamedFailures) {
    samples!(all, FileError {
        FileError::Change(_) => FileError::Change(ChangeError::ThreadDeleted),
        FileError::Read(_) => FileError::Read(ReadError::NoSuchThread(thread())),
        FileError::Snapshot(_) => FileError::Snapshot(SnapshotError::Cancelled),
        FileError::Apply(_) => FileError::Apply(ApplyError { cause: Cause::Root(denied()), not_put_back: Vec::new() }),
        FileError::Unfinished(_) => FileError::Unfinished(Box::new(FileError::Outdated)),
        FileError::NoSuchProject(_) => FileError::NoSuchProject(project()),
        FileError::ProjectFolderMissing(_) => FileError::ProjectFolderMissing("/a".into()),
        FileError::ProjectForgotten(_) => FileError::ProjectForgotten(project()),
        FileError::Open(_) => FileError::Open(WorkspaceError::Home { path: "/home".into() }),
        FileError::FolderGone(_) => FileError::FolderGone("/a".into()),
        FileError::FolderExists(_) => FileError::FolderExists("/a".into()),
        FileError::NoPendingMove(_) => FileError::NoPendingMove("/a".into()),
        FileError::Copy(_) => FileError::Copy(MaterialiseError::NotEmpty),
        FileError::Outdated => FileError::Outdated,
        FileError::NothingMoves => FileError::NothingMoves,
        FileError::FilesOnlyUnsupported => FileError::FilesOnlyUnsupported,
        FileError::NoSuchSnapshot => FileError::NoSuchSnapshot,
        FileError::TakeInWorktree(_) => FileError::TakeInWorktree("/a".into()),
        FileError::NoFolder(_) => FileError::NoFolder(text()),
        FileError::NoCommonFork { .. } => FileError::NoCommonFork { one: text(), other: text() },
        FileError::TakeIsActive => FileError::TakeIsActive,
        FileError::TakeHasWorktree { .. } => FileError::TakeHasWorktree { take: text(), path: "/a".into() },
        FileError::FilesWouldStay { .. } => FileError::FilesWouldStay { take: text(), next_active: text() },
        FileError::NoSuchPath(_) => FileError::NoSuchPath(root_path()),
        FileError::PathExcluded(..) => FileError::PathExcluded(root_path(), "ignored"),
        FileError::NotSealedAtVersion(_) => FileError::NotSealedAtVersion(root_path()),
        FileError::PathExists(_) => FileError::PathExists("/a".into()),
        FileError::InsideProject(_) => FileError::InsideProject("/a".into()),
        FileError::InsideFolder { .. } =>
            FileError::InsideFolder { path: "/a/b".into(), what: "a worktree", other: "/a".into() },
        FileError::BadLocation { .. } => FileError::BadLocation { path: "/a".into(), error: denied() },
        FileError::WorktreeMoved { .. } => FileError::WorktreeMoved { from: "/a".into(), to: "/b".into() },
        FileError::WorktreeReplaced(_) => FileError::WorktreeReplaced("/a".into()),
        FileError::RootReplaced { .. } => FileError::RootReplaced { name: text(), path: "/a".into() },
        FileError::ContainsFolder { .. } => FileError::ContainsFolder { outer: "/a".into(), inner: "/a/b".into() },
        FileError::FilesNotDeleted { .. } =>
            FileError::FilesNotDeleted { folder: "/a".into(), skipped: vec![(tree_path(), SkipReason::Denied)] },
        FileError::Elsewhere => FileError::Elsewhere,
        FileError::InProjectFolder(_) => FileError::InProjectFolder(text()),
        FileError::TurnRuns(_) => FileError::TurnRuns(text()),
        FileError::OtherTake => FileError::OtherTake,
        FileError::Running(_) => FileError::Running(text()),
        FileError::CommandRuns { .. } => FileError::CommandRuns { program: text(), process: 1 },
        FileError::RootTaken { .. } => FileError::RootTaken { root: "/a".into(), other: "/a/b".into() },
        FileError::RootIsStore { .. } => FileError::RootIsStore { root: "/a".into(), store: "/a/b".into() },
        FileError::RootsInWorktree => FileError::RootsInWorktree,
        FileError::NotAWorktree => FileError::NotAWorktree,
        FileError::PlanOutdated => FileError::PlanOutdated,
        FileError::MoveUnfinished(_) => FileError::MoveUnfinished("/a".into()),
        FileError::SharedChanges(_) => FileError::SharedChanges(vec![root_path()]),
        FileError::EmptiedFiles(_) => FileError::EmptiedFiles("/a".into()),
        FileError::WrongFolder { .. } => FileError::WrongFolder { thread: thread(), folder: "/a".into() },
        FileError::FilesDisabled => FileError::FilesDisabled,
        FileError::Unchanged(_) => FileError::Unchanged(Box::new(unchanged())),
    });
}

fn unchanged() -> ChangeOutcome {
    let now = Timestamp::default();
    let summary = ThreadSummary {
        id: thread(),
        project: project(),
        version: 7,
        title: text(),
        tags: Vec::new(),
        pinned: false,
        visibility: Visibility::Private,
        private: false,
        shared_with_support: false,
        created: now,
        updated: now,
        takes: 1,
        active: TakeSummary {
            id: TakeId::from_bytes([6; 16]),
            name: text(),
            entries: 0,
            preview: String::new(),
            last_entry: now,
            parent: None,
            fork_point: None,
            shared: 0,
            git_commit: None,
        },
        first_seen: Environment::default(),
        last_seen: Environment::default(),
        deleted: None,
        parent: None,
        provider: None,
        model: None,
    };
    ChangeOutcome {
        thread: thread(),
        version: 7,
        operation: None,
        kind: None,
        undoable: false,
        take: None,
        new_bytes: 0,
        summary,
    }
}

fn of_reading(all: &mut NamedFailures) {
    samples!(all, ReadError {
        ReadError::NoSuchThread(_) => ReadError::NoSuchThread(thread()),
        ReadError::NoSuchVersion { .. } => ReadError::NoSuchVersion { asked: 9, current: 8 },
        ReadError::NoSuchSequence { .. } => ReadError::NoSuchSequence { asked: 9, last: 8 },
        ReadError::Store(_) => ReadError::Store(StoreError::DiskFull),
    });
    samples!(all, FindError {
        FindError::NoThread(_) => FindError::NoThread(text()),
        FindError::NoTake { .. } => FindError::NoTake { thread: text(), text: text() },
        FindError::NoEntry(_) => FindError::NoEntry(text()),
        FindError::NoTurn { .. } => FindError::NoTurn { text: text(), count: 3 },
        FindError::NoVersion(_) => FindError::NoVersion(text()),
        FindError::Several { .. } => FindError::Several { text: text(), candidates: vec![text(), text()] },
        FindError::Read(_) => FindError::Read(ReadError::NoSuchThread(thread())),
    });
    samples!(all, RevisionError {
        RevisionError::NoSuchRevision(_) => RevisionError::NoSuchRevision(text()),
        RevisionError::Several { .. } => RevisionError::Several { text: text(), count: 2 },
        RevisionError::NoFileChanges(_) => RevisionError::NoFileChanges(7),
        RevisionError::NoFiles => RevisionError::NoFiles,
        RevisionError::NoFilesOfTake(_) => RevisionError::NoFilesOfTake(text()),
        RevisionError::Find(_) => RevisionError::Find(FindError::NoThread(text())),
        RevisionError::Read(_) => RevisionError::Read(ReadError::NoSuchThread(thread())),
    });
    samples!(all, BlameError {
        BlameError::NoSuchFile => BlameError::NoSuchFile,
        BlameError::NotAFile => BlameError::NotAFile,
        BlameError::Incomparable(_) => BlameError::Incomparable(DiffError::Binary),
        BlameError::Read(_) => BlameError::Read(ReadError::NoSuchThread(thread())),
    });
    samples!(all, ExportError {
        ExportError::Read(_) => ExportError::Read(ReadError::NoSuchThread(thread())),
        ExportError::NamesFiles => ExportError::NamesFiles,
        ExportError::Write(_) => ExportError::Write(ErrorKind::StorageFull.into()),
    });
}

fn of_agent(all: &mut NamedFailures) {
    let insecure = || EndpointError::Insecure { provider: text(), host: text() };
    let document = || AttachmentError::NoDocuments { provider: text(), model: text() };
    samples!(all, TurnError {
        TurnError::Busy => TurnError::Busy,
        TurnError::Nothing => TurnError::Nothing,
        TurnError::NoSuchTake => TurnError::NoSuchTake,
        TurnError::NotActive => TurnError::NotActive,
        TurnError::InWorktree => TurnError::InWorktree,
        TurnError::Gone => TurnError::Gone,
        TurnError::TooLong { .. } => TurnError::TooLong { tokens: 9, window: 8, model: text() },
        TurnError::OtherCommit { .. } => TurnError::OtherCommit { start: text(), short: text(), now: text() },
        TurnError::NoStartCommit => TurnError::NoStartCommit,
        TurnError::Attachment(_) => TurnError::Attachment(document()),
        TurnError::Provider(_) => TurnError::Provider(BackendError::from(insecure())),
        TurnError::Change(_) => TurnError::Change(ChangeError::ThreadDeleted),
        TurnError::Files(_) => TurnError::Files(FileError::Outdated),
        TurnError::Read(_) => TurnError::Read(ReadError::NoSuchThread(thread())),
        TurnError::Folder(_) => TurnError::Folder(denied()),
    });
    samples!(all, SendError {
        SendError::NoTurnRunning => SendError::NoTurnRunning,
        SendError::NotWaiting(_) => SendError::NotWaiting(text()),
        SendError::AlreadyDecided(_) => SendError::AlreadyDecided(text()),
        SendError::Read(_) => SendError::Read(ReadError::NoSuchThread(thread())),
        SendError::Store(_) => SendError::Store(StoreError::DiskFull),
    });
    let call = CallError {
        fault: Fault::Network,
        status: None,
        retryable: true,
        retry_after: None,
        message: text(),
        partial: Box::<Answer>::default(),
    };
    samples!(all, CompressError {
        CompressError::Model(_) => CompressError::Model(call),
        CompressError::Turn(_) => CompressError::Turn(TurnError::Busy),
    });
    samples!(all, SetupError {
        SetupError::NoProviderForModel(_) => SetupError::NoProviderForModel(text()),
        SetupError::NoSuchProvider { .. } =>
            SetupError::NoSuchProvider { provider: text(), model: text(), there: text() },
        SetupError::Provider(_) => SetupError::Provider(ResolveError::NoModel { provider: text() }),
        SetupError::Client(_) => SetupError::Client(denied()),
        SetupError::Rule(_) => SetupError::Rule(RuleError::NoPath),
    });
    samples!(all, BackendError {
        _any => BackendError::from(insecure()),
    });
}

#[test]
fn every_error_has_one_code_and_message() {
    let lines = named_failures().into_iter().map(|(variant, failure)| {
        let Failure { code, message, details, .. } = failure;
        let details =
            if details.is_empty() { String::new() } else { serde_json::Value::Object(details).to_string() };
        let (exit, http) = (code.exit_status(), code.http_status());
        format!(
            "{variant}\n    {} {exit} {http} {details}\n    {}",
            code.name(),
            message.replace('\n', "\n    ")
        )
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

fn of_sync(all: &mut NamedFailures) {
    samples!(all, ConfigError {
        ConfigError::File { .. } => ConfigError::File { path: "remotes.json".into(), error: denied() },
        ConfigError::NoSuchRemote(_) => ConfigError::NoSuchRemote(text()),
        ConfigError::Exists(_) => ConfigError::Exists(text()),
        ConfigError::Address(_) => AddressError::Unknown(text()).into(),
        ConfigError::Name(_) => ConfigError::Name("a b".to_owned()),
    });
    let pending = Pending {
        operation: PendingOperation::Push,
        error: text(),
        remedy: Remedy::Wait,
        failed_at: 0,
        tries: 3,
        not_before: 0,
    };
    samples!(all, RoundError {
        RoundError::Open(OpenRemoteError::Missing(_)) => OpenRemoteError::Missing(text()).into(),
        RoundError::Open(OpenRemoteError::NotEmpty(_)) => OpenRemoteError::NotEmpty(text()).into(),
        RoundError::Open(OpenRemoteError::Unordered(_)) => OpenRemoteError::Unordered(text()).into(),
        RoundError::Open(OpenRemoteError::Address(_)) => OpenRemoteError::Address(AddressError::Credentials).into(),
        RoundError::Open(OpenRemoteError::Remote(_)) => OpenRemoteError::Remote(RemoteError::Purged).into(),
        RoundError::Sync(_) => SyncError::Busy.into(),
        RoundError::Config(_) => ConfigError::NoSuchRemote(text()).into(),
        RoundError::Read(_) => ReadError::NoSuchThread(thread()).into(),
        RoundError::Waiting(_) => RoundError::Waiting(Box::new(pending)),
    });
}
