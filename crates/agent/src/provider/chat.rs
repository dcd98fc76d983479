//! Decodes the stream of Chat Completions, the protocol of `OpenAI` and many others.
//!
//! This wire has no blocks, only pieces of text, thought and calls: consecutive pieces of one kind form a
//! block. Calls are identified by index, but some servers send none: there, a new id begins a new call.

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
use super::think_tags::{self, ThinkTags};
use super::usage::usage;
use super::{Stop, Wire};

/// The state of the decoder.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// By the server's index of a call: its block, and the id from the server.
    places: BTreeMap<u64, (usize, String)>,
    latest: Option<(usize, String)>,
    tags: ThinkTags,
    refused: bool,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Box<RawValue>>,
    x_groq: Option<Groq>,
}

/// Groq's own fields, with the usage of streams that did not ask for it.
#[derive(Deserialize)]
struct Groq {
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default, deserialize_with = "lenient::index")]
    index: Option<u64>,
    delta: Option<Piece>,
    #[serde(default, deserialize_with = "lenient::text")]
    finish_reason: Option<String>,
    /// The stop reason of the provider behind `OpenRouter`.
    #[serde(default, deserialize_with = "lenient::text")]
    native_finish_reason: Option<String>,
    /// The failure of the provider behind `OpenRouter`.
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Piece {
    /// A text, or a list of parts from Mistral's reasoning models.
    content: Option<Box<RawValue>>,
    /// The thought, in the field of `DeepSeek`, vLLM and llama.cpp.
    reasoning_content: Option<Box<RawValue>>,
    /// The thought, in the field of `OpenRouter` and Ollama.
    reasoning: Option<Box<RawValue>>,
    reasoning_details: Option<Vec<Box<RawValue>>>,
    #[serde(default, deserialize_with = "lenient::text")]
    refusal: Option<String>,
    tool_calls: Option<Vec<Call>>,
    /// The signature of a text, from Gemini's compatible endpoint.
    extra_content: Option<Box<RawValue>>,
}

/// A part of list content.
#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    thinking: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default, deserialize_with = "lenient::index")]
    index: Option<u64>,
    #[serde(default, deserialize_with = "lenient::text")]
    id: Option<String>,
    function: Option<Function>,
    /// The signature of a call, from Gemini's compatible endpoint.
    extra_content: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    /// JSON in a string; some servers send the object itself.
    arguments: Option<Box<RawValue>>,
}

impl Chat {
    pub(super) fn event(&mut self, event: &Event, assembly: &mut Assembly) -> Result<Flow, DecodeError> {
        if event.data.trim() == "[DONE]" {
            // Some servers send no stop reason, only the end of the stream.
            if !assembly.has_stopped() && !assembly.is_empty() {
                self.finish(Stop::EndTurn, assembly)?;
            }
            return Ok(Flow::Finished);
        }
        let chunk: Chunk = serde_json::from_str(&event.data)?;
        assembly.set_response_id(chunk.id.as_deref());
        assembly.set_model(chunk.model.as_deref());
        let is_given = |raw: &RawValue| raw.get() != "null";
        let groq = || chunk.x_groq.and_then(|groq| groq.usage).filter(|raw| is_given(raw));
        if let Some(raw) = chunk.usage.filter(|raw| is_given(raw)).or_else(groq) {
            assembly.set_usage(usage(Wire::Chat, &raw, None));
        }
        // The request asks for one answer; ignore any others.
        let choice =
            chunk.choices.unwrap_or_default().into_iter().find(|choice| choice.index.unwrap_or(0) == 0);
        let Some(choice) = choice else { return Ok(Flow::More) };
        if let Some(error) = choice.error.filter(|raw| is_given(raw)) {
            return Err(status::reported(&format!(r#"{{"error":{}}}"#, error.get())));
        }
        if let Some(piece) = choice.delta {
            self.piece(piece, assembly)?;
        }
        // Some servers send an empty reason with every piece.
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            let stop = if self.refused { Stop::Refusal } else { stop(&reason) };
            if stop == Stop::Refusal && !self.refused {
                assembly.set_stop_detail(Some(&reason));
            }
            if let Some(native) = choice.native_finish_reason.filter(|native| *native != reason) {
                assembly.set_stop_detail(Some(&native));
            }
            self.finish(stop, assembly)?;
        }
        Ok(Flow::More)
    }

    fn piece(&mut self, piece: Piece, assembly: &mut Assembly) -> Result<(), DecodeError> {
        let named = [("reasoning_content", piece.reasoning_content), ("reasoning", piece.reasoning)];
        let thought = named.into_iter().find_map(|(field, raw)| {
            let text = thought_of(&raw?);
            (!text.is_empty()).then_some((field, text))
        });
        if let Some((field, text)) = thought {
            self.flush(assembly)?;
            self.tags.disable();
            think(field, &text, assembly)?;
        }
        for detail in piece.reasoning_details.unwrap_or_default() {
            self.flush(assembly)?;
            self.tags.disable();
            let place = thinking(assembly)?;
            assembly.detail(place, &detail)?;
        }
        if let Some(content) = piece.content {
            self.content(&content, assembly)?;
        }
        if let Some(refusal) = piece.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.flush(assembly)?;
            say(&refusal, assembly)?;
        }
        if let Some(content) = piece.extra_content.filter(|raw| raw.get() != "null")
            && let Some(place) = assembly.open_text().or_else(|| assembly.open_thinking())
        {
            assembly.extra(place, "extra_content", json(&content)?)?;
        }
        piece.tool_calls.unwrap_or_default().into_iter().try_for_each(|call| self.call(call, assembly))
    }

    fn content(&mut self, raw: &RawValue, assembly: &mut Assembly) -> Result<(), DecodeError> {
        let parts: Vec<Part> = match raw.get().as_bytes().first() {
            Some(b'[') => serde_json::from_str(raw.get())?,
            Some(b'{') => vec![serde_json::from_str(raw.get())?],
            _ => {
                let text: Option<String> = serde_json::from_str(raw.get())?;
                return self.text(&text.unwrap_or_default(), assembly);
            }
        };
        self.flush(assembly)?;
        for part in parts {
            if let Some(thought) = part.thinking {
                think("content", &thought_of(&thought), assembly)?;
            }
            say(&part.text.unwrap_or_default(), assembly)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str, assembly: &mut Assembly) -> Result<(), DecodeError> {
        if text.is_empty() {
            return Ok(());
        }
        self.tags.push(text).into_iter().try_for_each(|piece| tagged(piece, assembly))
    }

    /// Adds text that was buffered as the possible start of a tag.
    pub(super) fn flush(&mut self, assembly: &mut Assembly) -> Result<(), DecodeError> {
        self.tags.flush().into_iter().try_for_each(|piece| tagged(piece, assembly))
    }

    fn finish(&mut self, stop: Stop, assembly: &mut Assembly) -> Result<(), DecodeError> {
        self.flush(assembly)?;
        // A model that stops normally inside a tag forgot to close it: the text is its answer.
        if stop == Stop::EndTurn
            && let (Some(tag), Some(place)) = (self.tags.unclosed(), assembly.open_thinking())
        {
            assembly.unthink(place, tag);
        }
        assembly.set_stop(stop);
        Ok(())
    }

    fn call(&mut self, call: Call, assembly: &mut Assembly) -> Result<(), DecodeError> {
        self.flush(assembly)?;
        let id = call.id.unwrap_or_default();
        let (name, arguments) =
            call.function.map_or((None, None), |function| (function.name, function.arguments));
        let name = name.unwrap_or_default();
        let known = match call.index {
            Some(index) => self.places.get(&index),
            None => self.latest.as_ref(),
        };
        let same = known.filter(|(_, known_id)| {
            // Without an index, only a name marks a new call.
            let same_id = !id.is_empty() && id == *known_id;
            same_id || (id.is_empty() && (call.index.is_some() || name.is_empty()))
        });
        let known = match same {
            Some((place, known_id)) => {
                let (_, known_name) = assembly.call_of(*place).unwrap_or_default();
                if !name.is_empty() && name != known_name {
                    return Err(DecodeError::protocol("a tool call changes its tool"));
                }
                (*place, known_id.clone())
            }
            None => (assembly.begin_call(&id, &name)?, id),
        };
        let place = known.0;
        self.places.extend(call.index.map(|index| (index, known.clone())));
        self.latest = Some(known);
        if let Some(content) = call.extra_content.filter(|raw| raw.get() != "null") {
            assembly.extra(place, "extra_content", json(&content)?)?;
        }
        let Some(arguments) = arguments else { return Ok(()) };
        if arguments.get().starts_with('"') {
            let text: String = serde_json::from_str(arguments.get())?;
            return assembly.push(place, &text);
        }
        assembly.push(place, if arguments.get() == "null" { "" } else { arguments.get() })
    }
}

/// The text of a thought: a string, or texts in a list or an object.
fn thought_of(raw: &RawValue) -> String {
    let parts = match raw.get().as_bytes().first() {
        Some(b'"') => return serde_json::from_str(raw.get()).unwrap_or_default(),
        Some(b'[') => serde_json::from_str::<Vec<Part>>(raw.get()).unwrap_or_default(),
        _ => serde_json::from_str::<Part>(raw.get()).into_iter().collect(),
    };
    parts.into_iter().filter_map(|part| part.text).collect()
}

fn tagged(piece: think_tags::Piece, assembly: &mut Assembly) -> Result<(), DecodeError> {
    match piece {
        think_tags::Piece::Text(text) => say(&text, assembly),
        think_tags::Piece::Thinking(text) => think("think", &text, assembly),
    }
}

fn say(text: &str, assembly: &mut Assembly) -> Result<(), DecodeError> {
    if text.is_empty() {
        return Ok(());
    }
    let place = match assembly.open_text() {
        Some(place) => place,
        None => assembly.begin_text()?,
    };
    assembly.push(place, text)
}

/// Appends to a thought and remembers its field, because it is sent back in the same one.
fn think(field: &str, text: &str, assembly: &mut Assembly) -> Result<(), DecodeError> {
    if text.is_empty() {
        return Ok(());
    }
    let place = thinking(assembly)?;
    if !assembly.has_extra(place, "field") {
        assembly.extra(place, "field", Json::string(field))?;
    }
    assembly.push(place, text)
}

fn thinking(assembly: &mut Assembly) -> Result<usize, DecodeError> {
    match assembly.open_thinking() {
        Some(place) => Ok(place),
        None => assembly.begin_thinking(),
    }
}

fn json(raw: &RawValue) -> Result<Json, DecodeError> {
    Json::new(raw.get()).map_err(|error| DecodeError::protocol(error.to_string()))
}

fn stop(reason: &str) -> Stop {
    match reason {
        "stop" => Stop::EndTurn,
        "tool_calls" | "function_call" => Stop::ToolUse,
        "length" | "model_length" => Stop::MaxTokens,
        "content_filter" | "refusal" => Stop::Refusal,
        other => Stop::Other(shorten(other)),
    }
}
