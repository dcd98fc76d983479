//! Removing a take's own folder, and clearing up what a crash left of that.
//!
//! ```text
//!   last state recorded ─► "removing SNAPSHOT" durable ─► files removed, path by path ─► folder forgotten
//!                             └── a crash from here on: the next command removes the rest, and forgets the folder
//!
//!   "filling" durable ─► .retake-tmp-open-RANDOM filled ─► renamed to NAME ─► folder recorded, "filling" gone
//!                             └── a crash from here on: the next command removes the temporary folder
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use retake_model::content::ContentId;
use retake_model::id::FolderId;
use retake_model::intent::FolderRecord;
use retake_model::object::load;
use retake_model::tree::{Snapshot, differences};
use retake_workspace::apply::{ApplyError, Cause, OpenRoot, Token, apply};
use retake_workspace::folder::{Identity, path_from_text, path_to_text};
use serde::Serialize;

use super::super::carry_out::request;
use super::super::{FileError, Session};
use super::identity::is_at;
use crate::Timeline;

/// What crashes had left behind, and is gone now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CleanedUp {
    /// Folders of takes whose removal was finished.
    pub removed: Vec<String>,
    /// Temporary folders and files that were removed.
    pub temporary: Vec<String>,
}

impl CleanedUp {
    /// Whether nothing had been left.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.temporary.is_empty()
    }
}

impl Timeline {
    /// Clears up what crashes left of folders of takes, as far as nobody else is at it: removals that were cut off are
    /// finished, and folders that were not filled to the end are removed.
    pub fn clean_up(&self) -> Result<CleanedUp, FileError> {
        let mut cleaned = CleanedUp::default();
        let records = self.look()?.queries().folders()?;
        for record in records.into_iter().filter(|record| record.removing.is_some()) {
            let Some(_lock) = self.store.try_lock_folder(record.id)? else { continue };
            // Whoever was at it may have finished meanwhile.
            let Some(record) = self.look()?.queries().folder(record.id)? else { continue };
            if let Some(snapshot) = record.removing {
                finish_removal(self, &record, snapshot)?;
                cleaned.removed.push(record.path().to_owned());
            }
        }
        for (folder, note) in Filling::all(self) {
            if let Some(_lock) = self.store.try_lock_folder(folder)? {
                cleaned.temporary.extend(note.clear().map(|path| path_to_text(&path)));
            }
        }
        Ok(cleaned)
    }
}

impl Session<'_> {
    /// Removes what a snapshot of a take's own folder holds, and the folder itself if nothing else is in it.
    pub(super) fn remove_files(&self, snapshot: ContentId) -> Result<(), FileError> {
        let (timeline, id) = (&self.desk.timeline, self.desk.folder);
        let put = move |removing: Option<ContentId>| {
            timeline.store.write(move |writing| -> Result<Option<FolderRecord>, FileError> {
                let Some(record) = writing.folder(id)? else { return Ok(None) };
                let record = FolderRecord { removing, running: None, others: None, ..record };
                writing.put_folder(&record)?;
                Ok(Some(record))
            })
        };
        let Some(record) = put(Some(snapshot))? else { return Ok(()) };
        finish_removal(timeline, &record, snapshot).inspect_err(|error| {
            // Everything was put back, so the folder is the take's as before.
            if matches!(error, FileError::Apply(error) if error.not_put_back.is_empty()) {
                let _ = put(None);
            }
        })
    }
}

/// Removes the files of a folder whose removal has begun, and forgets the folder. What is not in the snapshot stays, and
/// another folder that took its place is not touched.
fn finish_removal(timeline: &Timeline, record: &FolderRecord, snapshot: ContentId) -> Result<(), FileError> {
    let path = path_from_text(record.path());
    let real = path.canonicalize().is_ok_and(|real| real == path);
    let known = record.identity.as_ref();
    if real && known.is_none_or(|known| is_at(known, record.id, &path, true)) {
        let identity = Identity::of(&path).map_err(cannot_open)?;
        let opened = OpenRoot::open(&path).map_err(cannot_open)?;
        // Opened once and then used by its descriptor: what is put at the path meanwhile is another folder.
        if opened.is(identity.device, identity.inode) {
            clear(timeline, record.id, &opened, snapshot)?;
            // Not empty: files that were not recorded are in it, and it stays for them.
            let _ = fs::remove_dir(&path);
        }
    }
    let id = record.id;
    timeline.store.write(move |writing| writing.forget_folder(id).map_err(FileError::from))?;
    Ok(())
}

fn clear(
    timeline: &Timeline,
    folder: FolderId,
    root: &OpenRoot,
    snapshot: ContentId,
) -> Result<(), FileError> {
    let reading = timeline.store.read()?;
    let queries = reading.queries();
    let snapshot: Snapshot = load(&queries, snapshot)?;
    let Some(tree) = snapshot.root("").map(|root| root.tree) else { return Ok(()) };
    let steps = differences(&queries, Some(tree), None)?;
    let token = Token::new(&format!("close-{}", folder.short())).expect("an id is letters and digits");
    apply(&request(&queries, root, &steps, &token))?;
    Ok(())
}

fn cannot_open(error: std::io::Error) -> FileError {
    ApplyError::from(Cause::Root(error)).into()
}

/// A note in the store's folder of the temporary folder that is being filled for a take. Whoever writes it holds the lock
/// of the project's folder, so that one that is found under that lock was left by a crash.
pub(super) struct Filling {
    note: PathBuf,
    text: String,
}

const FILLING: &str = "filling-";

impl Filling {
    /// Notes that a temporary folder is about to be made in this one. Its name is random: no folder of a user has it, and
    /// neither has one that another process fills.
    pub(super) fn begin(timeline: &Timeline, project: FolderId, parent: &Path) -> std::io::Result<Self> {
        let folder = timeline.store.folder().join("folders");
        let note = folder.join(format!("{FILLING}{project}"));
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let name = format!(".retake-tmp-open-{}", data_encoding::HEXLOWER.encode(&random));
        let text = path_to_text(&parent.join(name));
        fs::write(&note, &text)?;
        fs::File::open(&note)?.sync_all()?;
        fs::File::open(&folder)?.sync_all()?;
        Ok(Self { note, text })
    }

    /// The temporary folder.
    pub(super) fn temporary(&self) -> PathBuf {
        path_from_text(&self.text)
    }

    /// The note of a project's folder, if a crash left one.
    pub(super) fn left(timeline: &Timeline, project: FolderId) -> Option<Self> {
        let note = timeline.store.folder().join("folders").join(format!("{FILLING}{project}"));
        let text = fs::read_to_string(&note).ok()?;
        Some(Self { note, text })
    }

    fn all(timeline: &Timeline) -> Vec<(FolderId, Self)> {
        let Ok(found) = fs::read_dir(timeline.store.folder().join("folders")) else { return Vec::new() };
        let folder = |entry: fs::DirEntry| {
            let folder: FolderId = entry.file_name().to_str()?.strip_prefix(FILLING)?.parse().ok()?;
            Some((folder, Self::left(timeline, folder)?))
        };
        found.flatten().filter_map(folder).collect()
    }

    /// Removes the temporary folder, and says where it was if there was one.
    pub(super) fn clear(self) -> Option<PathBuf> {
        let path = self.temporary();
        let ours = path.file_name().is_some_and(|name| {
            std::os::unix::ffi::OsStrExt::as_bytes(name).starts_with(retake_model::path::TEMPORARY)
        });
        let there = ours && path.symlink_metadata().is_ok_and(|found| found.is_dir());
        // One that cannot be removed now is tried again by the next command.
        if there && fs::remove_dir_all(&path).is_err() {
            return None;
        }
        self.end();
        there.then_some(path)
    }

    /// The temporary folder has got its name.
    pub(super) fn end(self) {
        let _ = fs::remove_file(&self.note);
    }
}
