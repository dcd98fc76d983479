//! The entries that a turn brings.

use std::collections::BTreeMap;

use retake_model::command::NewEntry;
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::id::EntryId;
use retake_model::json::Json;
use retake_model::time::Timestamp;

use crate::calibration::ESTIMATE;
use crate::provider::{Answer, Stop};

/// The role of what a model says.
pub(crate) const ASSISTANT: &str = "AI";
/// The role of what came of a tool call.
pub(crate) const TOOL: &str = "Tool";

/// What a model is told of a call that has no result because it was stopped.
pub(crate) const INTERRUPTED: &str =
    "Interrupted: the tool was stopped, or never ran. What it did before is not known.";

/// Something a model answered.
pub(crate) struct Answered<'a> {
    pub(crate) id: EntryId,
    pub(crate) answer: &'a Answer,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) micro_dollars: Option<u64>,
    /// What was estimated for the request, if that is known.
    pub(crate) estimate: Option<u64>,
    pub(crate) interrupted: bool,
    pub(crate) time: Timestamp,
}

impl Answered<'_> {
    /// The entry that it becomes; `None` if nothing was said.
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
        if let Some(stop) = unusual(&self.answer.stop) {
            extra.insert("stop".to_owned(), Json::string(&stop));
        }
        if let Some(detail) = &self.answer.stop_detail {
            extra.insert("stop_detail".to_owned(), Json::string(detail));
        }
        if self.interrupted {
            extra.insert("interrupted".to_owned(), truth());
        }
        let version = EntryVersion {
            role: ASSISTANT.to_owned(),
            blocks: self.answer.blocks.clone(),
            created: self.time,
            extra,
            edited: None,
            usage: self.answer.usage.clone(),
            // The name that was asked for: seals hold for it, and prices are found by it.
            model: Some(self.model.to_owned()),
        };
        Some(NewEntry { id: Some(self.id), version, blobs: Vec::new() })
    }
}

/// Why a model stopped, where that is worth a word.
pub(crate) fn unusual(stop: &Stop) -> Option<String> {
    match stop {
        Stop::EndTurn | Stop::ToolUse => None,
        Stop::MaxTokens => Some("max_tokens".to_owned()),
        Stop::Refusal => Some("refusal".to_owned()),
        Stop::Other(word) => Some(word.clone()),
    }
}

/// What came of a call.
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

/// A whole number as JSON.
pub(crate) fn number(number: impl Into<u64>) -> Json {
    Json::new(number.into().to_string()).expect("a whole number is JSON")
}

fn truth() -> Json {
    Json::new("true").expect("a word of JSON")
}
