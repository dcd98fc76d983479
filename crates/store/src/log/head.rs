//! The current state of a thread: the basis of the next change.

use retake_model::id::ThreadId;
use retake_model::object::load;
use retake_model::state::ThreadState;

use crate::log::operations::StoredOperation;
use crate::log::queries::Queries;
use crate::tables::threads::ThreadRow;
use crate::{PublishError, StoreError};

/// The current state of a thread, read once and passed on.
#[derive(Clone, Debug)]
pub struct ThreadHead {
    pub row: ThreadRow,
    pub last: StoredOperation,
    /// The state after that operation.
    pub state: ThreadState,
}

impl Queries<'_> {
    /// Reads the current state of a thread; `None` if there is no such thread.
    pub fn thread_head(&self, thread: ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        let Some(row) = self.thread(thread)? else { return Ok(None) };
        let last = self.last_operation(&row)?;
        let state = load(self, last.operation.after)?;
        Ok(Some(ThreadHead { row, last, state }))
    }

    /// The last operation of a thread, checked against the thread's row. If the index of the log lost its end, an
    /// older operation would pass for the last one.
    pub fn last_operation(&self, row: &ThreadRow) -> Result<StoredOperation, StoreError> {
        let thread = row.summary.id;
        match self.head(row.number)? {
            Some(last)
                if last.operation.version == row.summary.version && last.operation.thread == thread =>
            {
                Ok(last)
            }
            _ => Err(StoreError::Damaged(format!("the end of the log of thread {}", thread.short()))),
        }
    }
}

impl ThreadHead {
    /// Refuses an operation that does not follow this one.
    pub(crate) fn check_next(
        before: Option<&Self>,
        operation: &retake_model::operation::Operation,
    ) -> Result<(), PublishError> {
        let current = before.map_or(0, |head| head.last.operation.version);
        let previous = before.map(|head| head.last.id);
        if operation.version == current + 1 && operation.previous == previous {
            Ok(())
        } else {
            Err(PublishError::NotNext { version: operation.version, current })
        }
    }
}
