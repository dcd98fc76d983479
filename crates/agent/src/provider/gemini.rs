//! Decodes the stream of Gemini's `streamGenerateContent`.
//!
//! Each event is a complete response with additional parts. Consecutive texts form one block, but parts with
//! different signatures are never joined: the provider expects each signature back on its own part.

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

/// The decoder. It needs no state.
#[derive(Debug)]
pub(super) struct Gemini;

/// The field of a block with the signature of its part.
const SIGNATURE: &str = "thought_signature";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamChunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "lenient::text")]
    model_version: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<Content>,
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Box<RawValue>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<Call>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    block_reason_message: Option<String>,
}

impl Gemini {
    #[expect(clippy::unused_self, reason = "called like the decoders of the other wires")]
    pub(super) fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<Flow, DecodeError> {
        if event.data.trim() == "[DONE]" {
            return Ok(Flow::Finished);
        }
        let parsed: StreamChunk = serde_json::from_str(&event.data)?;
        assembly.set_response_id(parsed.response_id.as_deref());
        assembly.set_model(parsed.model_version.as_deref());
        if let Some(counts) = parsed.usage_metadata.filter(|counts| counts.get() != "null") {
            assembly.set_usage(usage(Wire::Gemini, &counts, None));
        }
        if let Some(Feedback { block_reason: Some(reason), block_reason_message }) = parsed.prompt_feedback {
            assembly.set_stop_detail(Some(&block_reason_message.unwrap_or(reason)));
            assembly.set_stop(Stop::Refusal);
        }
        let candidates = parsed.candidates.unwrap_or_default();
        let first = candidates.into_iter().find(|candidate| candidate.index.unwrap_or(0) == 0);
        let Some(candidate) = first else { return Ok(Flow::More) };
        let parts = candidate.content.and_then(|content| content.parts);
        for raw in parts.unwrap_or_default() {
            part(&raw, assembly)?;
        }
        let given = |reason: &String| !matches!(reason.as_str(), "" | "FINISH_REASON_UNSPECIFIED");
        if let Some(reason) = candidate.finish_reason.filter(given) {
            let stop = stop(&reason);
            if stop == Stop::Refusal {
                assembly.set_stop_detail(Some(&reason));
            }
            assembly.set_stop_detail(candidate.finish_message.as_deref());
            assembly.set_stop(stop);
        }
        Ok(Flow::More)
    }
}

fn part(raw: &RawValue, assembly: &mut Assembly) -> Result<(), DecodeError> {
    let part: Part = serde_json::from_str(raw.get())?;
    let signature = part.thought_signature.filter(|signature| !signature.is_empty());
    let place = match (part.function_call, part.text) {
        (Some(call), _) => {
            let place = assembly.begin_call(&call.id.unwrap_or_default(), &call.name.unwrap_or_default())?;
            if let Some(args) = call.args.filter(|args| args.get() != "null") {
                assembly.push(place, args.get())?;
            }
            assembly.end(place);
            place
        }
        (None, Some(text)) => text_part(&text, part.thought == Some(true), signature.is_some(), assembly)?,
        (None, None) => {
            let json = Json::new(raw.get()).map_err(|error| DecodeError::protocol(error.to_string()))?;
            assembly.unknown("gemini_part", vec![("part".to_owned(), json)])?
        }
    };
    if let Some(signature) = signature {
        assembly.extra(place, SIGNATURE, Json::string(&signature))?;
    }
    Ok(())
}

/// Adds a text to the right block; returns the block.
fn text_part(text: &str, thought: bool, signed: bool, assembly: &mut Assembly) -> Result<usize, DecodeError> {
    // A signature at the end of a stream comes with an empty text and belongs to the part before.
    if text.is_empty()
        && let Some(last) = assembly.last()
        && !assembly.has_extra(last, SIGNATURE)
    {
        return Ok(last);
    }
    let open = if thought { assembly.open_thinking() } else { assembly.open_text() };
    let place = match open.filter(|place| !signed && !assembly.has_extra(*place, SIGNATURE)) {
        Some(place) => place,
        None if thought || text.is_empty() => assembly.begin_thinking()?,
        None => assembly.begin_text()?,
    };
    assembly.push(place, text)?;
    Ok(place)
}

fn stop(reason: &str) -> Stop {
    match reason {
        "STOP" => Stop::EndTurn,
        "MAX_TOKENS" => Stop::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "LANGUAGE" => Stop::Refusal,
        other => Stop::Other(shorten(other)),
    }
}
