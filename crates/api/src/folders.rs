//! Watches over the folders that clients read.
//!
//! ```text
//!   GET workspace/status,
//!   files at `folder` ─────► the folder's watch ──► nothing changed: the last observation; else a walk of what changed
//!                                   ▲
//!   the thread that follows the log ┴─ polls it ──► changed: event `folder` ──► streams ──► clients request the status again
//! ```
//!
//! A watch begins with the first request. It ends when the folder is gone, or when nobody requests the folder's status or has
//! a stream open for some time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use retake_model::content::ContentId;
use retake_model::id::{FolderId, ProjectId, TakeId, ThreadId};
use retake_timeline::{FileError, FolderStatus, WorkingCopy};
use retake_workspace::git::GitFacts;
use retake_workspace::watch::FolderWatch;
use schemars::JsonSchema;
use serde::Serialize;

use crate::events::EventBus;

/// Minimum time between two events about a folder.
const EVENT_INTERVAL: Duration = Duration::from_millis(500);
/// A folder is no longer watched after this time without requests, unless a stream is open.
const IDLE_TIME: Duration = Duration::from_mins(10);
/// Folders watched at once; of more, the one that was not asked about for the longest time is dropped.
const MAX_FOLDERS: usize = 32;

/// The watched folders.
#[derive(Default)]
pub(crate) struct Folders(Mutex<HashMap<FolderId, WatchedFolder>>);

struct WatchedFolder {
    watch: Arc<Mutex<FolderWatch>>,
    path: PathBuf,
    message: FolderEventMessage,
    used: Instant,
    /// Whether a change was not announced yet.
    has_news: bool,
    announced: Option<Instant>,
}

/// A `folder` event: something changed in a folder.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct FolderEventMessage {
    /// The project.
    project: ProjectId,
    /// The thread, if the folder is a worktree.
    thread: Option<ThreadId>,
    /// The take, if the folder is a worktree.
    take: Option<TakeId>,
}

impl Folders {
    /// The status of a folder with at most `most` changed paths, and its git facts.
    pub(crate) fn status(
        &self,
        working_copy: &WorkingCopy,
        most: usize,
    ) -> (Result<FolderStatus, FileError>, GitFacts) {
        let watch = self.watch(working_copy);
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        let status = working_copy.watched_status(&mut watch, most);
        (status, watch.git(working_copy.path()))
    }

    /// The recorded files of a folder, if it still has them.
    pub(crate) fn recorded_files(
        &self,
        working_copy: &WorkingCopy,
        thread: ThreadId,
    ) -> Result<Option<ContentId>, FileError> {
        let watch = self.watch(working_copy);
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        working_copy.recorded_files(thread, &mut watch)
    }

    fn watch(&self, working_copy: &WorkingCopy) -> Arc<Mutex<FolderWatch>> {
        let mut open = self.lock();
        let id = working_copy.folder();
        if open.len() >= MAX_FOLDERS
            && !open.contains_key(&id)
            && let Some(oldest) = open.iter().min_by_key(|(_, folder)| folder.used).map(|(id, _)| *id)
        {
            open.remove(&oldest);
        }
        let folder = open.entry(id).or_insert_with(|| WatchedFolder::new(working_copy));
        folder.used = Instant::now();
        Arc::clone(&folder.watch)
    }

    /// Announces changes, and ends watches that are not needed any more.
    pub(crate) fn poll(&self, event_bus: &EventBus) {
        let has_listeners = event_bus.has_listeners();
        self.lock().retain(|_, folder| {
            let is_needed = has_listeners || folder.used.elapsed() < IDLE_TIME;
            folder.poll(event_bus) && is_needed
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FolderId, WatchedFolder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedFolder {
    fn new(working_copy: &WorkingCopy) -> Self {
        let worktree = working_copy.worktree();
        let message = FolderEventMessage {
            project: working_copy.project(),
            thread: worktree.map(|worktree| worktree.thread),
            take: worktree.map(|worktree| worktree.take),
        };
        Self {
            watch: Arc::default(),
            path: working_copy.path().to_owned(),
            message,
            used: Instant::now(),
            has_news: false,
            announced: None,
        }
    }

    /// Announces a change; returns whether the folder still exists.
    fn poll(&mut self, event_bus: &EventBus) -> bool {
        // A request reads the folder just now.
        let Ok(mut watch) = self.watch.try_lock() else { return true };
        self.has_news |= watch.poll();
        let is_gone = self.has_news && !watch.is_watching() && !self.path.is_dir();
        let is_due = self.announced.is_none_or(|announced| announced.elapsed() >= EVENT_INTERVAL);
        if self.has_news && (is_due || is_gone) {
            self.has_news = false;
            self.announced = Some(Instant::now());
            event_bus.publish_folder(&self.message);
        }
        !is_gone
    }
}
