//! Buffers command output: all of it, or its start and end if it is too long.

use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct OutputBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    max_head: usize,
    max_tail: usize,
    dropped: u64,
}

impl OutputBuffer {
    /// Keeps at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        let max_tail = most / 4;
        Self { head: Vec::new(), tail: VecDeque::new(), max_head: most - max_tail, max_tail, dropped: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let context = self.max_head.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..context]);
        // Add only the bytes that can stay.
        let rest = &bytes[context..];
        let skipped = rest.len().saturating_sub(self.max_tail);
        let rest = &rest[skipped..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.max_tail);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
        self.dropped += (skipped + surplus) as u64;
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.dropped > 0 {
            bytes.extend_from_slice(format!("\n[… {} bytes omitted …]\n", self.dropped).as_bytes());
        }
        bytes.extend(&self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_long_output_is_dropped_first() {
        let check = |pieces: &[&str], expected: &str| {
            let mut kept = OutputBuffer::new(8);
            for piece in pieces {
                kept.push(piece.as_bytes());
            }
            assert_eq!(String::from_utf8_lossy(&kept.into_bytes()), expected);
        };
        check(&[], "");
        check(&["abc", "def"], "abcdef");
        check(&["abcdefgh"], "abcdefgh");
        check(&["abcdefgh", "ij"], "abcdef\n[… 2 bytes omitted …]\nij");
        check(&["abcdefghijklmnop"], "abcdef\n[… 8 bytes omitted …]\nop");
    }
}
