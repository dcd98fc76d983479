//! Decodes the stream of Anthropic Messages.
//!
//! ```text
//!   message_start ─► ( content_block_start ─► content_block_delta… ─► content_block_stop )…
//!                 ─► message_delta ─► message_stop
//! ```

use std::collections::BTreeMap;

use retake_model::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::assembly::Assembly;
use super::decoder::Flow;
use super::events::Event;
use super::fault::DecodeError;
use super::lenient;
use super::status::shorten;
use super::usage::usage;
use super::{Stop, Wire};

/// The stop reason when the context window is full.
const WINDOW_FULL: &str = "model_context_window_exceeded";

/// The state of the decoder.
#[derive(Debug, Default)]
pub(super) struct Anthropic {
    started: bool,
    /// The provider's index of a block, and the block.
    places: BTreeMap<u64, usize>,
}

#[derive(Deserialize)]
struct StreamEvent {
    r#type: String,
    index: Option<u64>,
    message: Option<Message>,
    content_block: Option<BTreeMap<String, Box<RawValue>>>,
    delta: Option<Piece>,
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    model: Option<String>,
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Piece {
    r#type: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    citation: Option<Box<RawValue>>,
    stop_reason: Option<String>,
    stop_details: Option<Box<RawValue>>,
}

/// Why the model refused.
#[derive(Deserialize)]
struct StopDetails {
    #[serde(default, deserialize_with = "lenient::text")]
    category: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    explanation: Option<String>,
}

impl Anthropic {
    pub(super) fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<Flow, DecodeError> {
        let parsed: StreamEvent = serde_json::from_str(&event.data)?;
        match parsed.r#type.as_str() {
            "message_start" => self.start(parsed.message, assembly)?,
            "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
                if !self.started =>
            {
                return Err(DecodeError::protocol(format!("{} before message_start", parsed.r#type)));
            }
            "content_block_start" => self.begin(parsed.index, parsed.content_block, assembly)?,
            "content_block_delta" => {
                let place = self.place(parsed.index)?;
                let piece = parsed
                    .delta
                    .ok_or_else(|| DecodeError::protocol("a content_block_delta without its delta"))?;
                more(place, piece, assembly)?;
            }
            "content_block_stop" => {
                let place = self.place(parsed.index)?;
                if assembly.is_ended(place) {
                    return Err(DecodeError::protocol("a block ends twice"));
                }
                assembly.end(place);
            }
            "message_delta" => {
                if let Some(delta) = parsed.delta {
                    let details = delta
                        .stop_details
                        .and_then(|raw| serde_json::from_str::<StopDetails>(raw.get()).ok())
                        .and_then(|details| details.explanation.or(details.category));
                    assembly.set_stop_detail(details.as_deref());
                    if let Some(reason) = delta.stop_reason.filter(|reason| !reason.is_empty()) {
                        if reason == WINDOW_FULL {
                            assembly.set_stop_detail(Some(&reason));
                        }
                        assembly.set_stop(stop(&reason));
                    }
                }
                count(parsed.usage.as_deref(), assembly);
            }
            "message_stop" => return Ok(Flow::Finished),
            // `ping`, and future events.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn start(&mut self, message: Option<Message>, assembly: &mut Assembly) -> Result<(), DecodeError> {
        // Some proxies send it twice, which is harmless before the first block.
        if self.started && !self.places.is_empty() {
            return Err(DecodeError::protocol("a second message_start"));
        }
        self.started = true;
        let Some(message) = message else {
            return Err(DecodeError::protocol("message_start without a message"));
        };
        assembly.set_response_id(message.id.as_deref());
        assembly.set_model(message.model.as_deref());
        count(message.usage.as_deref(), assembly);
        Ok(())
    }

    fn begin(
        &mut self,
        index: Option<u64>,
        block: Option<BTreeMap<String, Box<RawValue>>>,
        assembly: &mut Assembly,
    ) -> Result<(), DecodeError> {
        let (Some(index), Some(mut block)) = (index, block) else {
            return Err(DecodeError::protocol("content_block_start without index or block"));
        };
        if self.places.contains_key(&index) {
            return Err(DecodeError::protocol(format!("block {index} begins twice")));
        }
        let kind = text_of(&mut block, "type")?;
        let place = match kind.as_str() {
            "text" => {
                let place = assembly.begin_text()?;
                assembly.push(place, &text_of(&mut block, "text")?)?;
                place
            }
            "thinking" => {
                let place = assembly.begin_thinking()?;
                assembly.push(place, &text_of(&mut block, "thinking")?)?;
                assembly.seal(place, &text_of(&mut block, "signature")?)?;
                place
            }
            "redacted_thinking" => {
                let place = assembly.begin_thinking()?;
                assembly.extra(place, "redacted", Json::string(&text_of(&mut block, "data")?))?;
                place
            }
            "tool_use" => {
                let (call, name) = (text_of(&mut block, "id")?, text_of(&mut block, "name")?);
                let place = assembly.begin_call(&call, &name)?;
                // The input follows in pieces; only servers that do not stream send it here.
                if let Some(input) = block.get("input").filter(|input| !matches!(input.get(), "{}" | "null"))
                {
                    assembly.push(place, input.get())?;
                }
                place
            }
            _ => {
                let json = |raw: Box<RawValue>| {
                    Json::new(raw.get()).map_err(|error| DecodeError::protocol(error.to_string()))
                };
                let fields: Result<Vec<(String, Json)>, DecodeError> =
                    block.into_iter().map(|(name, raw)| Ok((name, json(raw)?))).collect();
                assembly.unknown(&kind, fields?)?
            }
        };
        self.places.insert(index, place);
        Ok(())
    }

    fn place(&self, index: Option<u64>) -> Result<usize, DecodeError> {
        let place = index.and_then(|index| self.places.get(&index));
        place.copied().ok_or_else(|| DecodeError::protocol("a piece of a block that has not begun"))
    }
}

fn more(place: usize, piece: Piece, assembly: &mut Assembly) -> Result<(), DecodeError> {
    let missing = || DecodeError::protocol("a delta without its content");
    match piece.r#type.as_deref() {
        Some("text_delta") => assembly.push(place, &piece.text.ok_or_else(missing)?),
        Some("thinking_delta") => assembly.push(place, &piece.thinking.ok_or_else(missing)?),
        Some("signature_delta") => assembly.seal(place, &piece.signature.ok_or_else(missing)?),
        Some("input_json_delta") => assembly.push(place, &piece.partial_json.ok_or_else(missing)?),
        Some("citations_delta") => assembly.append(place, "citations", &piece.citation.ok_or_else(missing)?),
        // An unknown kind of delta: ignore it and keep the block.
        _ => Ok(()),
    }
}

fn count(raw: Option<&RawValue>, assembly: &mut Assembly) {
    if let Some(raw) = raw {
        let counted = usage(Wire::Anthropic, raw, assembly.usage());
        assembly.set_usage(counted);
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::EndTurn,
        "tool_use" => Stop::ToolUse,
        "max_tokens" | WINDOW_FULL => Stop::MaxTokens,
        "refusal" => Stop::Refusal,
        other => Stop::Other(shorten(other)),
    }
}

/// A text field of a block; empty if it is missing.
fn text_of(block: &mut BTreeMap<String, Box<RawValue>>, name: &str) -> Result<String, DecodeError> {
    let Some(raw) = block.remove(name) else { return Ok(String::new()) };
    let text: Option<String> = serde_json::from_str(raw.get())?;
    Ok(text.unwrap_or_default())
}
