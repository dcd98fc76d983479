//! Encoder for Google's Gemini.

use serde_json::{Value, json};

use super::request::{
    Ask, Declared, EncoderInput, Picture, ThinkingField, Thoughts, budget, declared, description, number,
};
use super::seal::{Seal, Token, Wire};
use super::{Message, Part, Speaker, schema};
use crate::entry::PDF;
use crate::settings::Effort;

/// The largest budget that all models with a thinking budget accept.
const MOST_BUDGET: u32 = 24_576;
/// Google's documented placeholder for the signatures of calls that another model made.
const STAND_IN: &str = "skip_thought_signature_validator";

/// Everything of a request but its messages.
pub(super) fn body(source: &EncoderInput<'_>, ask: &Ask<'_>) -> Value {
    let mut body = json!({"contents": []});
    if !ask.system.trim().is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": ask.system}]});
    }
    let Declared { tools, closed } = declared(source, ask);
    if !tools.is_empty() {
        let declaration = |tool: &super::ToolSpec| {
            let mut declaration = json!({"name": tool.name, "description": description(tool)});
            if let Some(parameters) = schema::parameters(&tool.schema) {
                declaration["parameters"] = parameters;
            }
            declaration
        };
        let declarations: Vec<Value> = tools.iter().map(declaration).collect();
        body["tools"] = json!([{"functionDeclarations": declarations}]);
        if closed {
            body["toolConfig"] = json!({"functionCallingConfig": {"mode": "NONE"}});
        }
    }
    let mut generation = json!({"maxOutputTokens": ask.max_tokens.max(1)});
    if ask.dialect.sampling {
        if let Some(temperature) = number(ask.temperature) {
            generation["temperature"] = temperature.into();
        }
        if let Some(top_p) = number(ask.top_p) {
            generation["topP"] = top_p.into();
        }
    }
    if let Some(thinking) = thinking(ask) {
        generation["thinkingConfig"] = thinking;
    }
    body["generationConfig"] = generation;
    body
}

fn thinking(ask: &Ask<'_>) -> Option<Value> {
    let level = ask.thinking?;
    let shown = level.effort != Effort::Off;
    match ask.dialect.thinking {
        ThinkingField::Budget { least } => {
            let budget = budget(level, least, ask.max_tokens)?.min(MOST_BUDGET);
            Some(json!({"includeThoughts": shown, "thinkingBudget": budget}))
        }
        ThinkingField::Level => {
            Some(json!({"includeThoughts": shown, "thinkingLevel": ask.dialect.word(level.effort)}))
        }
        ThinkingField::None
        | ThinkingField::Effort
        | ThinkingField::Reasoning
        | ThinkingField::Switch
        | ThinkingField::Adaptive { .. } => None,
    }
}

pub(super) fn encoded(message: &Message, source: &EncoderInput<'_>, ask: &Ask<'_>) -> Value {
    let mut parts: Vec<Value> = Vec::with_capacity(message.parts.len());
    let mut first_call = true;
    for part in &message.parts {
        match part {
            Part::Text { text, seal } => {
                parts.push(signed(json!({"text": text}), signature(seal.as_ref(), ask)));
            }
            Part::Call { call, name, input, seal, .. } => {
                // Of parallel calls, only the first is signed.
                let stand_in = (first_call && ask.dialect.stand_in_signatures).then_some(STAND_IN);
                let signature = signature(seal.as_ref(), ask).or(stand_in);
                let call = json!({"functionCall": {"id": call, "name": name, "args": input}});
                parts.push(signed(call, signature));
                first_call = false;
            }
            Part::Result { call, name, text, failed } => {
                let field = if *failed { "error" } else { "output" };
                let response = json!({"id": call, "name": name, "response": {field: text}});
                parts.push(json!({"functionResponse": response}));
            }
            Part::Image { media, content } => parts.push(match source.picture(media, *content, ask) {
                Picture::Shown(media, data) => json!({"inlineData": {"mimeType": media, "data": data}}),
                Picture::Document(data) => json!({"inlineData": {"mimeType": PDF, "data": data}}),
                Picture::Missing(note) => json!({"text": note}),
            }),
            // Gemini signs the part after a thought, and does not expect the thought itself back.
            Part::Thinking { .. } => {}
        }
    }
    let role = match message.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "model",
    };
    json!({"role": role, "parts": parts})
}

fn signature<'a>(seal: Option<&'a Seal>, ask: &Ask<'_>) -> Option<&'a str> {
    let fits = |seal: &&Seal| ask.thoughts == Thoughts::Accepted && seal.fits(Wire::Gemini, ask.model);
    match &seal.filter(fits)?.token {
        Token::Thought(signature) => Some(signature),
        _ => None,
    }
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}
