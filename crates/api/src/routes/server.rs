//! The server itself: whether it is well, what it counts, what it can do, what happens.

use retake_model::id::ThreadId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Answer, Call, EVENTS, Endpoint, NoPath, NoQuery, ReplyBody, get, raw};
use crate::events::{Following, open};
use crate::page;
use crate::problem::Problem;

const GROUP: &str = "Server";

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        raw("/v1/events", EVENTS, events).about(
            GROUP,
            "Follow what happens",
            "Server-sent events, from whatever process. `operation` events have ids: name the last one that you saw in \
             `Last-Event-ID` or `after`, and nothing is missed and nothing comes twice. `turn` events are words of a \
             model as they come, without ids.",
        ),
        get("/health", health).watches().about(GROUP, "Whether the server is well", ""),
        raw("/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics).watches().about(
            GROUP,
            "What the server counts",
            "For Prometheus.",
        ),
        raw("/openapi.json", "application/json", document).about(GROUP, "This document", ""),
        raw("/docs", page::HTML, docs).about(GROUP, "This document, for people", ""),
        raw("/docs.css", "text/css; charset=utf-8", style).about(GROUP, "How the page for people looks", ""),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The last event that you saw; from now on if none is named. `Last-Event-ID` comes first.
    after: Option<i64>,
    /// Only of this thread.
    thread: Option<ThreadId>,
    /// Whether words of models are told as they come.
    turns: Option<bool>,
}

fn events(call: &Call<'_, NoPath, EventsQuery>) -> Result<ReplyBody, Problem> {
    let seen = match call.last_event.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => {
            let seen =
                text.parse().map_err(|_| Problem::invalid("Last-Event-ID is not one of this server's"))?;
            Some(seen)
        }
        None => call.query.after,
    };
    let following =
        Following { after: seen, thread: call.query.thread, turns: call.query.turns.unwrap_or(true) };
    if let Some(thread) = following.thread {
        call.service.timeline.look()?.thread(thread)?;
    }
    Ok(ReplyBody::Stream(open(call.service, call.who.token, following)?))
}

/// That all is well.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Always `ok`: otherwise the answer is a problem.
    status: &'static str,
    /// The program's version.
    version: &'static str,
    /// The last operation of the log.
    sequence: i64,
}

fn health(call: &Call<'_, NoPath, NoQuery>) -> Result<Answer<Health>, Problem> {
    let sequence = call.service.timeline.look()?.queries().last_sequence()?;
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
