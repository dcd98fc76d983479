//! Publishes operations: new objects, the operation, and the derived rows, in one transaction.

use retake_model::content::{ContentId, Kind, encode};
use retake_model::id::ProjectId;
use retake_model::object::{NewObject, load};
use retake_model::operation::Operation;
use retake_model::state::ThreadState;
use retake_model::summary::summarize_thread;
use rusqlite::params;

use crate::log::head::ThreadHead;
use crate::log::operations::StoredOperation;
use crate::objects::bundle;
use crate::tables::threads::ThreadRow;
use crate::{StoreError, WriteTransaction};

/// An operation to publish.
#[must_use = "nothing is stored before it is published"]
pub struct Publication {
    pub operation: Operation,
    /// New content that it refers to, in dependency order.
    pub objects: Vec<NewObject>,
}

/// A published operation.
#[derive(Clone, Debug)]
pub struct PublishedOperation {
    /// The row number of the thread.
    pub thread: i64,
    pub id: ContentId,
    /// Its sequence number.
    pub sequence: i64,
    /// Bytes of new content.
    pub new_bytes: u64,
    /// The state of the thread after it.
    pub head: ThreadHead,
}

/// Why an operation was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It does not follow the last operation of its thread.
    #[error("operation {version} does not follow the log, which is at {current}")]
    NotNext {
        version: u64,
        /// The current version of the thread.
        current: u64,
    },
    /// The first operation of a thread must name its project.
    #[error("the first operation of a thread must name its project")]
    NoProject,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for PublishError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<retake_model::object::ObjectError> for PublishError {
    fn from(error: retake_model::object::ObjectError) -> Self {
        Self::Store(error.into())
    }
}

impl WriteTransaction<'_> {
    /// Appends an operation to its thread's log and updates the derived rows.
    pub fn publish(&self, publication: Publication) -> Result<PublishedOperation, PublishError> {
        self.publish_in(publication, None)
    }

    /// The same; lists a new thread under this project, whatever its origin.
    pub fn publish_in(
        &self,
        publication: Publication,
        home: Option<ProjectId>,
    ) -> Result<PublishedOperation, PublishError> {
        let head = self.thread_head(publication.operation.thread)?;
        self.publish_after(head.as_ref(), publication, home)
    }

    /// The same, for a thread head read in this transaction.
    pub fn publish_onto(
        &self,
        head: &ThreadHead,
        publication: Publication,
    ) -> Result<PublishedOperation, PublishError> {
        self.publish_after(Some(head), publication, None)
    }

    fn publish_after(
        &self,
        head: Option<&ThreadHead>,
        publication: Publication,
        home: Option<ProjectId>,
    ) -> Result<PublishedOperation, PublishError> {
        let Publication { operation, objects } = publication;
        ThreadHead::check_next(head, &operation)?;
        let thread = match head {
            Some(head) => head.row.number,
            None => self.next_thread_number()?,
        };
        // Its objects are in its row, and what follows reads them.
        let (id, sequence, new_bytes) = self.put_operation(thread, &operation, &objects)?;
        let state: ThreadState = load(&**self, operation.after)?;
        let before = head.map(|head| &head.row.summary);
        let summary =
            summarize_thread(before, &operation, &state, &**self)?.ok_or(PublishError::NoProject)?;
        // A thread's project is set when the thread arrives on this machine, and does not change.
        let home = head.map(|head| head.row.home).or(home).unwrap_or(summary.project);
        self.put_thread(thread, &summary, home)?;
        self.put_takes(thread, head, &state, &summary.active)?;
        self.put_facets(thread, before, &summary)?;
        let row = ThreadRow { number: thread, home, summary };
        let last = StoredOperation { id, sequence, operation };
        Ok(PublishedOperation { thread, id, sequence, new_bytes, head: ThreadHead { row, last, state } })
    }

    /// Appends an operation together with those of its objects that are missing. Returns its id, its sequence number
    /// and the size of the new objects.
    pub(crate) fn put_operation(
        &self,
        thread: i64,
        operation: &Operation,
        objects: &[NewObject],
    ) -> Result<(ContentId, i64, u64), StoreError> {
        let (bundled, separate) = bundle::split(self.missing(objects)?);
        let mut new_bytes = self.put_rows(&separate, operation.time)?;
        let named = bundled.iter().map(|object| (object.id.prefix(), object.kind, &*object.bytes));
        let bundle = if bundled.is_empty() { None } else { Some(bundle::encode(named)?) };
        let body = encode(operation);
        let id = ContentId::of(Kind::Operation, &body);
        self.connection
            .prepare_cached(
                "INSERT INTO operation (thread, version, id, body, bundle) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![thread, operation.version as i64, id.bytes(), body, bundle])?;
        let sequence = self.connection.last_insert_rowid();
        self.index_bundle(sequence, bundled.iter().map(|object| object.id.prefix()))?;
        new_bytes += self.remember_new(&bundled);
        Ok((id, sequence, new_bytes))
    }
}
