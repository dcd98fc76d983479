//! The stream of `OpenAI`'s Responses.
//!
//! ```text
//!   response.created ─► ( output_item.added ─► deltas… ─► output_item.done )…
//!                    ─► response.completed | response.incomplete | response.failed
//! ```
//!
//! An item is whole when it is done. A reasoning item is then kept as it came: with what it holds encrypted, it goes
//! back with the next request.

use std::collections::BTreeMap;

use retake_model::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::assembly::Assembly;
use super::decoder::Flow;
use super::events::Event;
use super::fault::Broken;
use super::status::{self, shortened};
use super::usage::usage;
use super::{Stop, Wire};

/// Where the stream stands.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// The provider's number of an item, and where its blocks are.
    items: BTreeMap<u64, Place>,
    refused: bool,
}

#[derive(Clone, Debug)]
struct Place {
    block: usize,
    /// Which part of the item the block's text belongs to: parts of a summary are set apart.
    part: Option<u64>,
    done: bool,
}

#[derive(Deserialize)]
struct Said {
    r#type: String,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    delta: Option<String>,
    item: Option<Box<RawValue>>,
    response: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Item {
    r#type: String,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    phase: Option<String>,
    content: Option<Vec<Part>>,
    summary: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Box<RawValue>>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

impl Responses {
    pub(super) fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<Flow, Broken> {
        if event.data.trim() == "[DONE]" {
            return Ok(Flow::Finished);
        }
        let said: Said = serde_json::from_str(&event.data)?;
        match said.r#type.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                response(said.response.as_deref(), assembly)?;
            }
            "response.output_item.added" => self.added(said.output_index, said.item.as_deref(), assembly)?,
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta" => {
                self.refused |= said.r#type == "response.refusal.delta";
                let part = said.content_index;
                self.more(said.output_index, part, said.delta, assembly)?;
            }
            "response.reasoning_summary_text.delta" => {
                self.more(said.output_index, said.summary_index, said.delta, assembly)?;
            }
            "response.output_item.done" => self.done(said.output_index, said.item.as_deref(), assembly)?,
            "response.completed" => {
                response(said.response.as_deref(), assembly)?;
                assembly.set_stop(if self.refused { Stop::Refusal } else { Stop::EndTurn });
                return Ok(Flow::Finished);
            }
            "response.incomplete" => {
                let reason = response(said.response.as_deref(), assembly)?;
                assembly.set_stop(stop(reason.as_deref().unwrap_or("incomplete")));
                return Ok(Flow::Finished);
            }
            "response.failed" => {
                response(said.response.as_deref(), assembly)?;
                return Err(status::reported(said.response.as_deref().map_or("{}", RawValue::get)));
            }
            // The ends of texts that have been seen piece by piece, and what there may be in future.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn added(
        &mut self,
        index: Option<u64>,
        item: Option<&RawValue>,
        assembly: &mut Assembly,
    ) -> Result<(), Broken> {
        let (Some(index), Some(raw)) = (index, item) else {
            return Err(Broken::protocol("an item without index or content"));
        };
        if self.items.contains_key(&index) {
            return Err(Broken::protocol(format!("item {index} begins twice")));
        }
        let item: Item = serde_json::from_str(raw.get())?;
        let block = match item.r#type.as_str() {
            "message" => assembly.begin_text()?,
            "reasoning" => assembly.begin_thinking()?,
            "function_call" => {
                let (call, name) = (item.call_id.unwrap_or_default(), item.name.unwrap_or_default());
                assembly.begin_call(&call, &name)?
            }
            other => assembly.unknown(other, Vec::new())?,
        };
        self.items.insert(index, Place { block, part: None, done: false });
        Ok(())
    }

    fn more(
        &mut self,
        index: Option<u64>,
        part: Option<u64>,
        piece: Option<String>,
        assembly: &mut Assembly,
    ) -> Result<(), Broken> {
        let piece = piece.ok_or_else(|| Broken::protocol("a delta without its content"))?;
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
    ) -> Result<(), Broken> {
        if index.is_some_and(|index| !self.items.contains_key(&index)) {
            self.added(index, item, assembly)?;
        }
        let raw = item.ok_or_else(|| Broken::protocol("an item ends without its content"))?;
        let item: Item = serde_json::from_str(raw.get())?;
        let place = self.place(index)?;
        if place.done {
            return Err(Broken::protocol("an item ends twice"));
        }
        place.done = true;
        let block = place.block;
        match item.r#type.as_str() {
            // Servers that do not stream give everything here.
            "message" => {
                if assembly.is_blank(block) {
                    for part in item.content.unwrap_or_default() {
                        let text = part.text.or(part.refusal).unwrap_or_default();
                        assembly.push(block, &text)?;
                    }
                }
                if let Some(phase) = item.phase {
                    assembly.extra(block, "phase", Json::string(&phase))?;
                }
            }
            "function_call" => {
                if assembly.is_blank(block) {
                    assembly.push(block, &item.arguments.unwrap_or_default())?;
                }
            }
            "reasoning" => {
                if assembly.is_blank(block) {
                    let parts = item.summary.unwrap_or_default().into_iter().filter_map(|part| part.text);
                    assembly.push(block, &parts.collect::<Vec<_>>().join("\n\n"))?;
                }
                assembly.extra(block, "reasoning", json(raw)?)?;
            }
            _ => assembly.extra(block, "item", json(raw)?)?,
        }
        assembly.end(block);
        Ok(())
    }

    fn place(&mut self, index: Option<u64>) -> Result<&mut Place, Broken> {
        let place = index.and_then(|index| self.items.get_mut(&index));
        place.ok_or_else(|| Broken::protocol("a piece of an item that has not begun"))
    }
}

/// Takes what the response as a whole says; tells why it is not complete, if it is not.
fn response(raw: Option<&RawValue>, assembly: &mut Assembly) -> Result<Option<String>, Broken> {
    let Some(raw) = raw else { return Ok(None) };
    let response: Response = serde_json::from_str(raw.get())?;
    assembly.set_response_id(response.id.as_deref());
    assembly.set_model(response.model.as_deref());
    if let Some(counts) = response.usage.filter(|counts| counts.get() != "null") {
        assembly.set_usage(usage(Wire::Responses, &counts, None));
    }
    Ok(response.incomplete_details.and_then(|details| details.reason))
}

fn json(raw: &RawValue) -> Result<Json, Broken> {
    Json::new(raw.get()).map_err(|error| Broken::protocol(error.to_string()))
}

fn stop(reason: &str) -> Stop {
    match reason {
        "max_output_tokens" => Stop::MaxTokens,
        "content_filter" => Stop::Refusal,
        other => Stop::Other(shortened(other)),
    }
}
