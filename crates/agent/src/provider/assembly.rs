//! An answer while it is put together: what the decoders of all wires share.
//!
//! Blocks are opened, grow, and are closed; what a screen should see is queued as deltas. All that is held is
//! counted, so that no server can fill the memory.

use std::collections::HashSet;

use retake_model::entry::{Block, Fields, Usage};
use retake_model::json::Json;
use serde_json::value::RawValue;

use super::details::Details;
use super::fault::DecodeError;
use super::status::shorten;
use super::{Answer, Delta, Stop, Wire};

/// The most bytes that one answer may have, all that it carries counted: 6 MiB.
///
/// The longest answers of today's models have about 1 MiB. An answer is copied a few times on its way to the disk, and
/// all copies together stay under 64 MiB.
pub const ANSWER_BYTES: usize = 6 << 20;

/// The field of a tool call whose input was not a JSON object. It says what was wrong with it; the input itself is
/// kept as a JSON string.
pub const BROKEN_INPUT: &str = "broken_input";

/// What each block costs beside its text, with the copies that are made of it.
const BLOCK_BYTES: usize = 1024;

/// Names that a provider gives to models and answers are not longer.
const NAME_BYTES: usize = 200;

/// What is wrong with the input of a call, if it is a call and its input was not a JSON object.
pub fn broken_input(block: &Block) -> Option<String> {
    let Block::ToolCall { extra, .. } = block else { return None };
    let (_, value) = extra.iter().find(|(name, _)| *name == BROKEN_INPUT)?;
    Some(serde_json::from_str(value.as_str()).unwrap_or_default())
}

/// A block that grows.
#[derive(Debug)]
struct PartialBlock {
    kind: Kind,
    /// The text, the thought, or the input as JSON text.
    text: String,
    extra: Vec<(String, Json)>,
    /// Fields that are lists, item by item.
    lists: Vec<(String, Vec<String>)>,
    /// `OpenRouter`'s reasoning, to be returned as it came.
    details: Details,
    ended: bool,
    /// What is wrong with the input of a call, beyond what can be seen in it.
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
    /// The ids of all calls, which must differ: results are matched by them.
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

    /// A call. A second call with the same id gets an id of its own, because results are matched by it.
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

    /// A block of a type that is not known, kept as it came.
    pub(super) fn unknown(&mut self, kind: &str, fields: Vec<(String, Json)>) -> Result<usize, DecodeError> {
        let block = self.begin(Kind::Unknown { kind: kind.to_owned() }, kind.len())?;
        for (name, value) in fields {
            self.extra(block, &name, value)?;
        }
        Ok(block)
    }

    /// Adds to the text of a block.
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

    /// Makes a text what it is as a whole, in parts. Nothing changes where it arrived like that.
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

    /// Adds to the seal of a thought.
    pub(super) fn seal(&mut self, block: usize, piece: &str) -> Result<(), DecodeError> {
        self.grow(piece.len())?;
        match &mut self.blocks[block].kind {
            Kind::Thinking { signature } => signature.push_str(piece),
            _ => return Err(DecodeError::protocol("a signature on what is no thought")),
        }
        Ok(())
    }

    /// Sets a field that only the provider understands.
    pub(super) fn extra(&mut self, block: usize, name: &str, value: Json) -> Result<(), DecodeError> {
        self.grow(name.len() + value.as_str().len())?;
        let extra = &mut self.blocks[block].extra;
        extra.retain(|(known, _)| known != name);
        extra.push((name.to_owned(), value));
        Ok(())
    }

    /// Adds an item to a field that is a list, and that only the provider understands.
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

    /// Turns a thought into the text that it is, with what stood before it.
    pub(super) fn unthink(&mut self, block: usize, before: &str) {
        let growing = &mut self.blocks[block];
        growing.kind = Kind::Text;
        growing.extra.clear();
        growing.text.insert_str(0, before);
    }

    /// Whether a field is set with [`Self::extra`].
    pub(super) fn has_extra(&self, block: usize, name: &str) -> bool {
        self.blocks[block].extra.iter().any(|(known, _)| known == name)
    }

    /// Closes a block; it may be closed already.
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

    /// The last block, if it is a text that can go on.
    pub(super) fn open_text(&self) -> Option<usize> {
        self.last_open(|kind| matches!(kind, Kind::Text))
    }

    /// The last block, if it is a thought that can go on.
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

    /// The names of a call: its own, and its tool's.
    pub(super) fn call_of(&self, block: usize) -> Option<(&str, &str)> {
        match &self.blocks[block].kind {
            Kind::Call { call, name } => Some((call, name)),
            _ => None,
        }
    }

    /// Sets what was counted. A count that cannot be believed makes the ones before it worthless too.
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

    /// Keeps the provider's own words on why the model stopped.
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

    /// What a screen has not yet seen.
    pub(super) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// All that was received.
    pub(super) fn into_answer(mut self) -> Answer {
        let wire = self.wire;
        let mut growing = std::mem::take(&mut self.blocks);
        // A call that was cut off must not pass for one without input.
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
        // Servers disagree on what to say here; whether there are calls is what counts.
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

    /// A name for a call that came without: the same answer always gives the same.
    fn invented_call(&self) -> String {
        let number = self.blocks.len();
        match &self.response_id {
            Some(id) => format!("call_{id}_{number}"),
            None => format!("call_{number}"),
        }
    }
}

impl PartialBlock {
    /// Marks a call that has not ended.
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
        // Only what the provider wants back to the byte is bound to its wire.
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

/// A call's input, and what is wrong with it. No input at all, or `null`, is an empty one: that is how providers
/// write it.
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
    fn input_that_is_no_object_is_kept_and_marked() {
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
    fn a_call_that_was_cut_off_is_marked_even_if_it_looks_whole() {
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
    fn an_answer_cannot_fill_the_memory() {
        let piece = "x".repeat(1 << 20);
        let mut assembly = Assembly::new(Wire::Anthropic);
        let block = assembly.begin_text().expect("room");
        let refused = (0..100).position(|_| assembly.push(block, &piece) == Err(DecodeError::TooLarge));
        assert_eq!(refused, Some(5));
        let mut assembly = Assembly::new(Wire::Anthropic);
        assert!((0..1_000_000).any(|_| assembly.begin_text() == Err(DecodeError::TooLarge)));
    }

    #[test]
    fn calls_with_the_same_id_are_told_apart() {
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
    fn empty_blocks_are_left_out_but_sealed_ones_stay() {
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
