//! Projects: their folders, and the current thread of each.

use retake_model::id::{ProjectId, ThreadId, keys_with_prefix};
use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use crate::log::queries::{Queries, digest};
use crate::tables::row_checksums::{self, ChecksumKind, LookupValue};
use crate::tables::threads::key_of;
use crate::{StoreError, WriteTransaction};

/// A project on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    pub id: ProjectId,
    /// The last known path of its folder.
    pub path: String,
    /// The device of the folder.
    pub device: u64,
    pub inode: u64,
    /// When the folder was created, in nanoseconds since 1970, if the file system records it.
    pub born: Option<i64>,
    /// The URL of its git remote.
    pub remote: Option<String>,
    pub last_seen: Timestamp,
    /// The thread that commands use by default.
    pub current: Option<ThreadId>,
}

pub(crate) const COLUMNS: &str = "key, path, device, inode, born, remote, last_seen, current, digest";

impl Queries<'_> {
    /// All projects, the most recently seen first.
    pub fn projects(&self) -> Result<Vec<ProjectRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM project ORDER BY last_seen DESC");
        let found = self.collect_projects(&sql, [])?;
        let hashes = found.iter().map(|project| row_checksums::hash_project(&project.id.key()));
        self.check_row_checksums(ChecksumKind::ProjectKey as i64, "true", &[], hashes)?;
        Ok(found)
    }

    pub fn project(&self, id: ProjectId) -> Result<Option<ProjectRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM project WHERE key = ?1"))?
            .query_row([id.key()], raw)
            .optional()?;
        let Some(row) = row else {
            self.check_row_checksum(ChecksumKind::ProjectKey, &LookupValue::Key(id.key().to_vec()), [])?;
            return Ok(None);
        };
        checked(row).map(Some)
    }

    /// Projects whose id starts with this text.
    pub fn projects_with_prefix(&self, prefix: &str) -> Result<Vec<ProjectRow>, StoreError> {
        let Some((low, high)) = keys_with_prefix(prefix) else {
            return Ok(Vec::new());
        };
        self.collect_projects(
            &format!("SELECT {COLUMNS} FROM project WHERE key BETWEEN ?1 AND ?2"),
            params![low, high],
        )
    }

    fn collect_projects(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<ProjectRow>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(values, raw)?;
        rows.map(|row| checked(row?)).collect()
    }
}

impl WriteTransaction<'_> {
    /// Records a project with its current folder.
    pub fn put_project(&self, project: &ProjectRow) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO project (key, path, device, inode, born, remote, last_seen, current,
                     digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                project.id.key(),
                project.path,
                project.device as i64,
                project.inode as i64,
                project.born,
                project.remote,
                project.last_seen.millis(),
                project.current.map(|thread| thread.key()),
                guard(project)
            ])?;
        let key = project.id.key();
        // A project has one row, so its checksum is always the same.
        self.set_row_checksum(
            ChecksumKind::ProjectKey,
            &LookupValue::Key(key.to_vec()),
            row_checksums::hash_project(&key),
        )
    }

    /// Removes a project. It must have no threads.
    pub fn forget_project(&self, project: ProjectId) -> Result<(), StoreError> {
        let key = project.key();
        self.connection.prepare_cached("DELETE FROM project WHERE key = ?1")?.execute([key])?;
        self.set_row_checksum(ChecksumKind::ProjectKey, &LookupValue::Key(key.to_vec()), 0)
    }

    /// Sets the thread that commands use by default.
    pub fn set_current(&self, project: ProjectId, thread: Option<ThreadId>) -> Result<(), StoreError> {
        if let Some(found) = self.project(project)? {
            self.put_project(&ProjectRow { current: thread, ..found })?;
        }
        Ok(())
    }
}

/// A row with its checksum.
type RawRow = (Option<ProjectRow>, i64);

/// A row with a malformed id or a wrong checksum is damaged.
pub(crate) fn raw(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    let guard = row.get(8)?;
    let current: Option<Vec<u8>> = row.get(7)?;
    let Some(key) = key_of(row.get_ref(0)?.as_blob()?) else {
        return Ok((None, guard));
    };
    let project = ProjectRow {
        id: ProjectId::from_key(key),
        path: row.get(1)?,
        device: row.get::<_, i64>(2)? as u64,
        inode: row.get::<_, i64>(3)? as u64,
        born: row.get(4)?,
        remote: row.get(5)?,
        last_seen: Timestamp::from_millis(row.get(6)?),
        current: current.and_then(|bytes| key_of(&bytes)).map(ThreadId::from_key),
    };
    Ok((Some(project), guard))
}

pub(crate) fn checked((project, found): RawRow) -> Result<ProjectRow, StoreError> {
    match project {
        Some(project) if guard(&project) == found => Ok(project),
        _ => Err(StoreError::Damaged("a project in the index".to_owned())),
    }
}

/// The checksum of a row: nothing else detects a damaged path.
fn guard(project: &ProjectRow) -> i64 {
    let fields = (
        project.id,
        &project.path,
        project.device,
        project.inode,
        project.born,
        &project.remote,
        project.last_seen,
        project.current,
    );
    digest(&minicbor::to_vec(fields).expect("encoding into memory cannot fail"))
}
