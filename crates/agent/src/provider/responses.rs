//! Decodes the stream of `OpenAI`'s Responses.
//!
//! ```text
//!   response.created ─► ( output_item.added ─► deltas… ─► output_item.done )…
//!                    ─► response.completed | response.incomplete | response.failed
//! ```
//!
//! An item is complete when it is done. A reasoning item is stored unchanged: the next request sends it back
//! with its encrypted content.

use std::collections::BTreeMap;

use retake_model::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::assembly::Assembly;
use super::decoder::Flow;
use super::events::Event;
use super::fault::DecodeError;
use super::lenient;
use super::status::{self, shorten};
use super::usage::usage;
use super::{Stop, Wire};

/// The state of the decoder.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// The provider's index of an item, and its blocks.
    items: BTreeMap<u64, OutputItem>,
    /// The item that began last.
    newest: Option<u64>,
    refused: bool,
}

#[derive(Clone, Debug)]
struct OutputItem {
    kind: String,
    block: usize,
    /// The part of the item that the block's text belongs to: parts of a summary are separated.
    part: Option<u64>,
    done: bool,
}

#[derive(Deserialize)]
struct StreamEvent {
    r#type: Option<String>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    /// A string in the events that this decoder reads.
    delta: Option<Box<RawValue>>,
    /// The complete text of a part, in the event that ends it.
    #[serde(default, deserialize_with = "lenient::text")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    refusal: Option<String>,
    arguments: Option<Box<RawValue>>,
    item: Option<Box<RawValue>>,
    response: Option<Box<RawValue>>,
}

/// An item of a known type. Other types may have fields of the same names with other formats.
#[derive(Default, Deserialize)]
struct Item {
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    /// JSON in a string; some servers send the object itself.
    arguments: Option<Box<RawValue>>,
    phase: Option<String>,
    #[serde(default, deserialize_with = "parts")]
    content: Option<Vec<Part>>,
    #[serde(default, deserialize_with = "parts")]
    summary: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Typed {
    r#type: Option<String>,
}

/// The type of an item, and its content if the type is known.
fn item_of(raw: &RawValue) -> Result<(String, Item), DecodeError> {
    let Typed { r#type: kind } = serde_json::from_str(raw.get())?;
    let item = match kind.as_deref() {
        Some("message" | "reasoning" | "function_call") => serde_json::from_str(raw.get())?,
        _ => Item::default(),
    };
    Ok((kind.unwrap_or_else(|| "item".to_owned()), item))
}

/// A list of parts, or the text that some servers send instead of one.
fn parts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Part>>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| {
        let text = || serde_json::from_str(raw.get()).ok().map(|text| vec![Part { text, refusal: None }]);
        serde_json::from_str(raw.get()).ok().or_else(text)
    }))
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    model: Option<String>,
    usage: Option<Box<RawValue>>,
    incomplete_details: Option<Incomplete>,
    output: Option<Vec<Box<RawValue>>>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

impl Responses {
    pub(super) fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<Flow, DecodeError> {
        if event.data.trim() == "[DONE]" {
            return Ok(Flow::Finished);
        }
        let parsed: StreamEvent = serde_json::from_str(&event.data)?;
        let kind = parsed.r#type.as_deref().or(event.name.as_deref()).unwrap_or_default();
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                response(parsed.response.as_deref(), assembly)?;
            }
            "response.output_item.added" => {
                self.added(parsed.output_index, parsed.item.as_deref(), assembly)?;
            }
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta" => {
                self.refused |= kind == "response.refusal.delta";
                let part = parsed.content_index;
                self.more(parsed.output_index, part, parsed.delta.as_deref(), assembly)?;
            }
            "response.reasoning_summary_text.delta" => {
                self.more(parsed.output_index, parsed.summary_index, parsed.delta.as_deref(), assembly)?;
            }
            "response.output_text.done"
            | "response.refusal.done"
            | "response.reasoning_text.done"
            | "response.reasoning_summary_text.done"
            | "response.function_call_arguments.done" => self.ended(&parsed, assembly)?,
            "response.output_item.done" => {
                self.done(parsed.output_index, parsed.item.as_deref(), assembly)?;
            }
            "response.completed" => {
                self.whole(parsed.response.as_deref(), assembly)?;
                assembly.set_stop(if self.refused { Stop::Refusal } else { Stop::EndTurn });
                return Ok(Flow::Finished);
            }
            "response.incomplete" => {
                let reason = self.whole(parsed.response.as_deref(), assembly)?;
                let reason = reason.as_deref().unwrap_or("incomplete");
                let stop = stop(reason);
                if stop == Stop::Refusal {
                    assembly.set_stop_detail(Some(reason));
                }
                assembly.set_stop(stop);
                return Ok(Flow::Finished);
            }
            "response.failed" => {
                response(parsed.response.as_deref(), assembly)?;
                return Err(status::reported(parsed.response.as_deref().map_or("{}", RawValue::get)));
            }
            "error" => return Err(status::reported(&event.data)),
            // Ends of parts, and future events.
            _ => {}
        }
        Ok(Flow::More)
    }

    /// Processes the complete text of a part: servers that do not stream send it only here.
    fn ended(&mut self, event: &StreamEvent, assembly: &mut Assembly) -> Result<(), DecodeError> {
        let text = match (&event.text, &event.refusal, &event.arguments) {
            (Some(text), ..) | (_, Some(text), _) => text.clone(),
            (.., given) => arguments(given.as_deref())?,
        };
        let part = event.content_index.or(event.summary_index);
        let Ok(place) = self.place(event.output_index) else { return Ok(()) };
        let is_first = assembly.is_blank(place.block);
        let is_next = matches!((place.part, part), (Some(last), Some(part)) if last < part);
        if place.done || text.is_empty() || !(is_first || is_next) {
            return Ok(());
        }
        let block = place.block;
        place.part = part;
        self.refused |= event.refusal.is_some();
        if !is_first {
            assembly.push(block, "\n\n")?;
        }
        assembly.push(block, &text)
    }

    /// Processes the complete response. It contains the items that were not streamed, or not to their end.
    fn whole(
        &mut self,
        raw: Option<&RawValue>,
        assembly: &mut Assembly,
    ) -> Result<Option<String>, DecodeError> {
        let Whole { reason, output } = response(raw, assembly)?;
        // Some servers count the items of a stream in their own way: only a longer list has additional ones.
        let longer = self.items.len() < output.len();
        for (index, item) in (0..).zip(&output) {
            let is_missing = match self.items.get(&index) {
                Some(known) => !known.done && known.kind == item_of(item)?.0,
                None => longer,
            };
            if is_missing {
                self.done(Some(index), Some(item), assembly)?;
            }
        }
        Ok(reason)
    }

    fn added(
        &mut self,
        index: Option<u64>,
        item: Option<&RawValue>,
        assembly: &mut Assembly,
    ) -> Result<(), DecodeError> {
        let raw = item.ok_or_else(|| DecodeError::protocol("an item without content"))?;
        let next = || self.newest.map_or(0, |newest| newest.saturating_add(1));
        let index = index.unwrap_or_else(next);
        if self.items.contains_key(&index) {
            return Err(DecodeError::protocol(format!("item {index} begins twice")));
        }
        let (kind, item) = item_of(raw)?;
        let block = match kind.as_str() {
            "message" => assembly.begin_text()?,
            "reasoning" => assembly.begin_thinking()?,
            "function_call" => {
                let (call, name) = (item.call_id.unwrap_or_default(), item.name.unwrap_or_default());
                assembly.begin_call(&call, &name)?
            }
            other => assembly.unknown(other, Vec::new())?,
        };
        self.items.insert(index, OutputItem { kind, block, part: None, done: false });
        self.newest = Some(index);
        Ok(())
    }

    fn more(
        &mut self,
        index: Option<u64>,
        part: Option<u64>,
        piece: Option<&RawValue>,
        assembly: &mut Assembly,
    ) -> Result<(), DecodeError> {
        let piece = piece.ok_or_else(|| DecodeError::protocol("a delta without its content"))?;
        let piece: String = serde_json::from_str(piece.get())?;
        let place = self.place(index)?;
        if place.part.is_some() && place.part != part && !assembly.is_blank(place.block) {
            assembly.push(place.block, "\n\n")?;
        }
        place.part = part;
        assembly.push(place.block, &piece)
    }

    fn done(
        &mut self,
        index: Option<u64>,
        item: Option<&RawValue>,
        assembly: &mut Assembly,
    ) -> Result<(), DecodeError> {
        let is_known = match index {
            Some(index) => self.items.contains_key(&index),
            None => self.newest.is_some_and(|newest| !self.items[&newest].done),
        };
        if !is_known {
            self.added(index, item, assembly)?;
        }
        let raw = item.ok_or_else(|| DecodeError::protocol("an item ends without its content"))?;
        let (kind, item) = item_of(raw)?;
        let place = self.place(index)?;
        if place.done {
            return Err(DecodeError::protocol("an item ends twice"));
        }
        place.done = true;
        let block = place.block;
        match kind.as_str() {
            // Servers that do not stream send everything here; if pieces were lost, this text is
            // authoritative.
            "message" => {
                let mut texts = Vec::new();
                for part in item.content.unwrap_or_default() {
                    self.refused |= part.refusal.is_some();
                    texts.extend(part.text.or(part.refusal));
                }
                assembly.complete(block, &texts)?;
                if let Some(phase) = item.phase {
                    assembly.extra(block, "phase", Json::string(&phase))?;
                }
            }
            "function_call" => {
                if assembly.is_blank(block) {
                    assembly.push(block, &arguments(item.arguments.as_deref())?)?;
                }
                if let Some(namespace) = item.namespace {
                    assembly.extra(block, "namespace", Json::string(&namespace))?;
                }
            }
            "reasoning" => {
                if assembly.is_blank(block) {
                    let summary = item.summary.filter(|parts| !parts.is_empty()).or(item.content);
                    let parts = summary.unwrap_or_default().into_iter().filter_map(|part| part.text);
                    assembly.push(block, &parts.collect::<Vec<_>>().join("\n\n"))?;
                }
                assembly.extra(block, "reasoning", json(raw)?)?;
            }
            _ => assembly.extra(block, "item", json(raw)?)?,
        }
        assembly.end(block);
        Ok(())
    }

    fn place(&mut self, index: Option<u64>) -> Result<&mut OutputItem, DecodeError> {
        // Some servers leave out the index of the item that they are writing.
        let place = index.or(self.newest).and_then(|index| self.items.get_mut(&index));
        place.ok_or_else(|| DecodeError::protocol("a piece of an item that has not begun"))
    }
}

/// The complete response, apart from its usage.
#[derive(Default)]
struct Whole {
    /// Why it is incomplete, if it is.
    reason: Option<String>,
    output: Vec<Box<RawValue>>,
}

fn response(raw: Option<&RawValue>, assembly: &mut Assembly) -> Result<Whole, DecodeError> {
    let Some(raw) = raw else { return Ok(Whole::default()) };
    let response: Response = serde_json::from_str(raw.get())?;
    assembly.set_response_id(response.id.as_deref());
    assembly.set_model(response.model.as_deref());
    if let Some(counts) = response.usage.filter(|counts| counts.get() != "null") {
        assembly.set_usage(usage(Wire::Responses, &counts, None));
    }
    let reason = response.incomplete_details.and_then(|details| details.reason);
    Ok(Whole { reason, output: response.output.unwrap_or_default() })
}

/// The arguments of a call as JSON text.
fn arguments(raw: Option<&RawValue>) -> Result<String, DecodeError> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(String::new()),
        Some(text) if text.starts_with('"') => Ok(serde_json::from_str(text)?),
        Some(object) => Ok(object.to_owned()),
    }
}

fn json(raw: &RawValue) -> Result<Json, DecodeError> {
    Json::new(raw.get()).map_err(|error| DecodeError::protocol(error.to_string()))
}

fn stop(reason: &str) -> Stop {
    match reason {
        "max_output_tokens" => Stop::MaxTokens,
        "content_filter" => Stop::Refusal,
        other => Stop::Other(shorten(other)),
    }
}
