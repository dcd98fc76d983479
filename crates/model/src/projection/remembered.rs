//! A memory of the last request of a conversation, so that the next one encodes only what changed.
//!
//! ```text
//!   entries    e1 … e64 │ e65 … e128 │ e129 e130         │ a checkpoint: a conversion can continue there if all
//!                       ▼            ▼                       entries that it has seen so far are the same
//!   messages   m1 … m40   m41 … m78    m79 m80
//!   JSON       {…} … {…} │ {…} … {…}   {…} {…}           │ a mark: an encoder can continue there if the messages
//!                                                            before it are the same
//! ```
//!
//! Entries and messages are compared by address: an entry that is not the same value in memory counts as changed. Nothing
//! else is assumed about what changed, so a memory that is used for another conversation only saves nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::converse::{Builder, Checkpoint};
use super::cost::message_tokens;
use super::request::{Ask, Dialect, Encoder, EncoderInput, EncoderMark, Thoughts, framed, list_field};
use super::{Body, Conversation, Message, Part, Wire};
use crate::content::ContentId;
use crate::entry::EntryVersion;
use crate::id::EntryId;

/// Entries between two checkpoints, unless the last messages are long.
const CHECKPOINT: usize = 64;
/// Messages between two marks of an encoder.
const MARK: usize = 32;

/// What a conversation looked like when it was last sent.
#[derive(Debug, Default)]
pub struct Remembered {
    entries: Vec<(EntryId, Arc<EntryVersion>)>,
    builder: Builder,
    checkpoints: Vec<Checkpoint>,
    /// The tokens of each message; `None` for those with pictures.
    tokens: Vec<(Arc<Message>, Option<u64>)>,
    encoded: Option<Encoded>,
}

impl Remembered {
    /// Converts entries into a conversation, as [`converse`](super::converse) does.
    pub fn converse(&mut self, entries: &[(EntryId, Arc<EntryVersion>)]) -> Conversation {
        let pairs = self.entries.iter().zip(entries);
        let unchanged = pairs.take_while(|(old, new)| old.0 == new.0 && Arc::ptr_eq(&old.1, &new.1)).count();
        let usable = |checkpoint: &Checkpoint| self.builder.can_rewind(checkpoint, unchanged);
        let kept = self.checkpoints.iter().rposition(usable).map_or(0, |last| last + 1);
        self.checkpoints.truncate(kept);
        let start = if let Some(checkpoint) = self.checkpoints.last() {
            self.builder.rewind(checkpoint);
            checkpoint.place
        } else {
            self.builder = Builder::default();
            0
        };
        for place in start..entries.len() {
            let last = self.checkpoints.last().map_or(0, |checkpoint| checkpoint.place);
            // A copy of the last messages, however long they are, is paid for by the entries since.
            if place - last >= CHECKPOINT.max(self.builder.unfinished_parts()) {
                self.checkpoints.push(self.builder.checkpoint(place));
            }
            self.builder.entry(entries, place);
        }
        self.entries.truncate(unchanged);
        self.entries.extend_from_slice(&entries[unchanged..]);
        self.builder.finished(entries.len())
    }

    /// Estimates the tokens of a conversation, as the sum of [`message_tokens`].
    pub fn tokens(&mut self, conversation: &Conversation, pictures: &dyn Fn(&str, ContentId) -> u64) -> u64 {
        let same = |(old, new): &(&(Arc<Message>, Option<u64>), &Arc<Message>)| Arc::ptr_eq(&old.0, new);
        let unchanged = self.tokens.iter().zip(&conversation.messages).take_while(same).count();
        self.tokens.truncate(unchanged);
        for message in &conversation.messages[unchanged..] {
            let has_pictures = message.parts.iter().any(|part| matches!(part, Part::Image { .. }));
            let tokens = (!has_pictures).then(|| message_tokens(message, pictures));
            self.tokens.push((Arc::clone(message), tokens));
        }
        let tokens = self.tokens.iter();
        tokens.map(|(message, tokens)| tokens.unwrap_or_else(|| message_tokens(message, pictures))).sum()
    }

    /// Builds the body of a request, as [`request`](super::request) does.
    pub fn request(
        &mut self,
        conversation: &Conversation,
        ask: &Ask<'_>,
        pictures: &dyn Fn(ContentId) -> Option<Vec<u8>>,
    ) -> Body {
        let framed = framed(conversation);
        let source = EncoderInput { messages: &framed, pictures };
        let body = source.body(ask);
        let start = Encoder::new(&source, ask, &body);
        let basis = Basis {
            wire: ask.wire,
            dialect: ask.dialect,
            model: ask.model.to_owned(),
            thoughts: ask.thoughts,
            state: start.state(),
        };
        let known = self.encoded.take().filter(|encoded| encoded.basis == basis);
        let mut encoded = known.unwrap_or_else(|| Encoded::new(basis, start));
        encoded.advance(&source, ask);
        let mut messages = encoded.json.clone();
        for (place, message) in source.marked(ask) {
            messages[place] = message.to_string().into();
        }
        let prefix = encoded.encoder.state().map(|(_, digest)| digest);
        self.encoded = Some(encoded);
        Body::new(body, list_field(ask.wire), messages, prefix)
    }
}

/// What encoded messages depend on beside the messages before them and the pictures.
#[derive(Debug, PartialEq)]
struct Basis {
    wire: Wire,
    dialect: Dialect,
    model: String,
    thoughts: Thoughts,
    state: Option<(bool, String)>,
}

/// Encoded messages.
#[derive(Debug)]
struct Encoded {
    basis: Basis,
    messages: Vec<Arc<Message>>,
    /// Each message as items of a JSON list.
    json: Vec<Arc<str>>,
    /// The pictures of messages, and whether their content was available.
    pictures: BTreeMap<usize, Vec<(ContentId, bool)>>,
    encoder: Encoder,
    /// States of the encoder, one before each [`MARK`] messages.
    marks: Vec<EncoderMark>,
}

impl Encoded {
    fn new(basis: Basis, encoder: Encoder) -> Self {
        Self {
            basis,
            messages: Vec::new(),
            json: Vec::new(),
            pictures: BTreeMap::new(),
            encoder,
            marks: Vec::new(),
        }
    }

    /// Encodes the messages that differ from those before.
    fn advance(&mut self, source: &EncoderInput<'_>, ask: &Ask<'_>) {
        let unchanged = self.unchanged(source);
        if unchanged < self.messages.len() {
            let mark = unchanged / MARK;
            let start = mark * MARK;
            self.encoder.rewind(&self.marks[mark]);
            self.marks.truncate(mark);
            self.messages.truncate(start);
            self.json.truncate(start);
            self.pictures.split_off(&start);
        }
        for message in &source.messages[self.messages.len()..] {
            let place = self.messages.len();
            if place.is_multiple_of(MARK) {
                self.marks.push(self.encoder.mark());
            }
            let items = self.encoder.message(message, source, ask);
            let json: Vec<String> = items.iter().map(ToString::to_string).collect();
            self.json.push(json.join(",").into());
            self.messages.push(Arc::clone(message));
            let pictures = pictures(message).map(|id| (id, (source.pictures)(id).is_some()));
            let pictures: Vec<(ContentId, bool)> = pictures.collect();
            if !pictures.is_empty() {
                self.pictures.insert(place, pictures);
            }
        }
    }

    /// The number of messages at the start that are the same, with the same pictures.
    fn unchanged(&self, source: &EncoderInput<'_>) -> usize {
        let pairs = self.messages.iter().zip(source.messages);
        // Only messages that frame a conversation have no entries.
        let same = |old: &Arc<Message>, new: &Arc<Message>| {
            Arc::ptr_eq(old, new) || (old.entries.is_empty() && old == new)
        };
        let unchanged = pairs.take_while(|(old, new)| same(old, new)).count();
        let differs = |&(id, available): &(ContentId, bool)| (source.pictures)(id).is_some() != available;
        let differing = self.pictures.range(..unchanged).find(|(_, pictures)| pictures.iter().any(differs));
        differing.map_or(unchanged, |(place, _)| *place)
    }
}

fn pictures(message: &Message) -> impl Iterator<Item = ContentId> {
    message.parts.iter().filter_map(|part| match part {
        Part::Image { content, .. } => Some(*content),
        _ => None,
    })
}
