//! Anthropic Messages.

use serde_json::{Value, json};

use super::request::{
    Ask, Declared, Picture, Said, ThinkingField, declared, description, number, object_schema,
};
use super::seal::{Token, Wire};
use super::{Message, Part, Speaker};
use crate::entry::PDF;

/// The least that thinking can be given.
const LEAST_BUDGET: u32 = 1_024;
/// How many messages of the user are marked, from the end: the one that is new, and the one that was new last time,
/// up to which the provider has cached.
const MARKED_MESSAGES: usize = 2;

pub(super) fn body(said: &Said<'_>, ask: &Ask<'_>) -> Value {
    let thinking = thinking(said, ask);
    let mut messages: Vec<Value> =
        said.messages.iter().map(|message| encoded(message, said, ask, thinking.is_some())).collect();
    let mut body = json!({"model": ask.model, "max_tokens": ask.max_tokens.max(1), "stream": true});
    if !ask.system.trim().is_empty() {
        let mut system = json!([{"type": "text", "text": ask.system}]);
        mark(&mut system[0], ask);
        body["system"] = system;
    }
    let Declared { tools, closed } = declared(said, ask);
    if !tools.is_empty() {
        let tool = |tool: &super::ToolSpec| json!({"name": tool.name, "description": description(tool), "input_schema": object_schema(&tool.schema)});
        let mut tools: Vec<Value> = tools.iter().map(tool).collect();
        if let Some(last) = tools.last_mut() {
            mark(last, ask);
        }
        body["tools"] = tools.into();
        if closed {
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in users.take(MARKED_MESSAGES) {
        if let Some(last) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
            mark(last, ask);
        }
    }
    body["messages"] = messages.into();
    if let Some(thinking) = thinking {
        // Sampling cannot be set beside thinking.
        body["thinking"] = thinking;
    } else if ask.dialect.sampling {
        // Newer models refuse both together.
        match (number(ask.temperature), number(ask.top_p)) {
            (Some(temperature), _) => body["temperature"] = temperature.clamp(0.0, 1.0).into(),
            (None, Some(top_p)) => body["top_p"] = top_p.clamp(0.0, 1.0).into(),
            (None, None) => {}
        }
    }
    body
}

fn mark(block: &mut Value, ask: &Ask<'_>) {
    if ask.dialect.cache_markers {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// How thinking is asked for, if it can be: while the model is in the middle of its calls, what it said first since
/// the user spoke must have begun with a thought, and after an edit or under another model it has not.
fn thinking(said: &Said<'_>, ask: &Ask<'_>) -> Option<Value> {
    let budget = ask.thinking_budget?.max(LEAST_BUDGET).min(ask.max_tokens.saturating_sub(1));
    let answers = |message: &Message| message.parts.iter().any(|part| matches!(part, Part::Result { .. }));
    let spoken =
        said.messages.iter().rposition(|message| message.speaker == Speaker::User && !answers(message));
    let begun = said.messages.get(spoken.map_or(0, |spoken| spoken + 1));
    let unthought =
        begun.is_some_and(|begun| begun.parts.first().is_none_or(|part| thought(part, ask).is_none()));
    match ask.dialect.thinking {
        _ if unthought => None,
        ThinkingField::Budget if budget >= LEAST_BUDGET => {
            Some(json!({"type": "enabled", "budget_tokens": budget}))
        }
        ThinkingField::Adaptive => Some(json!({"type": "adaptive"})),
        ThinkingField::None | ThinkingField::Budget | ThinkingField::Effort => None,
    }
}

fn thought(part: &Part, ask: &Ask<'_>) -> Option<Value> {
    let Part::Thinking { text, seal } = part else { return None };
    if !seal.fits(Wire::Anthropic, ask.model) {
        return None;
    }
    match &seal.token {
        Token::Signature(signature) => {
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        Token::Redacted(data) => Some(json!({"type": "redacted_thinking", "data": data})),
        Token::Reasoning(_) | Token::Thought(_) | Token::Plain => None,
    }
}

fn encoded(message: &Message, said: &Said<'_>, ask: &Ask<'_>, thinking: bool) -> Value {
    let mut called = false;
    let block = |part: &Part| match part {
        Part::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        // A thought behind a call would be taken for one of another answer.
        Part::Thinking { .. } => thought(part, ask).filter(|_| thinking && !called),
        Part::Call { call, name, input, .. } => {
            called = true;
            Some(json!({"type": "tool_use", "id": call, "name": name, "input": input}))
        }
        Part::Result { call, text, failed, .. } => {
            let mut result = json!({"type": "tool_result", "tool_use_id": call, "content": text});
            if *failed {
                result["is_error"] = true.into();
            }
            Some(result)
        }
        Part::Image { media, content } => Some(match said.picture(media, *content, ask) {
            Picture::Shown(media, data) => {
                json!({"type": "image", "source": {"type": "base64", "media_type": media, "data": data}})
            }
            Picture::Document(data) => {
                json!({"type": "document", "source": {"type": "base64", "media_type": PDF, "data": data}})
            }
            Picture::Missing(note) => json!({"type": "text", "text": note}),
        }),
    };
    let role = match message.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    };
    json!({"role": role, "content": message.parts.iter().filter_map(block).collect::<Vec<_>>()})
}
