//! The server itself: events, health, metrics, documentation.

use retake_model::id::ThreadId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Answer, Call, EVENTS, Endpoint, NoPath, NoQuery, ReplyBody, get, raw};
use crate::events::{StreamRequest, open};
use crate::page;
use crate::problem::Problem;

const GROUP: &str = "Server";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        raw("/v1/events", EVENTS, events).about(
            GROUP,
            "Stream events",
            "Server-sent events of all processes. `operation` events have ids: send the last one in `Last-Event-ID` or `after` \
             to resume without gaps or repetitions. `turn` events carry model text and tool progress as they arrive, \
             without ids. A `folder` event, without an id, names a folder that changed since its status was requested from this \
             server; every stream gets it.",
        ),
        get("/health", health).monitoring().about(GROUP, "Check the health of the server", ""),
        raw("/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics).monitoring().about(
            GROUP,
            "Read metrics",
            "For Prometheus.",
        ),
        raw("/openapi.json", "application/json", document).about(GROUP, "Read this OpenAPI document", ""),
        raw("/docs", page::HTML, docs).about(GROUP, "Read this document as a page", ""),
        raw("/docs.css", "text/css; charset=utf-8", style).about(GROUP, "Read the style sheet of that page", ""),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The last event received; by default starts with new events. `Last-Event-ID` takes precedence.
    after: Option<i64>,
    /// Only events of this thread.
    thread: Option<ThreadId>,
    /// Include `turn` events; true by default.
    turns: Option<bool>,
}

fn events(call: &Call<'_, NoPath, EventsQuery>) -> Result<ReplyBody, Problem> {
    let seen = match call.last_event.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => {
            let seen = text
                .parse()
                .map_err(|_| Problem::invalid("Last-Event-ID is not an event id of this server"))?;
            Some(seen)
        }
        None => call.query.after,
    };
    let following =
        StreamRequest { after: seen, thread: call.query.thread, turns: call.query.turns.unwrap_or(true) };
    if let Some(thread) = following.thread {
        call.service.timeline.read()?.thread(thread)?;
    }
    Ok(ReplyBody::Stream(open(call.service, call.who.token, following)?))
}

/// The health of the server.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Always `ok`; otherwise the response is a problem.
    status: &'static str,
    /// Version of the program.
    version: &'static str,
    /// Sequence number of the last operation of the log.
    sequence: i64,
}

fn health(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<Health>, Problem> {
    let sequence = call.service.timeline.read()?.queries().last_sequence()?;
    Ok(Answer::of(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), sequence }))
}

fn metrics(call: &Call<'_, NoPath, NoQuery>) -> Result<ReplyBody, Problem> {
    Ok(ReplyBody::Bytes(call.service.metrics.text().into_bytes()))
}

fn document(call: &Call<'_, NoPath, NoQuery>) -> Result<ReplyBody, Problem> {
    Ok(ReplyBody::Bytes(call.service.document().text.clone().into_bytes()))
}

fn docs(call: &Call<'_, NoPath, NoQuery>) -> Result<ReplyBody, Problem> {
    Ok(ReplyBody::Bytes(call.service.document().page().as_bytes().to_vec()))
}

fn style(_: &Call<'_, NoPath, NoQuery>) -> Result<ReplyBody, Problem> {
    Ok(ReplyBody::Bytes(page::STYLE.as_bytes().to_vec()))
}
