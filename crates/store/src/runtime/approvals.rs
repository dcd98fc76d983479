//! Tool calls that the user always allows.

use retake_model::id::ProjectId;
use retake_model::time::Timestamp;
use rusqlite::params;

use super::RuntimeDatabase;
use crate::StoreError;

impl RuntimeDatabase {
    /// Always allows exactly this call in a project. `facts` describes it to the user.
    pub fn approve(
        &self,
        project: ProjectId,
        fingerprint: &[u8; 32],
        facts: &str,
        time: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO approval (project, fingerprint, facts, time)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![project.key(), fingerprint, facts, time.millis()])?;
            Ok(())
        })
    }

    /// Whether exactly this call is always allowed in a project.
    pub fn is_approved(&self, project: ProjectId, fingerprint: &[u8; 32]) -> Result<bool, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT 1 FROM approval WHERE project = ?1 AND fingerprint = ?2")?;
        Ok(statement.exists(params![project.key(), fingerprint])?)
    }

    /// The calls that are always allowed in a project: since when, and their descriptions.
    pub fn approvals(&self, project: ProjectId) -> Result<Vec<(Timestamp, String)>, StoreError> {
        let connection = self.connection();
        let mut statement = connection
            .prepare_cached("SELECT time, facts FROM approval WHERE project = ?1 ORDER BY time, facts")?;
        let rows = statement
            .query_map([project.key()], |row| Ok((Timestamp::from_millis(row.get(0)?), row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes all approvals of a project; returns how many.
    pub fn clear_approvals(&self, project: ProjectId) -> Result<usize, StoreError> {
        self.write(|transaction| {
            Ok(transaction.execute("DELETE FROM approval WHERE project = ?1", [project.key()])?)
        })
    }
}
