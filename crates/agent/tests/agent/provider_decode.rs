//! Valid streams decode regardless of how they are split; invalid ones return an error that keeps everything
//! received before.

use proptest::prelude::*;
use retake_agent::provider::{
    Answer, CallError, Decoder, Delta, EventReader, Fault, Stop, Wire, broken_input,
};
use retake_model::entry::{Block, Fields, Usage};
use retake_model::json::Json;
use retake_testing::fault_server::{ScriptedAnswer, call, events, text_answer};
use serde_json::json;

const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini];

/// Decodes bytes that arrive in pieces of these sizes.
fn decode(wire: Wire, bytes: &[u8], sizes: &[usize]) -> (Result<Answer, CallError>, Vec<Delta>) {
    let (mut reader, mut decoder, mut deltas) = (EventReader::new(), Decoder::new(wire), Vec::new());
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| *size).min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        let mut events = Vec::new();
        reader.feed(piece, &mut events).expect("the stream is text");
        for event in events {
            match decoder.feed(&event, &mut |delta| deltas.push(delta)) {
                Ok(true) => {}
                Ok(false) => rest = &[],
                Err(error) => {
                    let partial = Box::new(decoder.partial());
                    return (Err(CallError { partial, ..error }), deltas);
                }
            }
        }
    }
    (decoder.finish(&mut |delta| deltas.push(delta)), deltas)
}

fn whole(wire: Wire, events: &[String]) -> Result<Answer, CallError> {
    decode(wire, events.concat().as_bytes(), &[usize::MAX]).0
}

fn fields(fields: &[(&str, &str)]) -> Fields {
    fields.iter().map(|(name, text)| ((*name).to_owned(), Json::new(*text).expect("valid JSON"))).collect()
}

/// A thinking block with the data that its wire format needs to send it back.
fn thought(wire: Wire, text: &str, seal: &str) -> Block {
    let quoted = serde_json::to_string(seal).expect("a string");
    let (signature, extra) = match wire {
        Wire::Anthropic => (Some(seal.to_owned()), fields(&[("wire", "\"anthropic\"")])),
        Wire::Chat => (None, fields(&[("wire", "\"chat\""), ("field", "\"reasoning_content\"")])),
        Wire::Responses => {
            let item = json!({"type": "reasoning", "id": seal, "encrypted_content": seal, "summary": []})
                .to_string();
            (None, fields(&[("wire", "\"responses\""), ("reasoning", &item)]))
        }
        Wire::Gemini => (None, fields(&[("wire", "\"gemini\""), ("thought_signature", &quoted)])),
    };
    Block::Thinking { text: text.to_owned(), signature, extra }
}

/// The seed of a random block.
#[derive(Clone, Debug)]
enum Seed {
    Text(String),
    Thought(String, String),
    Call(String, String),
}

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let text = "[a-zA-Z \\n\"\\\\é✓🎉:{}\\[\\]]{1,40}";
    let one = prop_oneof![
        text.prop_map(Seed::Text),
        (text, "[a-zA-Z0-9+/=]{1,20}").prop_map(|(text, seal)| Seed::Thought(text, seal)),
        ("[a-z_]{1,10}", text).prop_map(|(name, value)| Seed::Call(name, value)),
    ];
    prop::collection::vec(one, 1..8)
}

/// Builds blocks from seeds. Wire formats without blocks merge neighbours of one kind, so a call separates
/// them.
fn blocks(wire: Wire, seeds: &[Seed]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (number, seed) in seeds.iter().enumerate() {
        let block = match seed {
            Seed::Text(text) => Block::of_text(text),
            Seed::Thought(text, seal) => thought(wire, text, seal),
            Seed::Call(name, value) => call(&format!("call_{number}"), name, &json!({"value": value})),
        };
        if blocks.last().is_some_and(|last| last.kind() == block.kind() && block.kind() != "tool_call") {
            blocks.push(call(&format!("between_{number}"), "list", &json!({})));
        }
        blocks.push(block);
    }
    blocks
}

fn scripted_answer(wire: Wire, seeds: &[Seed], piece: usize) -> ScriptedAnswer {
    let blocks = blocks(wire, seeds);
    let calls = blocks.iter().any(|block| block.kind() == "tool_call");
    let stop = if calls { Stop::ToolUse } else { Stop::EndTurn };
    let usage =
        Usage { input_tokens: 10, output_tokens: 20, cache_read_input_tokens: 30, ..Usage::default() };
    ScriptedAnswer { blocks, piece, usage, stop }
}

proptest! {
    #[test]
    fn blocks_are_decoded_however_they_are_split(
        seeds in seeds(),
        piece in 1_usize..20,
        sizes in prop::collection::vec(1_usize..200, 1..8),
    ) {
        for wire in WIRES {
            let scripted_reply = scripted_answer(wire, &seeds, piece);
            let bytes = events(wire, &scripted_reply).concat();
            let (answer, deltas) = decode(wire, bytes.as_bytes(), &sizes);
            let answer = answer.expect("a good stream");
            prop_assert_eq!(&answer.blocks, &scripted_reply.blocks, "{:?}", wire);
            prop_assert_eq!(&answer.stop, &scripted_reply.stop);
            prop_assert_eq!(answer.usage.as_ref(), Some(&scripted_reply.usage));
            prop_assert_eq!(answer.model.as_deref(), Some("scripted-1"));
            prop_assert!(answer.response_id.is_some());
            prop_assert_eq!(shown(&deltas), texts(&scripted_reply.blocks));
        }
    }

    #[test]
    fn a_truncated_stream_keeps_the_content_received(seeds in seeds(), keep in 0.0_f64..1.0) {
        for wire in WIRES {
            let scripted_reply = scripted_answer(wire, &seeds, 5);
            let all = events(wire, &scripted_reply);
            let bytes = all.concat().into_bytes();
            let kept = &bytes[..(bytes.len() as f64 * keep) as usize];
            let (answer, deltas) = decode(wire, kept, &[64]);
            if let Err(error) = answer {
                prop_assert!(error.retryable);
                prop_assert!(matches!(error.fault, Fault::Cut));
                prop_assert_eq!(texts(&error.partial.blocks), shown(&deltas));
            }
        }
    }

    #[test]
    fn damaged_streams_never_panic(
        seeds in seeds(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..4),
    ) {
        for wire in WIRES {
            let mut letters: Vec<char> = events(wire, &scripted_answer(wire, &seeds, 5)).concat().chars().collect();
            for (place, letter) in &places {
                let place = place.index(letters.len());
                letters[place] = *letter;
            }
            let text: String = letters.iter().collect();
            let (answer, deltas) = decode(wire, text.as_bytes(), &[33]);
            let blocks = answer.map_or_else(|error| error.partial.blocks, |answer| answer.blocks);
            // A finished item of Responses puts right what was lost on the way, and was shown without it.
            let corrected = wire == Wire::Responses && text.contains("output_item.done");
            prop_assert!(corrected || texts(&blocks) == shown(&deltas), "{:?} {:?}", blocks, deltas);
        }
    }
}

/// All text, thinking and tool input that the deltas show.
fn shown(deltas: &[Delta]) -> String {
    let mut all = [String::new(), String::new()];
    for delta in deltas {
        match delta {
            Delta::Text(text) => all[0].push_str(text),
            Delta::Thinking(text) => all[1].push_str(text),
            _ => {}
        }
    }
    all.join("|")
}

fn texts(blocks: &[Block]) -> String {
    let mut all = [String::new(), String::new()];
    for block in blocks {
        match block {
            Block::Text { text, .. } => all[0].push_str(text),
            Block::Thinking { text, .. } => all[1].push_str(text),
            _ => {}
        }
    }
    all.join("|")
}

/// Control for the property above: a decoder that ignores order would pass that test, but fails here.
#[test]
fn reordered_events_give_a_different_answer() {
    for wire in WIRES {
        let scripted = text_answer("one two three four five six");
        let mut good = events(wire, &scripted);
        // The final item repeats everything and would restore the order.
        good.retain(|event| !event.contains("output_item.done"));
        let mut swapped = good.clone();
        let place = |word: &str| good.iter().position(|event| event.contains(word)).expect("a piece");
        let (first, second) = (place("two"), place("four"));
        assert_ne!(first, second);
        swapped.swap(first, second);
        let (good, swapped) = (whole(wire, &good), whole(wire, &swapped));
        assert_eq!(good.expect("a good stream").blocks, scripted.blocks);
        assert_ne!(swapped.expect("still a stream").blocks, scripted.blocks);
    }
}

#[test]
fn an_invalid_event_is_an_error_that_keeps_the_content_received() {
    let check = |wire: Wire, at: usize, event: &str, fault: Fault| {
        let mut all = events(wire, &text_answer("hello world, here I am"));
        let at = at.min(all.len() - 1);
        all.insert(at, format!("{event}\n\n"));
        let before = texts(&whole(wire, &all[..at]).expect_err("half a stream").partial.blocks);
        let error = whole(wire, &all).expect_err(event);
        assert_eq!(error.fault, fault, "{wire:?} {event}: {}", error.message);
        assert_eq!(error.retryable, fault.is_retryable());
        assert_eq!(texts(&error.partial.blocks), before, "{event}");
    };
    for wire in WIRES {
        check(wire, 4, "data: {\"half\":", Fault::Protocol);
        check(wire, 4, "data: nonsense", Fault::Protocol);
        check(wire, 4, "data: []", Fault::Protocol);
        check(wire, 4, "data: {\"error\":{\"message\":\"boom\",\"code\":503}}", Fault::Busy);
        check(wire, 4, "event: error\ndata: {\"message\":\"boom\"}", Fault::Server);
        check(wire, 4, "error: {\"message\":\"boom\",\"code\":500}", Fault::Server);
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        check(wire, 4, &format!("event: error\ndata: {overloaded}"), Fault::Busy);
    }
    let anthropic = |at, data: &str| check(Wire::Anthropic, at, &format!("data: {data}"), Fault::Protocol);
    anthropic(4, r#"{"type":"message_start","message":{}}"#);
    anthropic(0, r#"{"type":"content_block_stop","index":0}"#);
    anthropic(0, r#"{"type":"message_stop"}"#);
    anthropic(4, r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
    anthropic(4, r#"{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}"#);
    anthropic(4, r#"{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"x"}}"#);
    anthropic(4, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#);
    anthropic(4, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#);
    anthropic(
        4,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}"#,
    );
    anthropic(4, r#"{"type":"content_block_delta","index":0}"#);
    anthropic(4, r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a"}}"#);
    anthropic(4, r#"{"type":"content_block_start","index":1,"content_block":[]}"#);
    anthropic(4, r#"{"no":"type"}"#);
    let chat = |data: &str| check(Wire::Chat, 3, &format!("data: {data}"), Fault::Protocol);
    chat(r#"{"choices":[{"delta":{"content":7}}]}"#);
    chat(r#"{"choices":{"delta":{}}}"#);
    chat(r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}}]}"#);
    let responses = |data: &str| check(Wire::Responses, 3, &format!("data: {data}"), Fault::Protocol);
    responses(r#"{"type":"response.output_text.delta","output_index":9,"delta":"x"}"#);
    responses(r#"{"type":"response.output_text.delta","output_index":0}"#);
    responses(r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}"#);
    responses(r#"{"type":"response.output_item.done","output_index":0}"#);
    check(
        Wire::Responses,
        3,
        r#"data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}"#,
        Fault::Busy,
    );
    let gemini = |data: &str| check(Wire::Gemini, 2, &format!("data: {data}"), Fault::Protocol);
    gemini(r#"{"candidates":[{"content":{"parts":[{"text":7}]}}]}"#);
    gemini(r#"{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}"#);
    gemini(r#"{"candidates":7}"#);
}

#[test]
fn an_impossible_token_count_does_not_fail_the_answer() {
    let check = |wire: Wire, at: usize, event: &str| {
        let mut all = events(wire, &text_answer("hello"));
        let at = all.len() - at;
        all[at] = format!("data: {event}\n\n");
        let answer = whole(wire, &all).expect("still an answer");
        assert_eq!(texts(&answer.blocks), "hello|");
        assert_eq!(answer.usage, None, "{wire:?}");
    };
    check(
        Wire::Anthropic,
        2,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":-4}}"#,
    );
    check(Wire::Chat, 2, r#"{"choices":[],"usage":{"prompt_tokens":1e99,"completion_tokens":3}}"#);
    check(Wire::Responses, 1, r#"{"type":"response.completed","response":{"usage":{"input_tokens":"x"}}}"#);
    check(
        Wire::Gemini,
        1,
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":-1}}"#,
    );
}

#[test]
fn deviations_of_compatible_servers_are_decoded() {
    let check = |wire: Wire, datas: &[&str], expected: &str, stop: Stop| {
        let events: Vec<String> = datas.iter().map(|data| format!("data: {data}\n\n")).collect();
        let answer = whole(wire, &events).expect("an answer");
        assert_eq!(
            serde_json::to_value(&answer.blocks).expect("JSON"),
            serde_json::from_str::<serde_json::Value>(expected).expect("JSON")
        );
        assert_eq!(answer.stop, stop);
    };
    let end = r#"{"choices":[{"finish_reason":"stop"}]}"#;
    // Parallel calls with the same index, and a stop reason that does not mention calls.
    check(
        Wire::Chat,
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}}]}"#,
            end,
        ],
        r#"[{"type":"tool_call","call":"a","name":"x","input":{}},{"type":"tool_call","call":"b","name":"y","input":{}}]"#,
        Stop::ToolUse,
    );
    // Calls without indexes and ids, and a call that repeats its id in each piece.
    check(
        Wire::Chat,
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"x","arguments":"{}"}},{"function":{"name":"y"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"a\":1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":5,"id":"z","function":{"name":"w","arguments":"{"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":5,"id":"z","function":{"name":"w","arguments":"}"}}]}}]}"#,
            end,
        ],
        r#"[{"type":"tool_call","call":"call_0","name":"x","input":{}},
            {"type":"tool_call","call":"call_1","name":"y","input":{"a":1}},
            {"type":"tool_call","call":"z","name":"w","input":{}}]"#,
        Stop::ToolUse,
    );
    // Thinking under another field name, with details to send back; a refusal.
    check(
        Wire::Chat,
        &[
            r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"x","data":"1"}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"y"}]}}]}"#,
            r#"{"choices":[{"delta":{"content":null,"refusal":"no"}}]}"#,
            end,
            "[DONE]",
        ],
        r#"[{"type":"thinking","text":"hm","field":"reasoning","wire":"chat",
            "reasoning_details":[{"type":"x","data":"1"},{"type":"y"}]},{"type":"text","text":"no"}]"#,
        Stop::Refusal,
    );
    // Calls without ids get one derived from the answer's id; signatures stay on their parts.
    check(
        Wire::Gemini,
        &[
            r#"{"responseId":"r","candidates":[{"content":{"parts":[
                {"functionCall":{"name":"x","args":{"b":1.0,"a":2}},"thoughtSignature":"s1"},{"functionCall":{"name":"y"}}]}}]}"#
                .replace('\n', " ")
                .as_str(),
            r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b","thoughtSignature":"s2"},{"text":"c"}]},"finishReason":"STOP"}]}"#,
        ],
        r#"[{"type":"tool_call","call":"call_r_0","name":"x","input":{"b":1.0,"a":2},"thought_signature":"s1","wire":"gemini"},
            {"type":"tool_call","call":"call_r_1","name":"y","input":{}},
            {"type":"text","text":"a"},
            {"type":"text","text":"b","thought_signature":"s2","wire":"gemini"},
            {"type":"text","text":"c"}]"#,
        Stop::ToolUse,
    );
    check(Wire::Gemini, &[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#], "[]", Stop::Refusal);
    // An item that was not streamed.
    check(
        Wire::Responses,
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","phase":"final","content":[{"type":"output_text","text":"hi"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"x","arguments":"{}"}}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"novelty","data":1}}"#,
            r#"{"type":"response.completed","response":{"usage":null}}"#,
        ],
        r#"[{"type":"text","text":"hi","phase":"final","wire":"responses"},
            {"type":"tool_call","call":"c","name":"x","input":{}},
            {"type":"novelty","item":{"type":"novelty","data":1},"wire":"responses"}]"#,
        Stop::ToolUse,
    );
    // Unknown blocks, and redacted thinking.
    check(
        Wire::Anthropic,
        &[
            r#"{"type":"message_start","message":{"id":"m"}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"xyz"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"see"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"page":[1]}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"page":[2]}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        r#"[{"type":"thinking","text":"","redacted":"xyz","wire":"anthropic"},
            {"type":"server_tool_use","id":"s","input":{"q":1},"wire":"anthropic"},
            {"type":"text","text":"see","citations":[{"page":[1]},{"page":[2]}],"wire":"anthropic"}]"#,
        Stop::Other("pause_turn".to_owned()),
    );
}

#[test]
fn a_truncated_call_is_preserved_and_marked() {
    let input = json!({"path": "a long path to a file"});
    let marks = [
        (Wire::Anthropic, "partial_json"),
        (Wire::Chat, "\"arguments\""),
        (Wire::Responses, "arguments.delta"),
    ];
    for (wire, mark) in marks {
        let scripted = ScriptedAnswer {
            blocks: vec![call("c", "read", &input)],
            stop: Stop::MaxTokens,
            ..text_answer("")
        };
        let mut all = events(wire, &scripted);
        all.remove(all.iter().rposition(|event| event.contains(mark)).expect("the last piece"));
        let answer = whole(wire, &all).expect("an answer");
        assert_eq!(answer.stop, Stop::MaxTokens);
        assert!(broken_input(&answer.blocks[0]).expect("marked").contains("JSON"), "{wire:?}");
    }
}
