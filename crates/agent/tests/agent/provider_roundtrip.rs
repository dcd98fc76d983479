//! Opaque data in an answer returns to its provider in the next request: decoders and projection agree on the
//! names of the block fields.

use retake_agent::provider::{Answer, Decoder, EventReader, Wire};
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::id::EntryId;
use retake_model::projection::{Ask, Dialect, Thinking, Thoughts, converse, request, rules};
use retake_model::settings::Effort;
use retake_model::time::Timestamp;
use serde_json::Value;

fn decode(wire: Wire, datas: &[&str]) -> Answer {
    let (mut reader, mut decoder, mut events) = (EventReader::new(), Decoder::new(wire), Vec::new());
    let stream: String = datas.iter().flat_map(|data| ["data: ", data, "\n\n"]).collect();
    reader.feed(stream.as_bytes(), &mut events).expect("text");
    for event in events {
        decoder.feed(&event, &mut |_| {}).expect("a good stream");
    }
    decoder.finish(&mut |_| {}).expect("an answer")
}

/// The next request after an answer, with results for all its calls.
fn next_request(wire: Wire, answer: &Answer) -> Value {
    let now = Timestamp::from_millis(1);
    let mut reply = EntryVersion::from_text("AI", "", now);
    reply.blocks = answer.blocks.clone();
    reply.model = Some("m".to_owned());
    let mut results = EntryVersion::from_text("Tool", "", now);
    results.blocks = answer.blocks.iter().filter_map(result).collect();
    let entries = [EntryVersion::from_text("User", "hello", now), reply, results];
    let named = |(number, entry)| (EntryId::from_bytes([number as u8; 16]), entry);
    let entries: Vec<(EntryId, EntryVersion)> = entries.into_iter().enumerate().map(named).collect();
    let ask = Ask {
        wire,
        dialect: Dialect { return_reasoning: true, ..Dialect::of(wire) },
        model: "m",
        system: "",
        tools: &[],
        max_tokens: 4000,
        temperature: None,
        top_p: None,
        thinking: Some(Thinking { effort: Effort::Low, budget: 2_000 }),
        thoughts: Thoughts::Accepted,
    };
    let body = request(&converse(&entries), &ask, &|_| None);
    assert_eq!(rules::check(wire, &body), Vec::new());
    body
}

fn result(block: &Block) -> Option<Block> {
    let Block::ToolCall { call, .. } = block else { return None };
    Some(Block::ToolResult {
        call: call.clone(),
        text: "ok".to_owned(),
        failed: false,
        extra: Fields::default(),
    })
}

#[test]
fn signed_content_is_returned_to_its_provider() {
    let check = |wire: Wire, datas: &[&str], expected: &[&str]| {
        let body = next_request(wire, &decode(wire, datas)).to_string();
        for words in expected {
            assert!(body.contains(words), "{wire:?}: {words} is not in {body}");
        }
    };
    check(
        Wire::Anthropic,
        &[
            r#"{"type":"message_start","message":{"id":"m"}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":"SEAL"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"HIDDEN"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call-1","name":"read"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        ],
        &[r#""signature":"SEAL""#, r#""data":"HIDDEN""#, "call-1"],
    );
    check(
        Wire::Responses,
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"SEALED"}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"call-1","name":"read","arguments":"{}"}}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ],
        &[r#""encrypted_content":"SEALED""#, "call-1"],
    );
    check(
        Wire::Gemini,
        &[
            r#"{"responseId":"r","candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"so","thoughtSignature":"SEAL1"},{"functionCall":{"name":"read","args":{"path":"a"}},"thoughtSignature":"SEAL2"}]},"finishReason":"STOP"}]}"#,
        ],
        &[r#""thoughtSignature":"SEAL1""#, r#""thoughtSignature":"SEAL2""#],
    );
    check(
        Wire::Chat,
        &[
            r#"{"choices":[{"delta":{"reasoning_content":"hm so"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call-1","function":{"name":"read","arguments":"{"}}]}}]}"#,
            r#"{"choices":[{"finish_reason":"tool_calls"}]}"#,
        ],
        // Input that is not an object is sent back as one.
        &[r#""reasoning_content":"hm so""#, "call-1"],
    );
}

#[test]
fn details_that_arrive_after_a_call_go_back_with_it() {
    // Recorded from Gemini behind a gateway: its signature follows the call that it belongs to.
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call-1","function":{"name":"read","arguments":"{}"}}]}}]}"#;
    let text = r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","index":0}]}}]}"#;
    let sealed = r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"SEAL","index":0}]}}]}"#;
    let end = r#"{"choices":[{"finish_reason":"tool_calls"}]}"#;
    let check = |datas: &[&str], expected: &str| {
        let body = next_request(Wire::Chat, &decode(Wire::Chat, datas));
        let message = &body["messages"][1];
        assert_eq!(message["reasoning_details"].to_string(), expected, "{body}");
        assert_eq!(message.get("reasoning_content"), None, "{body}");
    };
    let (plain, seal) = (
        r#"{"type":"reasoning.text","text":"hm","index":0}"#,
        r#"{"type":"reasoning.encrypted","data":"SEAL","index":0}"#,
    );
    check(&[call, sealed, end], &format!("[{seal}]"));
    check(&[text, call, sealed, end], &format!("[{plain},{seal}]"));
}

#[test]
fn the_id_of_a_call_goes_back_as_its_model_wrote_it() {
    let stream = |id: &str| {
        [
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"read","arguments":"{{}}"}}}}]}}}}]}}"#
            ),
            r#"{"choices":[{"finish_reason":"tool_calls"}]}"#.to_owned(),
        ]
    };
    let check = |id: &str, expected: &str| {
        let datas = stream(id);
        let datas = datas.each_ref().map(String::as_str);
        let body = next_request(Wire::Chat, &decode(Wire::Chat, &datas));
        assert_eq!(body["messages"][1]["tool_calls"][0]["id"], expected);
        assert_eq!(body["messages"][2]["tool_call_id"], expected);
    };
    // Kimi numbers its calls in their ids, and reads the numbers.
    check("functions.read:0", "functions.read:0");
    check("call_1", "call_1");
    check("two words", "two_words");
}

#[test]
fn an_answer_of_responses_goes_back_as_a_complete_item() {
    let datas = [
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_a","role":"assistant","content":[{"type":"output_text","text":"yes"}]}}"#,
        r#"{"type":"response.completed","response":{}}"#,
    ];
    let body = next_request(Wire::Responses, &decode(Wire::Responses, &datas));
    let item = &body["input"][1];
    assert_eq!((&item["id"], &item["status"]), (&"msg_1".into(), &"completed".into()));
    assert!(item["content"][0]["annotations"].is_array(), "{item}");
}
