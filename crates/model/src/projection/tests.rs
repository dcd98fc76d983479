//! Tests of individual cases of the projection. The campaign checks that every request is valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::content::Kind;
use crate::entry::{EntryVersion, from_json};
use crate::settings::Effort;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1);

/// Entries from JSON, numbered from one.
fn entries(list: &Value) -> Vec<(EntryId, EntryVersion)> {
    let list = list.as_array().expect("a list of entries");
    let entry = |(number, entry): (usize, &Value)| {
        let mut id = [0; 16];
        id[15] = number as u8 + 1;
        (EntryId::from_bytes(id), from_json(&entry.to_string(), "User", NOW).expect("a good entry"))
    };
    list.iter().enumerate().map(entry).collect()
}

fn user(text: &str) -> Value {
    json!({"role": "User", "content": text})
}

fn answer(blocks: Value) -> Value {
    json!({"role": "AI", "model": "m", "blocks": blocks})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_call", "call": id, "name": "read", "input": {"path": id}, "wire": "anthropic"})
}

fn result(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "call": id, "text": text})
}

fn thought(signature: &str) -> Value {
    json!({"type": "thinking", "text": "hm", "signature": signature, "wire": "anthropic"})
}

fn tool() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    vec![ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), schema }]
}

fn ask(wire: Wire, tools: &[ToolSpec]) -> Ask<'_> {
    Ask {
        wire,
        dialect: Dialect::of(wire),
        model: "m",
        system: "Be brief.",
        tools,
        max_tokens: 4_000,
        temperature: None,
        top_p: None,
        thinking: None,
        thoughts: Thoughts::Accepted,
    }
}

fn thinking_for(budget: u32) -> Thinking {
    Thinking { effort: Effort::of_budget(budget), budget }
}

fn sent(list: &Value, ask: &Ask<'_>) -> Value {
    let body = request(&converse(&entries(list)), ask, &|_| None);
    assert_eq!(rules::check(ask.wire, &body), [], "{body:#}");
    body
}

/// The conversation in a readable form.
fn shown(list: &Value) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text { text, .. } => text.clone(),
        Part::Thinking { .. } => "<thought>".to_owned(),
        Part::Call { call, .. } => format!("<call {call}>"),
        Part::Result { call, failed, text, .. } if *failed => {
            format!("<{call} failed: {}>", text.split(':').next().unwrap_or_default())
        }
        Part::Result { call, text, .. } => format!("<{call}: {text}>"),
        Part::Image { media, .. } => format!("<{media}>"),
    };
    let message = |message: &Arc<Message>| {
        let speaker = if message.speaker == Speaker::User { "U" } else { "A" };
        format!("{speaker}: {}", message.parts.iter().map(part).collect::<Vec<_>>().join(" | "))
    };
    converse(&entries(list)).messages.iter().map(message).collect()
}

#[test]
fn entries_become_messages_that_alternate() {
    let check = |list: Value, expected: &[&str]| assert_eq!(shown(&list), expected, "{list:#}");
    check(json!([]), &[]);
    check(json!([user("a"), user(" "), user("b"), answer(json!([text("c")]))]), &["U: a | b", "A: c"]);
    check(
        json!([{"role": "Vendor API", "content": "up"}, {"role": "System", "content": "now"}]),
        &["U: [Vendor API]\nup | [System]\nnow"],
    );
    // The results of parallel calls come together, in the order of the calls, before everything else.
    check(
        json!([
            user("go"),
            answer(json!([text("yes"), call("a"), call("b")])),
            {"role": "Tool", "blocks": [result("b", "B")]},
            user("hurry"),
            {"role": "Tool", "blocks": [result("a", "A")]},
            answer(json!([text("done")])),
        ]),
        &["U: go", "A: yes | <call a> | <call b>", "U: <a: A> | <b: B> | hurry", "A: done"],
    );
    // Blocks in separate entries still form one message.
    check(
        json!([
            answer(json!([call("a")])),
            answer(json!([call("b")])),
            {"role": "Tool", "blocks": [result("a", "A")]},
            {"role": "Tool", "blocks": [result("b", "")]},
        ]),
        &["A: <call a> | <call b>", "U: <a: A> | <b: (no output)>"],
    );
    // Calls, results and text within one entry.
    check(
        json!([answer(json!([call("a"), result("a", "A"), text("so"), call("b"), result("b", "B")]))]),
        &["A: <call a>", "U: <a: A>", "A: so | <call b>", "U: <b: B>"],
    );
}

#[test]
fn no_call_without_result_and_no_result_without_call_is_sent() {
    let check = |list: Value, expected: &[&str]| assert_eq!(shown(&list), expected, "{list:#}");
    // Without its result.
    check(
        json!([answer(json!([call("a")])), user("on")]),
        &["A: <call a>", "U: <a failed: Interrupted> | on"],
    );
    check(
        json!([answer(json!([call("a")])), answer(json!([text("on")]))]),
        &["A: <call a>", "U: <a failed: Interrupted>", "A: on"],
    );
    // Without its call.
    check(
        json!([user("x"), {"role": "Tool", "blocks": [result("a", "A"), result("b", " ")]}]),
        &["U: x | [result of a tool call that is not shown here]\nA"],
    );
    // Late and duplicate results.
    check(
        json!([answer(json!([call("a"), text("t")])), user("x"), answer(json!([text("y")])), {"role": "Tool", "blocks": [result("a", "A")]}]),
        &[
            "A: <call a> | t",
            "U: <a failed: Interrupted> | x",
            "A: y",
            "U: [result of a tool call that is not shown here]\nA",
        ],
    );
    check(
        json!([answer(json!([call("a")])), {"role": "Tool", "blocks": [result("a", "A"), result("a", "B")]}]),
        &["A: <call a>", "U: <a: A> | [result of a tool call that is not shown here]\nB"],
    );
    // The same id twice, in one round and in two.
    check(
        json!([answer(json!([
            call("a"),
            call("a"),
            result("a", "1"),
            result("a", "2"),
            call("a"),
            result("a", "3")
        ]))]),
        &["A: <call a> | <call a_2>", "U: <a: 1> | <a_2: 2>", "A: <call a_3>", "U: <a_3: 3>"],
    );
    // No longer the assistant's.
    check(
        json!([{"role": "User", "blocks": [call("a")]}, {"role": "Tool", "blocks": [result("a", "A")]}]),
        &["U: [call of the tool read]\n{\"path\":\"a\"} | [result of a tool call that is not shown here]\nA"],
    );
}

#[test]
fn thoughts_are_sent_only_to_the_provider_that_signed_them() {
    let tools = tool();
    let thinking = |entry: Value, change: &dyn Fn(&mut Ask<'_>)| {
        let mut ask = Ask { thinking: Some(thinking_for(2_000)), ..ask(Wire::Anthropic, &tools) };
        change(&mut ask);
        let body = sent(&json!([user("go"), entry]), &ask);
        (body.to_string().contains("sealed"), body.get("thinking").is_some())
    };
    let loops = || answer(json!([thought("sealed"), call("a"), result("a", "A")]));
    assert_eq!(thinking(loops(), &|_| {}), (true, true));
    // After a change of model, an edit or a change of role, the thought is omitted, and a request between
    // calls can then not enable thinking.
    assert_eq!(thinking(loops(), &|ask| ask.model = "other"), (false, false));
    let mut edited = loops();
    edited["edited"] = json!(NOW);
    assert_eq!(thinking(edited, &|_| {}), (false, false));
    let mut anothers = loops();
    anothers["role"] = json!("User");
    assert_eq!(thinking(anothers, &|_| {}), (false, true));
    let other_wire = answer(json!([
        {"type": "thinking", "text": "hm", "signature": "sealed", "wire": "gemini"}, text("t")
    ]));
    assert_eq!(thinking(other_wire, &|_| {}), (false, true));
    // A thought that nothing follows.
    assert_eq!(thinking(answer(json!([text("t"), thought("sealed")])), &|_| {}), (false, true));
    // Only the start of a turn must be a thought.
    let twice = answer(json!([thought("sealed"), call("a"), result("a", "A"), call("b"), result("b", "B")]));
    assert_eq!(thinking(twice, &|_| {}), (true, true));
    // Too few tokens for thinking, or thoughts are omitted.
    assert_eq!(thinking(loops(), &|ask| ask.max_tokens = 2_000), (false, false));
    assert_eq!(thinking(loops(), &|ask| ask.thoughts = Thoughts::Omitted), (false, false));
}

fn adaptive() -> Dialect {
    let thinking = ThinkingField::Adaptive { always: false };
    let effort_words = EffortWords { off: "low", max: "max" };
    Dialect { thinking, effort_words, bound_thoughts: true, sampling: false, ..Dialect::of(Wire::Anthropic) }
}

#[test]
fn adaptive_thinking_stays_on_during_a_turn() {
    let tools = tool();
    let asked = |thinking: Option<Effort>, list: Value| {
        let ask = Ask {
            dialect: adaptive(),
            thinking: thinking.map(Thinking::from),
            ..ask(Wire::Anthropic, &tools)
        };
        let body = sent(&list, &ask);
        (
            body["thinking"]["type"].clone(),
            body["thinking"]["display"].clone(),
            body["output_config"]["effort"].clone(),
        )
    };
    let bare = || json!([user("go"), answer(json!([call("a"), result("a", "A")]))]);
    assert_eq!(asked(None, bare()), (json!("adaptive"), json!("summarized"), Value::Null));
    assert_eq!(asked(Some(Effort::Max), bare()), (json!("adaptive"), json!("summarized"), json!("max")));
    assert_eq!(asked(Some(Effort::Off), bare()), (json!("disabled"), Value::Null, Value::Null));
}

#[test]
fn a_bound_thought_is_sent_only_after_the_request_it_answers() {
    let tools = tool();
    let ask = Ask { dialect: adaptive(), ..ask(Wire::Anthropic, &tools) };
    let first = sent(&json!([user("go")]), &ask);
    let mut reply = answer(json!([thought("sealed"), text("yes")]));
    reply[REQUEST_PREFIX] = json!(request_prefix(&first));
    let has = |list: &Value, ask: &Ask<'_>| sent(list, ask).to_string().contains("sealed");
    let list = json!([user("go"), reply, user("on")]);
    assert!(has(&list, &ask));
    assert!(!has(&json!([user("stop"), reply, user("on")]), &ask), "an earlier entry was edited");
    assert!(!has(&list, &Ask { system: "Be long.", ..ask.clone() }), "another system prompt");
    assert!(!has(&list, &Ask { tools: &[], ..ask.clone() }), "other tools");
    assert!(!has(&list, &Ask { thoughts: Thoughts::Omitted, ..ask.clone() }), "the provider refused it");
    let older = json!([user("go"), answer(json!([thought("sealed"), text("yes")])), user("on")]);
    assert!(!has(&older, &ask), "nobody knows what an answer without a digest stood behind");
    let mut later = answer(json!([text("done")]));
    later[THOUGHTS_OMITTED] = json!("anthropic");
    assert!(!has(&json!([user("go"), reply, user("on"), later, user("more")]), &ask), "refused before");
}

#[test]
fn reasoning_is_sent_back_in_the_field_it_arrived_in() {
    let tools = tool();
    let details = json!([
        {"type": "reasoning.text", "index": 0, "text": "one", "format": "f"},
        {"type": "reasoning.text", "index": 0, "text": " two", "signature": null},
        {"type": "reasoning.text", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "index": 0, "data": "d"},
    ]);
    let thinking = json!({"type": "thinking", "text": "one two", "wire": "chat", "field": "reasoning", "reasoning_details": details});
    let mut signed = call("a");
    signed["wire"] = json!("chat");
    signed["extra_content"] = json!({"google": {"thought_signature": "g"}});
    let body = sent(&json!([user("x"), answer(json!([thinking, signed]))]), &ask(Wire::Chat, &tools));
    let message = &body["messages"][2];
    let joined = json!([
        {"type": "reasoning.text", "index": 0, "text": "one two", "format": "f", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 0, "data": "d"},
    ]);
    assert_eq!((&message["reasoning_details"], message.get("reasoning_content")), (&joined, None));
    assert_eq!(message["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "g");
    // Details without a seal add nothing to the text.
    let plain = json!([{"type": "reasoning.text", "index": 0, "text": "one"}]);
    let thinking = json!({"type": "thinking", "text": "one", "wire": "chat", "field": "reasoning", "reasoning_details": plain});
    let list = json!([user("x"), answer(json!([thinking, call("a")]))]);
    let message = sent(&list, &ask(Wire::Chat, &tools))["messages"][2].clone();
    assert_eq!((&message["reasoning_content"], message.get("reasoning_details")), (&json!("one"), None));
    let dialect = Dialect { thinking: ThinkingField::Reasoning, ..Dialect::of(Wire::Chat) };
    let message = sent(&list, &Ask { dialect, ..ask(Wire::Chat, &tools) })["messages"][2].clone();
    assert_eq!((&message["reasoning_details"], message.get("reasoning_content")), (&plain, None));
    // Only some servers read the field `reasoning`.
    let thinking = json!({"type": "thinking", "text": "one", "wire": "chat", "field": "reasoning"});
    let list = json!([user("x"), answer(json!([thinking, call("a")]))]);
    for reads_reasoning in [false, true] {
        let dialect = Dialect { reads_reasoning, ..Dialect::of(Wire::Chat) };
        let message = sent(&list, &Ask { dialect, ..ask(Wire::Chat, &tools) })["messages"][2].clone();
        assert_eq!(message.get("reasoning"), reads_reasoning.then_some(&json!("one")));
        assert_eq!(message.get("reasoning_content"), None);
    }
    let body = sent(
        &json!([
            user("x"),
            answer(json!([{"type": "text", "text": "t", "wire": "responses", "phase": "commentary"}]))
        ]),
        &ask(Wire::Responses, &tools),
    );
    assert_eq!(body["input"][1]["phase"], "commentary");
}

#[test]
fn call_ids_of_other_models_are_adapted_to_the_provider() {
    let tools = tool();
    let dialect = Dialect { nine_letter_ids: true, ..Dialect::of(Wire::Chat) };
    let list = json!([user("x"), answer(json!([call("toolu_01ABC"), call("abcDEF123")])), {"role": "Tool", "blocks": [result("toolu_01ABC", "A")]}]);
    let ids = |model: &str| {
        let body = sent(&list, &Ask { dialect, model, ..ask(Wire::Chat, &tools) });
        let calls = &body["messages"][2]["tool_calls"];
        assert_eq!(calls[0]["id"], body["messages"][3]["tool_call_id"]);
        [&calls[0]["id"], &calls[1]["id"]].map(|id| id.as_str().expect("an id").to_owned())
    };
    assert_eq!(ids("m"), ["toolu_01ABC", "abcDEF123"], "its own are good");
    let [first, second] = ids("other");
    assert!(first.len() == 9 && first.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{first}");
    assert_eq!(second, "abcDEF123");
}

#[test]
fn a_long_call_id_is_unchanged_if_the_wire_accepts_it() {
    let tools = tool();
    // Recorded: xAI's ids have 42 characters.
    let id = "call-e90191c4-4a4c-44c2-92f5-98caf16932b6-0";
    let list = json!([user("x"), answer(json!([call(id)])), {"role": "Tool", "blocks": [result(id, "A")]}]);
    let body = sent(&list, &ask(Wire::Responses, &tools));
    assert_eq!((&body["input"][1]["call_id"], &body["input"][2]["call_id"]), (&json!(id), &json!(id)));
    let body = sent(&list, &ask(Wire::Chat, &tools));
    let short = body["messages"][2]["tool_calls"][0]["id"].as_str().expect("an id");
    assert_eq!((short.len(), &body["messages"][3]["tool_call_id"]), (40, &json!(short)));
}

#[test]
fn effort_is_encoded_for_each_provider() {
    let check = |wire, thinking, effort, pointer: &str, expected: Value| {
        let effort_words = EffortWords { off: "none", max: "xhigh" };
        let dialect = Dialect { thinking, effort_words, ..Dialect::of(wire) };
        let ask =
            Ask { dialect, thinking: Some(Thinking::from(effort)), max_tokens: 60_000, ..ask(wire, &[]) };
        let body = sent(&json!([user("x")]), &ask);
        assert_eq!(body.pointer(pointer), Some(&expected), "{body:#}");
    };
    check(Wire::Responses, ThinkingField::Effort, Effort::Max, "/reasoning/effort", json!("xhigh"));
    check(Wire::Chat, ThinkingField::Effort, Effort::Low, "/reasoning_effort", json!("low"));
    check(Wire::Chat, ThinkingField::Reasoning, Effort::Off, "/reasoning/effort", json!("none"));
    check(Wire::Chat, ThinkingField::Switch, Effort::Off, "/thinking/type", json!("disabled"));
    check(Wire::Chat, ThinkingField::Switch, Effort::High, "/reasoning_effort", json!("high"));
    let budget = "/generationConfig/thinkingConfig/thinkingBudget";
    check(Wire::Gemini, ThinkingField::Budget { least: 128 }, Effort::Off, budget, json!(128));
    check(Wire::Gemini, ThinkingField::Budget { least: 0 }, Effort::Max, budget, json!(24_576));
    let level = "/generationConfig/thinkingConfig/thinkingLevel";
    check(Wire::Gemini, ThinkingField::Level, Effort::Medium, level, json!("medium"));
    let budget = "/thinking/budget_tokens";
    check(Wire::Anthropic, ThinkingField::Budget { least: 1_024 }, Effort::High, budget, json!(24_576));
}

#[test]
fn fields_of_schemas_and_arguments_keep_their_order() {
    let schema: Value = serde_json::from_str(
        r#"{"type":"object","properties":{"path":{},"content":{},"append":{}},"required":["path"]}"#,
    )
    .expect("JSON");
    let tools = [ToolSpec { name: "write".to_owned(), description: "Writes.".to_owned(), schema }];
    for wire in Wire::ALL {
        let mut written = call("a");
        written["input"] = json!({"path": "p", "content": "c", "append": true});
        let body = sent(&json!([user("x"), answer(json!([written]))]), &ask(wire, &tools)).to_string();
        let schema = &body[body.find("properties").expect("a schema")..];
        let names = ["\"path\"", "\"content\"", "\"append\""].map(|name| schema.find(name).expect("a field"));
        assert!(names.is_sorted(), "{wire:?}: {schema}");
        let arguments = body.find("\"p\\\"").or_else(|| body.find(":\"p\"")).expect("arguments");
        let after = &body[arguments..];
        assert!(
            after.find("content").expect("the second") < after.find("append").expect("the third"),
            "{wire:?}"
        );
    }
}

#[test]
fn each_wire_gets_its_own_signatures() {
    let tools = tool();
    let part = |kind: Value, extra: Value| {
        let mut part = kind;
        extra.as_object().expect("fields").iter().for_each(|(name, value)| part[name] = value.clone());
        part
    };
    let gemini =
        json!([part(call("a"), json!({"wire": "gemini", "thought_signature": "sig"})), result("a", "A")]);
    let body = sent(&json!([user("x"), answer(gemini)]), &ask(Wire::Gemini, &tools));
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "sig");
    let unsigned = json!([user("x"), answer(json!([call("a"), call("b")]))]);
    let dialect = Dialect { stand_in_signatures: true, ..Dialect::of(Wire::Gemini) };
    let body = sent(&unsigned, &Ask { dialect, ..ask(Wire::Gemini, &tools) });
    let signed = |index: usize| body["contents"][1]["parts"][index].get("thoughtSignature").is_some();
    assert!(signed(0) && !signed(1), "of calls made together only the first is signed");

    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"});
    let thinking = json!({"type": "thinking", "text": "", "wire": "responses", "reasoning": reasoning});
    let blocks = json!([thinking, call("a"), text("late")]);
    let body = sent(&json!([user("x"), answer(blocks)]), &ask(Wire::Responses, &tools));
    let kinds: Vec<&str> =
        body["input"].as_array().expect("items").iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["message", "message", "reasoning", "function_call", "function_call_output"]);

    assert_eq!(body["input"][2]["id"], "rs_1");
    // A copy of an item is left out, and another one with its id goes without the id.
    let mut other = thinking.clone();
    other["reasoning"]["encrypted_content"] = json!("more");
    let blocks = json!([thinking, thinking, other, text("late")]);
    let body = sent(&json!([user("x"), answer(blocks)]), &ask(Wire::Responses, &tools));
    let items = body["input"].as_array().expect("items");
    let ids: Vec<_> =
        items.iter().filter(|item| item["type"] == "reasoning").map(|item| item.get("id")).collect();
    assert_eq!(ids, [Some(&json!("rs_1")), None]);

    let blocks = json!([{"type": "thinking", "text": "hm", "wire": "chat"}, call("a")]);
    let dialect = Dialect { return_reasoning: true, ..Dialect::of(Wire::Chat) };
    let body = sent(&json!([user("x"), answer(blocks)]), &Ask { dialect, ..ask(Wire::Chat, &tools) });
    assert_eq!(body["messages"][2]["reasoning_content"], "hm");
}

#[test]
fn a_request_starts_and_ends_with_the_user_and_declares_tools() {
    for wire in Wire::ALL {
        for list in [json!([]), json!([answer(json!([text("hello")]))]), json!([answer(json!([call("a")]))])]
        {
            let body = sent(&list, &ask(wire, &[]));
            let called = list.to_string().contains("tool_call");
            assert_eq!(body.get("tools").is_some(), called, "{body:#}");
        }
    }
}

#[test]
fn only_cache_breakpoints_move_between_requests() {
    let tools = tool();
    let mut list = vec![user("one"), answer(json!([text("1")])), user("two")];
    let marks = |body: &Value| body.to_string().matches("cache_control").count();
    let plain =
        |body: &Value| body["messages"].to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let before = sent(&json!(list), &ask(Wire::Anthropic, &tools));
    list.extend([answer(json!([call("a"), result("a", "A")])), user("three")]);
    let after = sent(&json!(list), &ask(Wire::Anthropic, &tools));
    assert_eq!((marks(&before), marks(&after)), (4, 4));
    let prefix = plain(&before);
    assert!(plain(&after).starts_with(prefix.trim_end_matches(']')));
    let off = Dialect { cache_markers: false, ..Dialect::of(Wire::Anthropic) };
    assert_eq!(marks(&sent(&json!(list), &Ask { dialect: off, ..ask(Wire::Anthropic, &tools) })), 0);
}

#[test]
fn pictures_are_sent_where_the_wire_accepts_them() {
    let blob = ContentId::of(Kind::Blob, b"x");
    let list = json!([{"role": "User", "blocks": [{"type": "image", "media": "image/png", "blob": blob}]}]);
    let conversation = converse(&entries(&list));
    for wire in Wire::ALL {
        let check = |dialect: Dialect, bytes: Option<Vec<u8>>, expected: &str| {
            let body = request(&conversation, &Ask { dialect, ..ask(wire, &[]) }, &|_| bytes.clone());
            assert_eq!(rules::check(wire, &body), []);
            assert!(body.to_string().contains(expected), "{body}");
        };
        check(Dialect::of(wire), Some(b"bytes".to_vec()), "Ynl0ZXM=");
        check(Dialect::of(wire), None, "its content is missing");
        check(Dialect { images: false, ..Dialect::of(wire) }, Some(vec![1]), "accepts no pictures");
    }
}

#[test]
fn documents_are_sent_where_accepted_and_named_elsewhere() {
    let blob = ContentId::of(Kind::Blob, b"x");
    let list =
        json!([{"role": "User", "blocks": [{"type": "image", "media": "application/pdf", "blob": blob}]}]);
    let conversation = converse(&entries(&list));
    let check = |wire: Wire, dialect: Dialect, bytes: Option<Vec<u8>>, expected: &str| {
        let body = request(&conversation, &Ask { dialect, ..ask(wire, &[]) }, &|_| bytes.clone());
        assert_eq!(rules::check(wire, &body), []);
        assert!(body.to_string().contains(expected), "{body}");
    };
    let of = Dialect::of;
    let good = || Some(b"bytes".to_vec());
    check(Wire::Anthropic, of(Wire::Anthropic), good(), r#""type":"document""#);
    check(
        Wire::Responses,
        of(Wire::Responses),
        good(),
        r#""file_data":"data:application/pdf;base64,Ynl0ZXM=""#,
    );
    check(Wire::Gemini, of(Wire::Gemini), good(), r#""mimeType":"application/pdf""#);
    check(Wire::Chat, of(Wire::Chat), good(), "[PDF document: this provider accepts no documents]");
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Gemini] {
        let most = document_limit(wire).expect("a limit");
        check(wire, of(wire), None, "its content is missing");
        check(wire, of(wire), Some(vec![0; most + 1]), "too large to send");
        check(wire, Dialect { images: false, ..of(wire) }, good(), "accepts no documents");
    }
}

#[test]
fn sampling_is_encoded_for_each_provider() {
    let check = |wire, dialect, expected: &[(&str, Value)]| {
        let ask = Ask { dialect, temperature: Some(1.5), top_p: Some(0.5), ..ask(wire, &[]) };
        let body = sent(&json!([user("x")]), &ask);
        let found: BTreeMap<&str, Value> = expected
            .iter()
            .map(|(pointer, _)| (*pointer, body.pointer(pointer).cloned().unwrap_or_default()))
            .collect();
        assert_eq!(found, expected.iter().cloned().collect(), "{wire:?}");
    };
    let anthropic = Dialect::of(Wire::Anthropic);
    check(Wire::Anthropic, anthropic, &[("/temperature", json!(1.0)), ("/top_p", Value::Null)]);
    let none = Dialect { sampling: false, ..anthropic };
    check(Wire::Anthropic, none, &[("/temperature", Value::Null), ("/max_tokens", json!(4_000))]);
    let chat = Dialect { completion_tokens: true, ..Dialect::of(Wire::Chat) };
    check(Wire::Chat, chat, &[("/temperature", json!(1.5)), ("/max_completion_tokens", json!(4_000))]);
    check(Wire::Gemini, Dialect::of(Wire::Gemini), &[("/generationConfig/topP", json!(0.5))]);
}

#[test]
fn an_edit_reports_the_uncached_part() {
    let long = "word ".repeat(80);
    let list = |first: &str, last: &[Value]| {
        let mut list = vec![user(first), answer(json!([text(&long)])), user("and?")];
        list.extend_from_slice(last);
        converse(&entries(&json!(list)))
    };
    let before = list("question", &[]);
    assert_eq!(uncached_tokens(&before, &list("question", &[])), 0);
    assert_eq!(uncached_tokens(&before, &list("question", &[answer(json!([text("yes")]))])), 0);
    assert_eq!(uncached_tokens(&before, &list("other", &[])), 2 + 100 + 1);
    assert_eq!(shared_prefix(&before, &list("question", &[user("more")])), 2);
    assert_eq!(uncached_tokens(&before, &list("question", &[user("more")])), 0);
    assert_eq!(estimate_tokens(&long), 100);
}
