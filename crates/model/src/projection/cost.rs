//! What a request costs to read, roughly.

use super::{Conversation, Message, Part, Speaker};
use crate::entry::PDF;

/// What a picture counts: about what the providers count for one of ordinary size.
const PICTURE_TOKENS: u64 = 1_500;

/// What a PDF document counts: providers read each page as text and as a picture, and ten pages are ordinary.
const DOCUMENT_TOKENS: u64 = 20_000;

/// About how many tokens a text has: one for each four bytes. Good for sums and warnings, not for bills.
pub fn estimate_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// About how many tokens a message has.
pub fn message_tokens(message: &Message) -> u64 {
    message.parts.iter().map(part_tokens).sum()
}

/// How many messages at the beginning are the same.
pub fn shared_prefix(before: &Conversation, after: &Conversation) -> usize {
    let pairs = before.messages.iter().zip(&after.messages);
    pairs.take_while(|(before, after)| before.speaker == after.speaker && before.parts == after.parts).count()
}

/// About how many tokens a provider that has read `before` must read again because of what was changed: all behind
/// the first difference. Nothing, if all that was done is to append.
pub fn uncached_tokens(before: &Conversation, after: &Conversation) -> u64 {
    let mut read = parts(before);
    let mut reading = parts(after).peekable();
    loop {
        match (read.next(), reading.peek()) {
            (None, _) => return 0,
            (Some(old), Some(new)) if old == *new => _ = reading.next(),
            _ => return reading.map(|(_, part)| part_tokens(part)).sum(),
        }
    }
}

fn parts(conversation: &Conversation) -> impl Iterator<Item = (Speaker, &Part)> {
    conversation.messages.iter().flat_map(|message| message.parts.iter().map(|part| (message.speaker, part)))
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } | Part::Thinking { text, .. } => estimate_tokens(text),
        Part::Call { call, name, input, .. } => {
            estimate_tokens(call) + estimate_tokens(name) + estimate_tokens(&input.to_string())
        }
        Part::Result { call, text, .. } => estimate_tokens(call) + estimate_tokens(text),
        Part::Image { media, .. } if media == PDF => DOCUMENT_TOKENS,
        Part::Image { .. } => PICTURE_TOKENS,
    }
}
