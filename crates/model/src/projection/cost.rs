//! Estimates the tokens of requests.

use super::{Conversation, Message, Part, Speaker, usual_picture_tokens};
use crate::content::ContentId;

/// Estimates the tokens of a text: one per four bytes. Good for sums and warnings, not for billing.
pub fn estimate_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// Estimates the tokens of a message; `pictures` estimates those of its pictures, by media type and content.
pub fn message_tokens(message: &Message, pictures: &dyn Fn(&str, ContentId) -> u64) -> u64 {
    message.parts.iter().map(|part| part_tokens(part, pictures)).sum()
}

/// The number of equal messages at the start.
pub fn shared_prefix(before: &Conversation, after: &Conversation) -> usize {
    let pairs = before.messages.iter().zip(&after.messages);
    pairs.take_while(|(before, after)| before.speaker == after.speaker && before.parts == after.parts).count()
}

/// Estimates the tokens that a provider with `before` in its cache must read again: everything after the
/// first difference, or none if messages were only appended.
pub fn uncached_tokens(before: &Conversation, after: &Conversation) -> u64 {
    let usual = |media: &str, _| usual_picture_tokens(media);
    let mut read = parts(before);
    let mut reading = parts(after).peekable();
    loop {
        match (read.next(), reading.peek()) {
            (None, _) => return 0,
            (Some(old), Some(new)) if old == *new => _ = reading.next(),
            _ => return reading.map(|(_, part)| part_tokens(part, &usual)).sum(),
        }
    }
}

fn parts(conversation: &Conversation) -> impl Iterator<Item = (Speaker, &Part)> {
    conversation.messages.iter().flat_map(|message| message.parts.iter().map(|part| (message.speaker, part)))
}

fn part_tokens(part: &Part, pictures: &dyn Fn(&str, ContentId) -> u64) -> u64 {
    match part {
        Part::Text { text, .. } | Part::Thinking { text, .. } => estimate_tokens(text),
        Part::Call { call, name, input, .. } => {
            estimate_tokens(call) + estimate_tokens(name) + estimate_tokens(&input.to_string())
        }
        Part::Result { call, text, .. } => estimate_tokens(call) + estimate_tokens(text),
        Part::Image { media, content } => pictures(media, *content),
    }
}
