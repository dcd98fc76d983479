//! Rules of Google's Gemini.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Report;

const MEDIA: &[&str] =
    &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"];
const SCHEMA: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
];
const TYPES: &[&str] = &["object", "array", "string", "integer", "number", "boolean"];

pub(super) fn check(body: &Value, report: &mut Report) {
    let known = ["contents", "systemInstruction", "tools", "toolConfig", "generationConfig"];
    let Some(fields) = report.fields("", body, &known) else { return };
    if let Some(system) = fields.get("systemInstruction") {
        let system = report.fields("systemInstruction", system, &["parts"]);
        for part in report.list("systemInstruction", system.and_then(|system| system.get("parts"))) {
            let part = report.fields("systemInstruction", part, &["text"]);
            report.text("systemInstruction", part.and_then(|part| part.get("text")));
        }
    }
    if let Some(tools) = fields.get("tools") {
        check_tools(tools, report);
    }
    if let Some(config) = fields.get("toolConfig") {
        report.must(fields.contains_key("tools"), "toolConfig", "not without tools");
        report.exactly("toolConfig", Some(config), &json!({"functionCallingConfig": {"mode": "NONE"}}));
    }
    let generation = fields.get("generationConfig").unwrap_or(&Value::Null);
    let known = ["maxOutputTokens", "temperature", "topP", "thinkingConfig"];
    if let Some(generation) = report.fields("generationConfig", generation, &known) {
        report.count("maxOutputTokens", generation.get("maxOutputTokens"), 1);
        report.number("temperature", generation.get("temperature"), 0.0..=2.0);
        report.number("topP", generation.get("topP"), 0.0..=1.0);
        if let Some(thinking) = generation.get("thinkingConfig") {
            let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
            let thinking = report.fields("thinkingConfig", thinking, &known);
            let field = |name: &str| thinking.and_then(|thinking| thinking.get(name));
            if let Some(level) = field("thinkingLevel") {
                report.one_of("thinkingLevel", Some(level), &["minimal", "low", "medium", "high"]);
                report.must(field("thinkingBudget").is_none(), "thinkingBudget", "not beside a level");
            } else {
                let budget = report.count("thinkingBudget", field("thinkingBudget"), 0);
                let most = generation.get("maxOutputTokens").and_then(Value::as_u64).unwrap_or_default();
                report.must(budget < most, "thinkingBudget", "must leave room for the answer");
            }
        }
    }
    let contents = report.list("contents", fields.get("contents"));
    let mut seen =
        ConversationFacts { ids: BTreeSet::new(), open: Vec::new(), tools: fields.contains_key("tools") };
    for (index, content) in contents.iter().enumerate() {
        let expected = if index % 2 == 0 { "user" } else { "model" };
        check_content(&format!("contents[{index}]"), content, expected, &mut seen, report);
    }
    report.must(contents.len() % 2 == 1, "contents", "must end with the user");
}

struct ConversationFacts {
    ids: BTreeSet<String>,
    /// The calls that the next message must answer: id and name.
    open: Vec<(String, String)>,
    tools: bool,
}

fn check_content(
    at: &str,
    content: &Value,
    expected: &str,
    seen: &mut ConversationFacts,
    report: &mut Report,
) {
    let Some(fields) = report.fields(at, content, &["role", "parts"]) else { return };
    report.exactly(at, fields.get("role"), &json!(expected));
    let mut open = std::mem::take(&mut seen.open).into_iter();
    let mut responses_over = false;
    for (index, part) in report.list(at, fields.get("parts")).iter().enumerate() {
        let at = format!("{at}.parts[{index}]");
        let known = ["text", "functionCall", "functionResponse", "inlineData", "thoughtSignature"];
        let Some(part) = report.fields(&at, part, &known) else { continue };
        let signature = part.get("thoughtSignature");
        if signature.is_some() {
            report.must(expected == "model", &at, "only the model's parts are signed");
            report.text(&at, signature);
        }
        let kinds: Vec<(&str, &Value)> = part
            .iter()
            .filter(|(name, _)| *name != "thoughtSignature")
            .map(|(n, v)| (n.as_str(), v))
            .collect();
        let &[(kind, value)] = kinds.as_slice() else {
            report.say(&at, "must have exactly one content field");
            continue;
        };
        match (expected, kind) {
            (_, "text") => _ = report.text(&at, Some(value)),
            ("user", "inlineData") => {
                if let Some(data) = report.fields(&at, value, &["mimeType", "data"]) {
                    report.one_of(&at, data.get("mimeType"), MEDIA);
                    report.base64(&at, data.get("data"));
                }
            }
            ("model", "functionCall") => call(&at, value, seen, report),
            ("user", "functionResponse") => {
                report.must(!responses_over, &at, "responses come before all else");
                response(&at, value, open.next(), report);
            }
            _ => report.say(&at, "has a type that is not allowed here"),
        }
        responses_over |= kind != "functionResponse";
    }
    report.must(open.next().is_none(), at, "as many responses as calls");
}

fn tool_name<'v>(at: &str, value: Option<&'v Value>, report: &mut Report) -> &'v str {
    let name = report.name(at, value, 64);
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    report.must(begins, at, "a tool's name begins with a letter or _");
    name
}

fn call(at: &str, value: &Value, seen: &mut ConversationFacts, report: &mut Report) {
    report.must(seen.tools, at, "calls need declared tools");
    let Some(fields) = report.fields(at, value, &["id", "name", "args"]) else { return };
    let id = report.name(at, fields.get("id"), 64);
    report.must(seen.ids.insert(id.to_owned()), at, "the id must be unique");
    let name = tool_name(at, fields.get("name"), report);
    seen.open.push((id.to_owned(), name.to_owned()));
    report.must(fields.get("args").is_some_and(Value::is_object), at, "the arguments must be an object");
}

fn response(at: &str, value: &Value, call: Option<(String, String)>, report: &mut Report) {
    let Some(fields) = report.fields(at, value, &["id", "name", "response"]) else { return };
    let Some((id, name)) = call else {
        report.say(at, "answers no call of the message before");
        return;
    };
    report.exactly(at, fields.get("id"), &json!(id));
    report.exactly(at, fields.get("name"), &json!(name));
    let response = fields.get("response").unwrap_or(&Value::Null);
    let Some(response) = report.fields(at, response, &["output", "error"]) else { return };
    report.must(response.len() == 1, at, "a response is an output or an error");
    report.text(at, response.values().next());
}

fn check_tools(tools: &Value, report: &mut Report) {
    let mut names = BTreeSet::new();
    for group in report.list("tools", Some(tools)) {
        let group = report.fields("tools", group, &["functionDeclarations"]);
        let declarations = group.and_then(|group| group.get("functionDeclarations"));
        for tool in report.list("tools", declarations) {
            let Some(fields) = report.fields("tools", tool, &["name", "description", "parameters"]) else {
                continue;
            };
            let name = tool_name("tools.name", fields.get("name"), report);
            report.must(names.insert(name), "tools.name", "must be unique");
            report.text("tools.description", fields.get("description"));
            if let Some(parameters) = fields.get("parameters") {
                report.exactly("tools.parameters", parameters.get("type"), &json!("object"));
                let some = parameters["properties"].as_object().is_some_and(|some| !some.is_empty());
                report.must(some, "tools.parameters", "an object needs properties");
                schema("tools.parameters", parameters, report);
            }
        }
    }
}

fn schema(at: &str, value: &Value, report: &mut Report) {
    let Some(fields) = report.fields(at, value, SCHEMA) else { return };
    if let Some(choices) = fields.get("anyOf") {
        report.list(at, Some(choices)).iter().for_each(|choice| schema(at, choice, report));
    } else {
        report.one_of(at, fields.get("type"), TYPES);
    }
    if fields.get("type") == Some(&json!("array")) {
        report.must(fields.contains_key("items"), at, "a list needs items");
    }
    if let Some(items) = fields.get("items") {
        schema(at, items, report);
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    for property in properties.into_iter().flat_map(serde_json::Map::values) {
        schema(at, property, report);
    }
    let texts = |values: &Value| values.as_array().is_some_and(|values| values.iter().all(Value::is_string));
    report.must(fields.get("enum").is_none_or(texts), at, "choices are texts");
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    let there = |name: &Value| {
        name.as_str().is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)))
    };
    report.must(required.into_iter().all(there), at, "what is required must be there");
}
