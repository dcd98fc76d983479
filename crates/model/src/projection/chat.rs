//! Encoder for `OpenAI` Chat Completions and compatible APIs.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::request::{
    Ask, Declared, EncoderInput, Picture, ThinkingField, Thoughts, declared, description, number,
    object_schema,
};
use super::seal::{Seal, Token, Wire};
use super::{Message, Part, Speaker};
use crate::settings::Effort;

/// Everything of a request but its messages, except for the system prompt, which is one.
pub(super) fn body(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Value {
    let mut messages = Vec::new();
    if !ask.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": ask.system}));
    }
    let mut body = json!({"model": ask.model, "messages": messages, "stream": true});
    if ask.dialect.stream_usage {
        body["stream_options"] = json!({"include_usage": true});
    }
    let limit = if ask.dialect.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    body[limit] = ask.max_tokens.max(1).into();
    let Declared { tools, closed } = declared(source, ask);
    if !tools.is_empty() {
        let tool = |tool: &super::ToolSpec| {
            let function = json!({
                "name": tool.name,
                "description": description(tool),
                "parameters": object_schema(&tool.schema),
            });
            json!({"type": "function", "function": function})
        };
        body["tools"] = tools.iter().map(tool).collect();
        if closed {
            body["tool_choice"] = "none".into();
        }
    }
    if ask.dialect.sampling {
        if let Some(temperature) = number(ask.temperature) {
            body["temperature"] = temperature.into();
        }
        if let Some(top_p) = number(ask.top_p) {
            body["top_p"] = top_p.into();
        }
    }
    think(&mut body, ask);
    body
}

fn think(body: &mut Value, ask: &Ask<'_>) {
    if ask.dialect.tools_without_reasoning && body.get("tools").is_some() {
        body["reasoning_effort"] = "none".into();
        return;
    }
    let Some(level) = ask.thinking else { return };
    let word = ask.dialect.word(level.effort);
    match ask.dialect.thinking {
        ThinkingField::Effort => body["reasoning_effort"] = word.into(),
        ThinkingField::Reasoning => body["reasoning"] = json!({"effort": word}),
        ThinkingField::Switch if level.effort == Effort::Off => {
            body["thinking"] = json!({"type": "disabled"});
        }
        ThinkingField::Switch => {
            body["thinking"] = json!({"type": "enabled"});
            body["reasoning_effort"] = word.into();
        }
        ThinkingField::None
        | ThinkingField::Budget { .. }
        | ThinkingField::Level
        | ThinkingField::Adaptive { .. } => {}
    }
}

/// Encodes messages in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    /// The ids of the calls of the last answer, whose results follow.
    ids: CallIds,
}

impl Encoder {
    pub(super) fn message(
        &mut self,
        message: &Message,
        source: &EncoderInput<'_>,
        ask: &Ask<'_>,
    ) -> Vec<Value> {
        match message.speaker {
            Speaker::User => of_user(message, source, ask, &self.ids),
            Speaker::Assistant => {
                self.ids = CallIds::new(message, ask);
                vec![of_assistant(message, ask, &self.ids)]
            }
        }
    }
}

/// The ids of calls that are not sent by their names: those that the model itself wrote differently, and
/// replacements of those that the provider does not accept.
#[derive(Clone, Debug, Default)]
struct CallIds(HashMap<String, String>);

impl CallIds {
    /// The longest id that `OpenAI` accepts.
    const MOST: usize = 40;
    /// The length that Mistral requires. Ids of its own models are always valid.
    const MISTRAL: usize = 9;

    /// The ids of the calls of an answer.
    fn new(message: &Message, ask: &Ask<'_>) -> Self {
        let nine = ask.dialect.nine_letter_ids;
        let fits = |call: &str, model: Option<&str>| {
            let alphanumeric = call.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let valid = (call.len() == Self::MISTRAL && alphanumeric) || model == Some(ask.model);
            call.len() <= Self::MOST && (valid || !nine)
        };
        let length = if nine { Self::MISTRAL } else { Self::MOST };
        let replaced = message.parts.iter().filter_map(|part| match part {
            Part::Call { call, given: Some(given), model, .. }
                if model.as_deref() == Some(ask.model) && is_plain(given) =>
            {
                Some((call.clone(), given.clone()))
            }
            Part::Call { call, model, .. } if !fits(call, model.as_deref()) => {
                Some((call.clone(), blake3::hash(call.as_bytes()).to_hex()[..length].to_owned()))
            }
            _ => None,
        });
        Self(replaced.collect())
    }

    fn of<'b>(&'b self, call: &'b str) -> &'b str {
        self.0.get(call).map_or(call, String::as_str)
    }
}

/// The output of a tool, with a note if it failed, because the wire has no field for it.
pub(super) fn output(text: &str, failed: bool) -> String {
    if failed { format!("Error: {text}") } else { text.to_owned() }
}

fn of_user(message: &Message, source: &EncoderInput<'_>, ask: &Ask<'_>, ids: &CallIds) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Result { call, text, failed, .. } => {
                messages.push(json!({"role": "tool", "tool_call_id": ids.of(call), "content": output(text, *failed)}));
            }
            Part::Text { text, .. } => content.push(json!({"type": "text", "text": text})),
            Part::Image { media, content: picture } => content.push(match source.picture(media, *picture, ask) {
                Picture::Shown(media, data) => {
                    json!({"type": "image_url", "image_url": {"url": format!("data:{media};base64,{data}")}})
                }
                Picture::Document(_) => unreachable!("this wire takes no documents"),
                Picture::Missing(note) => json!({"type": "text", "text": note}),
            }),
            Part::Thinking { .. } | Part::Call { .. } => {}
        }
    }
    if !content.is_empty() {
        messages.push(json!({"role": "user", "content": plain(content)}));
    }
    messages
}

/// Sends text alone as a string, because some compatible servers do not accept lists.
fn plain(content: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = content.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => texts.join("\n\n").into(),
        None => content.into(),
    }
}

fn of_assistant(message: &Message, ask: &Ask<'_>, ids: &CallIds) -> Value {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    let mut reasoned = ReasoningFields::default();
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => texts.push(text.as_str()),
            Part::Call { call, name, input, seal, .. } => {
                let function = json!({"name": name, "arguments": input.to_string()});
                let mut call = json!({"id": ids.of(call), "type": "function", "function": function});
                if let Some(Seal { token: Token::Extra(content), .. }) = fitting(seal.as_ref(), ask) {
                    call["extra_content"] = content.clone();
                }
                calls.push(call);
            }
            Part::Thinking { text, seal } => reasoned.add(text, fitting(Some(seal), ask), ask),
            Part::Result { .. } | Part::Image { .. } => {}
        }
    }
    let content = if texts.is_empty() { Value::Null } else { texts.join("\n\n").into() };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if ask.dialect.return_reasoning && ask.thoughts == Thoughts::Accepted {
        reasoned.write(&mut message, ask);
    }
    message
}

fn fitting<'a>(seal: Option<&'a Seal>, ask: &Ask<'_>) -> Option<&'a Seal> {
    seal.filter(|seal| seal.fits(Wire::Chat, ask.model))
}

/// The assistant's thoughts, by the field that they came in.
#[derive(Default)]
struct ReasoningFields<'a> {
    texts: Vec<&'a str>,
    reasoning: Vec<&'a str>,
    /// Texts and details of thoughts that have details.
    detailed: Vec<(&'a str, Vec<Value>)>,
}

impl<'a> ReasoningFields<'a> {
    fn add(&mut self, text: &'a str, seal: Option<&Seal>, ask: &Ask<'_>) {
        let Some(Seal { token: Token::Reasoned { field, details }, .. }) = seal else { return };
        let details = details.as_ref().and_then(Value::as_array);
        match details {
            Some(details) if field == "reasoning_content" && !text.trim().is_empty() => {
                self.texts.push(text);
                if details.iter().any(is_sealed) {
                    self.detailed.push(("", details.clone()));
                }
            }
            Some(details) => self.detailed.push((text, details.clone())),
            _ if text.trim().is_empty() => {}
            None if field == "reasoning_content" => self.texts.push(text),
            None if field == "reasoning" && ask.dialect.reads_reasoning => self.reasoning.push(text),
            // Other servers that send only `reasoning` do not read it.
            None => {}
        }
    }

    fn write(mut self, message: &mut Value, ask: &Ask<'_>) {
        // Only OpenRouter reads details that contain nothing but text; servers of open models read the text.
        let is_read = ask.dialect.thinking == ThinkingField::Reasoning
            || self.detailed.iter().flat_map(|(_, details)| details).any(is_sealed);
        let mut details = Vec::new();
        for (text, more) in self.detailed {
            if is_read || text.trim().is_empty() {
                details.extend(more);
            } else {
                self.texts.push(text);
            }
        }
        if !self.texts.is_empty() {
            message["reasoning_content"] = self.texts.join("\n\n").into();
        }
        if !self.reasoning.is_empty() {
            message["reasoning"] = self.reasoning.join("\n\n").into();
        }
        if !details.is_empty() {
            message["reasoning_details"] = details.into();
        }
    }
}

/// Whether an id can be part of any request: visible characters, as many as providers accept.
fn is_plain(id: &str) -> bool {
    (1..=CallIds::MOST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a detail has content that only its provider can read.
fn is_sealed(detail: &Value) -> bool {
    detail.get("signature").is_some() || detail.get("data").is_some()
}
