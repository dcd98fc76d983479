//! The stream of Chat Completions, as `OpenAI` and many others speak it.
//!
//! There are no blocks on this wire, only pieces of text, thought and calls: a run of one kind is a block. Calls
//! are told apart by their number, but not all servers number them: a new id begins a new call.

use std::collections::BTreeMap;

use retake_model::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::assembly::Assembly;
use super::decoder::Flow;
use super::events::Event;
use super::fault::Broken;
use super::status::shortened;
use super::usage::usage;
use super::{Stop, Wire};

/// Where the stream stands.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// The server's number of a call, and our place of it.
    places: BTreeMap<u64, usize>,
    latest: Option<usize>,
    refused: bool,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    content: Option<String>,
    /// The thought, as `DeepSeek`, vLLM and llama.cpp name it.
    reasoning_content: Option<String>,
    /// The thought, as `OpenRouter` and Ollama name it.
    reasoning: Option<String>,
    reasoning_details: Option<Vec<Box<RawValue>>>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
    /// Where Gemini's compatible endpoint puts its signature.
    extra_content: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

impl Chat {
    pub(super) fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<Flow, Broken> {
        if event.data.trim() == "[DONE]" {
            return Ok(Flow::Finished);
        }
        let chunk: Chunk = serde_json::from_str(&event.data)?;
        assembly.set_response_id(chunk.id.as_deref());
        assembly.set_model(chunk.model.as_deref());
        if let Some(raw) = chunk.usage.filter(|raw| raw.get() != "null") {
            assembly.set_usage(usage(Wire::Chat, &raw, None));
        }
        // One answer was asked for; others are not mixed into it.
        let choice =
            chunk.choices.unwrap_or_default().into_iter().find(|choice| choice.index.unwrap_or(0) == 0);
        let Some(choice) = choice else { return Ok(Flow::More) };
        if let Some(piece) = choice.delta {
            self.piece(piece, assembly)?;
        }
        if let Some(reason) = choice.finish_reason {
            assembly.set_stop(if self.refused { Stop::Refusal } else { stop(&reason) });
        }
        Ok(Flow::More)
    }

    fn piece(&mut self, piece: Piece, assembly: &mut Assembly) -> Result<(), Broken> {
        let named = [("reasoning_content", piece.reasoning_content), ("reasoning", piece.reasoning)];
        let thought =
            named.into_iter().find_map(|(field, text)| Some((field, text.filter(|text| !text.is_empty())?)));
        if let Some((field, text)) = thought {
            let place = thinking(assembly)?;
            if !assembly.has_extra(place, "field") {
                assembly.extra(place, "field", Json::string(field))?;
            }
            assembly.push(place, &text)?;
        }
        for detail in piece.reasoning_details.unwrap_or_default() {
            let place = thinking(assembly)?;
            assembly.append(place, "reasoning_details", &detail)?;
        }
        self.refused |= piece.refusal.as_ref().is_some_and(|text| !text.is_empty());
        for text in [piece.content, piece.refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            let place = match assembly.open_text() {
                Some(place) => place,
                None => assembly.begin_text()?,
            };
            assembly.push(place, &text)?;
        }
        piece.tool_calls.unwrap_or_default().into_iter().try_for_each(|call| self.call(call, assembly))
    }

    fn call(&mut self, call: Call, assembly: &mut Assembly) -> Result<(), Broken> {
        let id = call.id.unwrap_or_default();
        let (name, arguments) =
            call.function.map_or((None, None), |function| (function.name, function.arguments));
        let name = name.unwrap_or_default();
        let known = match call.index {
            Some(index) => self.places.get(&index).copied(),
            None => self.latest,
        };
        let same = known.filter(|place| {
            let (known_id, _) = assembly.call_of(*place).unwrap_or_default();
            // Without a number, a name is the only sign of a new call.
            id == known_id || (id.is_empty() && (call.index.is_some() || name.is_empty()))
        });
        let place = match same {
            Some(place) => {
                let (_, known_name) = assembly.call_of(place).unwrap_or_default();
                if !name.is_empty() && name != known_name {
                    return Err(Broken::protocol("a tool call changes its tool"));
                }
                place
            }
            None => assembly.begin_call(&id, &name)?,
        };
        self.latest = Some(place);
        self.places.extend(call.index.map(|index| (index, place)));
        if let Some(content) = call.extra_content.filter(|raw| raw.get() != "null") {
            let content = Json::new(content.get()).map_err(|error| Broken::protocol(error.to_string()))?;
            assembly.extra(place, "extra_content", content)?;
        }
        assembly.push(place, &arguments.unwrap_or_default())
    }
}

fn thinking(assembly: &mut Assembly) -> Result<usize, Broken> {
    match assembly.open_thinking() {
        Some(place) => Ok(place),
        None => assembly.begin_thinking(),
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "stop" => Stop::EndTurn,
        "tool_calls" | "function_call" => Stop::ToolUse,
        "length" => Stop::MaxTokens,
        "content_filter" => Stop::Refusal,
        other => Stop::Other(shortened(other)),
    }
}
