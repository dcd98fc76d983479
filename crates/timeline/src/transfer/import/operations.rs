//! Checks the operations of an export against the log that they continue, and publishes them.

use std::io::BufRead;

use data_encoding::BASE64;
use retake_model::check;
use retake_model::content::{ContentId, Kind, decode};
use retake_model::history::{FIRST, Link};
use retake_model::id::ThreadId;
use retake_model::operation::{ConcurrentChange, Operation, OperationKind, Version};
use retake_model::reference::references;
use retake_store::{Publication, PublishError, StoreError, WriteTransaction};

use super::objects::{ImportObjects, ObjectBuffer};
use super::{Import, ImportError};

impl<R: BufRead> Import<'_, '_, R> {
    pub(super) fn operation(
        &mut self,
        thread: ThreadId,
        version: Version,
        data: &str,
    ) -> Result<(), ImportError> {
        let bytes = BASE64.decode(data.as_bytes()).map_err(|_| self.damaged("data that is not base64"))?;
        let mut operation: Operation = decode(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
        let needed = references(Kind::Operation, &bytes).map_err(|error| self.damaged(&error.to_string()))?;
        for reference in needed {
            self.need(reference)?;
        }
        check::operation(&operation).map_err(|error| self.bad(&error))?;
        if let Some(ends) = ends(&operation.kind)
            && ends.iter().any(|end| !(1..operation.version).contains(end))
        {
            return Err(self.damaged("a move between versions that do not exist"));
        }
        if operation.version != version {
            return Err(self.damaged("an operation out of order"));
        }
        if self.copy.is_some() {
            operation.thread = thread;
            operation.previous = self.previous;
            self.rewrite_project(&mut operation.kind);
            self.share_files(&mut operation);
        } else if operation.thread != thread || operation.previous != self.previous {
            return Err(self.damaged("an operation does not follow the previous one"));
        }
        let id = ContentId::of(Kind::Operation, &retake_model::content::encode(&operation));
        self.previous = Some(id);
        let row = self.writing.thread(thread)?;
        if let Some(row) = &row
            && let Some(here) = self.writing.operation(row.number, version)?
        {
            self.waiting = ObjectBuffer::default();
            if here.id != id {
                return Err(ImportError::Diverged { thread, common: version - 1 });
            }
            return Ok(());
        }
        check_links(self.writing, row.map(|row| row.number), &operation).map_err(|error| match error {
            LinkError::Invalid(reason) => self.damaged(reason),
            LinkError::Store(error) => ImportError::Store(error),
        })?;
        // Checked before it is published, because publishing reads the state, and a malicious one is
        // expensive to read.
        let arriving = ImportObjects { waiting: &self.waiting.named, stored: self.writing };
        self.accepted.state(&arriving, operation.after).map_err(|error| self.bad(&error))?;
        let objects = std::mem::take(&mut self.waiting).order;
        self.writing.publish_in(Publication { operation, objects }, Some(self.project)).map_err(|error| {
            match error {
                PublishError::Store(error) => ImportError::Store(error),
                other => self.damaged(&other.to_string()),
            }
        })?;
        self.new_operations += 1;
        Ok(())
    }

    /// Makes a copy independent of the original's source thread, so that no undo there can delete it.
    fn rewrite_project(&self, kind: &mut OperationKind) {
        if let OperationKind::ThreadCreated { .. } | OperationKind::ThreadPromoted { .. } = kind {
            *kind = OperationKind::ThreadCreated { project: self.project };
        }
    }

    /// Marks file changes of a copy as shared, so that an undo asks before it reverts work of the original.
    fn share_files(&self, operation: &mut Operation) {
        let is_change = !operation.kind.is_not_undoable();
        if let Some(files) = operation.files.as_mut().filter(|_| is_change && self.has_original) {
            files.shared = Some(ConcurrentChange::OtherThread);
        }
    }
}

/// Why the links of an operation were refused.
pub(in crate::transfer) enum LinkError {
    Invalid(&'static str),
    Store(StoreError),
}

impl From<StoreError> for LinkError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Checks the links of an operation to the log that it follows.
pub(in crate::transfer) fn check_links(
    writing: &WriteTransaction<'_>,
    row: Option<i64>,
    operation: &Operation,
) -> Result<(), LinkError> {
    check_position(writing, row, operation)?;
    check_last_file_operation(writing, row, operation)
}

/// Computes the position of an operation again, because undo and redo rely on it.
fn check_position(
    writing: &WriteTransaction<'_>,
    row: Option<i64>,
    operation: &Operation,
) -> Result<(), LinkError> {
    let link = Link::of(operation);
    let Some(number) = row else {
        let first = operation.version == 1 && operation.place == FIRST && link.predates_chains();
        return if first { Ok(()) } else { Err(LinkError::Invalid("a first operation in the wrong place")) };
    };
    let head = writing.head(number)?.ok_or(LinkError::Invalid("an operation without a log"))?.operation;
    if !link.follows(&writing.log(number), head.version)? {
        return Err(LinkError::Invalid("an operation in the wrong place"));
    }
    if !operation.kind.is_not_undoable() {
        return Ok(());
    }
    // In a log from before takes had chains, a move makes an old state current. In newer logs a note
    // changes nothing, and a move creates a state that is checked like any other.
    let expected = if link.predates_chains() {
        let target = writing.operation(number, operation.place.position)?.map(|found| found.operation);
        target.filter(|target| !target.kind.is_not_undoable()).map(|target| target.after)
    } else if link.is_move() {
        return Ok(());
    } else {
        Some(head.after)
    };
    if expected == Some(operation.after) {
        Ok(())
    } else {
        Err(LinkError::Invalid("a move leads to another state than its target"))
    }
}

/// Checks `last_file_operation`, the link to the previous operation with files, because searches for
/// files follow it.
fn check_last_file_operation(
    writing: &WriteTransaction<'_>,
    row: Option<i64>,
    operation: &Operation,
) -> Result<(), LinkError> {
    let head = row.map(|number| writing.head(number)).transpose()?.flatten();
    let before = head.and_then(|head| head.operation.last_file_operation);
    if operation.last_file_operation == operation.files.map(|_| operation.version).or(before) {
        Ok(())
    } else {
        Err(LinkError::Invalid("an operation refers to the wrong last operation with files"))
    }
}

/// The versions between which a move leads.
pub(in crate::transfer) fn ends(kind: &OperationKind) -> Option<[Version; 2]> {
    match *kind {
        OperationKind::Undone { from, to }
        | OperationKind::Redone { from, to }
        | OperationKind::Jumped { from, to }
        | OperationKind::FilesMoved { from, to, .. } => Some([from, to]),
        _ => None,
    }
}
