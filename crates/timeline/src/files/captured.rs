//! Summarises snapshots: captured and excluded files.

use std::fmt::Write as _;

use retake_model::content::{ContentId, Kind};
use retake_model::id::ThreadId;
use retake_model::object::{ObjectError, Objects, load};
use retake_model::tree::{Excluded, ExclusionReason, Snapshot};
use serde::Serialize;

use crate::files::file_history::FileHistoryReader;
use crate::files::file_operations::FileOperations;
use crate::files::snapshot::SnapshotReader;
use crate::read::project::ProjectReader;
use crate::{FilesAt, ReadError};

/// Captured and excluded files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotSummary {
    /// The snapshot.
    pub snapshot: ContentId,
    /// Number of captured files and links.
    pub captured_files: u64,
    /// Their size in bytes.
    pub captured_bytes: u64,
    /// Number of paths that are excluded, or captured without their setuid, setgid or sticky bit. An excluded folder
    /// counts once.
    pub excluded_count: u64,
    /// The first excluded paths: those that no ignore rule explains come first.
    pub excluded: Vec<ExcludedFile>,
}

/// An excluded path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExcludedFile {
    /// Its root; empty for the project's own folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// The path. Bytes that are not UTF-8 appear as `\xNN`.
    pub path: String,
    /// The reason.
    pub reason: ExclusionReason,
}

/// The files of a thread at one version.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadFiles {
    /// The thread.
    pub thread: ThreadId,
    /// Sequence number of the operation.
    #[serde(skip)]
    pub sequence: i64,
    /// The files.
    #[serde(flatten)]
    pub at: FilesAt,
}

impl SnapshotReader<'_> {
    /// Summarises the snapshot, with at most `most` excluded paths; `None` if it does not exist.
    pub fn summary(&self, most: usize) -> Result<Option<SnapshotSummary>, ReadError> {
        let queries = self.reader.queries();
        if !queries.contains(Kind::Snapshot, self.id)? {
            return Ok(None);
        }
        Ok(Some(captured(&queries, self.id, &load(&queries, self.id)?, most)?))
    }

    /// All excluded paths.
    pub fn excluded(&self) -> Result<Vec<ExcludedFile>, ReadError> {
        let queries = self.reader.queries();
        Ok(excluded(&queries, &load(&queries, self.id)?)?)
    }
}

impl ProjectReader<'_> {
    /// Versions with files over all threads of the project, newest first, at most `limit`, before a sequence number.
    pub fn files(&self, before: Option<i64>, limit: usize) -> Result<Vec<ThreadFiles>, ReadError> {
        let queries = self.reader.queries();
        page(FileOperations::of_project(&queries, self.project)?, before, limit)
    }
}

impl FileHistoryReader<'_> {
    /// Versions with files of the thread and, before its promotion, of those that it was a take of, newest first, at most
    /// `limit`, before a sequence number.
    pub fn of_lineage(&self, before: Option<i64>, limit: usize) -> Result<Vec<ThreadFiles>, ReadError> {
        let queries = self.reader.queries();
        page(FileOperations::of_logs(&queries, self.lineage()?)?, before, limit)
    }
}

/// At most `limit` versions before a sequence number.
fn page(
    mut last_file_operation: FileOperations<'_, '_>,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<ThreadFiles>, ReadError> {
    if let Some(before) = before {
        last_file_operation.skip_to(before)?;
    }
    let mut found = Vec::new();
    while found.len() < limit {
        let Some((_, stored)) = last_file_operation.step()? else { break };
        let operation = stored.operation;
        let Some(files) = operation.files else { continue };
        let at = FilesAt { version: operation.version, time: operation.time, kind: operation.kind, files };
        found.push(ThreadFiles { thread: operation.thread, sequence: stored.sequence, at });
    }
    Ok(found)
}

/// Summarises a snapshot, with at most `most` excluded paths.
pub(crate) fn captured(
    objects: &(impl Objects + ?Sized),
    id: ContentId,
    snapshot: &Snapshot,
    most: usize,
) -> Result<SnapshotSummary, ObjectError> {
    let excluded = excluded(objects, snapshot)?;
    let excluded_count = excluded.len() as u64;
    let (ignored, mut first): (Vec<_>, Vec<_>) = excluded.into_iter().partition(|left| {
        matches!(
            left.reason,
            ExclusionReason::Ignored | ExclusionReason::Repository | ExclusionReason::ModeBits
        )
    });
    first.extend(ignored);
    first.truncate(most);
    let (captured_files, captured_bytes) = (snapshot.files(), snapshot.bytes());
    Ok(SnapshotSummary { snapshot: id, captured_files, captured_bytes, excluded_count, excluded: first })
}

fn excluded(
    objects: &(impl Objects + ?Sized),
    snapshot: &Snapshot,
) -> Result<Vec<ExcludedFile>, ObjectError> {
    let mut found = Vec::new();
    for root in &snapshot.roots {
        let Some(id) = root.excluded else { continue };
        let left: Excluded = load(objects, id)?;
        found.extend(left.0.into_iter().map(|left| ExcludedFile {
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
