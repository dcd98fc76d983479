//! The description of a route: request, response, and handler.
//!
//! ```text
//!            ┌ method, path, texts ───────────────────► OpenAPI document and reference page
//!   Endpoint ┼ schemas of path, query, body, response ┘         from the same types that the
//!            └ run: IncomingRequest ─► parse ─► fn(&Call) ─► Reply   handler uses
//! ```
//!
//! Steps common to all routes (credentials, limits, versions, idempotency keys, errors) are in [`crate::dispatch`], so
//! that no route can forget them.

mod input;
mod query;
mod strict;

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use retake_model::id::RequestId;
use retake_model::operation::{Actor, Version};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use input::{NoPath, NoQuery};

use crate::problem::Problem;
use crate::service::Service;
use crate::upload::Upload;

pub(crate) const JSON: &str = "application/json";

/// The media type of event streams.
pub(crate) const EVENTS: &str = "text/event-stream";

/// One method of a route.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) group: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) detail: &'static str,
    pub(crate) takes: RequestBodyKind,
    pub(crate) gives: ResponseSpec,
    /// Whether it creates an operation of a thread, so that it accepts If-Match.
    pub(crate) versioned: bool,
    pub(crate) admission_class: AdmissionClass,
    pub(crate) path_schema: MakeSchema,
    pub(crate) query_schema: MakeSchema,
    pub(crate) run: Handler,
}

/// The admission class of a request, with its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionClass {
    /// Most requests.
    Normal,
    /// Health and metrics, which must work under overload.
    Monitoring,
}

/// Adds a schema to a generator.
pub(crate) type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// The type-erased handler of a route.
pub(crate) type Handler = Arc<dyn Fn(&Service, IncomingRequest) -> Result<Reply, Problem> + Send + Sync>;

/// The typed function of a route.
pub(crate) type RouteFn<P, Q, B, A> = fn(&Call<'_, P, Q, B>) -> Result<Answer<A>, Problem>;

/// The request body of a route.
#[derive(Clone, Copy)]
pub(crate) enum RequestBodyKind {
    Nothing,
    /// JSON with this schema.
    Json(MakeSchema),
    /// A possibly large file of this media type.
    File(&'static str),
}

/// The response of a route.
#[derive(Clone, Copy)]
pub(crate) struct ResponseSpec {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    /// Further media types that a request can select.
    pub(crate) or: &'static [&'static str],
    /// The schema; `None` if it is not JSON.
    pub(crate) schema: Option<MakeSchema>,
}

/// An authenticated request with its complete body.
pub(crate) struct IncomingRequest {
    pub(crate) who: Identity,
    /// Path parameters.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) body: RequestBody,
    pub(crate) expected: Option<Version>,
    pub(crate) request: Option<RequestId>,
    /// The derived id for the object that it creates, if the request has a key.
    pub(crate) made: Option<RequestId>,
    /// The last event that a client of a stream received.
    pub(crate) last_event: Option<String>,
}

/// The body of a request.
pub(crate) enum RequestBody {
    Bytes(Vec<u8>),
    File(Upload),
}

/// The authenticated caller.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The actor recorded in the log.
    pub(crate) actor: Actor,
    /// Hash of the token that authenticated it.
    pub(crate) token: [u8; 32],
}

/// A parsed request.
pub(crate) struct Call<'a, P = NoPath, Q = NoQuery, B = ()> {
    pub(crate) service: &'a Service,
    pub(crate) who: Identity,
    pub(crate) path: P,
    pub(crate) query: Q,
    pub(crate) body: B,
    /// The expected version.
    pub(crate) expected: Option<Version>,
    /// The id of the request, if it has an idempotency key.
    pub(crate) request: Option<RequestId>,
    /// The derived id for the object that it creates, so that a retry after a crash creates the same object.
    pub(crate) made: Option<RequestId>,
    /// The last event that a client of a stream received.
    pub(crate) last_event: Option<String>,
}

/// The typed response of a route.
pub(crate) struct Answer<A> {
    pub(crate) body: A,
    /// The version of the thread, for the `ETag`.
    pub(crate) version: Option<Version>,
    /// URL of the created object.
    pub(crate) location: Option<String>,
}

/// A serialized response.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) version: Option<Version>,
    pub(crate) location: Option<String>,
    /// Whether it is a stored answer.
    pub(crate) replayed: bool,
    pub(crate) body: ReplyBody,
}

/// The body of a response.
pub(crate) enum ReplyBody {
    Bytes(Vec<u8>),
    Stream(axum::body::Body),
}

impl<A> Answer<A> {
    /// A response without a version.
    pub(crate) fn of(body: A) -> Self {
        Self { body, version: None, location: None }
    }

    /// A response about a thread at a version.
    pub(crate) fn at(body: A, version: Version) -> Self {
        Self { body, version: Some(version), location: None }
    }

    /// Adds the URL of the created object.
    pub(crate) fn with_location(self, location: String) -> Self {
        Self { location: Some(location), ..self }
    }
}

/// A GET route.
pub(crate) fn get<P, Q, A>(path: &'static str, run: RouteFn<P, Q, (), A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Handler = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    Endpoint { versioned: false, ..endpoint::<P, Q, A>(Method::GET, path, RequestBodyKind::Nothing, run) }
}

/// A route that changes something, with a JSON body.
pub(crate) fn change<P, Q, B, A>(method: Method, path: &'static str, run: RouteFn<P, Q, B, A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Handler = Arc::new(move |service, arrived| {
        let call = input::with_json(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    endpoint::<P, Q, A>(method, path, RequestBodyKind::Json(schema_of::<B>), run)
}

/// A POST route.
pub(crate) fn post<P, Q, B, A>(path: &'static str, run: RouteFn<P, Q, B, A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    change(Method::POST, path, run)
}

/// A DELETE route.
pub(crate) fn delete<P, Q, A>(path: &'static str, run: RouteFn<P, Q, (), A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Handler = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    endpoint::<P, Q, A>(Method::DELETE, path, RequestBodyKind::Nothing, run)
}

/// A GET route with a response other than JSON.
pub(crate) fn raw<P, Q>(
    path: &'static str,
    kind: &'static str,
    run: fn(&Call<'_, P, Q>) -> Result<ReplyBody, Problem>,
) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
{
    let run: Handler = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        Ok(raw_reply(kind, run(&call)?))
    });
    let gives = ResponseSpec { status: StatusCode::OK, kind, or: &[], schema: None };
    Endpoint {
        gives,
        versioned: false,
        ..endpoint::<P, Q, ()>(Method::GET, path, RequestBodyKind::Nothing, run)
    }
}

/// A body and its media type.
pub(crate) type TypedReply = Result<(&'static str, ReplyBody), Problem>;

/// A GET route with several media types, the first by default.
pub(crate) fn raw_of_kinds<P, Q>(
    path: &'static str,
    kinds: (&'static str, &'static [&'static str]),
    run: fn(&Call<'_, P, Q>) -> TypedReply,
) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
{
    let run: Handler = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        let (kind, body) = run(&call)?;
        Ok(raw_reply(kind, body))
    });
    let gives = ResponseSpec { status: StatusCode::OK, kind: kinds.0, or: kinds.1, schema: None };
    Endpoint {
        gives,
        versioned: false,
        ..endpoint::<P, Q, ()>(Method::GET, path, RequestBodyKind::Nothing, run)
    }
}

fn raw_reply(kind: &'static str, body: ReplyBody) -> Reply {
    Reply { status: StatusCode::OK, kind, version: None, location: None, replayed: false, body }
}

/// A POST route with a file as body.
pub(crate) fn upload<P, Q, A>(
    path: &'static str,
    kind: &'static str,
    run: RouteFn<P, Q, Upload, A>,
) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Handler = Arc::new(move |service, arrived| {
        let call = input::with_file(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    Endpoint { versioned: false, ..endpoint::<P, Q, A>(Method::POST, path, RequestBodyKind::File(kind), run) }
}

impl Endpoint {
    /// Sets the group, summary and description.
    pub(crate) fn about(self, group: &'static str, summary: &'static str, detail: &'static str) -> Self {
        Self { group, summary, detail, ..self }
    }

    /// Responds with 201 Created.
    pub(crate) fn answers_created(self) -> Self {
        self.answering(StatusCode::CREATED)
    }

    /// Responds with 202 Accepted.
    pub(crate) fn answers_accepted(self) -> Self {
        self.answering(StatusCode::ACCEPTED)
    }

    /// Refuses If-Match, because it changes no thread.
    pub(crate) fn unversioned(self) -> Self {
        Self { versioned: false, ..self }
    }

    /// Uses the monitoring class, which works under overload.
    pub(crate) fn monitoring(self) -> Self {
        Self { admission_class: AdmissionClass::Monitoring, ..self }
    }

    fn answering(mut self, status: StatusCode) -> Self {
        self.gives.status = status;
        let run = self.run;
        self.run =
            Arc::new(move |service, arrived| run(service, arrived).map(|reply| Reply { status, ..reply }));
        self
    }
}

fn endpoint<P: JsonSchema, Q: JsonSchema, A: JsonSchema>(
    method: Method,
    path: &'static str,
    takes: RequestBodyKind,
    run: Handler,
) -> Endpoint {
    Endpoint {
        method,
        path,
        group: "",
        summary: "",
        detail: "",
        takes,
        gives: ResponseSpec { status: StatusCode::OK, kind: JSON, or: &[], schema: Some(schema_of::<A>) },
        versioned: true,
        admission_class: AdmissionClass::Normal,
        path_schema: schema_of::<P>,
        query_schema: schema_of::<Q>,
        run,
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn json<A: Serialize>(status: StatusCode, answer: Answer<A>) -> Result<Reply, Problem> {
    let body = serde_json::to_vec(&answer.body)
        .map_err(|error| Problem::new(crate::problem::Code::Internal, error))?;
    Ok(Reply {
        status,
        kind: JSON,
        version: answer.version,
        location: answer.location,
        replayed: false,
        body: ReplyBody::Bytes(body),
    })
}
