//! Random histories: conversations as the driver writes them, and then all edits that users make.
//!
//! For tests and campaigns. The same seed gives the same history on every machine.

use std::collections::BTreeMap;

use retake_model::content::{ContentId, Kind};
use retake_model::entry::{Block, EntryVersion, Fields};
use retake_model::id::EntryId;
use retake_model::json::Json;
use retake_model::projection::Wire;
use retake_model::time::Timestamp;

/// One entry with its identity.
pub type Entry = (EntryId, EntryVersion);

/// A seeded random number generator (splitmix).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xa076_1d64_78bd_642f) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    /// True once in `times` calls on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A random element.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const TEXTS: &[&str] = &[
    "hello",
    "",
    "   ",
    "\n\t",
    "Please look at `main.rs`.",
    "größer 🦀 \u{200b}",
    "<think>never closed",
    "line one\nline two\n",
    "\u{1b}[31mred\u{1b}[0m",
    "ends with spaces   ",
    "{\"type\":\"tool_result\"}",
];
const INPUTS: &[&str] = &[
    "{}",
    r#"{"path":"src/lib.rs","limit":10}"#,
    "null",
    "[1,[2]]",
    "1e400",
    r#"{"n":1e400}"#,
    "\"text\"",
    r#"{"half":"\ud800"}"#,
    r#"{"n":18446744073709551616}"#,
    r#"{"a":1,"a":2}"#,
];
const TOOLS: &[&str] = &["read", "shell", "mcp/server.tool", "", "7zip", "größe", "edit"];
const CALLS: &[&str] = &["a", "b", "a_2", "toolu_01", "", "é!", "with space"];
const MEDIA: &[&str] =
    &["image/png", "image/jpeg", "image/jpg", "image/tiff", "IMAGE/WEBP", "application/pdf", ""];
const ROLES: &[&str] = &["User", "AI", "Vendor API", "System", "Tool", "assistant", "Reviewer"];

/// Two models of a wire, so that switches within a wire occur too.
pub fn models(wire: Wire) -> [String; 2] {
    [format!("{}-large", wire.name()), format!("{}-small", wire.name())]
}

/// The bytes of a picture in a sample; some are missing.
pub fn picture(content: ContentId) -> Option<Vec<u8>> {
    (!content.bytes()[0].is_multiple_of(4)).then(|| content.bytes()[..9].to_vec())
}

/// The history of a seed: conversations with tools over several providers, followed by edits, insertions,
/// deletions, role changes, cuts, interruptions, copies and summaries.
pub fn random_entries(seed: u64) -> Vec<Entry> {
    let mut sampler = Sampler { rng: Rng::new(seed), made: 0 };
    let mut entries = Vec::new();
    for _ in 0..sampler.rng.below(5) {
        sampler.turn(&mut entries);
    }
    for _ in 0..sampler.rng.below(8) {
        sampler.operation(&mut entries);
    }
    if sampler.rng.once_in(3) {
        sampler.turn(&mut entries);
    }
    entries
}

struct Sampler {
    rng: Rng,
    made: u64,
}

impl Sampler {
    fn id(&mut self) -> EntryId {
        self.made += 1;
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&self.made.to_be_bytes());
        EntryId::from_bytes(bytes)
    }

    fn push(&mut self, entries: &mut Vec<Entry>, role: &str, blocks: Vec<Block>, model: Option<&str>) {
        let id = self.id();
        entries.push((id, version(role, blocks, model)));
    }

    fn text(&mut self) -> Block {
        Block::of_text(*self.rng.pick(TEXTS))
    }

    fn image(&mut self) -> Block {
        let blob = ContentId::of(Kind::Blob, &self.rng.roll().to_be_bytes());
        Block::Image { media: (*self.rng.pick(MEDIA)).to_owned(), blob, extra: Fields::default() }
    }

    /// A prompt, with answers and tool calls until the model is done.
    fn turn(&mut self, entries: &mut Vec<Entry>) {
        let wire = *self.rng.pick(&Wire::ALL);
        let model = self.rng.pick(&models(wire)).clone();
        let mut blocks = vec![self.text()];
        if self.rng.once_in(4) {
            blocks.push(self.image());
        }
        self.push(entries, "User", blocks, None);
        for _ in 0..self.rng.below(4) {
            self.round(entries, wire, &model);
        }
        let text = self.text();
        let blocks = if self.rng.once_in(2) { vec![self.thought(wire, &model), text] } else { vec![text] };
        self.push(entries, "AI", blocks, Some(&model));
    }

    /// An answer with calls and their results, in one of the possible layouts.
    fn round(&mut self, entries: &mut Vec<Entry>, wire: Wire, model: &str) {
        let mut blocks = Vec::new();
        if self.rng.once_in(2) {
            blocks.push(self.thought(wire, model));
        }
        if self.rng.once_in(2) {
            blocks.push(self.text());
        }
        let calls: Vec<Block> = (0..=self.rng.below(3)).map(|_| self.call(wire, model)).collect();
        let mut results: Vec<Block> = calls.iter().map(|call| self.result(call)).collect();
        if self.rng.once_in(6) {
            results.pop();
        }
        if self.rng.once_in(4) {
            results.reverse();
        }
        blocks.extend(calls);
        // A gateway may send the signature of a call after the call.
        if wire == Wire::Chat && self.rng.once_in(4) {
            blocks.push(self.thought(wire, model));
        }
        match self.rng.below(4) {
            0 => {
                blocks.extend(results);
                self.push(entries, "AI", blocks, Some(model));
            }
            1 => {
                for block in blocks {
                    self.push(entries, "AI", vec![block], Some(model));
                }
                self.push(entries, "Tool", results, None);
            }
            2 => {
                self.push(entries, "AI", blocks, Some(model));
                self.push(entries, "User", results, None);
            }
            _ => {
                self.push(entries, "AI", blocks, Some(model));
                for result in results {
                    self.push(entries, "Tool", vec![result], None);
                }
            }
        }
    }

    /// Seals name their owner, so that checks can detect a seal in the wrong place.
    fn seal(&mut self, wire: Wire, model: &str) -> String {
        self.made += 1;
        format!("seal:{}:{model}:{}", wire.name(), self.made)
    }

    fn thought(&mut self, wire: Wire, model: &str) -> Block {
        let seal = self.seal(wire, model);
        let mut extra = vec![("wire", Json::string(wire.name()))];
        let mut signature = None;
        match wire {
            Wire::Anthropic if self.rng.once_in(4) => extra.push(("redacted", Json::string(&seal))),
            Wire::Anthropic => signature = Some(seal),
            Wire::Responses => extra.push(("reasoning", reasoning(&seal))),
            Wire::Chat if self.rng.once_in(3) => extra.push(("reasoning_details", details(&seal))),
            Wire::Chat | Wire::Gemini => {}
        }
        Block::Thinking { text: (*self.rng.pick(TEXTS)).to_owned(), signature, extra: fields(extra) }
    }

    fn call(&mut self, wire: Wire, model: &str) -> Block {
        let call = match self.rng.below(5) {
            0 => (*self.rng.pick(CALLS)).to_owned(),
            1 => format!("call-{}-{}", self.rng.roll(), "long".repeat(12)),
            2 => format!("functions.read:{}", self.rng.below(9)),
            _ => format!("call_{}", self.rng.roll()),
        };
        let input = match self.rng.below(12) {
            0 => format!("{}{}", "[".repeat(127), "]".repeat(127)),
            _ => (*self.rng.pick(INPUTS)).to_owned(),
        };
        let mut extra = vec![("wire", Json::string(wire.name()))];
        if wire == Wire::Gemini && self.rng.once_in(2) {
            extra.push(("thought_signature", Json::string(&self.seal(wire, model))));
        }
        if wire == Wire::Responses && self.rng.once_in(3) {
            extra.push(("reasoning", reasoning(&self.seal(wire, model))));
        }
        let name = (*self.rng.pick(TOOLS)).to_owned();
        Block::ToolCall { call, name, input: Json::new(input).expect("valid JSON"), extra: fields(extra) }
    }

    fn result(&mut self, call: &Block) -> Block {
        let call = if let Block::ToolCall { call, .. } = call { call.clone() } else { String::new() };
        let text = (*self.rng.pick(TEXTS)).to_owned();
        Block::ToolResult { call, text, failed: self.rng.once_in(4), extra: Fields::default() }
    }

    fn any_block(&mut self) -> Block {
        let wire = *self.rng.pick(&Wire::ALL);
        let model = self.rng.pick(&models(wire)).clone();
        match self.rng.below(6) {
            0 => self.thought(wire, &model),
            1 => self.call(wire, &model),
            2 => {
                let call = self.call(wire, &model);
                self.result(&call)
            }
            3 => self.image(),
            4 => {
                Block::Unknown { kind: "citation".to_owned(), extra: fields(vec![("n", Json::string("x"))]) }
            }
            _ => self.text(),
        }
    }

    /// A random change by the user.
    fn operation(&mut self, entries: &mut Vec<Entry>) {
        let place = self.rng.below(entries.len());
        let kind = self.rng.below(10);
        if entries.is_empty() || kind == 0 {
            let blocks = (0..self.rng.below(4)).map(|_| self.any_block()).collect();
            let role = *self.rng.pick(ROLES);
            self.push(entries, role, blocks, None);
            let last = entries.pop().expect("just pushed");
            entries.insert(place.min(entries.len()), last);
            return;
        }
        match kind {
            1 | 2 => {
                let text = *self.rng.pick(TEXTS);
                entries[place].1 = entries[place].1.with_text(text, Timestamp::from_millis(5));
            }
            3 => _ = entries.remove(place),
            4 => entries[place].1.role = (*self.rng.pick(ROLES)).to_owned(),
            5 => entries.truncate(place + 1),
            6 => {
                // Interrupted: the rest of the turn is missing.
                entries.truncate(place + 1);
                let yes = Json::new("true").expect("valid JSON");
                entries[place].1.extra.insert("interrupted".to_owned(), yes);
            }
            7 => {
                let copied = entries[place].1.clone();
                let id = self.id();
                let to = self.rng.below(entries.len() + 1);
                entries.insert(to, (id, copied));
            }
            8 => {
                let end = (place + 1 + self.rng.below(4)).min(entries.len());
                let id = self.id();
                let summary = version("System", vec![Block::of_text("A summary of what was said.")], None);
                entries.splice(place..end, [(id, summary)]);
            }
            _ => {
                let other = self.rng.below(entries.len());
                entries.swap(place, other);
            }
        }
    }
}

fn version(role: &str, blocks: Vec<Block>, model: Option<&str>) -> EntryVersion {
    EntryVersion {
        role: role.to_owned(),
        blocks,
        created: Timestamp::from_millis(1),
        extra: BTreeMap::new(),
        edited: None,
        usage: None,
        model: model.map(str::to_owned),
    }
}

fn fields(fields: Vec<(&str, Json)>) -> Fields {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An encrypted item of `reasoning_details`.
fn details(seal: &str) -> Json {
    let item = format!(r#"[{{"type":"reasoning.encrypted","data":"{seal}","index":0}}]"#);
    Json::new(item).expect("valid JSON")
}

fn reasoning(seal: &str) -> Json {
    let item = serde_json::json!({
        "type": "reasoning",
        "id": format!("rs_{seal}"),
        "summary": [],
        "encrypted_content": seal,
        "status": "completed",
    });
    Json::new(item.to_string()).expect("valid JSON")
}
