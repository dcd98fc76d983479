//! The trace: every model request, response and tool call, without API keys.

use std::borrow::Cow;

use retake_model::id::{TakeId, ThreadId, TurnId};
use retake_model::time::Timestamp;
use retake_timeline::store::{Ledger, NewComm, StoreError};
use serde_json::{Value, json};

use crate::brain::Brain;
use crate::provider::{Answer, CallError};
use crate::request::Request;
use crate::tools::{Call, Output};
use crate::turn::Workshop;

/// Writes trace records of a turn.
pub(crate) struct Comms<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) thread: ThreadId,
    pub(crate) take: TakeId,
    pub(crate) turn: TurnId,
}

/// A trace record to write.
pub(crate) enum Said<'a> {
    Request { shop: &'a Workshop, request: &'a Request },
    Answer { shop: &'a Workshop, answer: &'a Result<Answer, CallError>, millis: u64 },
    Call { shop: &'a Workshop, call: &'a Call },
    Result { shop: &'a Workshop, call: &'a Call, output: &'a Output, millis: u64 },
}

impl Comms<'_> {
    /// Writes a record; returns its number.
    pub(crate) fn log(&self, time: Timestamp, said: &Said<'_>) -> Result<i64, StoreError> {
        let (kind, mut facts, body) = said.told();
        redact(&mut facts, &said.shop().brain);
        if let Value::Object(facts) = &mut facts {
            facts.insert("turn".to_owned(), self.turn.to_string().into());
        }
        let facts = facts.to_string();
        let (thread, take) = (self.thread, self.take);
        self.ledger.log(NewComm { thread, take, time, kind, facts: &facts, body: &body })
    }
}

impl Said<'_> {
    fn shop(&self) -> &Workshop {
        match self {
            Self::Request { shop, .. }
            | Self::Answer { shop, .. }
            | Self::Call { shop, .. }
            | Self::Result { shop, .. } => shop,
        }
    }

    fn told(&self) -> (&'static str, Value, Cow<'_, str>) {
        match self {
            Self::Request { shop, request } => {
                let brain = &shop.brain;
                let facts = json!({
                    "provider": brain.provider(), "model": brain.model(), "tokens": request.tokens,
                });
                let body = match &request.body {
                    Value::Null => String::new(),
                    body => brain.redact(&body.to_string()).into_owned(),
                };
                ("request", facts, body.into())
            }
            Self::Answer { shop, answer: Ok(answer), millis } => {
                let cost = answer.usage.as_ref().and_then(|usage| {
                    shop.prices.cost(Some(shop.brain.provider()), shop.brain.model(), usage)
                });
                let facts = json!({
                    "provider": shop.brain.provider(), "model": shop.brain.model(), "millis": millis,
                    "answered_by": answer.model, "response": answer.response_id, "usage": answer.usage,
                    "micro_dollars": cost,
                });
                ("answer", facts, shop.brain.redact(&blocks(answer)).into_owned().into())
            }
            Self::Answer { shop, answer: Err(error), millis } => {
                let facts = json!({
                    "provider": shop.brain.provider(), "fault": error.fault, "status": error.status,
                    "millis": millis, "message": error.message,
                });
                ("error", facts, shop.brain.redact(&blocks(&error.partial)).into_owned().into())
            }
            Self::Call { shop, call } => {
                let body = shop.brain.redact(&call.input.to_string()).into_owned();
                ("tool_call", json!({"call": call.id, "tool": call.name}), body.into())
            }
            Self::Result { shop, call, output, millis } => {
                let facts = json!({
                    "call": call.id, "tool": call.name, "failed": output.failed, "millis": millis,
                });
                // Possibly megabytes, so that it is copied only if something is redacted.
                let body = match &output.whole {
                    Some(whole) => String::from_utf8_lossy(whole),
                    None => Cow::Borrowed(output.text.as_str()),
                };
                let body = match shop.brain.redact(&body) {
                    Cow::Borrowed(_) => body,
                    Cow::Owned(redacted) => Cow::Owned(redacted),
                };
                ("tool_result", facts, body)
            }
        }
    }
}

/// Redacts secrets in all texts, including names of counters from a provider.
fn redact(value: &mut Value, brain: &Brain) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = brain.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| redact(value, brain)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    redact(&mut value, brain);
                    (brain.redact(&name).into_owned(), value)
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
