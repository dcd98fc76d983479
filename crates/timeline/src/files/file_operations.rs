//! Walks the operations with files of several threads, newest first: all threads of a project, or a thread and those
//! that it was a take of.

use std::collections::{BinaryHeap, HashMap};

use retake_model::id::ProjectId;
use retake_model::operation::Version;
use retake_store::{DeletedFilter, Queries, StoreError, StoredOperation, ThreadFilter, ThreadRow};

/// Iterates backwards over operations with files, by sequence number.
pub(crate) struct FileOperations<'queries, 'transaction> {
    queries: &'queries Queries<'transaction>,
    threads: Vec<ThreadRow>,
    /// The next operation of each thread: its sequence number and the thread.
    next: BinaryHeap<(i64, usize)>,
    waiting: HashMap<usize, StoredOperation>,
}

impl<'queries, 'transaction> FileOperations<'queries, 'transaction> {
    /// All threads of a project.
    pub(crate) fn of_project(
        queries: &'queries Queries<'transaction>,
        project: ProjectId,
    ) -> Result<Self, StoreError> {
        // Deleted threads are included, because their changes of files remain.
        let filter =
            ThreadFilter { project: Some(project), deleted: DeletedFilter::Shown, ..ThreadFilter::default() };
        let logs = queries.threads(&filter)?.into_iter().map(|row| (row.summary.version, row));
        Self::of_logs(queries, logs.collect())
    }

    /// Some threads, each up to a version.
    pub(crate) fn of_logs(
        queries: &'queries Queries<'transaction>,
        logs: Vec<(Version, ThreadRow)>,
    ) -> Result<Self, StoreError> {
        let (newest, threads): (Vec<Version>, Vec<ThreadRow>) = logs.into_iter().unzip();
        let mut last_file_operation =
            Self { queries, threads, next: BinaryHeap::new(), waiting: HashMap::new() };
        for (thread, newest) in newest.into_iter().enumerate() {
            last_file_operation.queue(thread, newest)?;
        }
        Ok(last_file_operation)
    }

    /// The threads that the results refer to.
    pub(crate) fn threads(&self) -> &[ThreadRow] {
        &self.threads
    }

    /// Skips operations from that sequence number on.
    pub(crate) fn skip_to(&mut self, from: i64) -> Result<(), StoreError> {
        while self.next.peek().is_some_and(|(sequence, _)| *sequence >= from) {
            self.step()?;
        }
        Ok(())
    }

    /// The newest remaining operation, with an index into [`Self::threads`].
    pub(crate) fn step(&mut self) -> Result<Option<(usize, StoredOperation)>, StoreError> {
        let Some((_, thread)) = self.next.pop() else { return Ok(None) };
        let Some(stored) = self.waiting.remove(&thread) else { return Ok(None) };
        self.queue(thread, stored.operation.version.saturating_sub(1))?;
        Ok(Some((thread, stored)))
    }

    /// Queues the last operation with files up to a version.
    fn queue(&mut self, thread: usize, version: Version) -> Result<(), StoreError> {
        let number = self.threads[thread].number;
        let missing = |version: Version| StoreError::Damaged(format!("operation {version} is missing"));
        if version == 0 {
            return Ok(());
        }
        let found = self.queries.operation(number, version)?.ok_or_else(|| missing(version))?;
        let Some(last_file_operation) = found.operation.last_file_operation else { return Ok(()) };
        let stored = self
            .queries
            .operation(number, last_file_operation)?
            .ok_or_else(|| missing(last_file_operation))?;
        self.next.push((stored.sequence, thread));
        self.waiting.insert(thread, stored);
        Ok(())
    }
}
