//! Requests with a key are carried out once, however often they arrive.
//!
//! ```text
//!   begin   key on disk, and where the log ended        a second one with the key waits, or gets the first answer
//!   run     each operation carries the request's name   so that the log itself knows what was done
//!   finish  the answer on disk
//! ```
//!
//! A crash between two of these loses nothing: whoever comes with the key next looks for the operation in the log. If
//! it is there, it was done and is answered for; if not, nothing was done, and it is done now. A request that was
//! refused has changed nothing, and leaves its key free.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::http::{Method, StatusCode, Uri};
use retake_model::content::ContentId;
use retake_model::id::{RequestId, ThreadId};
use retake_model::operation::{OperationKind, Version};
use retake_model::time::Timestamp;
use retake_timeline::store::{Begun, Ledger, StoredOperation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::error;

use crate::endpoint::{Arrived, Content, Endpoint, JSON, Reply, ReplyBody};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// A key, with what it was sent for.
pub(crate) struct Key {
    pub(crate) request: RequestId,
    fingerprint: [u8; 32],
}

/// What a request that was cut off did, read off the log.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DoneBefore {
    /// The thread.
    pub(crate) thread: ThreadId,
    /// Its version just after it.
    pub(crate) version: Version,
    /// The operation.
    pub(crate) operation: ContentId,
    /// What was done.
    pub(crate) kind: OperationKind,
    /// Whether an undo takes it back: of the take that was changed, or of the active one if it was the thread.
    pub(crate) undoable: bool,
    /// The answer was lost when the server was cut off; this was read off the log.
    pub(crate) recovered: bool,
}

/// An answer as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: Option<Version>,
    location: Option<String>,
    body: String,
}

impl Key {
    /// The key of a request, by what the client sent.
    pub(crate) fn of(key: &str, method: &Method, uri: &Uri, content: &Content) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(method.as_str().as_bytes());
        hasher.update(b" ");
        hasher.update(uri.path_and_query().map_or("", |both| both.as_str()).as_bytes());
        hasher.update(b"\n");
        match content {
            Content::Bytes(bytes) => {
                hasher.update(bytes);
            }
            // A file that cannot be read again is another file.
            Content::File(upload) => {
                if let Ok(reader) = upload.read() {
                    let _ = hasher.update_reader(reader);
                }
            }
        }
        Self { request: RequestId::of(key.as_bytes()), fingerprint: *hasher.finalize().as_bytes() }
    }
}

/// Does what a route is for, unless that was done already.
pub(crate) fn carry_out(
    service: &Service,
    endpoint: &Endpoint,
    arrived: Arrived,
    key: Option<Key>,
) -> Result<Reply, Problem> {
    // What is only foreseen is foreseen anew each time: nothing is done that could be done twice.
    let Some(key) = key.filter(|_| !looks_ahead(&arrived.query)) else {
        return (endpoint.run)(service, Arrived { request: None, ..arrived });
    };
    let ledger = &service.ledger;
    service.memory.trim(ledger, service.timeline.now());
    let sequence = service.timeline.look()?.queries().last_sequence()?;
    let begun = ledger.begin_request(
        key.request,
        &key.fingerprint,
        sequence,
        &service.owner,
        service.timeline.now(),
    )?;
    let (unsettled, sequence) = match begun {
        Begun::New => (Unsettled { service, request: key.request }, sequence),
        Begun::Answered { status, answer } => return replay(endpoint, status, &answer),
        Begun::Forgotten { sequence, .. } => {
            let found = service.timeline.look()?.queries().operation_of_request(key.request, sequence)?;
            let gone = "this was done, and its answer was destroyed with what was purged or redacted since";
            let found = found.ok_or_else(|| Problem::new(Code::Conflict, gone))?;
            return done_before(endpoint, found);
        }
        Begun::Other => {
            return Err(Problem::new(Code::KeyReused, "this Idempotency-Key was used for another request"));
        }
        Begun::InProgress { owner, sequence } => {
            let Some(unsettled) = take_over(service, key.request, &owner)? else {
                let detail = "a request with this key is being carried out";
                return Err(Problem::new(Code::RequestInProgress, detail));
            };
            let found = service.timeline.look()?.queries().operation_of_request(key.request, sequence)?;
            if let Some(found) = found {
                let reply = done_before(endpoint, found)?;
                unsettled.answered(&reply);
                return Ok(reply);
            }
            (unsettled, sequence)
        }
    };
    let made = Some(name_of_what_is_made(key.request, sequence));
    match (endpoint.run)(service, Arrived { made, ..arrived }) {
        Ok(reply) => {
            unsettled.answered(&reply);
            Ok(reply)
        }
        Err(problem) => {
            if !problem.code.status().is_server_error() {
                unsettled.refused();
            }
            Err(problem)
        }
    }
}

/// A name for what a request makes, where no operation says for which request it was made: the same whenever this
/// request is taken up again, and another one if its key comes again when it is long forgotten.
fn name_of_what_is_made(request: RequestId, sequence: i64) -> RequestId {
    RequestId::of(&[request.bytes().as_slice(), &sequence.to_be_bytes()].concat())
}

fn looks_ahead(query: &str) -> bool {
    let fields: Result<Vec<(String, String)>, _> = serde_urlencoded::from_str(query);
    fields.is_ok_and(|fields| fields.iter().any(|(name, value)| name == "dry_run" && value == "true"))
}

/// Makes a request that nobody is busy with any more this server's; none if somebody is.
fn take_over<'a>(
    service: &'a Service,
    request: RequestId,
    owner: &str,
) -> Result<Option<Unsettled<'a>>, Problem> {
    let taken = if owner == service.owner {
        service.unsettled.take(request)
    } else {
        !service.is_alive(owner)? && service.ledger.take_over_request(request, owner, &service.owner)?
    };
    Ok(taken.then(|| Unsettled { service, request }))
}

/// How long answers are kept for requests that come again.
const KEPT_MILLIS: i64 = 7 * 24 * 60 * 60 * 1000;

/// How often those are looked for that were kept for so long.
const TRIMMED_MILLIS: i64 = 60 * 60 * 1000;

/// When answers were last forgotten that were kept for long enough. A server may run for months.
pub(crate) struct Memory(AtomicI64);

impl Memory {
    /// Nothing was forgotten yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }

    /// Forgets what is old, if nobody did so within the last hour.
    pub(crate) fn trim(&self, ledger: &Ledger, now: Timestamp) {
        let (last, now) = (self.0.load(Ordering::Relaxed), now.millis());
        let due = now >= last.saturating_add(TRIMMED_MILLIS);
        // Of several who come at once, one has the work.
        if !due || self.0.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        if let Err(failed) = ledger.forget_requests_before(Timestamp::from_millis(now - KEPT_MILLIS)) {
            error!(detail = %failed, "old answers were not forgotten");
        }
    }
}

/// Requests of this server of which the ledger could not even be told that nobody has them any more.
#[derive(Default)]
pub(crate) struct LeftOver(Mutex<HashSet<RequestId>>);

impl LeftOver {
    fn put(&self, request: RequestId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request);
    }

    /// Whether it was left; of several who ask, one is told so.
    fn take(&self, request: RequestId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&request)
    }
}

/// A request of which it is not known what became of it. When it is dropped, by a failure of the store or by a mistake
/// in the server, nobody has it: whoever comes with its key next looks for it in the log.
struct Unsettled<'a> {
    service: &'a Service,
    request: RequestId,
}

/// Who has a request that nobody has.
const NOBODY: &str = "nobody";

impl Unsettled<'_> {
    /// What was asked for was done: the answer is written down. It is given in any case, for it is true; where it cannot
    /// be kept, the log answers the next one who asks.
    fn answered(self, reply: &Reply) {
        let written = keep(self.service, self.request, reply);
        self.settle(written);
    }

    /// Nothing was done, and it may be asked for again.
    fn refused(self) {
        let written = self.service.ledger.abandon_request(self.request).map_err(Problem::from);
        self.settle(written);
    }

    fn settle(self, written: Result<(), Problem>) {
        match written {
            Ok(()) => std::mem::forget(self),
            Err(problem) => {
                error!(code = problem.code.name(), detail = problem.detail, "an answer was not kept");
            }
        }
    }
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        let (service, request) = (self.service, self.request);
        if service.ledger.take_over_request(request, &service.owner, NOBODY).is_err() {
            service.unsettled.put(request);
        }
    }
}

/// Writes an answer down.
fn keep(service: &Service, request: RequestId, reply: &Reply) -> Result<(), Problem> {
    if let ReplyBody::Bytes(bytes) = &reply.body {
        let kept = Kept {
            version: reply.version,
            location: reply.location.clone(),
            body: String::from_utf8_lossy(bytes).into_owned(),
        };
        let kept = serde_json::to_vec(&kept).map_err(|error| Problem::new(Code::Internal, error))?;
        service.ledger.finish_request(request, reply.status.as_u16(), kept)?;
    }
    Ok(())
}

fn replay(endpoint: &Endpoint, status: u16, answer: &[u8]) -> Result<Reply, Problem> {
    let kept: Kept = serde_json::from_slice(answer).map_err(|error| Problem::new(Code::Damaged, error))?;
    Ok(Reply {
        status: StatusCode::from_u16(status).unwrap_or(endpoint.gives.status),
        kind: endpoint.gives.kind,
        version: kept.version,
        location: kept.location,
        replayed: true,
        body: ReplyBody::Bytes(kept.body.into_bytes()),
    })
}

fn done_before(endpoint: &Endpoint, found: StoredOperation) -> Result<Reply, Problem> {
    let operation = found.operation;
    let done = DoneBefore {
        thread: operation.thread,
        version: operation.version,
        operation: found.id,
        undoable: operation.version > 1 && !operation.kind.moves_only(),
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
