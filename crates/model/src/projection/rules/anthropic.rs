//! Rules of Anthropic Messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{MEDIA, Report};
use crate::entry::PDF;

const BODY: &[&str] = &[
    "model",
    "max_tokens",
    "stream",
    "system",
    "messages",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "temperature",
    "top_p",
];
/// Maximum cache markers in a request.
const MOST_MARKS: usize = 4;
const MOST_MESSAGES: usize = 100_000;

pub(super) fn check(body: &Value, report: &mut Report) {
    let Some(fields) = report.fields("", body, BODY) else { return };
    report.text("model", fields.get("model"));
    let most = report.count("max_tokens", fields.get("max_tokens"), 1);
    report.exactly("stream", fields.get("stream"), &json!(true));
    report.number("temperature", fields.get("temperature"), 0.0..=1.0);
    report.number("top_p", fields.get("top_p"), 0.0..=1.0);
    let sampling = [fields.get("temperature"), fields.get("top_p")].into_iter().flatten().count();
    report.must(sampling <= 1, "top_p", "not beside a temperature");
    let mut marks = 0;
    if let Some(system) = fields.get("system") {
        for block in report.list("system", Some(system)) {
            text_block("system", block, &mut marks, report);
        }
    }
    let kind = fields.get("thinking").and_then(|thinking| thinking["type"].as_str());
    if let Some(thinking) = fields.get("thinking") {
        report.must(sampling == 0 || kind == Some("disabled"), "thinking", "not beside sampling");
        check_thinking(thinking, most, report);
    }
    if let Some(output) = fields.get("output_config") {
        let output = report.fields("output_config", output, &["effort"]);
        let effort = output.and_then(|output| output.get("effort"));
        report.one_of("output_config.effort", effort, &["low", "medium", "high", "xhigh", "max"]);
        report.must(kind == Some("adaptive"), "output_config.effort", "only beside adaptive thinking");
    }
    let tools = fields.get("tools").map(|tools| check_tools(tools, &mut marks, report));
    if let Some(choice) = fields.get("tool_choice") {
        report.must(tools.is_some(), "tool_choice", "not without tools");
        if let Some(choice) = report.fields("tool_choice", choice, &["type"]) {
            report.one_of("tool_choice.type", choice.get("type"), &["auto", "none"]);
        }
    }
    let messages = report.list("messages", fields.get("messages"));
    report.must(messages.len() <= MOST_MESSAGES, "messages", "too many");
    let mut seen =
        ConversationFacts { ids: BTreeSet::new(), open: Vec::new(), tools: tools.is_some(), marks };
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        check_message(&format!("messages[{index}]"), message, expected, &mut seen, report);
    }
    report.must(messages.len() % 2 == 1, "messages", "must end with the user");
    report.must(seen.marks <= MOST_MARKS, "", "has too many cache markers");
    if kind == Some("disabled") {
        let thoughts =
            messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
        report.must(!thoughts.into_iter().any(is_thought), "thinking", "no thoughts where thinking is off");
    }
    if kind == Some("enabled") {
        // A turn is everything since the last user message that has more than results.
        let turn = messages.iter().rev().take_while(|message| {
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            message["role"] == "assistant" || blocks.iter().any(|block| block["type"] == "tool_result")
        });
        let begins = turn.last().is_none_or(|first| is_thought(&first["content"][0]));
        report.must(begins, "thinking", "a turn with calls must begin with a thought");
    }
}

struct ConversationFacts {
    ids: BTreeSet<String>,
    /// The calls that the next message must answer.
    open: Vec<String>,
    tools: bool,
    marks: usize,
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn check_thinking(thinking: &Value, most: u64, report: &mut Report) {
    let known = ["type", "budget_tokens", "display", "block_binding"];
    let Some(fields) = report.fields("thinking", thinking, &known) else { return };
    report.one_of("thinking.type", fields.get("type"), &["enabled", "adaptive", "disabled"]);
    let adaptive = fields.get("type") == Some(&json!("adaptive"));
    if let Some(display) = fields.get("display") {
        report.one_of("thinking.display", Some(display), &["summarized", "omitted", "updates"]);
    }
    report.must(
        adaptive == fields.contains_key("display"),
        "thinking.display",
        "belongs to adaptive thinking",
    );
    if let Some(binding) = fields.get("block_binding") {
        report.must(adaptive, "thinking.block_binding", "only with adaptive thinking");
        let expected = json!({"prefix_mismatch_behavior": "drop_block"});
        report.exactly("thinking.block_binding", Some(binding), &expected);
    }
    if fields.get("type") == Some(&json!("enabled")) {
        let budget = report.count("thinking.budget_tokens", fields.get("budget_tokens"), 1_024);
        report.must(budget < most, "thinking.budget_tokens", "must be less than max_tokens");
    } else {
        report.must(!fields.contains_key("budget_tokens"), "thinking.budget_tokens", "not with this type");
    }
}

fn check_tools(tools: &Value, marks: &mut usize, report: &mut Report) {
    let mut names = BTreeSet::new();
    for tool in report.list("tools", Some(tools)) {
        let known = ["name", "description", "input_schema", "cache_control"];
        let Some(fields) = report.fields("tools", tool, &known) else { continue };
        let name = report.name("tools.name", fields.get("name"), 64);
        report.must(names.insert(name), "tools.name", "must be unique");
        report.text("tools.description", fields.get("description"));
        report.object_schema("tools.input_schema", fields.get("input_schema"));
        mark("tools", fields.get("cache_control"), marks, report);
    }
}

fn mark(at: &str, marker: Option<&Value>, marks: &mut usize, report: &mut Report) {
    if let Some(marker) = marker {
        *marks += 1;
        report.exactly(at, Some(marker), &json!({"type": "ephemeral"}));
    }
}

fn text_block(at: &str, block: &Value, marks: &mut usize, report: &mut Report) {
    let Some(fields) = report.fields(at, block, &["type", "text", "cache_control"]) else { return };
    report.exactly(at, fields.get("type"), &json!("text"));
    report.text(at, fields.get("text"));
    mark(at, fields.get("cache_control"), marks, report);
}

fn check_message(
    at: &str,
    message: &Value,
    expected: &str,
    seen: &mut ConversationFacts,
    report: &mut Report,
) {
    let Some(fields) = report.fields(at, message, &["role", "content"]) else { return };
    report.exactly(at, fields.get("role"), &json!(expected));
    let content = report.list(at, fields.get("content"));
    let mut open = std::mem::take(&mut seen.open);
    let (mut results_over, mut called) = (false, false);
    for (index, block) in content.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let kind = block["type"].as_str().unwrap_or_default();
        match (expected, kind) {
            (_, "text") => text_block(&at, block, &mut seen.marks, report),
            ("user", "image") => image(&at, block, MEDIA, seen, report),
            ("user", "document") => image(&at, block, &[PDF], seen, report),
            ("user", "tool_result") => {
                report.must(!results_over, &at, "results come before all else");
                result(&at, block, &mut open, seen, report);
            }
            ("assistant", "tool_use") => {
                call(&at, block, seen, report);
                called = true;
            }
            ("assistant", "thinking" | "redacted_thinking") => {
                report.must(!called, &at, "thoughts come before calls");
                thought(&at, block, report);
            }
            _ => report.say(&at, "has a type that is not allowed here"),
        }
        results_over |= kind != "tool_result";
    }
    report.must(open.is_empty(), at, "each call needs its result in the next message");
}

fn image(at: &str, block: &Value, kinds: &[&str], seen: &mut ConversationFacts, report: &mut Report) {
    let Some(fields) = report.fields(at, block, &["type", "source", "cache_control"]) else { return };
    mark(at, fields.get("cache_control"), &mut seen.marks, report);
    let source = fields.get("source").unwrap_or(&Value::Null);
    let Some(source) = report.fields(at, source, &["type", "media_type", "data"]) else { return };
    report.exactly(at, source.get("type"), &json!("base64"));
    report.one_of(at, source.get("media_type"), kinds);
    report.base64(at, source.get("data"));
}

fn result(
    at: &str,
    block: &Value,
    open: &mut Vec<String>,
    seen: &mut ConversationFacts,
    report: &mut Report,
) {
    let known = ["type", "tool_use_id", "content", "is_error", "cache_control"];
    let Some(fields) = report.fields(at, block, &known) else { return };
    let id = report.name(at, fields.get("tool_use_id"), 64);
    let place = open.iter().position(|call| call == id);
    report.must(place.is_some(), at, "answers no call of the message before");
    place.map(|place| open.remove(place));
    report.text(at, fields.get("content"));
    report.must(fields.get("is_error").is_none_or(Value::is_boolean), at, "is_error is true or false");
    mark(at, fields.get("cache_control"), &mut seen.marks, report);
}

fn call(at: &str, block: &Value, seen: &mut ConversationFacts, report: &mut Report) {
    report.must(seen.tools, at, "calls need declared tools");
    let Some(fields) = report.fields(at, block, &["type", "id", "name", "input"]) else { return };
    let id = report.name(at, fields.get("id"), 64);
    report.must(seen.ids.insert(id.to_owned()), at, "the id must be unique");
    seen.open.push(id.to_owned());
    report.name(at, fields.get("name"), 64);
    report.must(fields.get("input").is_some_and(Value::is_object), at, "the input must be an object");
}

fn thought(at: &str, block: &Value, report: &mut Report) {
    if block["type"] == "redacted_thinking" {
        let Some(fields) = report.fields(at, block, &["type", "data"]) else { return };
        report.text(at, fields.get("data"));
    } else {
        let Some(fields) = report.fields(at, block, &["type", "thinking", "signature"]) else { return };
        report.must(fields.get("thinking").is_some_and(Value::is_string), at, "a thought is text");
        report.text(at, fields.get("signature"));
    }
}
