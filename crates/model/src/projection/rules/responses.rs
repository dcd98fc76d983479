//! Rules of `OpenAI` Responses, without state at the provider, as the strictest compatible server applies
//! them: outputs follow their calls directly.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Report;

const BODY: &[&str] = &[
    "model",
    "input",
    "stream",
    "store",
    "max_output_tokens",
    "instructions",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "reasoning",
    "include",
];

pub(super) fn check(body: &Value, report: &mut Report) {
    let Some(fields) = report.fields("", body, BODY) else { return };
    report.text("model", fields.get("model"));
    report.exactly("stream", fields.get("stream"), &json!(true));
    report.exactly("store", fields.get("store"), &json!(false));
    report.count("max_output_tokens", fields.get("max_output_tokens"), 16);
    report.number("temperature", fields.get("temperature"), 0.0..=2.0);
    report.number("top_p", fields.get("top_p"), 0.0..=1.0);
    if let Some(instructions) = fields.get("instructions") {
        report.text("instructions", Some(instructions));
    }
    if let Some(reasoning) = fields.get("reasoning") {
        let reasoning = report.fields("reasoning", reasoning, &["effort", "summary"]);
        let effort = reasoning.and_then(|reasoning| reasoning.get("effort"));
        let known = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        report.one_of("reasoning.effort", effort, &known);
        report.must(fields.contains_key("include"), "include", "reasoning must be asked for, or it is lost");
    }
    if let Some(include) = fields.get("include") {
        report.exactly("include", Some(include), &json!(["reasoning.encrypted_content"]));
    }
    if let Some(tools) = fields.get("tools") {
        check_tools(tools, report);
    }
    if let Some(choice) = fields.get("tool_choice") {
        report.must(fields.contains_key("tools"), "tool_choice", "not without tools");
        report.one_of("tool_choice", Some(choice), &["none", "auto"]);
    }
    let items = report.list("input", fields.get("input"));
    check_items(items, fields.contains_key("tools"), report);
}

fn check_tools(tools: &Value, report: &mut Report) {
    let mut names = BTreeSet::new();
    for tool in report.list("tools", Some(tools)) {
        let known = ["type", "name", "description", "parameters", "strict"];
        let Some(fields) = report.fields("tools", tool, &known) else { continue };
        report.exactly("tools.type", fields.get("type"), &json!("function"));
        let name = report.name("tools.name", fields.get("name"), 64);
        report.must(names.insert(name), "tools.name", "must be unique");
        report.text("tools.description", fields.get("description"));
        report.object_schema("tools.parameters", fields.get("parameters"));
        report.must(fields.get("strict").is_none_or(Value::is_boolean), "tools.strict", "is true or false");
    }
}

fn check_items(items: &[Value], tools: bool, report: &mut Report) {
    let (mut calls, mut reasons, mut item_ids) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<&str> = Vec::new();
    let (mut answering, mut reasoned) = (false, false);
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        let kind = (item["type"].as_str().unwrap_or_default(), item["role"].as_str().unwrap_or_default());
        let of_assistant = matches!(kind, ("message", "assistant") | ("function_call" | "reasoning", _));
        report.must(index > 0 || kind == ("message", "user"), &at, "must begin with the user");
        report.must(!reasoned || of_assistant, &at, "reasoning must be followed by what it led to");
        // Only more calls and then outputs may come between the first call and the last output.
        let may_follow = match kind.0 {
            "function_call" | "reasoning" => !answering,
            "function_call_output" => true,
            _ => false,
        };
        report.must(open.is_empty() || may_follow, &at, "outputs must follow their calls directly");
        reasoned = false;
        match kind {
            ("message", "user") => message(&at, item, report),
            ("message", "assistant") => {
                let id = answer(&at, item, report);
                report.must(item_ids.insert(id), &at, "the id must be unique");
            }
            ("function_call", _) => {
                report.must(tools, &at, "calls need declared tools");
                let known = ["type", "call_id", "name", "arguments"];
                let Some(fields) = report.fields(&at, item, &known) else { continue };
                let id = report.name(&at, fields.get("call_id"), 64);
                report.must(calls.insert(id), &at, "the id must be unique");
                open.push(id);
                answering = false;
                report.name(&at, fields.get("name"), 64);
                report.arguments(&at, fields.get("arguments"));
            }
            ("function_call_output", _) => {
                let Some(fields) = report.fields(&at, item, &["type", "call_id", "output"]) else { continue };
                let id = report.name(&at, fields.get("call_id"), 64);
                let place = open.iter().position(|call| *call == id);
                report.must(place.is_some(), &at, "answers no call before it");
                place.map(|place| open.remove(place));
                answering = true;
                report.text(&at, fields.get("output"));
            }
            ("reasoning", _) => {
                let known = ["type", "id", "summary", "encrypted_content"];
                let Some(fields) = report.fields(&at, item, &known) else { continue };
                let sealed = report.text(&at, fields.get("encrypted_content"));
                report.must(reasons.insert(sealed), &at, "must not occur twice");
                if let Some(id) = fields.get("id") {
                    let id = report.text(&at, Some(id));
                    report.must(item_ids.insert(id), &at, "the id must be unique");
                }
                report.must(fields.get("summary").is_some_and(Value::is_array), &at, "the summary is a list");
                reasoned = true;
            }
            _ => report.say(&at, "has a type that is not allowed here"),
        }
    }
    report.must(open.is_empty(), "input", "calls must be answered");
    let ends_well =
        items.last().is_some_and(|last| last["role"] == "user" || last["type"] == "function_call_output");
    report.must(ends_well, "input", "must not end with the assistant");
}

/// A message of the assistant is an item as the API itself returns it, with all fields that its type requires.
/// Returns its id.
fn answer<'v>(at: &str, item: &'v Value, report: &mut Report) -> &'v str {
    let known = ["type", "id", "status", "role", "content", "phase"];
    let Some(fields) = report.fields(at, item, &known) else { return "" };
    let id = report.name(at, fields.get("id"), 64);
    report.must(id.starts_with("msg_"), at, "the id must be one of a message");
    report.exactly(at, fields.get("status"), &json!("completed"));
    if let Some(phase) = fields.get("phase") {
        report.text(at, Some(phase));
    }
    for part in report.list(at, fields.get("content")) {
        let Some(fields) = report.fields(at, part, &["type", "text", "annotations", "logprobs"]) else {
            continue;
        };
        report.exactly(at, fields.get("type"), &json!("output_text"));
        report.text(at, fields.get("text"));
        report.must(
            part["annotations"].is_array() && part["logprobs"].is_array(),
            at,
            "two lists are required",
        );
    }
    id
}

fn message(at: &str, item: &Value, report: &mut Report) {
    let Some(fields) = report.fields(at, item, &["type", "role", "content"]) else { return };
    for part in report.list(at, fields.get("content")) {
        report.one_of(at, part.get("type"), &["input_text", "input_image", "input_file"]);
        if part["type"] == "input_image" {
            let fields = report.fields(at, part, &["type", "image_url", "detail"]);
            report.data_url(at, fields.and_then(|fields| fields.get("image_url")));
        } else if part["type"] == "input_file" {
            let fields = report.fields(at, part, &["type", "filename", "file_data"]);
            let field = |name: &str| fields.and_then(|fields| fields.get(name));
            report.text(at, field("filename"));
            report.document_url(at, field("file_data"));
        } else {
            let fields = report.fields(at, part, &["type", "text"]);
            report.text(at, fields.and_then(|fields| fields.get("text")));
        }
    }
}
