//! Reads the threads and files of a project.

use retake_model::id::ProjectId;
use retake_model::operation::OperationKind;
use retake_store::{DeletedFilter, ThreadFilter, ThreadRow};

use crate::write::shared::shared_roles;
use crate::{ReadError, Reader};

/// Reads the threads and files of a project.
#[derive(Clone, Copy)]
pub struct ProjectReader<'reader> {
    pub(crate) reader: &'reader Reader<'reader>,
    pub(crate) project: ProjectId,
}

impl ProjectReader<'_> {
    /// The thread whose deletion is the last change in the project, which an undo without a thread restores.
    pub fn just_deleted(&self) -> Result<Option<ThreadRow>, ReadError> {
        let filter = ThreadFilter {
            project: Some(self.project),
            deleted: DeletedFilter::Shown,
            ..ThreadFilter::default()
        };
        let mut newest: Option<(i64, bool, ThreadRow)> = None;
        let rows = self.reader.threads(&filter)?;
        let last = rows.iter().map(|row| row.summary.updated).max();
        // Only threads with the newest timestamp qualify.
        for row in rows.into_iter().filter(|row| Some(row.summary.updated) == last) {
            let operation = self.reader.queries().last_operation(&row)?;
            let deletion = matches!(operation.operation.kind, OperationKind::Deleted);
            if newest.as_ref().is_none_or(|(sequence, ..)| *sequence < operation.sequence) {
                newest = Some((operation.sequence, deletion, row));
            }
        }
        Ok(newest.filter(|(_, deletion, _)| *deletion).map(|(.., row)| row))
    }

    /// The roles of a new thread in the project.
    pub fn roles(&self) -> Result<Vec<String>, ReadError> {
        Ok(shared_roles(self.reader, self.project)?.unwrap_or_default())
    }
}
