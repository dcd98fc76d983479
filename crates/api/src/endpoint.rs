//! A route, described once: what it takes, what it answers, and the function that does it.
//!
//! ```text
//!            ┌ method, path, words ───────────────► the document (OpenAPI), the human page
//!   Endpoint ┼ schemas of path, query, body, answer ┘        from the very types that are
//!            └ run: Arrived ─► parse ─► fn(&Call) ─► Reply   parsed and answered
//! ```
//!
//! What holds for every route (credential, limits, versions, keys, errors) is in [`crate::dispatch`] and cannot be
//! forgotten by one of them.

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

/// The kind of body that most routes take and answer with.
pub(crate) const JSON: &str = "application/json";

/// The kind of answer that goes on.
pub(crate) const EVENTS: &str = "text/event-stream";

/// One route with one method.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) group: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) detail: &'static str,
    pub(crate) takes: Takes,
    pub(crate) gives: Gives,
    /// Whether it makes an operation on a thread, so that a version can be expected.
    pub(crate) versioned: bool,
    pub(crate) lane: Lane,
    pub(crate) path_schema: MakeSchema,
    pub(crate) query_schema: MakeSchema,
    pub(crate) run: Run,
}

/// Whom a request waits for: those of its own lane, and nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// What is done in a moment.
    Usual,
    /// Whether the server is well, which is asked most urgently when it has too much to do.
    Watch,
}

/// Makes a schema where the others are.
pub(crate) type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// Does what a route is for.
pub(crate) type Run = Arc<dyn Fn(&Service, Arrived) -> Result<Reply, Problem> + Send + Sync>;

/// The function of a route.
pub(crate) type Does<P, Q, B, A> = fn(&Call<'_, P, Q, B>) -> Result<Answer<A>, Problem>;

/// What body a route takes.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// None.
    Nothing,
    /// JSON of that shape.
    Json(MakeSchema),
    /// A file of that kind, which may be large.
    File(&'static str),
}

/// What a route answers with.
#[derive(Clone, Copy)]
pub(crate) struct Gives {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    /// Other kinds that it may be, where the request says which.
    pub(crate) or: &'static [&'static str],
    /// The shape; `None` for what is not JSON.
    pub(crate) schema: Option<MakeSchema>,
}

/// A request that has arrived whole and was let in.
pub(crate) struct Arrived {
    pub(crate) who: Who,
    /// What the path names, by its placeholders.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: String,
    pub(crate) body: Content,
    pub(crate) expected: Option<Version>,
    pub(crate) request: Option<RequestId>,
    /// A name for what it makes, if it has one itself.
    pub(crate) made: Option<RequestId>,
    /// The last event that a client of a stream has seen.
    pub(crate) last_event: Option<String>,
}

/// The body of a request.
pub(crate) enum Content {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a file.
    File(Upload),
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// How the log names them.
    pub(crate) actor: Actor,
    /// The hash of the token that let them in.
    pub(crate) token: [u8; 32],
}

/// A request as the function of a route sees it.
pub(crate) struct Call<'a, P = NoPath, Q = NoQuery, B = ()> {
    pub(crate) service: &'a Service,
    pub(crate) who: Who,
    pub(crate) path: P,
    pub(crate) query: Q,
    pub(crate) body: B,
    /// The version that the caller saw.
    pub(crate) expected: Option<Version>,
    /// The name of the request, if the client gave it one.
    pub(crate) request: Option<RequestId>,
    /// A name for what the request makes, so that it makes the same again if it is taken up after a crash.
    pub(crate) made: Option<RequestId>,
    /// The last event that a client of a stream has seen.
    pub(crate) last_event: Option<String>,
}

/// What a route answers.
pub(crate) struct Answer<A> {
    pub(crate) body: A,
    /// The version of the thread that it is about.
    pub(crate) version: Option<Version>,
    /// Where what was made can be seen.
    pub(crate) location: Option<String>,
}

/// An answer on its way.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) version: Option<Version>,
    pub(crate) location: Option<String>,
    /// Whether it was given before.
    pub(crate) replayed: bool,
    pub(crate) body: ReplyBody,
}

/// The body of an answer.
pub(crate) enum ReplyBody {
    /// All of it.
    Bytes(Vec<u8>),
    /// Piece by piece.
    Stream(axum::body::Body),
}

impl<A> Answer<A> {
    /// An answer that is about no thread in particular.
    pub(crate) fn of(body: A) -> Self {
        Self { body, version: None, location: None }
    }

    /// An answer about a thread at that version.
    pub(crate) fn at(body: A, version: Version) -> Self {
        Self { body, version: Some(version), location: None }
    }

    /// The same, with where it can be seen.
    pub(crate) fn found_at(self, location: String) -> Self {
        Self { location: Some(location), ..self }
    }
}

/// A route that only looks.
pub(crate) fn get<P, Q, A>(path: &'static str, run: Does<P, Q, (), A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Run = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    Endpoint { versioned: false, ..endpoint::<P, Q, A>(Method::GET, path, Takes::Nothing, run) }
}

/// A route that changes something.
pub(crate) fn change<P, Q, B, A>(method: Method, path: &'static str, run: Does<P, Q, B, A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Run = Arc::new(move |service, arrived| {
        let call = input::with_json(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    endpoint::<P, Q, A>(method, path, Takes::Json(schema_of::<B>), run)
}

/// A route that takes something by POST.
pub(crate) fn post<P, Q, B, A>(path: &'static str, run: Does<P, Q, B, A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    B: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    change(Method::POST, path, run)
}

/// A route that takes something away.
pub(crate) fn delete<P, Q, A>(path: &'static str, run: Does<P, Q, (), A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Run = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    endpoint::<P, Q, A>(Method::DELETE, path, Takes::Nothing, run)
}

/// A route that answers with something else than JSON.
pub(crate) fn raw<P, Q>(
    path: &'static str,
    kind: &'static str,
    run: fn(&Call<'_, P, Q>) -> Result<ReplyBody, Problem>,
) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
{
    let run: Run = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        Ok(raw_reply(kind, run(&call)?))
    });
    let gives = Gives { status: StatusCode::OK, kind, or: &[], schema: None };
    Endpoint { gives, versioned: false, ..endpoint::<P, Q, ()>(Method::GET, path, Takes::Nothing, run) }
}

/// An answer, and which kind it is.
pub(crate) type OfKind = Result<(&'static str, ReplyBody), Problem>;

/// A route that answers with one of several kinds, the first of them if the request does not say which.
pub(crate) fn raw_of_kinds<P, Q>(
    path: &'static str,
    kinds: (&'static str, &'static [&'static str]),
    run: fn(&Call<'_, P, Q>) -> OfKind,
) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
{
    let run: Run = Arc::new(move |service, arrived| {
        let call = input::without_body(service, arrived)?;
        let (kind, body) = run(&call)?;
        Ok(raw_reply(kind, body))
    });
    let gives = Gives { status: StatusCode::OK, kind: kinds.0, or: kinds.1, schema: None };
    Endpoint { gives, versioned: false, ..endpoint::<P, Q, ()>(Method::GET, path, Takes::Nothing, run) }
}

fn raw_reply(kind: &'static str, body: ReplyBody) -> Reply {
    Reply { status: StatusCode::OK, kind, version: None, location: None, replayed: false, body }
}

/// A route that takes a file.
pub(crate) fn upload<P, Q, A>(path: &'static str, kind: &'static str, run: Does<P, Q, Upload, A>) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + 'static,
    A: Serialize + JsonSchema + 'static,
{
    let run: Run = Arc::new(move |service, arrived| {
        let call = input::with_file(service, arrived)?;
        json(StatusCode::OK, run(&call)?)
    });
    Endpoint { versioned: false, ..endpoint::<P, Q, A>(Method::POST, path, Takes::File(kind), run) }
}

impl Endpoint {
    /// Says where it belongs and what it is for.
    pub(crate) fn about(self, group: &'static str, summary: &'static str, detail: &'static str) -> Self {
        Self { group, summary, detail, ..self }
    }

    /// What it makes is new: 201.
    pub(crate) fn creates(self) -> Self {
        self.answering(StatusCode::CREATED)
    }

    /// What it begins is not over when it answers: 202.
    pub(crate) fn begins(self) -> Self {
        self.answering(StatusCode::ACCEPTED)
    }

    /// It changes no thread, so that no version can be expected.
    pub(crate) fn unversioned(self) -> Self {
        Self { versioned: false, ..self }
    }

    /// It says how the server is, whatever else there is to do.
    pub(crate) fn watches(self) -> Self {
        Self { lane: Lane::Watch, ..self }
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
    takes: Takes,
    run: Run,
) -> Endpoint {
    Endpoint {
        method,
        path,
        group: "",
        summary: "",
        detail: "",
        takes,
        gives: Gives { status: StatusCode::OK, kind: JSON, or: &[], schema: Some(schema_of::<A>) },
        versioned: true,
        lane: Lane::Usual,
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
