//! Converts entries into messages, block by block.
//!
//! ```text
//!   blocks     AI: think, text, call a, call b   Tool: result b   User: text   AI: text
//!   messages   [ think, text, call a, call b ]   [ a interrupted, b, text ]    [ text ]
//! ```

use std::borrow::Borrow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::binding::omits_thoughts;
use super::names::{CallNames, tool_name};
use super::seal::{Seal, Wire};
use super::{Conversation, Message, Part, Speaker};
use crate::entry::{Block, EntryVersion, RoleKind};
use crate::id::EntryId;
use crate::json::Json;

/// The result of a call without a recorded one.
pub const NO_RESULT: &str = "Interrupted: there is no result of this call. It may or may not have run.";
/// How many entries to search ahead for results.
const AHEAD: usize = 256;
/// The result of a tool without output.
const NO_OUTPUT: &str = "(no output)";

/// Converts entries into a conversation.
pub fn converse<E: Borrow<EntryVersion>>(entries: &[(EntryId, E)]) -> Conversation {
    let mut builder = Builder::default();
    for place in 0..entries.len() {
        builder.entry(entries, place);
    }
    builder.close();
    Conversation { messages: builder.messages }
}

/// A conversion up to some entry.
#[derive(Debug, Default)]
pub(super) struct Builder {
    messages: Vec<Arc<Message>>,
    names: CallNames,
    unfinished: Unfinished,
    /// The number of entries from the start that the messages so far depend on, which includes those that a look ahead
    /// read.
    seen: usize,
    /// How often earlier messages were changed.
    forgets: usize,
}

/// A place in the entries from which the conversion can continue, as long as the entries that it has seen are the same.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// The number of entries before it.
    pub(super) place: usize,
    pub(super) seen: usize,
    forgets: usize,
    messages: usize,
    names: usize,
    unfinished: Unfinished,
}

/// The last messages, under construction.
#[derive(Clone, Debug, Default)]
struct Unfinished {
    /// The assistant's message under construction, or waiting for results.
    assistant: Vec<Part>,
    assistant_entries: Vec<EntryId>,
    /// Thoughts of the current entry that nothing has followed yet.
    thoughts: Vec<Part>,
    /// The calls in the assistant's message.
    round: Vec<Round>,
    /// The user's reply to it, without the results.
    user: Vec<Part>,
    user_entries: Vec<EntryId>,
    answering: bool,
    /// Whether all blocks of the current entry so far are sent unchanged: only then does a thought directly
    /// follow what its model saw.
    faithful: bool,
}

/// A call and its result.
#[derive(Clone, Debug)]
struct Round {
    /// The id in the entries.
    given: String,
    call: String,
    name: String,
    result: Option<(String, bool)>,
}

impl Builder {
    /// Adds an entry.
    pub(super) fn entry<E: Borrow<EntryVersion>>(&mut self, entries: &[(EntryId, E)], place: usize) {
        let (id, entry) = (entries[place].0, entries[place].1.borrow());
        let kind = RoleKind::of(&entry.role);
        self.seen = self.seen.max(place + 1);
        if kind == RoleKind::Assistant && !self.unfinished.answering {
            let (is_abandoned, read) = self.is_abandoned(&entries[place..]);
            self.seen = self.seen.max(place + read);
            self.unfinished.answering = is_abandoned;
        }
        if let Some(wire) = omits_thoughts(entry).filter(|_| kind == RoleKind::Assistant) {
            self.forget_thoughts(wire);
        }
        self.unfinished.faithful = true;
        for block in entry.blocks_in_context().iter() {
            if kind == RoleKind::Assistant {
                self.of_assistant(id, entry, block);
            } else {
                let label = (kind != RoleKind::User).then_some(entry.role.as_str());
                self.of_others(id, label, block);
            }
        }
        self.unfinished.thoughts.clear();
    }

    fn of_assistant(&mut self, id: EntryId, entry: &EntryVersion, block: &Block) {
        match block {
            Block::Text { text, .. } if text.trim().is_empty() => self.unfinished.faithful = false,
            Block::Text { text, .. } => {
                let seal = Seal::of_part(entry, block);
                self.add_assistant_part(id, Part::Text { text: text.clone(), seal });
            }
            Block::Thinking { .. } | Block::Unknown { .. } => self.think(id, entry, block),
            Block::ToolCall { call, name, input, .. } => {
                // Before naming the call: the end of the previous message comes first.
                self.begin_answer();
                let round = Round {
                    given: call.clone(),
                    call: self.names.name(call),
                    name: tool_name(name),
                    result: None,
                };
                self.unfinished.faithful &=
                    round.call == *call && round.name == *name && input.as_str().starts_with('{');
                let (call, name) = (round.call.clone(), round.name.clone());
                let seal = Seal::of_part(entry, block);
                let given = (call != round.given && CallNames::is_spelling(&call, &round.given))
                    .then(|| round.given.clone());
                let model = entry.model.clone();
                self.add_assistant_part(
                    id,
                    Part::Call { call, given, name, input: object(input), model, seal },
                );
                self.unfinished.round.push(round);
            }
            Block::ToolResult { call, text, failed, .. } => {
                self.unfinished.faithful = false;
                self.result(id, call, text, *failed);
            }
            // No provider accepts pictures from the assistant.
            Block::Image { .. } => {
                self.unfinished.faithful = false;
                self.of_others(id, Some(&entry.role), block);
            }
        }
    }

    fn of_others(&mut self, id: EntryId, label: Option<&str>, block: &Block) {
        let labelled = |text: &str| match label {
            Some(label) => format!("[{label}]\n{text}"),
            None => text.to_owned(),
        };
        match block {
            Block::Text { text, .. } if text.trim().is_empty() => {}
            Block::Text { text, .. } => self.add_user_part(id, text_part(labelled(text))),
            Block::ToolCall { name, input, .. } => {
                self.add_user_part(
                    id,
                    text_part(labelled(&format!("[call of the tool {name}]\n{}", input.as_str()))),
                );
            }
            Block::ToolResult { call, text, failed, .. } => self.result(id, call, text, *failed),
            Block::Image { media, blob, .. } => {
                if let Some(label) = label {
                    self.add_user_part(id, text_part(format!("[{label}: a picture]")));
                }
                self.add_user_part(id, Part::Image { media: media.clone(), content: *blob });
            }
            Block::Thinking { .. } | Block::Unknown { .. } => {}
        }
    }

    /// Whether there are open calls without a result before the user's next message, and how many entries show it. If so,
    /// the assistant's next text is a new answer; otherwise it continues the same one, whose blocks arrived as separate
    /// entries.
    fn is_abandoned<E: Borrow<EntryVersion>>(&self, ahead: &[(EntryId, E)]) -> (bool, usize) {
        let mut open: Vec<&str> = self
            .unfinished
            .round
            .iter()
            .filter(|round| round.result.is_none())
            .map(|round| round.given.as_str())
            .collect();
        if open.is_empty() {
            return (false, 0);
        }
        let mut answering = false;
        for (read, (_, entry)) in (1..).zip(ahead.iter().take(AHEAD)) {
            let entry = entry.borrow();
            let speaks = RoleKind::of(&entry.role) != RoleKind::Assistant;
            for block in &entry.blocks {
                match block {
                    Block::ToolResult { call, .. } if open.contains(&call.as_str()) => {
                        return (false, read);
                    }
                    Block::Text { text, .. } if text.trim().is_empty() => {}
                    Block::Text { .. } | Block::ToolCall { .. } | Block::Image { .. }
                        if speaks || answering =>
                    {
                        return (true, read);
                    }
                    Block::ToolResult { .. } | Block::Image { .. } => answering = true,
                    // A result of this id belongs to the later call.
                    Block::ToolCall { call, .. } => open.retain(|given| given != call),
                    _ => {}
                }
            }
        }
        // The end of the entries counts too: a result may follow.
        (true, AHEAD)
    }

    /// Buffers a thought until something follows it. Only thoughts of an entry that begins a message are
    /// kept: later ones would look like thoughts of another answer to the provider.
    fn think(&mut self, id: EntryId, entry: &EntryVersion, block: &Block) {
        let begins =
            self.unfinished.answering || self.unfinished.assistant_entries.iter().all(|other| *other == id);
        let text = if let Block::Thinking { text, .. } = block { text.clone() } else { String::new() };
        match Seal::of_thought(entry, block).filter(|_| begins) {
            Some(seal) => {
                let wire = seal.wire;
                let prefix = seal.prefix.filter(|_| self.unfinished.faithful);
                let thought = Part::Thinking { text, seal: Seal { prefix, ..seal } };
                // Over this wire, the signature of a call may follow the call.
                let follows =
                    self.unfinished.assistant_entries.last() == Some(&id) && !self.unfinished.answering;
                if wire == Wire::Chat && follows {
                    self.unfinished.assistant.push(thought);
                } else {
                    self.unfinished.thoughts.push(thought);
                }
            }
            None => self.unfinished.faithful = false,
        }
    }

    /// Removes thoughts that their provider refused.
    fn forget_thoughts(&mut self, wire: Wire) {
        for message in &mut self.messages {
            if message.parts.iter().any(|part| is_sealed_for(part, wire)) {
                forget(&mut Arc::make_mut(message).parts, wire);
                self.forgets += 1;
            }
        }
        forget(&mut self.unfinished.assistant, wire);
    }

    fn add_assistant_part(&mut self, id: EntryId, part: Part) {
        self.begin_answer();
        note(&mut self.unfinished.assistant_entries, id);
        self.unfinished.assistant.append(&mut self.unfinished.thoughts);
        self.unfinished.assistant.push(part);
    }

    fn add_user_part(&mut self, id: EntryId, part: Part) {
        self.end_answer(id);
        self.unfinished.user.push(part);
    }

    fn result(&mut self, id: EntryId, call: &str, text: &str, failed: bool) {
        let open =
            self.unfinished.round.iter_mut().find(|round| round.given == call && round.result.is_none());
        if let Some(round) = open {
            let text = if text.trim().is_empty() { NO_OUTPUT } else { text };
            round.result = Some((text.to_owned(), failed));
            self.end_answer(id);
        } else if !text.trim().is_empty() {
            self.add_user_part(
                id,
                text_part(format!("[result of a tool call that is not shown here]\n{text}")),
            );
        }
    }

    /// Switches to the user's side.
    fn end_answer(&mut self, id: EntryId) {
        self.unfinished.thoughts.clear();
        self.unfinished.answering = true;
        note(&mut self.unfinished.user_entries, id);
    }

    /// Switches to the assistant's side.
    fn begin_answer(&mut self) {
        if self.unfinished.answering {
            self.close();
        }
    }

    fn close(&mut self) {
        let parts = std::mem::take(&mut self.unfinished.assistant);
        let entries = std::mem::take(&mut self.unfinished.assistant_entries);
        if !parts.is_empty() {
            self.messages.push(Message { speaker: Speaker::Assistant, parts, entries }.into());
        }
        let results = self.unfinished.round.drain(..).map(|Round { call, name, result, .. }| {
            let (text, failed) = result.unwrap_or_else(|| (NO_RESULT.to_owned(), true));
            Part::Result { call, name, text, failed }
        });
        let mut parts: Vec<Part> = results.collect();
        parts.append(&mut self.unfinished.user);
        let entries = std::mem::take(&mut self.unfinished.user_entries);
        if !parts.is_empty() {
            self.messages.push(Message { speaker: Speaker::User, parts, entries }.into());
        }
        self.unfinished.answering = false;
    }

    /// The conversation so far.
    pub(super) fn finished(&mut self, place: usize) -> Conversation {
        let end = self.checkpoint(place);
        self.close();
        let messages = self.messages.clone();
        self.rewind(&end);
        Conversation { messages }
    }

    pub(super) fn checkpoint(&self, place: usize) -> Checkpoint {
        Checkpoint {
            place,
            seen: self.seen,
            forgets: self.forgets,
            messages: self.messages.len(),
            names: self.names.len(),
            unfinished: self.unfinished.clone(),
        }
    }

    /// The parts of the last messages.
    pub(super) fn unfinished_parts(&self) -> usize {
        let Unfinished { assistant, thoughts, round, user, .. } = &self.unfinished;
        assistant.len() + thoughts.len() + round.len() + user.len()
    }

    /// Whether a conversion can continue there after entries of which the first `unchanged` are the same.
    pub(super) fn can_rewind(&self, to: &Checkpoint, unchanged: usize) -> bool {
        to.seen <= unchanged && to.forgets == self.forgets
    }

    pub(super) fn rewind(&mut self, to: &Checkpoint) {
        self.messages.truncate(to.messages);
        self.names.rewind(to.names);
        self.unfinished = to.unfinished.clone();
        self.seen = to.seen;
    }
}

/// Whether a part has a thought or another seal of a wire.
fn is_sealed_for(part: &Part, wire: Wire) -> bool {
    match part {
        Part::Thinking { seal, .. } => seal.wire == wire,
        Part::Text { seal, .. } | Part::Call { seal, .. } => {
            seal.as_ref().is_some_and(|seal| seal.wire == wire)
        }
        Part::Result { .. } | Part::Image { .. } => false,
    }
}

/// Removes thoughts and other seals of a wire.
fn forget(parts: &mut Vec<Part>, wire: Wire) {
    parts.retain(|part| !matches!(part, Part::Thinking { seal, .. } if seal.wire == wire));
    for part in parts {
        if let Part::Text { seal, .. } | Part::Call { seal, .. } = part
            && seal.as_ref().is_some_and(|seal| seal.wire == wire)
        {
            *seal = None;
        }
    }
}

fn text_part(text: String) -> Part {
    Part::Text { text, seal: None }
}

fn note(entries: &mut Vec<EntryId>, id: EntryId) {
    if entries.last() != Some(&id) {
        entries.push(id);
    }
}

/// The input of a tool as an object. Other values, and values that cannot be parsed again (huge numbers, lone
/// surrogates), are wrapped in one.
fn object(input: &Json) -> Value {
    let wrapped = |value: Value| Value::Object(Map::from_iter([("input".to_owned(), value)]));
    match serde_json::from_str::<Value>(input.as_str()) {
        Ok(value @ Value::Object(_)) => value,
        Ok(value @ Value::Array(_)) => {
            let value = wrapped(value);
            // Wrapping adds a level, which may exceed the parser's depth limit.
            let readable = serde_json::from_str::<Value>(&value.to_string()).is_ok();
            if readable { value } else { wrapped(input.as_str().into()) }
        }
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(value) => wrapped(value),
        Err(_) => wrapped(input.as_str().into()),
    }
}
