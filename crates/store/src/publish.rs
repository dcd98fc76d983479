//! Publishing: objects, the operation that needs them, and what is derived from both, in one transaction.

use retake_model::content::{ContentId, Kind, encode};
use retake_model::id::ProjectId;
use retake_model::object::{NewObject, load};
use retake_model::operation::Operation;
use retake_model::state::ThreadState;
use retake_model::summary::summarize_thread;
use rusqlite::params;

use crate::head::Head;
use crate::operations::StoredOperation;
use crate::threads::ThreadRow;
use crate::{StoreError, Writing};

/// An operation that is about to be made durable.
#[must_use = "nothing is stored before it is published"]
pub struct Publication {
    /// The operation.
    pub operation: Operation,
    /// New content that it refers to, each piece after those that it refers to itself.
    pub objects: Vec<NewObject>,
}

/// What was published.
#[derive(Clone, Debug)]
pub struct Published {
    /// The thread's number in this store.
    pub thread: i64,
    /// The operation's name.
    pub id: ContentId,
    /// The operation's place among all operations.
    pub sequence: i64,
    /// Bytes of content that were new.
    pub new_bytes: u64,
    /// The thread as it is now.
    pub head: Head,
}

/// Why an operation was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It does not follow the last operation of its thread.
    #[error("operation {version} does not follow the log, which is at {current}")]
    NotNext {
        /// The version that it has.
        version: u64,
        /// The version that the log has.
        current: u64,
    },
    /// A thread's first operation must say where it belongs.
    #[error("the first operation of a thread must say which project it belongs to")]
    NoProject,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for PublishError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<retake_model::object::Unavailable> for PublishError {
    fn from(error: retake_model::object::Unavailable) -> Self {
        Self::Store(error.into())
    }
}

impl Writing<'_> {
    /// Adds an operation to its thread's log and brings the indexes along.
    pub fn publish(&self, publication: Publication) -> Result<Published, PublishError> {
        self.publish_in(publication, None)
    }

    /// The same; a thread that is new here is listed under that project, whatever project it came from.
    pub fn publish_in(
        &self,
        publication: Publication,
        home: Option<ProjectId>,
    ) -> Result<Published, PublishError> {
        let head = self.newest(publication.operation.thread)?;
        self.publish_after(head.as_ref(), publication, home)
    }

    /// The same, where the thread at its newest was read already in this very write.
    pub fn publish_onto(&self, head: &Head, publication: Publication) -> Result<Published, PublishError> {
        self.publish_after(Some(head), publication, None)
    }

    fn publish_after(
        &self,
        head: Option<&Head>,
        publication: Publication,
        home: Option<ProjectId>,
    ) -> Result<Published, PublishError> {
        let Publication { operation, objects } = publication;
        Head::check_next(head, &operation)?;
        let new_bytes = self.put_objects(&objects, operation.time)?;
        let state: ThreadState = load(&**self, operation.after)?;
        let before = head.map(|head| &head.row.summary);
        let summary =
            summarize_thread(before, &operation, &state, &**self)?.ok_or(PublishError::NoProject)?;
        // Where a thread is listed is decided when it comes to this machine, and stays.
        let home = head.map(|head| head.row.home).or(home).unwrap_or(summary.project);
        let thread = self.put_thread(head.map(|head| head.row.number), &summary, home)?;
        self.put_takes(thread, head.map(|head| &head.state), &state, &summary.active)?;
        self.put_facets(thread, before, &summary)?;
        let (id, sequence) = self.put_operation(thread, &operation)?;
        let row = ThreadRow { number: thread, home, summary };
        let last = StoredOperation { id, sequence, operation };
        Ok(Published { thread, id, sequence, new_bytes, head: Head { row, last, state } })
    }

    pub(crate) fn put_operation(
        &self,
        thread: i64,
        operation: &Operation,
    ) -> Result<(ContentId, i64), StoreError> {
        let body = encode(operation);
        let id = ContentId::of(Kind::Operation, &body);
        self.connection
            .prepare_cached("INSERT INTO operation (thread, version, id, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![thread, operation.version as i64, id.bytes(), body])?;
        Ok((id, self.connection.last_insert_rowid()))
    }
}
