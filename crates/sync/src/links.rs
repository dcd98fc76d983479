//! What this machine knows of the threads on a remote: one small file for each thread, beside the store.
//!
//! Nothing here is needed to be right. Whether a thread has to be sent follows from its log and from the remote's row of
//! bundles: "the log is longer than what the remote has, and the thread is not private". So a crash loses no intention,
//! and a lost file costs one comparison of the whole log. The files hold where the two agreed last, and the last failure.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::operation::Version;
use retake_timeline::PauseReason;
use serde::{Deserialize, Serialize};

use crate::config::write_file;
use crate::remote::{Remedy, RemoteHead};

/// Where a thread and its remote agreed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The position of the bundle.
    pub number: u64,
    /// The version of its last operation.
    pub version: Version,
    /// The id of that operation on the remote.
    pub id: ContentId,
    /// Its id in the log here.
    pub local: ContentId,
}

/// The last failure of a thread, and when it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// What failed.
    pub operation: PendingOperation,
    /// The error.
    pub error: String,
    /// What is necessary before it can succeed.
    pub remedy: Remedy,
    /// When it failed, in milliseconds since 1970.
    pub failed_at: i64,
    /// How often it has failed in a row.
    pub tries: u32,
    /// Not before this time, unless a person asks.
    pub not_before: i64,
}

/// An exchange with a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PendingOperation {
    /// Sending operations.
    Push,
    /// Taking operations over.
    Pull,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where both agreed last.
    pub base: Option<Base>,
    /// The last failure.
    pub pending: Option<Pending>,
    /// Why it was left as it is, when it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseReason>,
    /// The thread was purged on the remote: it is not sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub purged: bool,
    /// The last bundle of a thread that no project of this machine matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<RemoteHead>,
}

impl Link {
    /// Whether the last failure is too recent to try again.
    pub(crate) fn waits(&self, now: i64) -> bool {
        self.pending.as_ref().is_some_and(|pending| now < pending.not_before)
    }
}

/// The links of all threads to one remote.
#[derive(Clone, Debug)]
pub struct Links {
    folder: PathBuf,
}

impl Links {
    /// The links in a folder, which is created when needed.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The link of a thread; an unreadable one counts as none.
    pub fn get(&self, thread: ThreadId) -> Link {
        let text = fs::read(self.path(thread)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Replaces the link of a thread.
    pub fn put(&self, thread: ThreadId, link: &Link) -> io::Result<()> {
        let path = self.path(thread);
        if *link == Link::default() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        write_file(&path, &serde_json::to_vec(link)?)
    }

    /// The threads with a link.
    pub fn threads(&self) -> io::Result<Vec<ThreadId>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut threads = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            threads.extend(id.and_then(|id| id.parse::<ThreadId>().ok()));
        }
        Ok(threads)
    }

    fn path(&self, thread: ThreadId) -> PathBuf {
        self.folder.join(format!("{thread}.json"))
    }
}
