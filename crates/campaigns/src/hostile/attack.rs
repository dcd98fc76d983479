//! Attacks of a hostile server, generated in pieces so that the server needs no memory for them either.

use retake_agent::provider::Wire;
use serde_json::{Value, json};

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Endless text.
    EndlessText,
    /// Endless keep-alive messages without content.
    EndlessPings,
    /// A gigabyte of arguments.
    HugeArguments,
    /// A hundred thousand calls.
    ManyCalls,
    /// Thousands of calls with the same id.
    SameIds,
    /// A gigabyte of zeros, compressed.
    GzipBomb,
    /// A redirect to another host.
    Redirect,
    /// Bytes that are not UTF-8.
    NotText,
    /// An endless line.
    EndlessLine,
    /// Single bytes with long pauses.
    SlowDrip,
    /// An error with an endless body.
    EndlessError,
    /// Deeply nested JSON.
    DeepJson,
}

const GIGABYTE: u64 = 1 << 30;
const CALLS: u64 = 100_000;
const SAME_IDS: u64 = 4_000;

impl Attack {
    /// Every attack.
    pub const ALL: [Self; 12] = [
        Self::EndlessText,
        Self::EndlessPings,
        Self::HugeArguments,
        Self::ManyCalls,
        Self::SameIds,
        Self::GzipBomb,
        Self::Redirect,
        Self::NotText,
        Self::EndlessLine,
        Self::SlowDrip,
        Self::EndlessError,
        Self::DeepJson,
    ];

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::EndlessText => "endless text",
            Self::EndlessPings => "endless pings",
            Self::HugeArguments => "huge arguments",
            Self::ManyCalls => "many calls",
            Self::SameIds => "the same id",
            Self::GzipBomb => "gzip bomb",
            Self::Redirect => "redirect",
            Self::NotText => "not text",
            Self::EndlessLine => "endless line",
            Self::SlowDrip => "slow drip",
            Self::EndlessError => "endless error",
            Self::DeepJson => "deep JSON",
        }
    }

    /// The head of the answer.
    pub(super) fn head(self, elsewhere: &str) -> String {
        match self {
            Self::Redirect => {
                format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere}/stolen\r\n\r\n")
            }
            Self::EndlessError => {
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\r\n".to_owned()
            }
            Self::GzipBomb => {
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n"
                    .to_owned()
            }
            _ => "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned(),
        }
    }

    /// The piece with that number; `None` at the end.
    pub(super) fn piece(self, wire: Wire, number: u64) -> Option<Vec<u8>> {
        let long = || "x".repeat(64 << 10);
        let first = number == 0;
        let events = match self {
            Self::Redirect => return None,
            Self::EndlessText | Self::NotText | Self::SlowDrip if first => start_text(wire),
            Self::EndlessText => vec![text(wire, &long())],
            Self::EndlessPings => {
                return Some(format!(": still here {}\n\n", "x".repeat(4_000)).repeat(16).into_bytes());
            }
            Self::HugeArguments if number * (64 << 10) > GIGABYTE => return None,
            Self::HugeArguments if first => start_call(wire, 0, "call_0"),
            Self::HugeArguments => vec![arguments(wire, number, &long())],
            Self::ManyCalls if number > CALLS => return None,
            Self::ManyCalls if number == CALLS => stop(wire),
            Self::ManyCalls => start_call(wire, number, &format!("call_{number}")),
            Self::SameIds if number > SAME_IDS => return None,
            Self::SameIds if number == SAME_IDS => stop(wire),
            Self::SameIds => start_call(wire, number, "call"),
            Self::GzipBomb => return (number < GIGABYTE / GZIP_PIECE).then(|| gzip(first)),
            Self::NotText => return Some(b"data: \xff\xfe\xc3\x28\n\n".repeat(100)),
            Self::EndlessLine if first => return Some(b"data: {\"x\":\"".to_vec()),
            Self::SlowDrip => return Some(b"x".to_vec()),
            Self::EndlessError if first => return Some(b"{\"error\":{\"message\":\"".to_vec()),
            Self::EndlessLine | Self::EndlessError => return Some(long().into_bytes()),
            Self::DeepJson if first => return Some(b"data: ".to_vec()),
            Self::DeepJson if number > 100 => return None,
            Self::DeepJson => return Some("{\"a\":[".repeat(10_000).into_bytes()),
        };
        let event = |data: &Value| ["data: ".to_owned(), data.to_string(), "\n\n".to_owned()];
        Some(events.iter().flat_map(event).collect::<String>().into_bytes())
    }
}

/// An ordinary answer.
pub(super) fn ordinary(wire: Wire) -> Vec<Value> {
    let mut all = start_text(wire);
    all.push(text(wire, "Hello."));
    all.extend(stop(wire));
    all
}

fn start(wire: Wire) -> Vec<Value> {
    match wire {
        Wire::Anthropic => vec![json!({"type": "message_start", "message": {"id": "m"}})],
        Wire::Responses => vec![json!({"type": "response.created", "response": {"id": "r"}})],
        Wire::Chat | Wire::Gemini => Vec::new(),
    }
}

fn start_text(wire: Wire) -> Vec<Value> {
    let mut all = start(wire);
    match wire {
        Wire::Anthropic => all.push(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        Wire::Responses => {
            all.push(
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
            );
        }
        Wire::Chat | Wire::Gemini => {}
    }
    all
}

fn text(wire: Wire, text: &str) -> Value {
    match wire {
        Wire::Anthropic => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        }
        Wire::Chat => json!({"choices": [{"delta": {"content": text}}]}),
        Wire::Responses => json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
        Wire::Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
    }
}

fn start_call(wire: Wire, index: u64, id: &str) -> Vec<Value> {
    let mut all = if index == 0 { start(wire) } else { Vec::new() };
    all.push(match wire {
        Wire::Anthropic => json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": id, "name": "list", "input": {}}}),
        Wire::Chat => json!({"choices": [{"delta": {"tool_calls": [
            {"index": index, "id": id, "function": {"name": "list", "arguments": ""}}]}}]}),
        Wire::Responses => json!({"type": "response.output_item.added", "output_index": index,
            "item": {"type": "function_call", "call_id": id, "name": "list"}}),
        Wire::Gemini => {
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"id": id, "name": "list", "args": {}}}]}}]})
        }
    });
    all
}

fn arguments(wire: Wire, number: u64, text: &str) -> Value {
    match wire {
        Wire::Anthropic => json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": text}}),
        Wire::Chat => {
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]})
        }
        Wire::Responses => {
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text})
        }
        // Gemini sends whole calls, so the attack sends many large ones.
        Wire::Gemini => json!({"candidates": [{"content": {"parts": [
            {"functionCall": {"id": format!("call_{number}"), "name": "list", "args": {"path": text}}}]}}]}),
    }
}

fn stop(wire: Wire) -> Vec<Value> {
    match wire {
        Wire::Anthropic => vec![
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ],
        Wire::Chat => vec![json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})],
        Wire::Responses => vec![json!({"type": "response.completed", "response": {"id": "r"}})],
        Wire::Gemini => vec![json!({"candidates": [{"finishReason": "STOP"}]})],
    }
}

/// Approximate unpacked size of a piece of the gzip bomb.
const GZIP_PIECE: u64 = 8 * 258 * 1_000;

/// A piece of zeros in gzip. With fixed codes, the bits 11000101 00000 stand for 258 more zeros.
fn gzip(first: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    let mut put = |bytes: &mut Vec<u8>, code: &str| {
        for bit in code.bytes() {
            bits |= u32::from(bit == b'1') << count;
            count += 1;
            if count == 8 {
                bytes.push(bits as u8);
                (bits, count) = (0, 0);
            }
        }
    };
    if first {
        bytes.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        // The last block, with fixed codes: a zero, then codes up to a byte boundary.
        put(&mut bytes, "110");
        put(&mut bytes, "00110000");
        put(&mut bytes, "1100010100000");
    }
    for _ in 0..8_000 {
        put(&mut bytes, "1100010100000");
    }
    bytes
}
