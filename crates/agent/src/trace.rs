//! The trace: every model request, response and tool call, without API keys.

use std::borrow::Cow;

use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::projection::Body;
use retake_model::time::Timestamp;
use retake_store::runtime::{NewTraceRecord, RuntimeDatabase};
use retake_timeline::StoreError;
use serde_json::{Value, json};

use crate::model_backend::ModelBackend;
use crate::provider::{Answer, CallError};
use crate::request::Request;
use crate::tools::{Call, Output};
use crate::turn::AgentRuntime;

/// Writes trace records of a turn.
pub(crate) struct TraceWriter<'a> {
    pub(crate) runtime_database: &'a RuntimeDatabase,
    pub(crate) thread: ThreadId,
    pub(crate) take: TakeId,
    pub(crate) turn: TurnId,
}

/// A trace record to write.
pub(crate) enum TraceRecord<'a> {
    Request { runtime: &'a AgentRuntime, request: &'a Request },
    Answer { runtime: &'a AgentRuntime, answer: Result<&'a Answer, &'a CallError>, millis: u64 },
    Call { runtime: &'a AgentRuntime, call: &'a Call },
    Result { runtime: &'a AgentRuntime, call: &'a Call, output: &'a Output, millis: u64 },
}

impl TraceWriter<'_> {
    /// Writes a record; returns its number.
    pub(crate) fn log(&self, time: Timestamp, record: &TraceRecord<'_>) -> Result<i64, StoreError> {
        let (kind, mut facts, body) = record.parts();
        redact(&mut facts, &record.runtime().backend);
        if let Value::Object(facts) = &mut facts {
            facts.insert("turn".to_owned(), self.turn.to_string().into());
        }
        let facts = facts.to_string();
        let (thread, take) = (self.thread, self.take);
        self.runtime_database.append_trace(NewTraceRecord {
            thread,
            take,
            time,
            kind,
            facts: &facts,
            body: &body,
        })
    }
}

impl TraceRecord<'_> {
    fn runtime(&self) -> &AgentRuntime {
        match self {
            Self::Request { runtime, .. }
            | Self::Answer { runtime, .. }
            | Self::Call { runtime, .. }
            | Self::Result { runtime, .. } => runtime,
        }
    }

    fn parts(&self) -> (&'static str, Value, Cow<'_, str>) {
        match self {
            Self::Request { runtime, request } => {
                let backend = &runtime.backend;
                let facts = json!({
                    "provider": backend.provider(), "model": backend.model(), "tokens": request.tokens,
                });
                let body = request.body.as_ref().map(Body::to_json).unwrap_or_default();
                let body = match backend.redact(&body) {
                    Cow::Borrowed(_) => body,
                    Cow::Owned(redacted) => redacted,
                };
                ("request", facts, body.into())
            }
            Self::Answer { runtime, answer: Ok(answer), millis } => {
                let cost = answer.usage.as_ref().and_then(|usage| {
                    runtime.prices.cost(Some(runtime.backend.provider()), runtime.backend.model(), usage)
                });
                let facts = json!({
                    "provider": runtime.backend.provider(), "model": runtime.backend.model(), "millis": millis,
                    "answered_by": answer.model, "response": answer.response_id, "usage": answer.usage,
                    "micro_dollars": cost,
                });
                ("answer", facts, runtime.backend.redact(&blocks(answer)).into_owned().into())
            }
            Self::Answer { runtime, answer: Err(error), millis } => {
                let facts = json!({
                    "provider": runtime.backend.provider(), "fault": error.fault, "status": error.status,
                    "millis": millis, "message": error.message,
                });
                ("error", facts, runtime.backend.redact(&blocks(&error.partial)).into_owned().into())
            }
            Self::Call { runtime, call } => {
                let body = runtime.backend.redact(&call.input.to_string()).into_owned();
                ("tool_call", json!({"call": call.id, "tool": call.name}), body.into())
            }
            Self::Result { runtime, call, output, millis } => {
                let facts = json!({
                    "call": call.id, "tool": call.name, "failed": output.failed, "millis": millis,
                });
                // Possibly megabytes, so that it is copied only if something is redacted.
                let body = match &output.whole {
                    Some(whole) => String::from_utf8_lossy(whole),
                    None => Cow::Borrowed(output.text.as_str()),
                };
                let body = match runtime.backend.redact(&body) {
                    Cow::Borrowed(_) => body,
                    Cow::Owned(redacted) => Cow::Owned(redacted),
                };
                ("tool_result", facts, body)
            }
        }
    }
}

/// Redacts secrets in all texts, including names of counters from a provider.
fn redact(value: &mut Value, backend: &ModelBackend) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = backend.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| redact(value, backend)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    redact(&mut value, backend);
                    (backend.redact(&name).into_owned(), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The blocks of an answer as JSON lines.
fn blocks(answer: &Answer) -> String {
    serde_json::to_string(&answer.blocks).unwrap_or_default()
}
