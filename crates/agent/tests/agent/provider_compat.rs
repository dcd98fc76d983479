//! Deviations of compatible servers, from recorded traffic. They must decode as in the vendors' own
//! libraries.

use retake_agent::provider::{Answer, Decoder, EventReader, Stop, Wire};
use serde_json::{Value, json};

fn decode(wire: Wire, stream: &str) -> Answer {
    let (mut reader, mut decoder, mut events) = (EventReader::new(), Decoder::new(wire), Vec::new());
    reader.feed(stream.as_bytes(), &mut events).expect("text");
    for event in events {
        if !decoder.feed(&event, &mut |_| {}).expect("a good stream") {
            break;
        }
    }
    decoder.finish(&mut |_| {}).expect("an answer")
}

fn stream(datas: &[Value]) -> String {
    datas.iter().flat_map(|data| ["data: ".to_owned(), data.to_string(), "\n\n".to_owned()]).collect()
}

fn check(wire: Wire, datas: &[Value], blocks: Value, stop: Stop, detail: Option<&str>) {
    let answer = decode(wire, &stream(datas));
    assert_eq!(serde_json::to_value(&answer.blocks).expect("JSON"), blocks);
    assert_eq!(answer.stop, stop);
    assert_eq!(answer.stop_detail.as_deref(), detail);
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn mistral_content_lists_are_decoded() {
    check(
        Wire::Chat,
        &[
            delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]})),
            delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}]})),
            delta(
                json!({"content": [{"type": "text", "text": "four"}, {"type": "reference", "reference_ids": [1]}]}),
            ),
            end("stop"),
        ],
        json!([{"type": "thinking", "text": "ab", "field": "content", "wire": "chat"}, {"type": "text", "text": "four"}]),
        Stop::EndTurn,
        None,
    );
}

#[test]
fn arguments_may_be_null_or_an_object() {
    let call = |arguments: Value| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "list", "arguments": arguments}}]}),
        )
    };
    let made = |input: Value| json!([{"type": "tool_call", "call": "c", "name": "list", "input": input}]);
    for (arguments, input) in [
        (json!("null"), json!({})),
        (Value::Null, json!({})),
        (json!({"a": 1}), json!({"a": 1})),
        (json!("{\"a\":1}"), json!({"a": 1})),
    ] {
        check(Wire::Chat, &[call(arguments), end("tool_calls")], made(input), Stop::ToolUse, None);
    }
}

#[test]
fn the_usage_field_of_groq_is_read() {
    let mut last = end("stop");
    last["x_groq"] = json!({"id": "req_1", "usage": {"prompt_tokens": 18, "completion_tokens": 73}});
    let answer = decode(Wire::Chat, &stream(&[delta(json!({"content": "4"})), last]));
    let usage = answer.usage.expect("counted");
    assert_eq!((usage.input_tokens, usage.output_tokens), (18, 73));
}

#[test]
fn the_end_of_a_stream_ends_the_answer() {
    let stream_text = format!("{}data: [DONE]\n\n", stream(&[delta(json!({"content": "4", "refusal": ""}))]));
    let answer = decode(Wire::Chat, &stream_text);
    assert_eq!((answer.blocks.len(), answer.stop), (1, Stop::EndTurn));
}

#[test]
fn an_empty_reason_to_stop_is_none() {
    let piece =
        |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ""}]});
    check(
        Wire::Chat,
        &[piece("<th"), piece("ink>hm</thi"), piece("nk>"), piece("yes"), end("stop")],
        json!([
            {"type": "thinking", "text": "hm", "field": "think", "wire": "chat"},
            {"type": "text", "text": "yes"}
        ]),
        Stop::EndTurn,
        None,
    );
    let part = |text: &str, reason: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": reason}]});
    check(
        Wire::Gemini,
        &[part("a", ""), part("b", "STOP")],
        json!([{"type": "text", "text": "ab"}]),
        Stop::EndTurn,
        None,
    );
}

#[test]
fn reasoning_is_returned_in_the_field_it_arrived_in() {
    let detail = |more: Value| {
        let mut detail = json!({"type": "reasoning.text", "index": 0, "format": "f"});
        detail.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!([detail])
    };
    check(
        Wire::Chat,
        &[
            delta(json!({"reasoning": "a", "reasoning_details": detail(json!({"text": "a"}))})),
            delta(json!({"reasoning": "b", "reasoning_details": detail(json!({"text": "b"}))})),
            delta(json!({"reasoning_details": detail(json!({"signature": "s"}))})),
            delta(json!({"content": "yes"})),
            end("stop"),
        ],
        json!([
            {"type": "thinking", "text": "ab", "field": "reasoning", "wire": "chat",
             "reasoning_details": [{"type": "reasoning.text", "index": 0, "format": "f", "text": "ab", "signature": "s"}]},
            {"type": "text", "text": "yes"},
        ]),
        Stop::EndTurn,
        None,
    );
    let signed = json!({"google": {"thought_signature": "s"}});
    check(
        Wire::Chat,
        &[
            delta(json!({"content": "yes", "extra_content": signed})),
            delta(json!({"tool_calls": [{"index": 0, "id": "c", "extra_content": signed,
                "function": {"name": "list", "arguments": "{}"}}]})),
            end("tool_calls"),
        ],
        json!([
            {"type": "text", "text": "yes", "extra_content": signed, "wire": "chat"},
            {"type": "tool_call", "call": "c", "name": "list", "input": {}, "extra_content": signed, "wire": "chat"},
        ]),
        Stop::ToolUse,
        None,
    );
}

#[test]
fn inline_thinking_becomes_thinking() {
    let pieces = |pieces: &[&str], reason: &str| -> Vec<Value> {
        pieces.iter().map(|piece| delta(json!({"content": piece}))).chain([end(reason)]).collect()
    };
    let thought = |text: &str| json!({"type": "thinking", "text": text, "field": "think", "wire": "chat"});
    check(
        Wire::Chat,
        &pieces(&["<th", "ink>h", "m</", "think>", "\n\nyes ```<think>```"], "stop"),
        json!([thought("hm"), {"type": "text", "text": "yes ```<think>```"}]),
        Stop::EndTurn,
        None,
    );
    check(
        Wire::Chat,
        &pieces(&["<think>h", "m</th"], "length"),
        json!([thought("hm</th")]),
        Stop::MaxTokens,
        None,
    );
    // A model that stops normally has only left out the closing tag.
    check(
        Wire::Chat,
        &pieces(&["<think>hm, ", "yes"], "stop"),
        json!([{"type": "text", "text": "<think>hm, yes"}]),
        Stop::EndTurn,
        None,
    );
}

#[test]
fn two_calls_with_one_id_both_run() {
    let call = |index: u64, name: &str, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": "c", "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    check(
        Wire::Chat,
        &[call(0, "list", "{}"), call(1, "read", "{\"a\":"), call(1, "read", "1}"), end("tool_calls")],
        json!([
            {"type": "tool_call", "call": "c", "name": "list", "input": {}},
            {"type": "tool_call", "call": "c_1", "name": "read", "input": {"a": 1}},
        ]),
        Stop::ToolUse,
        None,
    );
}

#[test]
fn unknown_items_of_responses_are_preserved_and_unknown_events_skipped() {
    let item = |index: u64, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let search = json!({"type": "tool_search_call", "arguments": {"paths": ["x"]}, "call_id": null});
    check(
        Wire::Responses,
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": search}),
            json!({"type": "response.shell_call_output_content.delta", "output_index": 0, "delta": {"stdout": "x"}}),
            json!({"type": "response.novelty.delta", "output_index": 7, "delta": [1]}),
            json!({"no": "type"}),
            item(0, search.clone()),
            item(
                1,
                json!({"type": "function_call", "call_id": "c", "name": "x", "namespace": "n", "arguments": {"a": 1}}),
            ),
            json!({"type": "response.completed", "response": {}}),
        ],
        json!([
            {"type": "tool_search_call", "item": search, "wire": "responses"},
            {"type": "tool_call", "call": "c", "name": "x", "input": {"a": 1}, "namespace": "n", "wire": "responses"},
        ]),
        Stop::ToolUse,
        None,
    );
    // A proxy that streams only the final event.
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]);
    check(
        Wire::Responses,
        &[json!({"type": "response.completed", "response": {"output": output}})],
        json!([{"type": "text", "text": "hi"}]),
        Stop::EndTurn,
        None,
    );
}

#[test]
fn a_stop_reports_the_reason_of_the_provider() {
    let start = json!({"type": "message_start", "message": {"id": "m"}});
    let refusal = json!({"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "cyber", "explanation": "Not this."}});
    check(
        Wire::Anthropic,
        // Some proxies send the start twice.
        &[
            start.clone(),
            start,
            json!({"type": "message_delta", "delta": refusal}),
            json!({"type": "message_stop"}),
        ],
        json!([]),
        Stop::Refusal,
        Some("Not this."),
    );
    check(
        Wire::Gemini,
        &[json!({"candidates": [{"finishReason": "SAFETY", "finishMessage": "Blocked."}]})],
        json!([]),
        Stop::Refusal,
        Some("Blocked."),
    );
    check(
        Wire::Gemini,
        &[json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Bad call."}]})],
        json!([]),
        Stop::Other("MALFORMED_FUNCTION_CALL".to_owned()),
        Some("Bad call."),
    );
    check(
        Wire::Gemini,
        &[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})],
        json!([]),
        Stop::Refusal,
        Some("PROHIBITED_CONTENT"),
    );
    check(
        Wire::Chat,
        &[
            json!({"choices": [{"delta": {}, "finish_reason": "content_filter", "native_finish_reason": "SAFETY"}]}),
        ],
        json!([]),
        Stop::Refusal,
        Some("SAFETY"),
    );
}

#[test]
fn items_of_responses_may_come_without_their_index() {
    let item = |id: &str, text: &str| json!({"type": "message", "id": id, "content": [{"type": "output_text", "text": text}]});
    let added =
        |id: &str| json!({"type": "response.output_item.added", "item": {"type": "message", "id": id}});
    let done = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let more = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
    check(
        Wire::Responses,
        &[
            added("a"),
            more("on"),
            more("e"),
            done(item("a", "one")),
            // Not streamed.
            done(item("b", "two")),
            added("c"),
            more("three"),
            done(item("c", "three")),
            json!({"type": "response.completed", "response": {}}),
        ],
        json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}, {"type": "text", "text": "three"}]),
        Stop::EndTurn,
        None,
    );
}

#[test]
fn responses_that_come_without_their_pieces_are_complete() {
    let added = |index: u64, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let message = json!({"type": "message", "content": []});
    let call = json!({"type": "function_call", "call_id": "c", "name": "list", "arguments": ""});
    let whole = |output: Value| json!({"type": "response.completed", "response": {"output": output}});
    let called = |input: Value| json!([{"type": "tool_call", "call": "c", "name": "list", "input": input}]);
    let done = |what: &str, fields: Value| {
        let mut event =
            json!({"type": format!("response.{what}.done"), "output_index": 0, "content_index": 0});
        event.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        event
    };
    let complete =
        |datas: &[Value], blocks: Value, stop: Stop| check(Wire::Responses, datas, blocks, stop, None);
    // Without this, the call would run with empty input.
    complete(
        &[
            added(0, call.clone()),
            done("function_call_arguments", json!({"arguments": "{\"path\":\"a\"}"})),
            whole(json!([])),
        ],
        called(json!({"path": "a"})),
        Stop::ToolUse,
    );
    let ended =
        json!({"type": "function_call", "call_id": "c", "name": "list", "arguments": "{\"path\":\"b\"}"});
    complete(
        &[added(0, call.clone()), whole(json!([ended.clone()]))],
        called(json!({"path": "b"})),
        Stop::ToolUse,
    );
    // An item that the stream left out.
    let text = json!([{"type": "text", "text": "hi"}]);
    complete(
        &[
            added(0, message.clone()),
            done("output_text", json!({"text": "hi"})),
            whole(json!([message.clone()])),
        ],
        text.clone(),
        Stop::EndTurn,
    );
    let both = json!([text[0].clone(), called(json!({"path": "b"}))[0].clone()]);
    complete(
        &[
            added(0, message.clone()),
            done("output_text", json!({"text": "hi"})),
            whole(json!([message.clone(), ended])),
        ],
        both,
        Stop::ToolUse,
    );
    // The end of what came in pieces adds nothing.
    let delta =
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "hi"});
    complete(
        &[
            added(0, message.clone()),
            delta,
            done("output_text", json!({"text": "hi"})),
            whole(json!([message])),
        ],
        text.clone(),
        Stop::EndTurn,
    );
    // A text in place of a list of parts.
    let item = json!({"type": "message", "content": "hi"});
    complete(&[whole(json!([item]))], text, Stop::EndTurn);
}

#[test]
fn fields_of_another_type_do_not_spoil_an_answer() {
    let text = json!([{"type": "text", "text": "hi"}]);
    let chunk = json!({"id": 5, "model": 7, "choices": [{"index": "0", "delta": {"content": {"type": "text", "text": "hi"}}}]});
    check(Wire::Chat, &[chunk, end("stop")], text.clone(), Stop::EndTurn, None);
    let thought = json!({"type": "thinking", "text": "hm", "field": "reasoning_content", "wire": "chat"});
    for given in [json!("hm"), json!([{"type": "text", "text": "hm"}]), json!({"text": "hm"})] {
        let both = json!([thought, text[0]]);
        let datas =
            [delta(json!({"reasoning_content": given})), delta(json!({"content": "hi"})), end("stop")];
        check(Wire::Chat, &datas, both, Stop::EndTurn, None);
    }
    let call =
        json!({"tool_calls": [{"index": "0", "id": 7, "function": {"name": "list", "arguments": "{}"}}]});
    check(
        Wire::Chat,
        &[delta(call), end("tool_calls")],
        json!([{"type": "tool_call", "call": "7", "name": "list", "input": {}}]),
        Stop::ToolUse,
        None,
    );
    let messages = |details: Value| {
        [
            json!({"type": "message_start", "message": {"id": 1, "model": null}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_details": details}}),
            json!({"type": "message_stop"}),
        ]
    };
    for details in [json!("why"), json!({"explanation": {}})] {
        check(Wire::Anthropic, &messages(details), text.clone(), Stop::EndTurn, None);
    }
}

#[test]
fn a_failure_inside_a_choice_is_reported() {
    let chunk = json!({"choices": [
        {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "died"}}
    ]});
    let (mut reader, mut decoder, mut events) = (EventReader::new(), Decoder::new(Wire::Chat), Vec::new());
    reader.feed(stream(&[chunk]).as_bytes(), &mut events).expect("text");
    let error = decoder.feed(&events[0], &mut |_| {}).expect_err("a failure");
    assert_eq!(error.status, Some(502));
    assert!(error.message.contains("died"), "{}", error.message);
}
