//! Removes worktrees, and completes interrupted removals.
//!
//! ```text
//!   changes recorded ─► "removing SNAPSHOT" durable ─► files removed, path by path ─► worktree forgotten
//!                             ├── if the system denies one, all return, and the worktree remains
//!                             └── after a crash, the next command removes the rest and forgets the worktree
//!
//!   "filling" durable ─► .retake-tmp-open-RANDOM filled ─► renamed to NAME ─► worktree recorded, "filling" removed
//!                             └── after a crash, the next command removes the temporary folder
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use retake_model::content::ContentId;
use retake_model::id::FolderId;
use retake_model::intent::FolderRecord;
use retake_model::object::load;
use retake_model::path::TreePath;
use retake_model::tree::{Snapshot, differences};
use retake_workspace::apply::{ApplyError, Cause, OpenRoot, Request, SkipReason, Token, apply};
use retake_workspace::folder::{Identity, path_from_text, path_to_text};
use serde::Serialize;

use super::super::execute::request;
use super::super::{FileError, FolderSession};
use super::identity::is_at;
use crate::Timeline;

/// Leftovers of crashes that were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CleanupReport {
    /// Worktrees whose removal was completed.
    pub removed: Vec<String>,
    /// Temporary folders and files.
    pub temporary: Vec<String>,
    /// Files in removed worktrees that the system does not let Retake delete, with the reasons.
    pub left: Vec<String>,
}

impl CleanupReport {
    /// Returns whether there were no leftovers.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.temporary.is_empty()
    }
}

impl Timeline {
    /// Cleans up after crashes, unless another process is doing so: completes interrupted removals of worktrees and
    /// removes partially filled folders.
    pub fn clean_up(&self) -> Result<CleanupReport, FileError> {
        let mut cleaned = CleanupReport::default();
        let records = self.read()?.queries().folders()?;
        for record in records.into_iter().filter(|record| record.removing.is_some()) {
            let Some(_lock) = self.store.try_lock_folder(record.id)? else { continue };
            // Another process may have completed it.
            let Some(record) = self.read()?.queries().folder(record.id)? else { continue };
            if let Some(snapshot) = record.removing {
                let skipped = finish_removal(self, &record, snapshot, false)?;
                let left = |(path, reason)| format!("{}/{path} ({reason})", record.path());
                cleaned.left.extend(skipped.into_iter().map(left));
                cleaned.removed.push(record.path().to_owned());
            }
        }
        for (folder, note) in PendingFill::all(self) {
            if let Some(_lock) = self.store.try_lock_folder(folder)? {
                cleaned.temporary.extend(note.clear().map(|path| path_to_text(&path)));
            }
        }
        Ok(cleaned)
    }
}

impl FolderSession<'_> {
    /// Deletes the files of a snapshot from a worktree, and the folder itself if it is then empty. Deletes nothing if the
    /// system denies the deletion of a file: the worktree remains.
    pub(super) fn remove_files(&self, snapshot: ContentId) -> Result<(), FileError> {
        let (timeline, id) = (&self.working_copy.timeline, self.working_copy.folder);
        let put = move |removing: Option<ContentId>| {
            timeline.store.write(move |writing| -> Result<Option<FolderRecord>, FileError> {
                let Some(record) = writing.folder(id)? else { return Ok(None) };
                let record = FolderRecord { removing, running: None, other_runs: None, ..record };
                writing.put_folder(&record)?;
                Ok(Some(record))
            })
        };
        let Some(record) = put(Some(snapshot))? else { return Ok(()) };
        let Err(error) = finish_removal(timeline, &record, snapshot, true) else { return Ok(()) };
        Err(match error {
            // The removal was rolled back, so that the worktree remains.
            FileError::Apply(ApplyError { cause, not_put_back })
                if not_put_back.is_empty() && !token(id).is_in(&path_from_text(record.path())) =>
            {
                put(None).map_err(|error| FileError::Unfinished(Box::new(error.into())))?;
                match cause {
                    Cause::Skipped(skipped) => {
                        FileError::FilesNotDeleted { folder: path_from_text(record.path()), skipped }
                    }
                    cause => ApplyError::from(cause).into(),
                }
            }
            // The record of the removal stays, and the next command finishes it.
            FileError::Apply(error) => FileError::Unfinished(Box::new(error.into())),
            error => error,
        })
    }
}

/// Names the temporary folder of a removal.
fn token(folder: FolderId) -> Token {
    Token::new(&format!("close-{}", folder.short())).expect("an id is letters and digits")
}

/// Deletes the files of a worktree whose removal has begun and forgets it. Other files stay, and a folder that replaced
/// it is not touched. Returns what the system does not let Retake delete; with `all_or_nothing`, that is an error, and
/// nothing is deleted.
fn finish_removal(
    timeline: &Timeline,
    record: &FolderRecord,
    snapshot: ContentId,
    all_or_nothing: bool,
) -> Result<Vec<(TreePath, SkipReason)>, FileError> {
    let mut skipped = Vec::new();
    let path = path_from_text(record.path());
    let real = path.canonicalize().is_ok_and(|real| real == path);
    let known = record.identity.as_ref();
    if real && known.is_none_or(|known| is_at(known, record.id, &path, true)) {
        let identity = Identity::of(&path).map_err(cannot_open)?;
        let opened = OpenRoot::open(&path).map_err(cannot_open)?;
        // Opened once and then used by descriptor, since another folder could take the path.
        if opened.has_identity(identity.device, identity.inode) {
            skipped = clear(timeline, record.id, &opened, snapshot, all_or_nothing)?;
            // Once the worktree is forgotten, nothing would delete the temporary folder. A second attempt does not wait for
            // what the system never allows.
            if all_or_nothing && token(record.id).is_in(&path) {
                let error = std::io::Error::other("the temporary folder could not be deleted");
                return Err(FileError::Unfinished(Box::new(cannot_open(error))));
            }
            // Not empty: it stays because of its unrecorded files.
            let _ = fs::remove_dir(&path);
        }
    }
    let id = record.id;
    timeline.store.write(move |writing| writing.forget_folder(id).map_err(FileError::from))?;
    Ok(skipped)
}

fn clear(
    timeline: &Timeline,
    folder: FolderId,
    root: &OpenRoot,
    snapshot: ContentId,
    all_or_nothing: bool,
) -> Result<Vec<(TreePath, SkipReason)>, FileError> {
    let reading = timeline.store.read()?;
    let queries = reading.queries();
    let snapshot: Snapshot = load(&queries, snapshot)?;
    let Some(tree) = snapshot.root("").map(|root| root.tree) else { return Ok(Vec::new()) };
    let steps = differences(&queries, Some(tree), None)?;
    let token = token(folder);
    let request = Request { all_or_nothing, ..request(&queries, root, &steps, &token) };
    Ok(apply(&request)?.skipped())
}

fn cannot_open(error: std::io::Error) -> FileError {
    ApplyError::from(Cause::Root(error)).into()
}

/// Records in the store's folder which temporary folder is being filled. The writer holds the lock of the project's
/// folder, so that a record found under that lock is a leftover of a crash.
pub(super) struct PendingFill {
    note: PathBuf,
    text: String,
}

const FILL_PREFIX: &str = "filling-";

impl PendingFill {
    /// Records that a temporary folder is about to be created in this one. Its random name differs from all other
    /// folders.
    pub(super) fn begin(timeline: &Timeline, project: FolderId, parent: &Path) -> std::io::Result<Self> {
        let folder = timeline.store.folder().join("folders");
        let note = folder.join(format!("{FILL_PREFIX}{project}"));
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let name = format!(".retake-tmp-open-{}", data_encoding::HEXLOWER.encode(&random));
        let text = path_to_text(&parent.join(name));
        fs::write(&note, &text)?;
        fs::File::open(&note)?.sync_all()?;
        fs::File::open(&folder)?.sync_all()?;
        Ok(Self { note, text })
    }

    /// Path of the temporary folder.
    pub(super) fn temporary(&self) -> PathBuf {
        path_from_text(&self.text)
    }

    /// The leftover record of a project's folder, if any.
    pub(super) fn left(timeline: &Timeline, project: FolderId) -> Option<Self> {
        let note = timeline.store.folder().join("folders").join(format!("{FILL_PREFIX}{project}"));
        let text = fs::read_to_string(&note).ok()?;
        Some(Self { note, text })
    }

    fn all(timeline: &Timeline) -> Vec<(FolderId, Self)> {
        let Ok(found) = fs::read_dir(timeline.store.folder().join("folders")) else { return Vec::new() };
        let folder = |entry: fs::DirEntry| {
            let folder: FolderId = entry.file_name().to_str()?.strip_prefix(FILL_PREFIX)?.parse().ok()?;
            Some((folder, Self::left(timeline, folder)?))
        };
        found.flatten().filter_map(folder).collect()
    }

    /// Removes the temporary folder and returns its path, if it existed.
    pub(super) fn clear(self) -> Option<PathBuf> {
        let path = self.temporary();
        let ours = path.file_name().is_some_and(|name| {
            std::os::unix::ffi::OsStrExt::as_bytes(name).starts_with(retake_model::path::TEMPORARY)
        });
        let there = ours && path.symlink_metadata().is_ok_and(|found| found.is_dir());
        // The next command tries again if this fails.
        if there && fs::remove_dir_all(&path).is_err() {
            return None;
        }
        self.end();
        there.then_some(path)
    }

    /// The temporary folder was renamed, so the record is no longer needed.
    pub(super) fn end(self) {
        let _ = fs::remove_file(&self.note);
    }
}
