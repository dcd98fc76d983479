//! `OpenAI` Chat Completions, and what is compatible with it.

use serde_json::{Value, json};

use super::request::{
    Ask, Declared, Picture, Said, ThinkingField, declared, description, effort, number, object_schema,
};
use super::seal::Wire;
use super::{Message, Part, Speaker};

pub(super) fn body(said: &Said<'_>, ask: &Ask<'_>) -> Value {
    let mut messages = Vec::with_capacity(said.messages.len() + 1);
    if !ask.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": ask.system}));
    }
    for message in said.messages {
        match message.speaker {
            Speaker::User => messages.extend(of_user(message, said, ask)),
            Speaker::Assistant => messages.push(of_assistant(message, ask)),
        }
    }
    let mut body = json!({"model": ask.model, "messages": messages, "stream": true});
    if ask.dialect.stream_usage {
        body["stream_options"] = json!({"include_usage": true});
    }
    let limit = if ask.dialect.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    body[limit] = ask.max_tokens.max(1).into();
    let Declared { tools, closed } = declared(said, ask);
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
    if let (ThinkingField::Effort, Some(budget)) = (ask.dialect.thinking, ask.thinking_budget) {
        body["reasoning_effort"] = effort(budget).into();
    }
    body
}

/// What a tool said, so that a failure shows where there is no field for it.
pub(super) fn output(text: &str, failed: bool) -> String {
    if failed { format!("Error: {text}") } else { text.to_owned() }
}

fn of_user(message: &Message, said: &Said<'_>, ask: &Ask<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Result { call, text, failed, .. } => {
                messages.push(json!({"role": "tool", "tool_call_id": call, "content": output(text, *failed)}));
            }
            Part::Text { text, .. } => content.push(json!({"type": "text", "text": text})),
            Part::Image { media, content: picture } => content.push(match said.picture(media, *picture, ask) {
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

/// Text alone is written as text: not everything that is compatible reads lists.
fn plain(content: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = content.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => texts.join("\n\n").into(),
        None => content.into(),
    }
}

fn of_assistant(message: &Message, ask: &Ask<'_>) -> Value {
    let (mut texts, mut calls, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => texts.push(text.as_str()),
            Part::Call { call, name, input, .. } => {
                let function = json!({"name": name, "arguments": input.to_string()});
                calls.push(json!({"id": call, "type": "function", "function": function}));
            }
            Part::Thinking { text, seal } if seal.fits(Wire::Chat, ask.model) => thoughts.push(text.as_str()),
            Part::Thinking { .. } | Part::Result { .. } | Part::Image { .. } => {}
        }
    }
    let content = if texts.is_empty() { Value::Null } else { texts.join("\n\n").into() };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if ask.dialect.return_reasoning && !thoughts.is_empty() {
        message["reasoning_content"] = thoughts.join("\n\n").into();
    }
    message
}
