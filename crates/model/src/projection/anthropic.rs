//! Encoder for Anthropic Messages.

use serde_json::{Value, json};

use super::binding::Prefix;
use super::request::{
    Ask, Declared, EncoderInput, Picture, ThinkingField, Thoughts, budget, declared, description, number,
    object_schema,
};
use super::seal::{Token, Wire};
use super::{Message, Part, Speaker};
use crate::entry::PDF;
use crate::settings::Effort;

/// Number of user messages to mark for the cache, from the end: the new one, and the previously new one, up
/// to which the provider has cached.
const MARKED_MESSAGES: usize = 2;

/// Everything of a request but its messages.
pub(super) fn body(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Value {
    let mut body = json!({"model": ask.model, "max_tokens": ask.max_tokens.max(1), "stream": true});
    if !ask.system.trim().is_empty() {
        body["system"] = json!([{"type": "text", "text": ask.system}]);
    }
    let Declared { tools, closed } = declared(source, ask);
    if !tools.is_empty() {
        let tool = |tool: &super::ToolSpec| json!({"name": tool.name, "description": description(tool), "input_schema": object_schema(&tool.schema)});
        body["tools"] = tools.iter().map(tool).collect();
        if closed {
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    body["messages"] = json!([]);
    mark_all(&mut body, ask);
    match thinking(source, ask) {
        Some(thinking) => {
            // Sampling cannot be combined with thinking.
            let samples = thinking["type"] == "disabled";
            body["thinking"] = thinking;
            if let (Some(level), ThinkingField::Adaptive { always }) = (ask.thinking, ask.dialect.thinking)
                && (always || level.effort != Effort::Off)
            {
                body["output_config"] = json!({"effort": ask.dialect.word(level.effort)});
            }
            if samples {
                sample(&mut body, ask);
            }
        }
        None => sample(&mut body, ask),
    }
    body
}

fn sample(body: &mut Value, ask: &Ask<'_>) {
    if !ask.dialect.sampling {
        return;
    }
    // Newer models refuse both together.
    match (number(ask.temperature), number(ask.top_p)) {
        (Some(temperature), _) => body["temperature"] = temperature.clamp(0.0, 1.0).into(),
        (None, Some(top_p)) => body["top_p"] = top_p.clamp(0.0, 1.0).into(),
        (None, None) => {}
    }
}

/// Encodes messages in order, with the thoughts that are still in their original place.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    /// The digest of everything before the next message.
    prefix: Prefix,
    /// Whether thoughts are sent at all.
    thoughts: bool,
}

impl Encoder {
    /// An encoder for the messages of a request with this body.
    pub(super) fn new(source: &EncoderInput<'_>, ask: &Ask<'_>, body: &Value) -> Self {
        let field = |name: &str| body.get(name).unwrap_or(&Value::Null);
        let thinks = thinking(source, ask).is_some_and(|thinking| thinking["type"] != "disabled");
        Self {
            prefix: Prefix::new(ask.model, field("system"), field("tools")),
            thoughts: ask.thoughts == Thoughts::Accepted && thinks,
        }
    }

    /// Whether thoughts are sent, and the digest of everything so far.
    pub(super) fn state(&self) -> (bool, String) {
        (self.thoughts, self.prefix.digest())
    }

    pub(super) fn message(&mut self, message: &Message, source: &EncoderInput<'_>, ask: &Ask<'_>) -> Value {
        // Models with a thinking budget require the thought at the start of the turn, and bind none.
        let is_bound =
            ask.dialect.bound_thoughts && matches!(ask.dialect.thinking, ThinkingField::Adaptive { .. });
        let digest = (is_bound && self.thoughts && has_thoughts(message)).then(|| self.prefix.digest());
        let accepted = |part: &Part| {
            let bound_to =
                || if let Part::Thinking { seal, .. } = part { seal.prefix.as_deref() } else { None };
            self.thoughts && (!is_bound || bound_to() == digest.as_deref())
        };
        let message = encoded(message, source, ask, &accepted);
        self.prefix.push(&message);
        message
    }
}

fn has_thoughts(message: &Message) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::Thinking { .. }))
}

/// Adds the cache markers before the messages.
fn mark_all(body: &mut Value, ask: &Ask<'_>) {
    if let Some(system) = body.get_mut("system") {
        mark(&mut system[0], ask);
    }
    let last_tool = body.get_mut("tools").and_then(Value::as_array_mut).and_then(|tools| tools.last_mut());
    if let Some(last) = last_tool {
        mark(last, ask);
    }
}

/// The messages that have a cache marker, as they are then encoded.
pub(super) fn marked(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Vec<(usize, Value)> {
    if !ask.dialect.cache_markers {
        return Vec::new();
    }
    let users =
        source.messages.iter().enumerate().rev().filter(|(_, message)| message.speaker == Speaker::User);
    let marked = users.take(MARKED_MESSAGES).map(|(place, message)| {
        // A message of the user has no thoughts.
        let mut message = encoded(message, source, ask, &|_| false);
        if let Some(last) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
            mark(last, ask);
        }
        (place, message)
    });
    marked.collect()
}

fn mark(block: &mut Value, ask: &Ask<'_>) {
    if ask.dialect.cache_markers {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// How to request thinking.
///
/// For adaptive models the request is the same throughout a turn, whether or not the answer began with a
/// thought. With a thinking budget, the first answer since the user's message must begin with a thought,
/// which is not the case after an edit or a change of model.
fn thinking(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Option<Value> {
    match ask.dialect.thinking {
        ThinkingField::Adaptive { always: false }
            if ask.thinking.is_some_and(|level| level.effort == Effort::Off) =>
        {
            Some(json!({"type": "disabled"}))
        }
        ThinkingField::Adaptive { .. } => {
            // Newer models do not show their thoughts by default.
            let mut thinking = json!({"type": "adaptive", "display": "summarized"});
            if ask.dialect.drop_blocks {
                thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
            }
            Some(thinking)
        }
        ThinkingField::Budget { least } => {
            let level = ask.thinking.filter(|level| level.effort != Effort::Off)?;
            let budget = budget(level, least, ask.max_tokens)?;
            begins_with_thought(source, ask).then(|| json!({"type": "enabled", "budget_tokens": budget}))
        }
        ThinkingField::None
        | ThinkingField::Effort
        | ThinkingField::Reasoning
        | ThinkingField::Switch
        | ThinkingField::Level => None,
    }
}

fn begins_with_thought(source: &EncoderInput<'_>, ask: &Ask<'_>) -> bool {
    let answers = |message: &Message| message.parts.iter().any(|part| matches!(part, Part::Result { .. }));
    let spoken =
        source.messages.iter().rposition(|message| message.speaker == Speaker::User && !answers(message));
    let begun = source.messages.get(spoken.map_or(0, |spoken| spoken + 1));
    let sent = |part: &Part| ask.thoughts == Thoughts::Accepted && thought(part, ask).is_some();
    begun.is_none_or(|begun| begun.parts.first().is_some_and(sent))
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
        Token::Reasoning(_)
        | Token::Phase(_)
        | Token::Thought(_)
        | Token::Reasoned { .. }
        | Token::Extra(_) => None,
    }
}

fn encoded(
    message: &Message,
    source: &EncoderInput<'_>,
    ask: &Ask<'_>,
    accepted: &dyn Fn(&Part) -> bool,
) -> Value {
    // A thought after a call would look like one of another answer, and a thought after an omitted one would
    // not be in its original place.
    let mut accepts = true;
    let block = |part: &Part| match part {
        Part::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        Part::Thinking { .. } => {
            let thought = thought(part, ask).filter(|_| accepts && accepted(part));
            accepts = thought.is_some();
            thought
        }
        Part::Call { call, name, input, .. } => {
            accepts = false;
            Some(json!({"type": "tool_use", "id": call, "name": name, "input": input}))
        }
        Part::Result { call, text, failed, .. } => {
            let mut result = json!({"type": "tool_result", "tool_use_id": call, "content": text});
            if *failed {
                result["is_error"] = true.into();
            }
            Some(result)
        }
        Part::Image { media, content } => Some(match source.picture(media, *content, ask) {
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
