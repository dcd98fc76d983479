//! Takes apart: a take in a folder of its own, so that several are alive at once.

mod identity;
mod location;
mod planned;
mod remove;

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use retake_model::content::{ContentId, Kind, encode};
use retake_model::id::{FolderId, ProjectId, TakeId, ThreadId};
use retake_model::intent::{Apart, FolderIdentity, FolderRecord};
use retake_model::object::{NewObject, load};
use retake_model::path::TreePath;
use retake_model::tree::{Snapshot, SnapshotRoot};
use retake_store::{Queries, StoreError};
use retake_workspace::apply::{Identity, OpenRoot};
use retake_workspace::copy::{self, MaterialiseError, Materialised, Nearby};
use retake_workspace::folder::{path_from_text, path_to_text, rename_to_new};
use retake_workspace::snapshot::{Known, Options, Workspace};
use serde::{Serialize, Serializer};

pub use planned::{WorktreeChange, WorktreePreview};
pub use remove::CleanedUp;

pub(super) use identity::{identify, is_at, is_same_folder};
use remove::Filling;

use super::plan::files_of_take;
use super::{Desk, FileError, Handling, PlanRequest, Seen};
use crate::clock::Ticks;
use crate::{Caller, LookError, Looking, ProjectError, Timeline};

/// A take that was given a folder.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenedApart {
    /// The take.
    pub take: TakeId,
    /// Its folder.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// The snapshot that it was filled with.
    pub snapshot: ContentId,
    /// How many files and links it was filled with.
    pub files: u64,
    /// How many of them share their blocks with the project's folder.
    pub shared: u64,
}

/// A take whose folder was given up.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClosedApart {
    /// Its last state.
    pub seen: Seen,
    /// Where the folder is, or was.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Whether the files were removed from it.
    pub removed: bool,
}

/// A folder that a take has for itself.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApartFolder {
    /// The folder.
    #[serde(skip)]
    pub id: FolderId,
    /// Its project.
    pub project: ProjectId,
    /// Of which thread.
    pub thread: ThreadId,
    /// Which take.
    pub take: TakeId,
    /// Where it is.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Which folder on the disk it is; none if an older version recorded it.
    #[serde(skip)]
    pub identity: Option<FolderIdentity>,
}

impl Desk {
    /// The timeline at the folder that a take has for itself.
    pub fn at_apart(timeline: Timeline, folder: &ApartFolder, workspace: Workspace) -> Self {
        let apart = Some(Apart { thread: folder.thread, take: folder.take });
        Self { timeline, folder: folder.id, project: folder.project, workspace: Arc::new(workspace), apart }
    }

    /// Gives a take a folder of its own, filled with the take's files.
    pub fn open_apart(
        &self,
        thread: ThreadId,
        take: TakeId,
        path: &Path,
        caller: &Caller,
    ) -> Result<OpenedApart, FileError> {
        let request = PlanRequest::OpenWorktree { take, folder: path.to_owned() };
        self.order(thread, request, caller.clone(), Handling::default())?.perform(None)?.into_opened()
    }

    /// What opening a take in a folder comes to, where the project's folder has these files. It is refused here, or never.
    fn opening(
        &self,
        (thread, take): (ThreadId, TakeId),
        path: &Path,
        present: &Snapshot,
    ) -> Result<Opening, FileError> {
        let root = match self.known_files_to_open(thread, take)? {
            Some(root) => root,
            // A take that never had files of its own goes on from those that are there.
            None => present.root("").cloned().ok_or(FileError::NoSuchSnapshot)?,
        };
        let path = self.allowed_location(path)?;
        let (files, tree) = (root.files, root.tree);
        let (filled, snapshot) = filled_with(root);
        let mark = Mark::new(&self.timeline, &path, format!("{thread} {take} {snapshot}"));
        let is_filled = mark.is_of(&path) && self.timeline.look()?.apart_folder_at(&path)?.is_none();
        if !is_filled {
            self.free_location(&path)?;
        }
        let opened = OpenedApart { take, path, snapshot, files, shared: 0 };
        Ok(Opening { thread, opened, tree, filled, mark, is_filled })
    }

    /// Fills the folder, unless a crash left it filled, and records whose it is.
    fn open(&self, opening: Opening) -> Result<OpenedApart, FileError> {
        let Opening { thread, mut opened, tree, filled, mark, is_filled } = opening;
        let path = &opened.path;
        if !is_filled {
            let looking = self.timeline.look()?;
            let Materialised { shared, copied, written, links, .. } =
                self.fill(&looking.queries(), tree, path, &mark)?;
            (opened.files, opened.shared) = (shared + copied + written + links, shared);
        }
        let folder = FolderId::fresh(&mut Ticks(&*self.timeline.clock));
        let identity =
            identify(path, folder).map_err(|error| FileError::Copy(MaterialiseError::Write(error)))?;
        let record = FolderRecord {
            id: folder,
            project: self.project,
            roots: vec![(String::new(), path_to_text(path))],
            snapshot: Some(opened.snapshot),
            apart: Some(Apart { thread, take: opened.take }),
            running: None,
            identity: Some(identity),
            removing: None,
            captured: None,
            others: None,
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

    /// The files that are known of a take that would be opened.
    fn known_files_to_open(&self, thread: ThreadId, take: TakeId) -> Result<Option<SnapshotRoot>, FileError> {
        let looking = self.timeline.look()?;
        let queries = looking.queries();
        if looking.state(thread)?.active == take {
            return Err(FileError::TakeHere);
        }
        if let Some(open) = looking.apart_folder_of(thread, take)? {
            return Err(FileError::TakeElsewhere(open.path));
        }
        let row = looking.thread(thread)?;
        let head = looking.head(thread)?.operation;
        let Some(id) = files_of_take(&queries, row.number, &head, take)? else { return Ok(None) };
        let snapshot: Snapshot = load(&queries, id)?;
        Ok(Some(snapshot.root("").cloned().ok_or(FileError::NoSuchSnapshot)?))
    }

    /// Fills a new folder, from the project's own files where those are known to be the same. The folder is made
    /// under a temporary name, so that a crash does not leave half of one.
    fn fill(
        &self,
        queries: &Queries<'_>,
        tree: ContentId,
        path: &Path,
        mark: &Mark,
    ) -> Result<Materialised, FileError> {
        let path = &self.free_location(path)?;
        let write = |error| FileError::Copy(MaterialiseError::Write(error));
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(write)?;
        let filling = Filling::begin(&self.timeline, self.folder, parent).map_err(write)?;
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
        mark: &Mark,
    ) -> Result<Materialised, FileError> {
        let write = |error| FileError::Copy(MaterialiseError::Write(error));
        let main = self.workspace.main();
        let known = Known::of(&self.timeline.store, main)?;
        std::fs::create_dir(temporary).map_err(write)?;
        let (target, nearby) =
            (OpenRoot::open(temporary).map_err(write)?, OpenRoot::open(&main.path).map_err(write)?);
        let unchanged = |path: &TreePath, identity: &Identity, content| known.is(path, identity, content);
        let made = copy::materialise(&copy::Request {
            target: &target,
            tree,
            objects: queries,
            nearby: Some(Nearby { root: &nearby, unchanged: &unchanged }),
            progress: None,
            cancel: &AtomicBool::new(false),
        })?;
        mark.put(temporary).map_err(write)?;
        // The lock is the project's: another project, or another store, may make the same folder meanwhile.
        rename_to_new(temporary, path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => FileError::InTheWay(path.to_owned()),
            _ => write(error),
        })?;
        Ok(made)
    }

    /// Records the last state of the take that lives in this folder, and gives the folder up. With `remove`, the
    /// files that are recorded are removed from it; whatever is not recorded stays.
    pub fn close_apart(&self, caller: Caller, remove: bool) -> Result<ClosedApart, FileError> {
        let Some(Apart { thread, take }) = self.apart else { return Err(FileError::NotApart) };
        let record = self.timeline.look()?.queries().folder(self.folder)?;
        let identity = record.and_then(|record| record.identity);
        let (id, project, path) = (self.folder, self.project, self.path().to_owned());
        let folder = Box::new(ApartFolder { id, project, thread, take, path, identity });
        let request = PlanRequest::CloseWorktree { folder, remove };
        let closed = self.order(thread, request, caller, Handling::default())?.perform(None)?;
        closed.into_closed()?.ok_or(FileError::NotApart)
    }

    /// Refuses to close the folder under a turn or a command that runs in it, or to remove another one with it.
    fn check_closing(&self, apart: Apart, remove: bool) -> Result<(), FileError> {
        if self.timeline.store.turn_runs(apart.take)? {
            let looking = self.timeline.look()?;
            let take = looking.state(apart.thread)?.take(&looking.queries(), apart.take)?;
            return Err(FileError::TurnRuns(take.map(|take| take.name).unwrap_or_default()));
        }
        self.check_idle()?;
        if remove { self.check_holds_no_other(self.path()) } else { Ok(()) }
    }
}

impl Desk {
    /// Refuses to remove a folder with another inside that Retake uses.
    fn check_holds_no_other(&self, path: &Path) -> Result<(), FileError> {
        let looking = self.timeline.look()?;
        let queries = looking.queries();
        let worktrees = queries.folders()?.into_iter().filter(|other| other.id != self.folder);
        let roots = worktrees.flat_map(|other| other.roots).map(|(_, root)| path_from_text(&root));
        let projects = queries.projects()?.into_iter().map(|project| path_from_text(&project.path));
        let store = self.timeline.store.folder().canonicalize();
        match roots.chain(projects).chain(store).find(|inner| inner.starts_with(path) && inner.is_dir()) {
            Some(inner) => Err(FileError::HoldsAnother { outer: path.to_owned(), inner }),
            None => self.check_none_moved_in(path),
        }
    }

    /// The same for folders of takes that were moved into it, which their paths do not tell.
    fn check_none_moved_in(&self, path: &Path) -> Result<(), FileError> {
        let mut away = self.timeline.look()?.apart_folders()?;
        away.retain(|other| other.id != self.folder && !other.is_there());
        let mut folders = if away.is_empty() { Vec::new() } else { vec![path.to_owned()] };
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let inner = entry.path();
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if away.iter().any(|other| other.is(&inner)) {
                    return Err(FileError::HoldsAnother { outer: path.to_owned(), inner });
                }
                folders.push(inner);
            }
        }
        Ok(())
    }
}

/// A take that is about to be given a folder.
struct Opening {
    thread: ThreadId,
    opened: OpenedApart,
    tree: ContentId,
    /// The snapshot of the folder once it is filled.
    filled: NewObject,
    mark: Mark,
    /// Whether a crash left the folder filled for this take.
    is_filled: bool,
}

/// Says in the store's folder which folder was filled for a take, until the store knows it. A crash in between leaves a
/// folder that nobody knows and that is whole: whoever opens the take there again takes it over, with all that has
/// been done in it since. A folder keeps its number when it is renamed, so none but that very one is meant.
struct Mark {
    file: PathBuf,
    text: String,
}

impl Mark {
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

    /// Whether a folder was filled for this very take, with these very files.
    fn is_of(&self, folder: &Path) -> bool {
        let known = std::fs::read_to_string(&self.file);
        matches!((known, self.of(folder)), (Ok(known), Ok(found)) if known == found)
    }

    /// One that stays does no harm: it is only asked about folders that the store does not know.
    fn remove(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Timeline {
    /// The folder that a take has for itself and that holds a path, as [`Looking::apart_folder_at`] finds it. Where it was
    /// moved, its new path is recorded, so that whoever asks for the take's folder next is shown there.
    pub fn recognise_apart(&self, path: &Path) -> Result<Option<ApartFolder>, ProjectError> {
        let looking = self.look()?;
        let Some(found) = looking.apart_folder_at(path)? else { return Ok(None) };
        let known = looking.queries().folder(found.id)?.map(|record| path_from_text(record.path()));
        drop(looking);
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

    /// Ends the folder that a take has for itself, as [`Desk::close_apart`] does; `None` if it is gone or
    /// another folder took its place, and it is forgotten now.
    pub fn close_apart(
        &self,
        folder: &ApartFolder,
        options: &Options,
        caller: Caller,
        remove: bool,
    ) -> Result<Option<ClosedApart>, FileError> {
        let request = PlanRequest::CloseWorktree { folder: Box::new(folder.clone()), remove };
        let place = (Some(options), None);
        self.perform(folder.thread, request, caller, Handling::default(), place)?.into_closed()
    }

    /// Forgets a folder that a take had for itself and that is gone. What was recorded of its files stays.
    pub fn forget_apart(&self, folder: &ApartFolder) -> Result<(), FileError> {
        let id = folder.id;
        let _lock = self.store.lock_folder(id)?;
        self.store.write(move |writing| writing.forget_folder(id).map_err(FileError::from))?;
        Ok(())
    }
}

/// The snapshot of a folder that was just filled with the files of a root. Excluded and sealed files stay in the folder
/// that they are in, and are not gone from this one.
fn filled_with(root: SnapshotRoot) -> (NewObject, ContentId) {
    let bytes = encode(&Snapshot { roots: vec![SnapshotRoot { left_out: None, sealed: None, ..root }] });
    let id = ContentId::of(Kind::Snapshot, &bytes);
    (NewObject { id, kind: Kind::Snapshot, bytes: bytes.into() }, id)
}

/// A path as text, one to one: not every path is Unicode, and JSON is.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_to_text(path))
}

/// Removes a temporary folder that a crash left while it was filled from a project's folder, which is locked.
pub(super) fn clear_unfinished(timeline: &Timeline, project: FolderId) {
    if let Some(left) = Filling::left(timeline, project) {
        left.clear();
    }
}

impl Looking<'_> {
    /// A folder beside a project's, named after both it and a take; none if there is nothing beside it.
    pub fn folder_beside(&self, project: ProjectId, take: &str) -> Result<Option<PathBuf>, LookError> {
        let Some(row) = self.queries().project(project)? else { return Ok(None) };
        let project = path_from_text(&row.path);
        let name = project.file_name().and_then(|name| name.to_str()).unwrap_or("project");
        let plain =
            |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
        let take: String = take.chars().map(plain).collect();
        Ok(project.parent().map(|around| around.join(format!("{name}.{take}"))))
    }

    /// The folders that takes have for themselves.
    pub fn apart_folders(&self) -> Result<Vec<ApartFolder>, LookError> {
        let folders = self.queries().folders()?;
        let found = folders.into_iter().filter_map(|folder| {
            let Apart { thread, take } = folder.apart.filter(|_| folder.removing.is_none())?;
            let path = path_from_text(folder.path());
            let FolderRecord { id, project, identity, .. } = folder;
            Some(ApartFolder { id, project, thread, take, path, identity })
        });
        Ok(found.collect())
    }

    /// The folder that a take has for itself and that holds a path, the innermost if there are several. It is recognised
    /// by what it is and not by its path, so it may have been moved since.
    pub fn apart_folder_at(&self, path: &Path) -> Result<Option<ApartFolder>, StoreError> {
        let mut folders = self.apart_folders().map_err(|error| match error {
            LookError::Store(error) => error,
            other => StoreError::Damaged(other.to_string()),
        })?;
        if folders.is_empty() {
            return Ok(None);
        }
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for around in path.ancestors() {
            if let Some(found) = folders.iter().position(|folder| folder.is(around)) {
                return Ok(Some(ApartFolder { path: around.to_owned(), ..folders.swap_remove(found) }));
            }
        }
        Ok(None)
    }
}
