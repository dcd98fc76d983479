//! Projects: which folder is which, and which thread is being worked on in each.

use retake_model::id::{ProjectId, ThreadId, keys_with_prefix};
use retake_model::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use crate::queries::{Queries, digest};
use crate::tally::{self, Searched, Tally};
use crate::threads::key_of;
use crate::{StoreError, Writing};

/// A project, as this machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    /// Its identity.
    pub id: ProjectId,
    /// Where its folder was seen last.
    pub path: String,
    /// The file system that the folder is on.
    pub device: u64,
    /// The folder's number there.
    pub inode: u64,
    /// When the folder was made, in nanoseconds since 1970, where the file system knows.
    pub born: Option<i64>,
    /// Where its repository is pushed to.
    pub remote: Option<String>,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// The thread that commands mean when they name none.
    pub current: Option<ThreadId>,
}

pub(crate) const COLUMNS: &str = "key, path, device, inode, born, remote, last_seen, current, digest";

impl Queries<'_> {
    /// All projects, the most lately seen first.
    pub fn projects(&self) -> Result<Vec<ProjectRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM project ORDER BY last_seen DESC");
        let found = self.collect_projects(&sql, [])?;
        let hashes = found.iter().map(|project| tally::of_project(&project.id.key()));
        self.check_tallies(Tally::ProjectKey as i64, "true", &[], hashes)?;
        Ok(found)
    }

    /// One project.
    pub fn project(&self, id: ProjectId) -> Result<Option<ProjectRow>, StoreError> {
        let row = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM project WHERE key = ?1"))?
            .query_row([id.key()], raw)
            .optional()?;
        let Some(row) = row else {
            self.check_tally(Tally::ProjectKey, &Searched::Key(id.key().to_vec()), [])?;
            return Ok(None);
        };
        checked(row).map(Some)
    }

    /// Projects whose identity begins with that text.
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

impl Writing<'_> {
    /// Records a project as it was just seen.
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
        // A project has one row, so that its tally is always the same.
        self.set_tally(Tally::ProjectKey, &Searched::Key(key.to_vec()), tally::of_project(&key))
    }

    /// Forgets a project. No thread may be listed under it.
    pub fn forget_project(&self, project: ProjectId) -> Result<(), StoreError> {
        let key = project.key();
        self.connection.prepare_cached("DELETE FROM project WHERE key = ?1")?.execute([key])?;
        self.set_tally(Tally::ProjectKey, &Searched::Key(key.to_vec()), 0)
    }

    /// Says which thread commands mean when they name none.
    pub fn set_current(&self, project: ProjectId, thread: Option<ThreadId>) -> Result<(), StoreError> {
        if let Some(found) = self.project(project)? {
            self.put_project(&ProjectRow { current: thread, ..found })?;
        }
        Ok(())
    }
}

/// A row as it was read, with the guard beside it.
type Raw = (Option<ProjectRow>, i64);

/// A row whose identity is not one was damaged, as is one that its guard does not fit.
pub(crate) fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
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

pub(crate) fn checked((project, found): Raw) -> Result<ProjectRow, StoreError> {
    match project {
        Some(project) if guard(&project) == found => Ok(project),
        _ => Err(StoreError::Damaged("a project in the index".to_owned())),
    }
}

/// What guards a row: nothing else can tell a path that was written from one that changed by itself.
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
