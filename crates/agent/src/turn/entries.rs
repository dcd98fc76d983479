//! The entries that a turn adds.

use std::collections::BTreeMap;

use retake_model::command::NewEntry;
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::id::EntryId;
use retake_model::json::Json;
use retake_model::projection::{REQUEST_PREFIX, THOUGHTS_OMITTED};
use retake_model::time::Timestamp;

use crate::calibration::ESTIMATE;
use crate::provider::{Answer, Stop};
use crate::request::Trail;

/// The role of model answers.
pub(crate) const ASSISTANT: &str = "AI";
/// The role of tool results.
pub(crate) const TOOL: &str = "Tool";

/// The result of a call that was stopped.
pub(crate) const INTERRUPTED: &str =
    "Interrupted: the tool was stopped or never ran. Its effects are unknown.";

/// An answer with its metadata.
pub(crate) struct AnswerRecord<'a> {
    pub(crate) id: EntryId,
    pub(crate) answer: &'a Answer,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) micro_dollars: Option<u64>,
    /// The estimate for the request, if known.
    pub(crate) estimate: Option<u64>,
    pub(crate) interrupted: bool,
    pub(crate) trail: &'a Trail,
    pub(crate) time: Timestamp,
}

impl AnswerRecord<'_> {
    /// The entry of the answer; `None` if it is empty.
    pub(crate) fn entry(&self) -> Option<NewEntry> {
        if self.answer.blocks.is_empty() {
            return None;
        }
        let mut extra = BTreeMap::from([("provider".to_owned(), Json::string(self.provider))]);
        if let Some(cost) = self.micro_dollars {
            extra.insert("micro_dollars".to_owned(), number(cost));
        }
        if let (Some(estimate), true) = (self.estimate, self.answer.usage.is_some()) {
            extra.insert(ESTIMATE.to_owned(), number(estimate));
        }
        if let Some(stop) = stop_reason(&self.answer.stop) {
            extra.insert("stop".to_owned(), Json::string(&stop));
        }
        if let Some(detail) = &self.answer.stop_detail {
            extra.insert("stop_detail".to_owned(), Json::string(detail));
        }
        if self.interrupted {
            extra.insert("interrupted".to_owned(), json_true());
        }
        let thinks = self.answer.blocks.iter().any(|block| matches!(block, Block::Thinking { .. }));
        if let Some(prefix) = self.trail.prefix.as_deref().filter(|_| thinks) {
            extra.insert(REQUEST_PREFIX.to_owned(), Json::string(prefix));
        }
        if let Some(wire) = self.trail.omitted {
            extra.insert(THOUGHTS_OMITTED.to_owned(), Json::string(wire.name()));
        }
        let version = EntryVersion {
            role: ASSISTANT.to_owned(),
            blocks: self.answer.blocks.clone(),
            created: self.time,
            extra,
            edited: None,
            usage: self.answer.usage.clone(),
            // The requested name, by which signatures are valid and prices are found.
            model: Some(self.model.to_owned()),
        };
        Some(NewEntry { id: Some(self.id), version, blobs: Vec::new() })
    }
}

/// The stop reason, if it is unusual.
pub(crate) fn stop_reason(stop: &Stop) -> Option<String> {
    match stop {
        Stop::EndTurn | Stop::ToolUse => None,
        Stop::MaxTokens => Some("max_tokens".to_owned()),
        Stop::Refusal => Some("refusal".to_owned()),
        Stop::Other(word) => Some(word.clone()),
    }
}

/// The result of a call.
pub(crate) fn result(call: &str, text: String, failed: bool, extra: Fields, time: Timestamp) -> EntryVersion {
    EntryVersion {
        role: TOOL.to_owned(),
        blocks: vec![Block::ToolResult { call: call.to_owned(), text, failed, extra }],
        created: time,
        extra: BTreeMap::new(),
        edited: None,
        usage: None,
        model: None,
    }
}

/// An integer as JSON.
pub(crate) fn number(number: impl Into<u64>) -> Json {
    Json::new(number.into().to_string()).expect("integers are valid JSON")
}

fn json_true() -> Json {
    Json::new("true").expect("`true` is valid JSON")
}
