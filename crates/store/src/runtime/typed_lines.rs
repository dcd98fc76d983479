//! The lines that the user typed in `retake chat`, so that a later chat can recall them.

use retake_model::id::{ProjectId, ThreadId};
use rusqlite::params;

use super::RuntimeDatabase;
use crate::StoreError;

/// How many lines of a project are kept.
pub const MAX_TYPED_LINES: u32 = 1000;

impl RuntimeDatabase {
    /// Adds a line that was typed in a project, and deletes those beyond the limit. The thread is that of the message;
    /// purging it deletes the line.
    pub fn add_typed_line(
        &self,
        project: ProjectId,
        thread: Option<ThreadId>,
        text: &str,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction
                .prepare_cached("INSERT INTO typed (project, thread, text) VALUES (?1, ?2, ?3)")?
                .execute(params![project.key(), thread.map(|thread| thread.key()), text])?;
            transaction
                .prepare_cached(
                    "DELETE FROM typed WHERE project = ?1 AND number NOT IN
                     (SELECT number FROM typed WHERE project = ?1 ORDER BY number DESC LIMIT ?2)",
                )?
                .execute(params![project.key(), MAX_TYPED_LINES])?;
            Ok(())
        })
    }

    /// The lines that were typed in a project, oldest first.
    pub fn typed_lines(&self, project: ProjectId) -> Result<Vec<String>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT text FROM typed WHERE project = ?1 ORDER BY number")?;
        let rows = statement.query_map([project.key()], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
