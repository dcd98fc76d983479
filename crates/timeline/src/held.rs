//! Summarises snapshots: captured and excluded files.

use std::fmt::Write as _;

use retake_model::content::{ContentId, Kind};
use retake_model::id::{ProjectId, ThreadId};
use retake_model::object::{Objects, Unavailable, load};
use retake_model::tree::{LeftOut, Reason, Snapshot};
use serde::Serialize;

use crate::filed::FileOperations;
use crate::{FilesAt, LookError, Looking};

/// Captured and excluded files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// The snapshot.
    pub snapshot: ContentId,
    /// Number of captured files and links.
    pub files_held: u64,
    /// Their size in bytes.
    pub bytes_held: u64,
    /// Number of paths that are excluded, or captured without their setuid, setgid or sticky bit. An excluded folder
    /// counts once.
    pub left_out_count: u64,
    /// The first excluded paths: those that no ignore rule explains come first.
    pub left_out: Vec<NotHeld>,
}

/// An excluded path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotHeld {
    /// Its root; empty for the project's own folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// The path. Bytes that are not UTF-8 appear as `\xNN`.
    pub path: String,
    /// The reason.
    pub reason: Reason,
}

/// The files of a thread at one version.
#[derive(Clone, Debug, Serialize)]
pub struct FilesOfThread {
    /// The thread.
    pub thread: ThreadId,
    /// Sequence number of the operation.
    #[serde(skip)]
    pub sequence: i64,
    /// The files.
    #[serde(flatten)]
    pub at: FilesAt,
}

impl Looking<'_> {
    /// Summarises a snapshot, with at most `most` excluded paths; `None` if it does not exist.
    pub fn held(&self, snapshot: ContentId, most: usize) -> Result<Option<Held>, LookError> {
        let queries = self.queries();
        if !queries.holds(Kind::Snapshot, snapshot)? {
            return Ok(None);
        }
        Ok(Some(held(&queries, snapshot, &load(&queries, snapshot)?, most)?))
    }

    /// All excluded paths of a snapshot.
    pub fn left_out(&self, snapshot: &Snapshot) -> Result<Vec<NotHeld>, LookError> {
        Ok(left_out(&self.queries(), snapshot)?)
    }

    /// Versions with files over all threads of a project, newest first, at most `limit`, before a sequence number.
    pub fn files_of_project(
        &self,
        project: ProjectId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<FilesOfThread>, LookError> {
        let queries = self.queries();
        page(FileOperations::of_project(&queries, project)?, before, limit)
    }

    /// Versions with files of a thread and, before its promotion, of those that it was a take of.
    pub fn files_of_lineage(
        &self,
        thread: ThreadId,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<FilesOfThread>, LookError> {
        let queries = self.queries();
        page(FileOperations::of_logs(&queries, self.lineage(thread)?)?, before, limit)
    }
}

/// At most `limit` versions before a sequence number.
fn page(
    mut filed: FileOperations<'_, '_>,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<FilesOfThread>, LookError> {
    if let Some(before) = before {
        filed.pass_over(before)?;
    }
    let mut found = Vec::new();
    while found.len() < limit {
        let Some((_, stored)) = filed.step()? else { break };
        let operation = stored.operation;
        let Some(files) = operation.files else { continue };
        let at = FilesAt { version: operation.version, time: operation.time, kind: operation.kind, files };
        found.push(FilesOfThread { thread: operation.thread, sequence: stored.sequence, at });
    }
    Ok(found)
}

/// Summarises a snapshot, with at most `most` excluded paths.
pub(crate) fn held(
    objects: &(impl Objects + ?Sized),
    id: ContentId,
    snapshot: &Snapshot,
    most: usize,
) -> Result<Held, Unavailable> {
    let left_out = left_out(objects, snapshot)?;
    let left_out_count = left_out.len() as u64;
    let (ignored, mut first): (Vec<_>, Vec<_>) = left_out
        .into_iter()
        .partition(|left| matches!(left.reason, Reason::Ignored | Reason::Repository | Reason::ModeBits));
    first.extend(ignored);
    first.truncate(most);
    let (files_held, bytes_held) = (snapshot.files(), snapshot.bytes());
    Ok(Held { snapshot: id, files_held, bytes_held, left_out_count, left_out: first })
}

fn left_out(objects: &(impl Objects + ?Sized), snapshot: &Snapshot) -> Result<Vec<NotHeld>, Unavailable> {
    let mut found = Vec::new();
    for root in &snapshot.roots {
        let Some(id) = root.left_out else { continue };
        let left: LeftOut = load(objects, id)?;
        found.extend(left.0.into_iter().map(|left| NotHeld {
            root: root.name.clone(),
            path: shown(&left.path),
            reason: left.reason,
        }));
    }
    Ok(found)
}

/// A path as text: bytes that are not UTF-8 as `\xNN`.
fn shown(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing into memory cannot fail");
        }
    }
    text
}
