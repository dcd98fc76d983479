//! Encodes blocks as the event stream of each wire format.

use retake_model::entry::{Block, Usage};
use retake_model::json::Json;
use serde_json::{Value, json};

use retake_agent::provider::{Stop, Wire};

/// An answer to encode.
#[derive(Clone, Debug)]
pub struct ScriptedAnswer {
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// Characters per event.
    pub piece: usize,
    /// Token counts.
    pub usage: Usage,
    /// Stop reason.
    pub stop: Stop,
}

/// A text answer in small chunks.
pub fn text_answer(text: &str) -> ScriptedAnswer {
    ScriptedAnswer {
        blocks: vec![Block::of_text(text)],
        piece: 7,
        usage: Usage { input_tokens: 11, output_tokens: 5, ..Usage::default() },
        stop: Stop::EndTurn,
    }
}

/// The encoded events of an answer.
pub fn events(wire: Wire, answer: &ScriptedAnswer) -> Vec<String> {
    match wire {
        Wire::Anthropic => anthropic(answer),
        Wire::Chat => chat(answer),
        Wire::Responses => responses(answer),
        Wire::Gemini => gemini(answer),
    }
}

fn event(name: Option<&str>, data: &Value) -> String {
    name.map_or_else(|| format!("data: {data}\n\n"), |name| format!("event: {name}\ndata: {data}\n\n"))
}

fn typed(data: &Value) -> String {
    event(data["type"].as_str(), data)
}

fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

fn extra(block: &Block, name: &str) -> Option<Value> {
    let (_, value) = block.extra().iter().find(|(known, _)| *known == name)?;
    serde_json::from_str(value.as_str()).ok()
}

fn anthropic(answer: &ScriptedAnswer) -> Vec<String> {
    let usage = &answer.usage;
    let counted = json!({"input_tokens": usage.input_tokens, "output_tokens": 1,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted-1",
        "content": [], "usage": counted});
    let mut all =
        vec![typed(&json!({"type": "message_start", "message": message})), typed(&json!({"type": "ping"}))];
    for (index, block) in answer.blocks.iter().enumerate() {
        let (start, deltas) = anthropic_block(block, answer.piece);
        all.push(typed(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        let delta = |delta| typed(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        all.extend(deltas.into_iter().map(delta));
        all.push(typed(&json!({"type": "content_block_stop", "index": index})));
    }
    let reason = match &answer.stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Other(word) => word,
    };
    all.push(typed(&json!({"type": "message_delta", "delta": {"stop_reason": reason},
        "usage": {"output_tokens": usage.output_tokens}})));
    all.push(typed(&json!({"type": "message_stop"})));
    all
}

fn anthropic_block(block: &Block, piece: usize) -> (Value, Vec<Value>) {
    let split = |kind: &str, name: &str, text: &str| -> Vec<Value> {
        pieces(text, piece).into_iter().map(|piece| json!({"type": kind, name: piece})).collect()
    };
    match block {
        Block::Text { text, .. } => (json!({"type": "text", "text": ""}), split("text_delta", "text", text)),
        Block::Thinking { text, signature, .. } => {
            if let Some(data) = extra(block, "redacted") {
                return (json!({"type": "redacted_thinking", "data": data}), Vec::new());
            }
            let mut deltas = split("thinking_delta", "thinking", text);
            deltas.extend(split("signature_delta", "signature", signature.as_deref().unwrap_or_default()));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        Block::ToolCall { call, name, input, .. } => (
            json!({"type": "tool_use", "id": call, "name": name, "input": {}}),
            split("input_json_delta", "partial_json", input.as_str()),
        ),
        other => (json!({"type": other.kind()}), Vec::new()),
    }
}

fn chat(answer: &ScriptedAnswer) -> Vec<String> {
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        event(None, &json!({"id": "chatcmpl-1", "model": "scripted-1", "choices": [choice], "usage": null}))
    };
    let mut all = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let mut calls = 0;
    for block in &answer.blocks {
        match block {
            Block::Text { text, .. } => {
                all.extend(
                    pieces(text, answer.piece)
                        .into_iter()
                        .map(|piece| chunk(json!({"content": piece}), None)),
                );
            }
            Block::Thinking { text, .. } => {
                let field = extra(block, "field").and_then(|field| field.as_str().map(str::to_owned));
                let field = field.unwrap_or_else(|| "reasoning_content".to_owned());
                let delta = |piece| chunk(json!({&field: piece}), None);
                all.extend(pieces(text, answer.piece).into_iter().map(delta));
            }
            Block::ToolCall { call, name, input, .. } => {
                let started = json!({"index": calls, "id": call, "type": "function",
                    "function": {"name": name, "arguments": ""}});
                all.push(chunk(json!({"tool_calls": [started]}), None));
                for piece in pieces(input.as_str(), answer.piece) {
                    let more = json!({"index": calls, "function": {"arguments": piece}});
                    all.push(chunk(json!({"tool_calls": [more]}), None));
                }
                calls += 1;
            }
            _ => {}
        }
    }
    let reason = match &answer.stop {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
        Stop::Other(word) => word,
    };
    all.push(chunk(json!({}), Some(reason)));
    let usage = &answer.usage;
    let counted = json!({"prompt_tokens": usage.input_tokens + usage.cache_read_input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens}});
    all.push(event(
        None,
        &json!({"id": "chatcmpl-1", "model": "scripted-1", "choices": [], "usage": counted}),
    ));
    all.push("data: [DONE]\n\n".to_owned());
    all
}

fn responses(answer: &ScriptedAnswer) -> Vec<String> {
    let mut all = vec![typed(
        &json!({"type": "response.created", "response": {"id": "resp_1", "model": "scripted-1"}}),
    )];
    for (index, block) in answer.blocks.iter().enumerate() {
        let (item, kind, text) = match block {
            Block::Text { text, .. } => (
                json!({"type": "message", "id": format!("msg_{index}"), "role": "assistant",
                    "content": [{"type": "output_text", "text": text}]}),
                "response.output_text.delta",
                text.clone(),
            ),
            Block::Thinking { text, .. } => (
                extra(block, "reasoning").unwrap_or_else(|| json!({"type": "reasoning", "summary": []})),
                "response.reasoning_summary_text.delta",
                text.clone(),
            ),
            Block::ToolCall { call, name, input, .. } => (
                json!({"type": "function_call", "call_id": call, "name": name, "arguments": input.as_str()}),
                "response.function_call_arguments.delta",
                input.as_str().to_owned(),
            ),
            _ => continue,
        };
        let mut started = item.clone();
        for name in ["content", "arguments", "encrypted_content"] {
            started.as_object_mut().and_then(|fields| fields.remove(name));
        }
        all.push(typed(
            &json!({"type": "response.output_item.added", "output_index": index, "item": started}),
        ));
        for piece in pieces(&text, answer.piece) {
            all.push(typed(&json!({"type": kind, "output_index": index, "content_index": 0,
                "summary_index": 0, "delta": piece})));
        }
        all.push(typed(&json!({"type": "response.output_item.done", "output_index": index, "item": item})));
    }
    let usage = &answer.usage;
    let counted = json!({"input_tokens": usage.input_tokens + usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_input_tokens}});
    let (kind, details) = match &answer.stop {
        Stop::EndTurn | Stop::ToolUse => ("response.completed", Value::Null),
        Stop::MaxTokens => ("response.incomplete", json!({"reason": "max_output_tokens"})),
        Stop::Refusal => ("response.incomplete", json!({"reason": "content_filter"})),
        Stop::Other(word) => ("response.incomplete", json!({"reason": word})),
    };
    all.push(typed(&json!({"type": kind, "response": {"id": "resp_1", "model": "scripted-1", "error": null,
        "usage": counted, "incomplete_details": details}})));
    all
}

fn gemini(answer: &ScriptedAnswer) -> Vec<String> {
    let mut parts = Vec::new();
    for block in &answer.blocks {
        let mut own: Vec<Value> = match block {
            Block::Text { text, .. } => {
                pieces(text, answer.piece).into_iter().map(|piece| json!({"text": piece})).collect()
            }
            Block::Thinking { text, .. } => {
                let part = |piece| json!({"text": piece, "thought": true});
                pieces(text, answer.piece).into_iter().map(part).collect()
            }
            Block::ToolCall { call, name, input, .. } => {
                let args: Value = serde_json::from_str(input.as_str()).unwrap_or_default();
                vec![json!({"functionCall": {"id": call, "name": name, "args": args}})]
            }
            _ => continue,
        };
        if let Some(signature) = extra(block, "thought_signature") {
            match own.last_mut() {
                Some(part) if part.get("functionCall").is_some() => part["thoughtSignature"] = signature,
                // A signature comes with its block or after it.
                _ => own.push(json!({"text": "", "thoughtSignature": signature})),
            }
        }
        parts.extend(own);
    }
    let whole = |parts: Vec<Value>, reason: Option<&str>, usage: Value| {
        let candidate =
            json!({"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason});
        event(
            None,
            &json!({"candidates": [candidate], "modelVersion": "scripted-1", "responseId": "resp-1",
            "usageMetadata": usage}),
        )
    };
    let mut all: Vec<String> = parts.into_iter().map(|part| whole(vec![part], None, Value::Null)).collect();
    let reason = match &answer.stop {
        Stop::EndTurn | Stop::ToolUse => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::Other(word) => word,
    };
    let usage = &answer.usage;
    let counted = json!({"promptTokenCount": usage.input_tokens + usage.cache_read_input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "cachedContentTokenCount": usage.cache_read_input_tokens});
    all.push(whole(Vec::new(), Some(reason), counted));
    all
}

/// A tool call block.
pub fn call(call: &str, name: &str, input: &Value) -> Block {
    Block::ToolCall {
        call: call.to_owned(),
        name: name.to_owned(),
        input: Json::new(input.to_string()).expect("a value is JSON"),
        extra: retake_model::entry::Fields::default(),
    }
}
