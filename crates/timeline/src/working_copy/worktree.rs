//! Worktrees: a folder for one take, so that several takes can be used at the same time.

mod identity;
mod location;
mod preview;
mod reader;
mod remove;

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::id::{FolderId, ProjectId, TakeId, ThreadId};
use retake_model::intent::{FolderIdentity, FolderRecord, WorktreeTake};
use retake_model::object::{NewObject, load};
use retake_model::path::TreePath;
use retake_model::tree::{Snapshot, SnapshotRoot};
use retake_store::{Queries, StoreError};
use retake_workspace::apply::{Identity, OpenRoot};
use retake_workspace::copy::{self, CopySource, MaterialiseError, MaterialiseReport};
use retake_workspace::folder::{path_from_text, path_to_text, rename_to_new};
use retake_workspace::snapshot::{KnownFiles, Options, Workspace};
use serde::{Serialize, Serializer};

pub use preview::{WorktreeChange, WorktreePreview};
pub use reader::WorktreeReader;
pub use remove::CleanupReport;

pub(super) use identity::{identify, is_at, is_same_folder};
use remove::PendingFill;

use super::plan::files_of_take;
use super::{FileError, MoveOptions, PlanRequest, RecordedChanges, WorkingCopy};
use crate::clock::ClockIds;
use crate::{Caller, ProjectError, Timeline};

/// A worktree that was created.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenedWorktree {
    /// The take.
    pub take: TakeId,
    /// Path of the worktree.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// The snapshot that it was created from.
    pub snapshot: ContentId,
    /// Number of files and links.
    pub files: u64,
    /// How many of them share their blocks with the project's folder.
    pub shared: u64,
}

/// A worktree that was removed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedWorktree {
    /// The recorded changes.
    pub recorded: RecordedChanges,
    /// Current or former path.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Whether its files were deleted.
    pub removed: bool,
}

/// The worktree of a take.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worktree {
    /// The folder.
    #[serde(skip)]
    pub id: FolderId,
    /// Its project.
    pub project: ProjectId,
    /// The thread of the take.
    pub thread: ThreadId,
    /// The take.
    pub take: TakeId,
    /// Its path.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Identity of the folder on disk; `None` if an older version recorded it.
    #[serde(skip)]
    pub identity: Option<FolderIdentity>,
}

impl WorkingCopy {
    /// The working copy in a worktree.
    pub fn at_worktree(timeline: Timeline, folder: &Worktree, workspace: Workspace) -> Self {
        let worktree = Some(WorktreeTake { thread: folder.thread, take: folder.take });
        Self {
            timeline,
            folder: folder.id,
            project: folder.project,
            workspace: Arc::new(workspace),
            worktree,
        }
    }

    /// Creates a worktree with the files of a take.
    pub fn open_worktree(
        &self,
        thread: ThreadId,
        take: TakeId,
        path: &Path,
        caller: &Caller,
    ) -> Result<OpenedWorktree, FileError> {
        let request = PlanRequest::OpenWorktree { take, folder: path.to_owned() };
        self.planned_request(thread, request, caller.clone(), MoveOptions::default())?
            .perform(None)?
            .into_opened()
    }

    /// Prepares a worktree, given the current files of the project's folder. All rejections happen here.
    fn opening(
        &self,
        (thread, take): (ThreadId, TakeId),
        path: &Path,
        present: &Snapshot,
    ) -> Result<WorktreeSetup, FileError> {
        let root = match self.files_to_open(thread, take)? {
            Some(root) => root,
            // A take without recorded files starts with the current ones.
            None => present.root("").cloned().ok_or(FileError::NoSuchSnapshot)?,
        };
        let path = self.allowed_location(path)?;
        let (files, tree) = (root.files, root.tree);
        let (filled, snapshot) = snapshot_of_root(root);
        let mark = MarkFile::new(&self.timeline, &path, format!("{thread} {take} {snapshot}"));
        let is_filled = mark.is_of(&path) && self.timeline.read()?.worktrees().at(&path)?.is_none();
        if !is_filled {
            self.free_location(&path)?;
        }
        let opened = OpenedWorktree { take, path, snapshot, files, shared: 0 };
        Ok(WorktreeSetup { thread, opened, tree, filled, mark, is_filled })
    }

    /// Fills the folder, unless it was filled before a crash, and records its take.
    fn open(&self, opening: WorktreeSetup) -> Result<OpenedWorktree, FileError> {
        let WorktreeSetup { thread, mut opened, tree, filled, mark, is_filled } = opening;
        let path = &opened.path;
        if !is_filled {
            let reader = self.timeline.read()?;
            let MaterialiseReport { shared, copied, written, links, .. } =
                self.fill(&reader.queries(), tree, path, &mark)?;
            (opened.files, opened.shared) = (shared + copied + written + links, shared);
        }
        let folder = FolderId::generate(&mut ClockIds(&*self.timeline.clock));
        let identity =
            identify(path, folder).map_err(|error| FileError::Copy(MaterialiseError::Write(error)))?;
        let record = FolderRecord {
            id: folder,
            project: self.project,
            roots: vec![(String::new(), path_to_text(path))],
            snapshot: Some(opened.snapshot),
            worktree: Some(WorktreeTake { thread, take: opened.take }),
            running: None,
            identity: Some(identity),
            removing: None,
            captured: None,
            other_runs: None,
            root_identities: None,
        };
        let now = self.timeline.clock.now();
        self.timeline.store.write(move |writing| -> Result<(), FileError> {
            writing.put_contents(&[filled], now)?;
            Ok(writing.put_folder(&record)?)
        })?;
        mark.remove();
        Ok(opened)
    }

    /// The recorded files of a take.
    fn files_to_open(&self, thread: ThreadId, take: TakeId) -> Result<Option<SnapshotRoot>, FileError> {
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        if reader.state(thread)?.active == take {
            return Err(FileError::TakeIsActive);
        }
        if let Some(open) = reader.worktrees().of(thread, take)? {
            return Err(FileError::TakeInWorktree(open.path));
        }
        let row = reader.thread(thread)?;
        let head = reader.head(thread)?.operation;
        let Some(id) = files_of_take(&queries, row.number, &head, take)? else { return Ok(None) };
        let snapshot: Snapshot = load(&queries, id)?;
        Ok(Some(snapshot.root("").cloned().ok_or(FileError::NoSuchSnapshot)?))
    }

    /// Fills a new folder, copying files of the project that are known to be equal. Uses a temporary name, so that a
    /// crash never leaves a partial folder.
    fn fill(
        &self,
        queries: &Queries<'_>,
        tree: ContentId,
        path: &Path,
        mark: &MarkFile,
    ) -> Result<MaterialiseReport, FileError> {
        let path = &self.free_location(path)?;
        let write = |error| FileError::Copy(MaterialiseError::Write(error));
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(write)?;
        let filling = PendingFill::begin(&self.timeline, self.folder, parent).map_err(write)?;
        let made = self.fill_and_publish(queries, tree, &filling.temporary(), path, mark);
        if made.is_ok() {
            filling.end();
        } else {
            mark.remove();
            filling.clear();
        }
        std::fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(write)?;
        made
    }

    fn fill_and_publish(
        &self,
        queries: &Queries<'_>,
        tree: ContentId,
        temporary: &Path,
        path: &Path,
        mark: &MarkFile,
    ) -> Result<MaterialiseReport, FileError> {
        let write = |error| FileError::Copy(MaterialiseError::Write(error));
        let main = self.workspace.main();
        let known = KnownFiles::of(&self.timeline.store, main)?;
        std::fs::create_dir(temporary).map_err(write)?;
        let (target, copy_source) =
            (OpenRoot::open(temporary).map_err(write)?, OpenRoot::open(&main.path).map_err(write)?);
        let unchanged =
            |path: &TreePath, identity: &Identity, content| known.contains(path, identity, content);
        let made = copy::materialise(&copy::Request {
            target: &target,
            tree,
            objects: queries,
            copy_source: Some(CopySource { root: &copy_source, unchanged: &unchanged }),
            progress: None,
            cancel: &AtomicBool::new(false),
        })?;
        mark.put(temporary).map_err(write)?;
        // Only the project is locked: another project or another store may create the same folder.
        rename_to_new(temporary, path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => FileError::PathExists(path.to_owned()),
            _ => write(error),
        })?;
        Ok(made)
    }

    /// Records the last changes of the take in this folder and removes the worktree. With `remove`, also deletes the
    /// recorded files; all other files stay.
    pub fn close_worktree(&self, caller: Caller, remove: bool) -> Result<ClosedWorktree, FileError> {
        let Some(WorktreeTake { thread, take }) = self.worktree else { return Err(FileError::NotAWorktree) };
        let record = self.timeline.read()?.queries().folder(self.folder)?;
        let identity = record.and_then(|record| record.identity);
        let (id, project, path) = (self.folder, self.project, self.path().to_owned());
        let folder = Box::new(Worktree { id, project, thread, take, path, identity });
        let request = PlanRequest::CloseWorktree { folder, remove };
        let closed = self.planned_request(thread, request, caller, MoveOptions::default())?.perform(None)?;
        closed.into_closed()?.ok_or(FileError::NotAWorktree)
    }

    /// Rejects removing a worktree while a turn or command is running in it, or if it contains another one.
    fn check_closing(&self, worktree: WorktreeTake, remove: bool) -> Result<(), FileError> {
        if self.timeline.store.is_turn_running(worktree.take)? {
            let reader = self.timeline.read()?;
            let take = reader.state(worktree.thread)?.take(&reader.queries(), worktree.take)?;
            return Err(FileError::TurnRuns(take.map(|take| take.name).unwrap_or_default()));
        }
        self.check_idle()?;
        if remove { self.check_contains_no_worktree(self.path()) } else { Ok(()) }
    }
}

impl WorkingCopy {
    /// Rejects deleting a folder that contains another one of Retake.
    fn check_contains_no_worktree(&self, path: &Path) -> Result<(), FileError> {
        let reader = self.timeline.read()?;
        let queries = reader.queries();
        let worktrees = queries.folders()?.into_iter().filter(|other| other.id != self.folder);
        let roots = worktrees.flat_map(|other| other.roots).map(|(_, root)| path_from_text(&root));
        let projects = queries.projects()?.into_iter().map(|project| path_from_text(&project.path));
        let store = self.timeline.store.folder().canonicalize();
        match roots.chain(projects).chain(store).find(|inner| inner.starts_with(path) && inner.is_dir()) {
            Some(inner) => Err(FileError::ContainsFolder { outer: path.to_owned(), inner }),
            None => self.check_no_worktree_moved_in(path),
        }
    }

    /// Rejects deleting a folder into which another worktree was moved, which its recorded path does not show.
    fn check_no_worktree_moved_in(&self, path: &Path) -> Result<(), FileError> {
        let mut away = self.timeline.read()?.worktrees().list()?;
        away.retain(|other| other.id != self.folder && !other.exists());
        let mut folders = if away.is_empty() { Vec::new() } else { vec![path.to_owned()] };
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let inner = entry.path();
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if away.iter().any(|other| other.contains(&inner)) {
                    return Err(FileError::ContainsFolder { outer: path.to_owned(), inner });
                }
                folders.push(inner);
            }
        }
        Ok(())
    }
}

/// A worktree to be created.
struct WorktreeSetup {
    thread: ThreadId,
    opened: OpenedWorktree,
    tree: ContentId,
    /// The snapshot of the filled folder.
    filled: NewObject,
    mark: MarkFile,
    /// Whether the folder was already filled before a crash.
    is_filled: bool,
}

/// Records in the store's folder that a folder was filled for a take, until the store knows it. After a crash in
/// between, the folder is complete but unknown: the next request for the same worktree takes it over, including later
/// changes in it. The inode identifies the folder even if it was renamed.
struct MarkFile {
    file: PathBuf,
    text: String,
}

impl MarkFile {
    fn new(timeline: &Timeline, path: &Path, text: String) -> Self {
        let name = blake3::hash(format!("{}\0{text}", path_to_text(path)).as_bytes()).to_hex();
        Self { file: timeline.store.folder().join("folders").join(format!("opening-{name}")), text }
    }

    fn of(&self, folder: &Path) -> std::io::Result<String> {
        let found = std::fs::symlink_metadata(folder)?;
        Ok(format!("{} {} {}\n", self.text, found.dev(), found.ino()))
    }

    fn put(&self, folder: &Path) -> std::io::Result<()> {
        let text = self.of(folder)?;
        let mut file = std::fs::File::create(&self.file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// Returns whether a folder was filled for this take with these files.
    fn is_of(&self, folder: &Path) -> bool {
        let known = std::fs::read_to_string(&self.file);
        matches!((known, self.of(folder)), (Ok(known), Ok(found)) if known == found)
    }

    /// A leftover file does no harm: it is read only for folders that the store does not know.
    fn remove(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Timeline {
    /// The worktree that contains a path, like [`WorktreeReader::at`]. If it was moved, records its new path.
    pub fn recognise_worktree(&self, path: &Path) -> Result<Option<Worktree>, ProjectError> {
        let reader = self.read()?;
        let Some(found) = reader.worktrees().at(path)? else { return Ok(None) };
        let known = reader.queries().folder(found.id)?.map(|record| path_from_text(record.path()));
        drop(reader);
        if known.is_some_and(|known| known != found.path) {
            let (id, path) = (found.id, path_to_text(&found.path));
            self.store.write(move |writing| -> Result<(), StoreError> {
                match writing.folder(id)? {
                    Some(record) => {
                        writing.put_folder(&FolderRecord { roots: vec![(String::new(), path)], ..record })
                    }
                    None => Ok(()),
                }
            })?;
        }
        Ok(Some(found))
    }

    /// Removes a worktree like [`WorkingCopy::close_worktree`]; `None` if the folder is missing or replaced, in which
    /// case it is only forgotten.
    pub fn close_worktree(
        &self,
        folder: &Worktree,
        options: &Options,
        caller: Caller,
        remove: bool,
    ) -> Result<Option<ClosedWorktree>, FileError> {
        let request = PlanRequest::CloseWorktree { folder: Box::new(folder.clone()), remove };
        let place = (Some(options), None);
        self.perform(folder.thread, request, caller, MoveOptions::default(), place)?.into_closed()
    }

    /// Forgets a worktree whose folder is missing. Its recorded files remain.
    pub fn forget_worktree(&self, folder: &Worktree) -> Result<(), FileError> {
        let id = folder.id;
        let _lock = self.store.lock_folder(id)?;
        self.store.write(move |writing| writing.forget_folder(id).map_err(FileError::from))?;
        Ok(())
    }
}

/// The snapshot of a folder that was just filled. Excluded and sealed files stay in their original folder and do not
/// count as removed from this one.
fn snapshot_of_root(root: SnapshotRoot) -> (NewObject, ContentId) {
    let bytes = encode(&Snapshot { roots: vec![SnapshotRoot { excluded: None, sealed: None, ..root }] });
    let id = ContentId::of(Kind::Snapshot, &bytes);
    (NewObject { id, kind: Kind::Snapshot, bytes: bytes.into() }, id)
}

/// A path as lossless text, since JSON is Unicode and paths need not be.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_to_text(path))
}

/// Removes the temporary folder of an interrupted fill. The project's folder is locked.
pub(super) fn clear_unfinished_fills(timeline: &Timeline, project: FolderId) {
    if let Some(left) = PendingFill::left(timeline, project) {
        left.clear();
    }
}
