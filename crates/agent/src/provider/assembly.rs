//! Assembles an answer from stream events; shared by the decoders of all wires.
//!
//! Blocks open, grow and close; deltas for the screen are queued. Every buffered byte counts towards a limit,
//! so that a server cannot exhaust memory.

use std::collections::HashSet;

use retake_model::entry::{Block, Fields, Usage};
use retake_model::json::Json;
use serde_json::value::RawValue;

use super::details::Details;
use super::fault::DecodeError;
use super::status::shorten;
use super::{Answer, Delta, Stop, Wire};

/// Maximum size of one answer in bytes, all of its content included: 6 MiB.
///
/// The longest answers of current models have about 1 MiB. An answer is copied a few times on its way to the
/// disk; all copies together stay under 64 MiB.
pub const ANSWER_BYTES: usize = 6 << 20;

/// Field of a tool call whose input was not a JSON object. It describes the error; the input itself is stored
/// as a JSON string.
pub const BROKEN_INPUT: &str = "broken_input";

/// Overhead of a block beside its text, including the copies made of it.
const BLOCK_BYTES: usize = 1024;

/// Maximum length of the names that providers give to models and answers.
const NAME_BYTES: usize = 200;

/// Returns the error in a call's input; `None` if the block is no call or its input is a JSON object.
pub fn broken_input(block: &Block) -> Option<String> {
    let Block::ToolCall { extra, .. } = block else { return None };
    let (_, value) = extra.iter().find(|(name, _)| *name == BROKEN_INPUT)?;
    Some(serde_json::from_str(value.as_str()).unwrap_or_default())
}

/// A growing block.
#[derive(Debug)]
struct PartialBlock {
    kind: Kind,
    /// The text, the thought, or the call's input as JSON text.
    text: String,
    extra: Vec<(String, Json)>,
    /// List fields, item by item.
    lists: Vec<(String, Vec<String>)>,
    /// `OpenRouter`'s reasoning details, sent back unchanged.
    details: Details,
    ended: bool,
    /// An error in the call's input that the input itself does not show.
    broken: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Text,
    Thinking { signature: String },
    Call { call: String, name: String },
    Unknown { kind: String },
}

/// The answer so far.
#[derive(Debug)]
pub(super) struct Assembly {
    wire: Wire,
    blocks: Vec<PartialBlock>,
    bytes: usize,
    deltas: Vec<Delta>,
    usage: Option<Usage>,
    miscounted: bool,
    model: Option<String>,
    response_id: Option<String>,
    stop: Option<Stop>,
    stop_detail: Option<String>,
    /// The ids of all calls. They must be unique, because results are matched by id.
    calls: HashSet<String>,
}

impl Assembly {
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            blocks: Vec::new(),
            bytes: 0,
            deltas: Vec::new(),
            usage: None,
            miscounted: false,
            model: None,
            response_id: None,
            stop: None,
            stop_detail: None,
            calls: HashSet::new(),
        }
    }

    pub(super) fn begin_text(&mut self) -> Result<usize, DecodeError> {
        self.begin(Kind::Text, 0)
    }

    pub(super) fn begin_thinking(&mut self) -> Result<usize, DecodeError> {
        self.begin(Kind::Thinking { signature: String::new() }, 0)
    }

    /// Begins a call. A second call with the same id gets a new id, because results are matched by id.
    pub(super) fn begin_call(&mut self, call: &str, name: &str) -> Result<usize, DecodeError> {
        if name.is_empty() {
            return Err(DecodeError::protocol("a tool call names no tool"));
        }
        self.grow(2 * call.len())?;
        let mut given = match call {
            "" => self.invented_call(),
            _ => call.to_owned(),
        };
        if self.calls.contains(&given) {
            given = format!("{given}_{}", self.blocks.len());
        }
        if !self.calls.insert(given.clone()) {
            return Err(DecodeError::protocol(format!("two tool calls have the same id {given:?}")));
        }
        let kind = Kind::Call { call: given.clone(), name: name.to_owned() };
        let block = self.begin(kind, given.len() + name.len())?;
        self.deltas.push(Delta::CallStarted { block, call: given, name: name.to_owned() });
        Ok(block)
    }

    /// Adds a block of an unknown type, unchanged.
    pub(super) fn unknown(&mut self, kind: &str, fields: Vec<(String, Json)>) -> Result<usize, DecodeError> {
        let block = self.begin(Kind::Unknown { kind: kind.to_owned() }, kind.len())?;
        for (name, value) in fields {
            self.extra(block, &name, value)?;
        }
        Ok(block)
    }

    /// Appends to the text of a block.
    pub(super) fn push(&mut self, block: usize, piece: &str) -> Result<(), DecodeError> {
        self.grow(piece.len())?;
        let growing = &mut self.blocks[block];
        if growing.ended {
            return Err(DecodeError::protocol("a block goes on after its end"));
        }
        growing.text.push_str(piece);
        if piece.is_empty() {
            return Ok(());
        }
        let text = piece.to_owned();
        match growing.kind {
            Kind::Text => self.deltas.push(Delta::Text(text)),
            Kind::Thinking { .. } => self.deltas.push(Delta::Thinking(text)),
            Kind::Call { .. } => self.deltas.push(Delta::CallInput { block, text }),
            Kind::Unknown { .. } => {}
        }
        Ok(())
    }

    /// Replaces a text with its complete form, in parts. Does nothing if the streamed text is the same.
    pub(super) fn complete(&mut self, block: usize, parts: &[String]) -> Result<(), DecodeError> {
        let whole = parts.concat();
        let text = &self.blocks[block].text;
        if whole.is_empty() || *text == whole || *text == parts.join("\n\n") {
            return Ok(());
        }
        if let Some(rest) = whole.strip_prefix(text.as_str()) {
            return self.push(block, rest);
        }
        self.grow(whole.len())?;
        self.blocks[block].text = whole;
        Ok(())
    }

    /// Appends to the seal of a thought.
    pub(super) fn seal(&mut self, block: usize, piece: &str) -> Result<(), DecodeError> {
        self.grow(piece.len())?;
        match &mut self.blocks[block].kind {
            Kind::Thinking { signature } => signature.push_str(piece),
            _ => return Err(DecodeError::protocol("a signature on a block that is not thinking")),
        }
        Ok(())
    }

    /// Sets a provider-specific field.
    pub(super) fn extra(&mut self, block: usize, name: &str, value: Json) -> Result<(), DecodeError> {
        self.grow(name.len() + value.as_str().len())?;
        let extra = &mut self.blocks[block].extra;
        extra.retain(|(known, _)| known != name);
        extra.push((name.to_owned(), value));
        Ok(())
    }

    /// Appends an item to a provider-specific list field.
    pub(super) fn append(&mut self, block: usize, name: &str, item: &RawValue) -> Result<(), DecodeError> {
        self.grow(name.len() + item.get().len())?;
        let lists = &mut self.blocks[block].lists;
        match lists.iter_mut().find(|(known, _)| known == name) {
            Some((_, items)) => items.push(item.get().to_owned()),
            None => lists.push((name.to_owned(), vec![item.get().to_owned()])),
        }
        Ok(())
    }

    /// Adds a piece of `reasoning_details`.
    pub(super) fn detail(&mut self, block: usize, piece: &RawValue) -> Result<(), DecodeError> {
        self.grow(piece.get().len())?;
        self.blocks[block].details.push(serde_json::from_str(piece.get())?);
        Ok(())
    }

    /// Turns a thought back into text, preceded by `before`.
    pub(super) fn unthink(&mut self, block: usize, before: &str) {
        let growing = &mut self.blocks[block];
        growing.kind = Kind::Text;
        growing.extra.clear();
        growing.text.insert_str(0, before);
    }

    /// Whether a field was set with [`Self::extra`].
    pub(super) fn has_extra(&self, block: usize, name: &str) -> bool {
        self.blocks[block].extra.iter().any(|(known, _)| known == name)
    }

    /// Closes a block. Closing it twice is allowed.
    pub(super) fn end(&mut self, block: usize) {
        let growing = &mut self.blocks[block];
        if !growing.ended && matches!(growing.kind, Kind::Call { .. }) {
            self.deltas.push(Delta::CallEnded { block });
        }
        growing.ended = true;
    }

    pub(super) fn end_all(&mut self) {
        (0..self.blocks.len()).for_each(|block| self.end(block));
    }

    /// The last block, if it is an open text.
    pub(super) fn open_text(&self) -> Option<usize> {
        self.last_open(|kind| matches!(kind, Kind::Text))
    }

    /// The last block, if it is an open thought.
    pub(super) fn open_thinking(&self) -> Option<usize> {
        self.last_open(|kind| matches!(kind, Kind::Thinking { .. }))
    }

    /// The last block, of whatever kind.
    pub(super) fn last(&self) -> Option<usize> {
        self.blocks.len().checked_sub(1)
    }

    pub(super) fn is_ended(&self, block: usize) -> bool {
        self.blocks[block].ended
    }

    /// Whether the block's text is still empty.
    pub(super) fn is_blank(&self, block: usize) -> bool {
        self.blocks[block].text.is_empty()
    }

    /// The id of a call and the name of its tool.
    pub(super) fn call_of(&self, block: usize) -> Option<(&str, &str)> {
        match &self.blocks[block].kind {
            Kind::Call { call, name } => Some((call, name)),
            _ => None,
        }
    }

    /// Sets the token usage. An implausible count also invalidates the earlier ones.
    pub(super) fn set_usage(&mut self, usage: Option<Usage>) {
        self.miscounted |= usage.is_none();
        self.usage = usage.filter(|_| !self.miscounted);
        self.deltas.extend(self.usage.clone().map(Delta::Usage));
    }

    pub(super) fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    pub(super) fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|model| is_name(model)) {
            self.model = Some(model.to_owned());
        }
    }

    pub(super) fn set_response_id(&mut self, id: Option<&str>) {
        if let Some(id) = id.filter(|id| is_name(id)) {
            self.response_id = Some(id.to_owned());
        }
    }

    pub(super) fn set_stop(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }

    /// Stores the provider's own explanation of why the model stopped.
    pub(super) fn set_stop_detail(&mut self, detail: Option<&str>) {
        if let Some(detail) = detail.map(shorten).filter(|detail| !detail.is_empty()) {
            self.stop_detail = Some(detail);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Takes the deltas that the screen has not shown yet.
    pub(super) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// Returns everything received.
    pub(super) fn into_answer(mut self) -> Answer {
        let wire = self.wire;
        let mut growing = std::mem::take(&mut self.blocks);
        // Do not mistake a call that was cut off for a call without input.
        match &self.stop {
            None => growing.iter_mut().for_each(PartialBlock::cut_off),
            Some(Stop::MaxTokens) => {
                growing
                    .last_mut()
                    .filter(|last| last.text.is_empty())
                    .into_iter()
                    .for_each(PartialBlock::break_off);
            }
            Some(_) => {}
        }
        let blocks: Vec<Block> = growing.into_iter().filter_map(|block| block.into_block(wire)).collect();
        let calls = blocks.iter().any(|block| matches!(block, Block::ToolCall { .. }));
        // Servers disagree on the stop reason here; rely on whether there are calls.
        let stop = match (self.stop.take().unwrap_or_default(), calls) {
            (Stop::EndTurn, true) => Stop::ToolUse,
            (Stop::ToolUse, false) => Stop::EndTurn,
            (stop, _) => stop,
        };
        let Self { usage, model, response_id, stop_detail, .. } = self;
        Answer { blocks, usage, stop, stop_detail, model, response_id }
    }

    fn begin(&mut self, kind: Kind, bytes: usize) -> Result<usize, DecodeError> {
        self.grow(BLOCK_BYTES + bytes)?;
        self.blocks.push(PartialBlock {
            kind,
            text: String::new(),
            extra: Vec::new(),
            lists: Vec::new(),
            details: Details::default(),
            ended: false,
            broken: None,
        });
        Ok(self.blocks.len() - 1)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), DecodeError> {
        if self.bytes + bytes > ANSWER_BYTES {
            return Err(DecodeError::TooLarge);
        }
        self.bytes += bytes;
        Ok(())
    }

    fn last_open(&self, wanted: impl Fn(&Kind) -> bool) -> Option<usize> {
        let last = self.last()?;
        let block = &self.blocks[last];
        (!block.ended && wanted(&block.kind)).then_some(last)
    }

    /// Generates an id for a call without one. It is deterministic: the same answer gets the same ids.
    fn invented_call(&self) -> String {
        let number = self.blocks.len();
        match &self.response_id {
            Some(id) => format!("call_{id}_{number}"),
            None => format!("call_{number}"),
        }
    }
}

impl PartialBlock {
    /// Marks an unfinished call as cut off.
    fn cut_off(&mut self) {
        if !self.ended {
            self.break_off();
        }
    }

    fn break_off(&mut self) {
        if matches!(self.kind, Kind::Call { .. }) {
            self.broken = Some("cut off before its end".to_owned());
        }
    }

    fn into_block(mut self, wire: Wire) -> Option<Block> {
        for (name, items) in std::mem::take(&mut self.lists) {
            self.extra.extend(Json::new(format!("[{}]", items.join(","))).ok().map(|list| (name, list)));
        }
        self.extra.extend(self.details.take().map(|list| ("reasoning_details".to_owned(), list)));
        if matches!(self.kind, Kind::Unknown { .. }) && !self.text.is_empty() {
            self.extra.push(("input".to_owned(), input(&self.text).0));
        }
        // Only blocks that the provider expects back byte for byte are bound to its wire.
        let sealed = matches!(&self.kind, Kind::Thinking { .. } | Kind::Unknown { .. });
        if sealed || !self.extra.is_empty() {
            self.extra.push(("wire".to_owned(), Json::string(wire.name())));
        }
        match self.kind {
            Kind::Text if self.text.is_empty() => None,
            Kind::Text => Some(Block::Text { text: self.text, extra: fields(self.extra) }),
            Kind::Thinking { signature }
                if self.text.is_empty() && signature.is_empty() && self.extra.len() < 2 =>
            {
                None
            }
            Kind::Thinking { signature } => Some(Block::Thinking {
                text: self.text,
                signature: (!signature.is_empty()).then_some(signature),
                extra: fields(self.extra),
            }),
            Kind::Call { call, name } => {
                let (input, wrong) = input(&self.text);
                let wrong = wrong.or(self.broken);
                self.extra.extend(wrong.map(|wrong| (BROKEN_INPUT.to_owned(), Json::string(&wrong))));
                Some(Block::ToolCall { call, name, input, extra: fields(self.extra) })
            }
            Kind::Unknown { kind } => Some(Block::Unknown { kind, extra: fields(self.extra) }),
        }
    }
}

/// Parses a call's input and returns any error. Missing input and `null` are an empty object, because
/// providers write it that way.
fn input(text: &str) -> (Json, Option<String>) {
    let trimmed = text.trim();
    if matches!(trimmed, "" | "null") {
        return (Json::new("{}").expect("an empty object is JSON"), None);
    }
    match Json::new(trimmed) {
        Ok(json) if trimmed.starts_with('{') => (json, None),
        Ok(_) => (Json::string(text), Some("not a JSON object".to_owned())),
        Err(error) => (Json::string(text), Some(error.to_string())),
    }
}

fn fields(extra: Vec<(String, Json)>) -> Fields {
    extra.into_iter().collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_other_than_an_object_is_preserved_and_marked_invalid() {
        let check = |text: &str, kept: &str, marked: bool| {
            let mut assembly = Assembly::new(Wire::Chat);
            let block = assembly.begin_call("c", "read").expect("room");
            assembly.push(block, text).expect("room");
            assembly.set_stop(Stop::EndTurn);
            let answer = assembly.into_answer();
            let Block::ToolCall { input, .. } = &answer.blocks[0] else { panic!("a call") };
            assert_eq!(input.as_str(), kept);
            assert_eq!(broken_input(&answer.blocks[0]).is_some(), marked, "{text}");
            assert_eq!(answer.stop, Stop::ToolUse);
        };
        check("", "{}", false);
        check(" null ", "{}", false);
        check(r#" {"b":1.0,"a":1e400} "#, r#"{"b":1.0,"a":1e400}"#, false);
        check(r#"{"path":"a"#, r#""{\"path\":\"a""#, true);
        check("[1]", r#""[1]""#, true);
        check("nonsense", r#""nonsense""#, true);
    }

    #[test]
    fn a_truncated_call_is_marked_even_if_its_input_parses() {
        let check = |ended: bool, stop: Option<Stop>, input: &str, marked: bool| {
            let mut assembly = Assembly::new(Wire::Anthropic);
            let block = assembly.begin_call("c", "list").expect("room");
            assembly.push(block, input).expect("room");
            if ended {
                assembly.end(block);
            }
            if let Some(stop) = stop {
                assembly.set_stop(stop);
            }
            let answer = assembly.into_answer();
            assert_eq!(broken_input(&answer.blocks[0]).is_some(), marked, "{ended} {input}");
        };
        check(false, None, "", true);
        check(false, None, "{}", true);
        check(true, None, "{}", false);
        check(true, Some(Stop::ToolUse), "", false);
        check(true, Some(Stop::MaxTokens), "", true);
        check(true, Some(Stop::MaxTokens), "{}", false);
    }

    #[test]
    fn the_size_of_an_answer_is_limited() {
        let piece = "x".repeat(1 << 20);
        let mut assembly = Assembly::new(Wire::Anthropic);
        let block = assembly.begin_text().expect("room");
        let refused = (0..100).position(|_| assembly.push(block, &piece) == Err(DecodeError::TooLarge));
        assert_eq!(refused, Some(5));
        let mut assembly = Assembly::new(Wire::Anthropic);
        assert!((0..1_000_000).any(|_| assembly.begin_text() == Err(DecodeError::TooLarge)));
    }

    #[test]
    fn calls_with_the_same_id_are_distinguished() {
        let mut assembly = Assembly::new(Wire::Gemini);
        for _ in 0..5_000 {
            let block = assembly.begin_call("same", "read").expect("room");
            assembly.end(block);
        }
        let answer = assembly.into_answer();
        let ids: HashSet<&str> = answer
            .blocks
            .iter()
            .map(|block| match block {
                Block::ToolCall { call, .. } => call.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((answer.blocks.len(), ids.len()), (5_000, 5_000));
        assert!(ids.contains("same"));
    }

    #[test]
    fn empty_blocks_are_dropped_unless_they_carry_a_signature() {
        let mut assembly = Assembly::new(Wire::Anthropic);
        assembly.begin_text().expect("room");
        assembly.begin_thinking().expect("room");
        let sealed = assembly.begin_thinking().expect("room");
        assembly.seal(sealed, "s").expect("a thought");
        let answer = assembly.into_answer();
        assert_eq!(answer.blocks.len(), 1);
        assert_eq!(answer.stop, Stop::EndTurn);
    }
}
