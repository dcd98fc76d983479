//! Idempotency keys: a request with a key runs once, however often it is sent.
//!
//! ```text
//!   begin   store the key and the end of the log       a second request with the key waits, or gets the first answer
//!   run     each operation carries the request id      so that the log shows the outcome
//!   finish  store the answer
//! ```
//!
//! After a crash between two steps, the next request with the key searches the log for the operation. If it exists, the
//! request was done and the answer is rebuilt; otherwise the request runs now. A refused request has changed nothing and
//! leaves its key free.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::http::{Method, StatusCode, Uri};
use retake_model::content::ContentId;
use retake_model::id::{RequestId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_model::time::Timestamp;
use retake_store::runtime::{LivenessLock, RequestState, RuntimeDatabase};
use retake_timeline::{StoredOperation, Timeline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::error;

use crate::endpoint::{Endpoint, IncomingRequest, JSON, Reply, ReplyBody, RequestBody};
use crate::problem::{self, Code, Problem};
use crate::service::Service;

/// An idempotency key, with a fingerprint of its request.
pub(crate) struct IdempotencyKey {
    pub(crate) request: RequestId,
    fingerprint: [u8; 32],
}

/// The effect of an interrupted request, read from the log.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RecoveredChange {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// Version of the thread after it.
    pub(crate) version: Version,
    /// The operation.
    pub(crate) operation: ContentId,
    /// Kind of the operation.
    pub(crate) kind: OperationKind,
    /// Whether an undo reverts it: of the changed take, or of the active one if the thread changed.
    pub(crate) undoable: bool,
    /// Always true: the stored answer was lost, and this comes from the log.
    pub(crate) recovered: bool,
}

/// A stored answer.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    version: Option<Version>,
    location: Option<String>,
    body: String,
}

impl IdempotencyKey {
    /// Computes the fingerprint of a request.
    pub(crate) fn of(key: &str, method: &Method, uri: &Uri, content: &RequestBody) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(method.as_str().as_bytes());
        hasher.update(b" ");
        hasher.update(uri.path_and_query().map_or("", |both| both.as_str()).as_bytes());
        hasher.update(b"\n");
        match content {
            RequestBody::Bytes(bytes) => {
                hasher.update(bytes);
            }
            // A file that cannot be read again gets a different fingerprint.
            RequestBody::File(upload) => {
                if let Ok(reader) = upload.read() {
                    let _ = hasher.update_reader(reader);
                }
            }
        }
        Self { request: RequestId::of(key.as_bytes()), fingerprint: *hasher.finalize().as_bytes() }
    }
}

/// Runs a route, unless a request with the same key has run already.
pub(crate) fn execute(
    service: &Service,
    endpoint: &Endpoint,
    arrived: IncomingRequest,
    key: Option<IdempotencyKey>,
) -> Result<Reply, Problem> {
    // A dry run changes nothing and is computed each time.
    let Some(key) = key.filter(|_| !is_dry_run(&arrived.query)) else {
        return (endpoint.run)(service, IncomingRequest { request: None, ..arrived });
    };
    let runtime_database = &service.runtime_database;
    service.request_owner.cleanup.trim(runtime_database, service.timeline.now());
    let sequence = service.timeline.read()?.queries().last_sequence()?;
    let begun = runtime_database.begin_request(
        key.request,
        &key.fingerprint,
        sequence,
        &service.request_owner.name,
        service.timeline.now(),
    )?;
    let (unsettled, sequence) = match begun {
        RequestState::New => (UnsettledRequest { service, request: key.request }, sequence),
        RequestState::Answered { status, answer } => return replay(endpoint, status, &answer),
        RequestState::AnswerErased { sequence, .. } => {
            let found = service.timeline.read()?.queries().operation_of_request(key.request, sequence)?;
            let gone = "this request was executed, but its stored answer was purged or redacted; read the thread instead";
            let found = found.ok_or_else(|| Problem::new(Code::Conflict, gone))?;
            return done_before(endpoint, found);
        }
        RequestState::KeyReused => {
            return Err(Problem::new(Code::KeyReused, "this Idempotency-Key was used for another request"));
        }
        RequestState::InProgress { owner, sequence } => {
            let Some(unsettled) = take_over(service, key.request, &owner)? else {
                let detail = "a request with this key is in progress";
                return Err(Problem::new(Code::RequestInProgress, detail));
            };
            let found = service.timeline.read()?.queries().operation_of_request(key.request, sequence)?;
            if let Some(found) = found {
                let reply = done_before(endpoint, found)?;
                unsettled.answered(&reply);
                return Ok(reply);
            }
            (unsettled, sequence)
        }
    };
    let made = Some(derived_id(key.request, sequence));
    match (endpoint.run)(service, IncomingRequest { made, ..arrived }) {
        Ok(reply) => {
            unsettled.answered(&reply);
            Ok(reply)
        }
        Err(problem) => {
            if !problem::status(problem.code).is_server_error() {
                unsettled.refused();
            }
            Err(problem)
        }
    }
}

/// Derives the id of an object that a request creates without an operation: the same if the request is resumed, and
/// another one if its key is used again after it has expired.
fn derived_id(request: RequestId, sequence: i64) -> RequestId {
    RequestId::of(&[request.bytes().as_slice(), &sequence.to_be_bytes()].concat())
}

fn is_dry_run(query: &str) -> bool {
    let fields: Result<Vec<(String, String)>, _> = serde_urlencoded::from_str(query);
    fields.is_ok_and(|fields| fields.iter().any(|(name, value)| name == "dry_run" && value == "true"))
}

/// Takes over an abandoned request; `None` if another server is still working on it.
fn take_over<'a>(
    service: &'a Service,
    request: RequestId,
    owner: &str,
) -> Result<Option<UnsettledRequest<'a>>, Problem> {
    let taken = if owner == service.request_owner.name {
        service.request_owner.take_abandoned(request)
    } else {
        !service.timeline.store().is_alive_as(owner)?
            && service.runtime_database.take_over_request(request, owner, &service.request_owner.name)?
    };
    Ok(taken.then(|| UnsettledRequest { service, request }))
}

/// Lifetime of stored answers.
const ANSWER_LIFETIME_MILLIS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Interval between deletions of expired answers.
const CLEANUP_INTERVAL_MILLIS: i64 = 60 * 60 * 1000;

/// The time of the last deletion of expired answers, since a server may run for months.
struct KeyCleanup(AtomicI64);

impl KeyCleanup {
    const fn new() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }

    /// Deletes expired answers, at most once per interval.
    fn trim(&self, runtime_database: &RuntimeDatabase, now: Timestamp) {
        let (last, now) = (self.0.load(Ordering::Relaxed), now.millis());
        let due = now >= last.saturating_add(CLEANUP_INTERVAL_MILLIS);
        // Of concurrent requests, one does the work.
        if !due || self.0.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        if let Err(failed) =
            runtime_database.expire_requests(Timestamp::from_millis(now - ANSWER_LIFETIME_MILLIS))
        {
            error!(detail = %failed, "expired answers could not be deleted");
        }
    }
}

/// This process as the owner of requests in the runtime database.
pub(crate) struct RequestOwner {
    name: String,
    /// Shows other processes that this one is alive.
    _alive: LivenessLock,
    /// Requests of this process that could not be marked as abandoned in the database.
    abandoned: Mutex<HashSet<RequestId>>,
    cleanup: KeyCleanup,
}

impl RequestOwner {
    pub(crate) fn new(timeline: &Timeline) -> Result<Self, Problem> {
        let name = format!("server-{:016x}", timeline.random_u64());
        let alive = timeline.store().lock_alive_as(&name)?;
        Ok(Self { name, _alive: alive, abandoned: Mutex::default(), cleanup: KeyCleanup::new() })
    }

    fn put_abandoned(&self, request: RequestId) {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner).insert(request);
    }

    /// Removes an abandoned request; only one caller gets true.
    fn take_abandoned(&self, request: RequestId) -> bool {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner).remove(&request)
    }
}

/// A request whose outcome is not stored yet. Dropping it, after a storage error or a panic, marks it as abandoned, so
/// that the next request with its key searches the log.
struct UnsettledRequest<'a> {
    service: &'a Service,
    request: RequestId,
}

/// The owner of abandoned requests.
const NO_OWNER: &str = "nobody";

impl UnsettledRequest<'_> {
    /// Stores the answer of a completed request. If that fails, the answer is still sent, and the log answers the next
    /// request with the key.
    fn answered(self, reply: &Reply) {
        let written = store_answer(self.service, self.request, reply);
        self.settle(written);
    }

    /// Frees the key of a refused request.
    fn refused(self) {
        let written = self.service.runtime_database.abandon_request(self.request).map_err(Problem::from);
        self.settle(written);
    }

    fn settle(self, written: Result<(), Problem>) {
        match written {
            Ok(()) => std::mem::forget(self),
            Err(problem) => {
                error!(code = problem.code.name(), detail = problem.message, "an answer could not be stored");
            }
        }
    }
}

impl Drop for UnsettledRequest<'_> {
    fn drop(&mut self) {
        let (service, request) = (self.service, self.request);
        if service.runtime_database.take_over_request(request, &service.request_owner.name, NO_OWNER).is_err()
        {
            service.request_owner.put_abandoned(request);
        }
    }
}

/// Stores an answer.
fn store_answer(service: &Service, request: RequestId, reply: &Reply) -> Result<(), Problem> {
    if let ReplyBody::Bytes(bytes) = &reply.body {
        let stored = StoredAnswer {
            version: reply.version,
            location: reply.location.clone(),
            body: String::from_utf8_lossy(bytes).into_owned(),
        };
        let stored = serde_json::to_vec(&stored).map_err(|error| Problem::new(Code::Internal, error))?;
        service.runtime_database.finish_request(request, reply.status.as_u16(), stored)?;
    }
    Ok(())
}

fn replay(endpoint: &Endpoint, status: u16, answer: &[u8]) -> Result<Reply, Problem> {
    let stored: StoredAnswer =
        serde_json::from_slice(answer).map_err(|error| Problem::new(Code::Damaged, error))?;
    Ok(Reply {
        status: StatusCode::from_u16(status).unwrap_or(endpoint.gives.status),
        kind: endpoint.gives.kind,
        version: stored.version,
        location: stored.location,
        replayed: true,
        body: ReplyBody::Bytes(stored.body.into_bytes()),
    })
}

fn done_before(endpoint: &Endpoint, found: StoredOperation) -> Result<Reply, Problem> {
    let operation = found.operation;
    let done = RecoveredChange {
        thread: operation.thread,
        version: operation.version,
        operation: found.id,
        undoable: operation.version > 1 && !operation.kind.is_not_undoable(),
        kind: operation.kind,
        recovered: true,
    };
    let body = serde_json::to_vec(&done).map_err(|error| Problem::new(Code::Internal, error))?;
    Ok(Reply {
        status: endpoint.gives.status,
        kind: JSON,
        version: Some(done.version),
        location: None,
        replayed: true,
        body: ReplyBody::Bytes(body),
    })
}
