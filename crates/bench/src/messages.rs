//! Unique messages of 2 KB of generated words.
//!
//! Words are drawn from a vocabulary of some thousands with realistic frequencies, so that messages compress about as
//! well as prose.

use retake_model::entry::EntryVersion;
use retake_model::time::Timestamp;

/// Bytes per message.
pub(crate) const BYTES: usize = 2048;

/// An endless, reproducible sequence of messages.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    random: u64,
    made: u64,
}

impl Messages {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, made: 0 }
    }

    /// The text of the next message.
    pub(crate) fn text(&mut self) -> String {
        const SYLLABLES: [&str; 16] = [
            "ra", "ket", "lo", "min", "tu", "ses", "vor", "an", "gi", "dul", "pe", "har", "im", "fo", "next",
            "el",
        ];
        let mut text = String::with_capacity(BYTES + 16);
        while text.len() < BYTES {
            // The smaller of two draws: low words are more frequent.
            let mut word = (self.draw() % 4096).min(self.draw() % 4096);
            loop {
                text.push_str(SYLLABLES[(word % 16) as usize]);
                word /= 16;
                if word == 0 {
                    break;
                }
            }
            text.push(' ');
        }
        text.truncate(BYTES);
        text
    }

    /// The next message as an entry, alternating user and assistant.
    pub(crate) fn entry(&mut self) -> EntryVersion {
        let role = if self.made.is_multiple_of(2) { "User" } else { "AI" };
        self.entry_of(role)
    }

    /// The next message as a user entry.
    pub(crate) fn question(&mut self) -> EntryVersion {
        self.entry_of("User")
    }

    fn entry_of(&mut self, role: &str) -> EntryVersion {
        self.made += 1;
        let created = Timestamp::from_millis(1_750_000_000_000 + self.made as i64 * 1_000);
        EntryVersion::from_text(role, &self.text(), created)
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_messages_have_the_requested_size_and_differ() {
        let mut messages = Messages::new(1);
        let first = messages.text();
        assert_eq!(first.len(), BYTES);
        assert_ne!(first, messages.text());
        assert_eq!(first, Messages::new(1).text());
    }
}
