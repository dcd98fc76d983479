//! Rules of `OpenAI` Chat Completions, as the strictest compatible server applies them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Report;

const BODY: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "reasoning_effort",
    "reasoning",
    "thinking",
];
/// Effort levels that at least one provider knows.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

pub(super) fn check(body: &Value, report: &mut Report) {
    let Some(fields) = report.fields("", body, BODY) else { return };
    report.text("model", fields.get("model"));
    report.exactly("stream", fields.get("stream"), &json!(true));
    if let Some(options) = fields.get("stream_options") {
        report.exactly("stream_options", Some(options), &json!({"include_usage": true}));
    }
    let limits: Vec<&Value> =
        ["max_tokens", "max_completion_tokens"].iter().filter_map(|name| fields.get(*name)).collect();
    report.must(limits.len() == 1, "max_tokens", "must be given once");
    report.count("max_tokens", limits.first().copied(), 1);
    report.number("temperature", fields.get("temperature"), 0.0..=2.0);
    report.number("top_p", fields.get("top_p"), 0.0..=1.0);
    if let Some(effort) = fields.get("reasoning_effort") {
        report.one_of("reasoning_effort", Some(effort), EFFORTS);
    }
    if let Some(reasoning) = fields.get("reasoning") {
        let reasoning = report.fields("reasoning", reasoning, &["effort"]);
        report.one_of("reasoning.effort", reasoning.and_then(|reasoning| reasoning.get("effort")), EFFORTS);
        report.must(!fields.contains_key("reasoning_effort"), "reasoning", "not beside reasoning_effort");
    }
    if let Some(thinking) = fields.get("thinking") {
        let thinking = report.fields("thinking", thinking, &["type"]);
        let kind = thinking.and_then(|thinking| thinking.get("type"));
        report.one_of("thinking.type", kind, &["enabled", "disabled"]);
    }
    if let Some(tools) = fields.get("tools") {
        check_tools(tools, report);
    }
    if let Some(choice) = fields.get("tool_choice") {
        report.must(fields.contains_key("tools"), "tool_choice", "not without tools");
        report.one_of("tool_choice", Some(choice), &["none", "auto"]);
    }
    let messages = report.list("messages", fields.get("messages"));
    check_messages(messages, fields.contains_key("tools"), report);
}

fn check_tools(tools: &Value, report: &mut Report) {
    let mut names = BTreeSet::new();
    for tool in report.list("tools", Some(tools)) {
        let Some(fields) = report.fields("tools", tool, &["type", "function"]) else { continue };
        report.exactly("tools.type", fields.get("type"), &json!("function"));
        let function = fields.get("function").unwrap_or(&Value::Null);
        let known = ["name", "description", "parameters"];
        let Some(function) = report.fields("tools.function", function, &known) else { continue };
        let name = report.name("tools.name", function.get("name"), 64);
        report.must(names.insert(name), "tools.name", "must be unique");
        report.text("tools.description", function.get("description"));
        report.object_schema("tools.parameters", function.get("parameters"));
    }
}

fn check_messages(messages: &[Value], tools: bool, report: &mut Report) {
    let mut ids = BTreeSet::new();
    // The calls that need results next, and the last role.
    let mut open: Vec<&str> = Vec::new();
    let mut last = "system";
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        report.must(role == "tool" || open.is_empty(), &at, "calls must be answered directly");
        match role {
            "system" => {
                report.must(index == 0, &at, "instructions come first");
                if let Some(fields) = report.fields(&at, message, &["role", "content"]) {
                    report.text(&at, fields.get("content"));
                }
            }
            "user" => {
                report.must(last != "user", &at, "speakers must alternate");
                if let Some(fields) = report.fields(&at, message, &["role", "content"]) {
                    user_content(&at, fields.get("content"), report);
                }
            }
            "assistant" => {
                report.must(last == "user" || last == "tool", &at, "speakers must alternate");
                assistant(&at, message, &mut ids, &mut open, report);
                report.must(open.is_empty() || tools, &at, "calls need declared tools");
            }
            "tool" => {
                let Some(fields) = report.fields(&at, message, &["role", "tool_call_id", "content"]) else {
                    continue;
                };
                let id = report.call_id(&at, fields.get("tool_call_id"), 40);
                let place = open.iter().position(|call| *call == id);
                report.must(place.is_some(), &at, "answers no call of the message before");
                place.map(|place| open.remove(place));
                report.text(&at, fields.get("content"));
            }
            _ => report.say(&at, "has an unknown role"),
        }
        last = role;
    }
    report.must(open.is_empty(), "messages", "calls must be answered");
    report.must(last == "user" || last == "tool", "messages", "must not end with the assistant");
}

fn user_content(at: &str, content: Option<&Value>, report: &mut Report) {
    if content.is_some_and(Value::is_string) {
        report.text(at, content);
        return;
    }
    for part in report.list(at, content) {
        match part["type"].as_str() {
            Some("text") => {
                let fields = report.fields(at, part, &["type", "text"]);
                report.text(at, fields.and_then(|fields| fields.get("text")));
            }
            Some("image_url") => {
                let fields = report.fields(at, part, &["type", "image_url"]);
                let image = fields.and_then(|fields| fields.get("image_url")).unwrap_or(&Value::Null);
                let image = report.fields(at, image, &["url", "detail"]);
                report.data_url(at, image.and_then(|image| image.get("url")));
            }
            _ => report.say(at, "has a type that is not allowed here"),
        }
    }
}

fn assistant<'v>(
    at: &str,
    message: &'v Value,
    ids: &mut BTreeSet<&'v str>,
    open: &mut Vec<&'v str>,
    report: &mut Report,
) {
    let known = ["role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details"];
    let Some(fields) = report.fields(at, message, &known) else { return };
    match fields.get("content") {
        Some(Value::Null) => {
            report.must(fields.contains_key("tool_calls"), at, "has neither text nor calls");
        }
        content => _ = report.text(at, content),
    }
    for field in ["reasoning_content", "reasoning"] {
        if let Some(thought) = fields.get(field) {
            report.text(at, Some(thought));
        }
    }
    if let Some(details) = fields.get("reasoning_details") {
        for detail in report.list(at, Some(details)) {
            report.text(at, detail.get("type"));
        }
    }
    let Some(calls) = fields.get("tool_calls") else { return };
    for call in report.list(at, Some(calls)) {
        let Some(call) = report.fields(at, call, &["id", "type", "function", "extra_content"]) else {
            continue;
        };
        report.exactly(at, call.get("type"), &json!("function"));
        let extra = call.get("extra_content").is_none_or(Value::is_object);
        report.must(extra, at, "extra content is an object");
        let id = report.call_id(at, call.get("id"), 40);
        report.must(ids.insert(id), at, "the id must be unique");
        open.push(id);
        let function = call.get("function").unwrap_or(&Value::Null);
        let Some(function) = report.fields(at, function, &["name", "arguments"]) else { continue };
        report.name(at, function.get("name"), 64);
        report.arguments(at, function.get("arguments"));
    }
}
