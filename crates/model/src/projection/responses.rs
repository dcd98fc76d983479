//! Encoder for `OpenAI` Responses, without state at the provider.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::chat::output;
use super::request::{
    Ask, Declared, EncoderInput, Picture, ThinkingField, Thoughts, declared, description, number,
    object_schema,
};
use super::seal::{Seal, Token, Wire};
use super::{Message, Part, Speaker};
use crate::entry::PDF;

/// The minimum output limit.
const LEAST_TOKENS: u32 = 16;

/// Everything of a request but its messages.
pub(super) fn body(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Value {
    let mut body = json!({
        "model": ask.model,
        "input": [],
        "stream": true,
        "store": false,
        "max_output_tokens": ask.max_tokens.max(LEAST_TOKENS),
    });
    if !ask.system.trim().is_empty() {
        body["instructions"] = ask.system.into();
    }
    let Declared { tools, closed } = declared(source, ask);
    if !tools.is_empty() {
        let tool = |tool: &super::ToolSpec| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": description(tool),
                "parameters": object_schema(&tool.schema),
                "strict": false,
            })
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
    if ask.dialect.thinking == ThinkingField::Effort {
        // The provider stores nothing, so reasoning is lost at each call unless it is sent back. Models that do not
        // reason refuse the field, and the name of a deployment does not show which model it is.
        if ask.thoughts == Thoughts::Accepted {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if let Some(level) = ask.thinking {
            body["reasoning"] = json!({"effort": ask.dialect.word(level.effort), "summary": "auto"});
        }
    }
    body
}

/// Encodes messages in order.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    reasoned: Reasoned,
    /// The items so far.
    items: usize,
}

impl Encoder {
    pub(super) fn message(
        &mut self,
        message: &Message,
        source: &EncoderInput<'_>,
        ask: &Ask<'_>,
    ) -> Vec<Value> {
        let mut items = Vec::new();
        match message.speaker {
            Speaker::User => of_user(message, source, ask, &mut items),
            Speaker::Assistant => of_assistant(message, ask, self, &mut items),
        }
        self.items += items.len();
        items
    }

    /// A place to return to.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.reasoned.order.len(), self.items)
    }

    pub(super) fn rewind(&mut self, (reasoned, items): (usize, usize)) {
        self.reasoned.order.drain(reasoned..).for_each(|gone| _ = self.reasoned.known.remove(&gone));
        self.items = items;
    }
}

/// Reasoning items that were sent, and their ids.
#[derive(Debug, Default)]
struct Reasoned {
    known: HashSet<String>,
    order: Vec<String>,
}

impl Reasoned {
    fn insert(&mut self, text: String) -> bool {
        let is_new = self.known.insert(text.clone());
        if is_new {
            self.order.push(text);
        }
        is_new
    }
}

fn of_user(message: &Message, source: &EncoderInput<'_>, ask: &Ask<'_>, input: &mut Vec<Value>) {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Result { call, text, failed, .. } => {
                let output = output(text, *failed);
                input.push(json!({"type": "function_call_output", "call_id": call, "output": output}));
            }
            Part::Text { text, .. } => content.push(json!({"type": "input_text", "text": text})),
            Part::Image { media, content: picture } => {
                content.push(match source.picture(media, *picture, ask) {
                    Picture::Shown(media, data) => {
                        let url = format!("data:{media};base64,{data}");
                        json!({"type": "input_image", "image_url": url, "detail": "auto"})
                    }
                    Picture::Document(data) => {
                        let data = format!("data:{PDF};base64,{data}");
                        json!({"type": "input_file", "filename": "document.pdf", "file_data": data})
                    }
                    Picture::Missing(note) => json!({"type": "input_text", "text": note}),
                });
            }
            Part::Thinking { .. } | Part::Call { .. } => {}
        }
    }
    if !content.is_empty() {
        input.push(json!({"type": "message", "role": "user", "content": content}));
    }
}

/// Text comes before calls, whatever the original order: some providers require a call and its output to be
/// adjacent.
fn of_assistant(message: &Message, ask: &Ask<'_>, encoder: &mut Encoder, input: &mut Vec<Value>) {
    let Encoder { reasoned, items } = encoder;
    let (mut waiting, mut calls) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text, seal } => {
                reason(seal.as_ref(), ask, reasoned, &mut waiting);
                input.append(&mut waiting);
                // The API's type requires all fields. The provider stores no items, so their ids need only differ.
                let mut message = json!({
                    "type": "message",
                    "id": format!("msg_{}", *items + input.len()),
                    "status": "completed",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
                });
                if let Some(Seal { token: Token::Phase(phase), .. }) =
                    seal.as_ref().filter(|seal| seal.fits(Wire::Responses, ask.model))
                {
                    message["phase"] = phase.as_str().into();
                }
                input.push(message);
            }
            Part::Thinking { seal, .. } => reason(Some(seal), ask, reasoned, &mut waiting),
            Part::Call { call, name, input: given, seal, .. } => {
                reason(seal.as_ref(), ask, reasoned, &mut waiting);
                let arguments = given.to_string();
                calls.append(&mut waiting);
                calls.push(
                    json!({"type": "function_call", "call_id": call, "name": name, "arguments": arguments}),
                );
            }
            Part::Result { .. } | Part::Image { .. } => {}
        }
    }
    input.append(&mut calls);
}

/// Adds a reasoning item before the item that it led to, but only once, because entries may be copies.
fn reason(seal: Option<&Seal>, ask: &Ask<'_>, reasoned: &mut Reasoned, input: &mut Vec<Value>) {
    let fits = |seal: &&Seal| ask.thoughts == Thoughts::Accepted && seal.fits(Wire::Responses, ask.model);
    let Some(seal) = seal.filter(fits) else { return };
    let Token::Reasoning(item) = &seal.token else { return };
    if !reasoned.insert(item["encrypted_content"].to_string()) {
        return;
    }
    let mut item = item.clone();
    // Two items with one id are refused.
    if let (Some(id), Some(fields)) = (item.get("id").map(Value::to_string), item.as_object_mut())
        && !reasoned.insert(format!("id {id}"))
    {
        fields.retain(|field, _| field != "id");
    }
    input.push(item);
}
