//! Breaks valid requests, each in one known way.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::projection::sample::Rng;

/// A way to break a request. Returns whether it applies to this one.
type Mutation = fn(&mut Value, &mut Rng) -> bool;

/// Breaks the request in every applicable way, once each, with descriptions.
pub fn mutants(body: &Value, rng: &mut Rng) -> Vec<(&'static str, Value)> {
    let mut made = Vec::new();
    for (name, way) in WAYS {
        let mut mutant = body.clone();
        if way(&mut mutant, rng) && mutant != *body {
            made.push((*name, mutant));
        }
    }
    made
}

const WAYS: &[(&str, Mutation)] = &[
    ("drop a result", |body, rng| remove(body, is_result, rng)),
    ("double a result", |body, rng| double(body, is_result, rng)),
    ("drop a call", |body, rng| remove(body, is_call, rng)),
    ("double a call", |body, rng| double(body, is_call, rng)),
    ("orphan a result", |body, rng| on(body, is_result, rng, |result| set_id(result, "nobody"))),
    ("rename a call", |body, rng| on(body, is_call, rng, |call| set_id(call, "somebody"))),
    ("misspell an id", |body, _| {
        let pointers = nodes(body, |node| is_call(node) || is_result(node));
        pointers.iter().fold(false, |done, pointer| {
            let node = body.pointer_mut(pointer).expect("a node that is there");
            let id = id_of(node).map(|id| format!("{id} !"));
            id.is_some_and(|id| set_id(node, &id)) || done
        })
    }),
    ("misname a called tool", |body, rng| {
        on(body, is_call, rng, |call| set_named(call, "name", &json!("no good name")))
    }),
    ("an answer without its id", |body, rng| {
        let is_answer = |node: &Value| node["type"] == "message" && node["role"] == "assistant";
        on(body, is_answer, rng, |node| {
            node.as_object_mut().is_some_and(|fields| fields.remove("id").is_some())
        })
    }),
    ("garble an input", |body, rng| on(body, is_call, rng, garble)),
    ("empty a text", |body, rng| on(body, has_text, rng, |node| set_text(node, ""))),
    ("blank a text", |body, rng| on(body, has_text, rng, |node| set_text(node, " \n"))),
    ("a text that is a number", |body, rng| {
        on(body, |node| node.get("text").is_some(), rng, |node| set(node, "text", json!(7)))
    }),
    ("text before results", before_results),
    ("swap a call and its result", swapped),
    ("a stranger speaks", |body, rng| on(body, has_role, rng, |node| set(node, "role", json!("narrator")))),
    ("the other one speaks", |body, rng| {
        on(body, has_role, rng, |node| {
            let other = match node["role"].as_str() {
                Some("user") if node.get("parts").is_some() => "model",
                Some("user") => "assistant",
                _ => "user",
            };
            // Without content that only one side can have, a compatible provider cannot detect the wrong
            // role.
            set(node, "role", json!(other))
        })
    }),
    ("the assistant begins", |body, _| {
        let Some(list) = list(body) else { return false };
        let first = list.iter().position(|message| message["role"] == "user").expect("a user message");
        list.remove(first);
        true
    }),
    ("the assistant ends", |body, _| {
        let responses = body.get("input").is_some();
        let gemini = body.get("contents").is_some();
        let Some(list) = list(body) else { return false };
        list.push(if responses {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I"}]})
        } else if gemini {
            json!({"role": "model", "parts": [{"text": "I"}]})
        } else {
            json!({"role": "assistant", "content": [{"type": "text", "text": "I"}]})
        });
        true
    }),
    ("nothing is said", |body, _| list(body).is_some_and(|list| !std::mem::take(list).is_empty())),
    ("a message of nothing", |body, rng| {
        on(body, has_role, rng, |node| {
            let field = if node.get("parts").is_some() { "parts" } else { "content" };
            let calls = node.get("tool_calls").is_some();
            !calls && set(node, field, json!([]))
        })
    }),
    ("a message that is no object", |body, rng| {
        let Some(list) = list(body) else { return false };
        let place = rng.below(list.len());
        list[place] = json!("hello");
        true
    }),
    ("an unknown field of a message", |body, rng| {
        on(body, has_role, rng, |node| set(node, "mood", json!("good")))
    }),
    ("an unknown field of the body", |body, _| set(body, "mood", json!("good"))),
    ("no tools", |body, _| {
        let called = !nodes(body, is_call).is_empty();
        let fields = body.as_object_mut().expect("a body is an object");
        called && fields.remove("tools").is_some()
    }),
    ("an empty list of tools", |body, _| body.get("tools").is_some() && set(body, "tools", json!([]))),
    ("a tool twice", |body, rng| double(body, is_tool, rng)),
    ("a tool without a good name", |body, rng| {
        on(body, is_tool, rng, |tool| set_named(tool, "name", &json!("no good name")))
    }),
    ("a tool without description", |body, rng| {
        on(body, is_tool, rng, |tool| set_named(tool, "description", &json!("")))
    }),
    ("no model", |body, _| body.get("model").is_some() && set(body, "model", Value::Null)),
    ("a limit of nothing", |body, rng| limit(body, rng, &json!(0))),
    ("a limit in words", |body, rng| limit(body, rng, &json!("many"))),
    ("too hot", |body, _| match body.get_mut("generationConfig") {
        Some(generation) => set(generation, "temperature", json!(9)),
        None => set(body, "temperature", json!(9)),
    }),
    ("no stream", |body, _| body.get("stream").is_some() && set(body, "stream", json!(false))),
    ("bytes that are none", |body, rng| {
        on(
            body,
            // Only its provider can read encrypted reasoning.
            |node| {
                let encrypted = is_thought(node) || node["type"] == "reasoning.encrypted";
                node.get("data").is_some_and(Value::is_string) && !encrypted
            },
            rng,
            |node| set(node, "data", json!("@@")),
        )
    }),
    ("an address that is none", |body, rng| {
        let pictured = |node: &Value| node.get("url").is_some() || node["type"] == "input_image";
        on(body, pictured, rng, |node| {
            let field = if node.get("url").is_some() { "url" } else { "image_url" };
            set(node, field, json!("/etc/passwd"))
        })
    }),
    ("an unsealed thought", |body, rng| {
        on(body, is_thought, rng, |node| {
            let fields = node.as_object_mut().expect("a thought is an object");
            fields.retain(|name, _| {
                !["signature", "data", "encrypted_content", "thoughtSignature"].contains(&name.as_str())
            });
            true
        })
    }),
    ("a thought that leads to nothing", |body, rng| {
        let pointers = nodes(body, |node| node["type"] == "reasoning");
        if pointers.is_empty() {
            return false;
        }
        let thought = body.pointer(rng.pick(&pointers[..]).as_str()).cloned().expect("a node that is there");
        list(body).is_some_and(|list| {
            list.retain(|item| *item != thought);
            list.push(thought);
            true
        })
    }),
    ("too much thinking", |body, _| {
        let most = body["max_tokens"].as_u64().unwrap_or_default();
        let budget = body["thinking"].get_mut("budget_tokens");
        budget.is_some_and(|budget| {
            *budget = most.into();
            true
        })
    }),
    ("too many markers", |body, _| {
        let pointers = nodes(body, |node| node["type"] == "tool_result" || node["type"] == "text");
        let anthropic = body.get("messages").is_some() && body.get("max_tokens").is_some();
        let marked = pointers.iter().take(5).filter(|pointer| {
            let node = body.pointer_mut(pointer).expect("a node that is there");
            set(node, "cache_control", json!({"type": "ephemeral"}))
        });
        marked.count() == 5 && anthropic
    }),
];

fn is_result(node: &Value) -> bool {
    ["tool_result", "function_call_output"].iter().any(|kind| node["type"] == *kind)
        || node["role"] == "tool"
        || node.get("functionResponse").is_some()
}

fn is_call(node: &Value) -> bool {
    ["tool_use", "function_call"].iter().any(|kind| node["type"] == *kind)
        || (node["type"] == "function" && node.get("id").is_some())
        || node.get("functionCall").is_some()
}

fn is_tool(node: &Value) -> bool {
    let named = node.get("description").is_some() && node.get("name").is_some();
    named && node.get("input").is_none()
}

fn is_thought(node: &Value) -> bool {
    ["thinking", "redacted_thinking", "reasoning"].iter().any(|kind| node["type"] == *kind)
        && (node.get("signature").is_some()
            || node.get("data").is_some()
            || node.get("encrypted_content").is_some())
}

fn has_text(node: &Value) -> bool {
    let content = node.get("role").is_some() && node.get("content").is_some_and(Value::is_string);
    node.get("text").is_some_and(Value::is_string) || content || is_result(node)
}

fn has_role(node: &Value) -> bool {
    node.get("role").is_some()
}

/// The JSON pointers of all matching nodes.
fn nodes(body: &Value, like: impl Fn(&Value) -> bool) -> Vec<String> {
    fn walk(value: &Value, at: &mut String, like: &dyn Fn(&Value) -> bool, found: &mut Vec<String>) {
        // The input and schema of a tool may contain anything.
        let foreign = ["/input", "/args", "/input_schema", "/parameters"].iter().any(|end| at.ends_with(end));
        if foreign && at != "/input" {
            return;
        }
        if value.is_object() && like(value) {
            found.push(at.clone());
        }
        let length = at.len();
        let mut step = |name: &dyn std::fmt::Display, value: &Value| {
            if value.is_object() || value.is_array() {
                write!(at, "/{name}").expect("writing to memory cannot fail");
                walk(value, at, like, found);
                at.truncate(length);
            }
        };
        match value {
            Value::Array(values) => values.iter().enumerate().for_each(|(place, value)| step(&place, value)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| step(name, value)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(body, &mut String::new(), &like, &mut found);
    found
}

fn on(
    body: &mut Value,
    like: impl Fn(&Value) -> bool,
    rng: &mut Rng,
    change: impl Fn(&mut Value) -> bool,
) -> bool {
    let pointers = nodes(body, like);
    if pointers.is_empty() {
        return false;
    }
    change(body.pointer_mut(rng.pick(&pointers[..]).as_str()).expect("a node that is there"))
}

/// The list that contains a matching node, and the index of the node.
fn placed<'v>(
    body: &'v mut Value,
    like: impl Fn(&Value) -> bool,
    rng: &mut Rng,
) -> Option<(&'v mut Vec<Value>, usize)> {
    // A tool of Chat is one level below the list.
    let pointers = nodes(body, |node| like(node) || node.get("function").is_some_and(&like));
    let listed =
        |pointer: &&String| pointer.rsplit('/').next().is_some_and(|last| last.parse::<usize>().is_ok());
    let pointers: Vec<&String> = pointers.iter().filter(listed).collect();
    if pointers.is_empty() {
        return None;
    }
    let (parent, place) = rng.pick(&pointers).rsplit_once('/')?;
    Some((body.pointer_mut(parent)?.as_array_mut()?, place.parse().ok()?))
}

fn remove(body: &mut Value, like: impl Fn(&Value) -> bool, rng: &mut Rng) -> bool {
    placed(body, like, rng).map(|(list, place)| list.remove(place)).is_some()
}

fn double(body: &mut Value, like: impl Fn(&Value) -> bool, rng: &mut Rng) -> bool {
    placed(body, like, rng).map(|(list, place)| list.insert(place, list[place].clone())).is_some()
}

fn list(body: &mut Value) -> Option<&mut Vec<Value>> {
    let name = ["messages", "contents", "input"].into_iter().find(|name| body.get(name).is_some())?;
    body[name].as_array_mut()
}

fn set(node: &mut Value, field: &str, value: Value) -> bool {
    node[field] = value;
    true
}

/// Sets a field on the node or on the object that it wraps.
fn set_named(node: &mut Value, field: &str, value: &Value) -> bool {
    for wrapper in ["function", "functionCall", "functionResponse"] {
        if let Some(inner) = node.get_mut(wrapper) {
            return set_named(inner, field, value);
        }
    }
    node.get(field).is_some() && set(node, field, value.clone())
}

const IDS: [&str; 4] = ["tool_use_id", "tool_call_id", "call_id", "id"];

fn id_of(node: &Value) -> Option<String> {
    let inner = ["functionCall", "functionResponse"].iter().find_map(|name| node.get(name)).unwrap_or(node);
    IDS.iter().find_map(|name| inner.get(name)?.as_str().map(str::to_owned))
}

fn set_id(node: &mut Value, id: &str) -> bool {
    let wrapper = ["functionCall", "functionResponse"].into_iter().find(|name| node.get(name).is_some());
    let inner = match wrapper {
        Some(name) => &mut node[name],
        None => node,
    };
    IDS.iter().find(|name| inner.get(**name).is_some()).is_some_and(|name| set(inner, name, json!(id)))
}

fn set_text(node: &mut Value, text: &str) -> bool {
    if let Some(response) = node.get_mut("functionResponse") {
        return set(response, "response", json!({"output": text}));
    }
    let field = ["text", "output", "content"].into_iter().find(|name| node.get(name).is_some());
    field.is_some_and(|field| set(node, field, json!(text)))
}

fn garble(call: &mut Value) -> bool {
    for (field, value) in [("input", json!([])), ("args", json!("x")), ("arguments", json!("{"))] {
        if set_named(call, field, &value) {
            return true;
        }
    }
    false
}

fn limit(body: &mut Value, _: &mut Rng, value: &Value) -> bool {
    if let Some(generation) = body.get_mut("generationConfig") {
        return set(generation, "maxOutputTokens", value.clone());
    }
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let name = names.into_iter().find(|name| body.get(name).is_some());
    name.is_some_and(|name| set(body, name, value.clone()))
}

/// Inserts text between a call and its result.
fn before_results(body: &mut Value, rng: &mut Rng) -> bool {
    let Some((list, place)) = placed(body, is_result, rng) else { return false };
    let saying = match &list[place] {
        result if result["role"] == "tool" => json!({"role": "user", "content": "Wait."}),
        result if result["type"] == "function_call_output" => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Wait."}]})
        }
        result if result["type"] == "tool_result" => json!({"type": "text", "text": "Wait."}),
        _ => json!({"text": "Wait."}),
    };
    list.insert(place, saying);
    true
}

/// Moves a result before its call.
fn swapped(body: &mut Value, rng: &mut Rng) -> bool {
    let calls = |message: &Value| !nodes(message, is_call).is_empty();
    let results = |message: &Value| !nodes(message, is_result).is_empty();
    let Some(list) = list(body) else { return false };
    // On wires where calls and results are items, the call before a result may belong to another one.
    let paired = |call: &Value, result: &Value| match (id_of(call), id_of(result)) {
        (Some(call), Some(result)) => call == result,
        _ => calls(call) && results(result),
    };
    let places: Vec<usize> =
        (1..list.len()).filter(|place| paired(&list[place - 1], &list[*place])).collect();
    if places.is_empty() {
        return false;
    }
    let place = *rng.pick(&places);
    list.swap(place - 1, place);
    true
}
