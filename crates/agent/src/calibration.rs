//! Estimates the tokens of a request from the provider's count for the last one.
//!
//! An estimate from bytes is typically a third off. The provider counted the conversation at the model's last
//! answer, so only later changes are estimated:
//!
//! ```text
//!   counted for the last answer + tokens of that answer + estimate of all else that came, or went, since
//! ```

use retake_model::entry::{Block, EntryVersion};
use retake_model::id::EntryId;
use retake_model::projection::{converse, message_tokens, usual_picture_tokens};

/// The field of an answer with the estimate for its request.
pub(crate) const ESTIMATE: &str = "estimated_tokens";

/// Ignore a count that differs from the estimate by more than this factor.
pub(crate) const MOST_OFF: u64 = 4;

/// Counts from the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// The provider's count for its request.
    counted: u64,
    /// The estimate for its request.
    estimated: u64,
    /// The answer's own tokens and their estimate, while only results follow it: its reasoning is then still
    /// part of the conversation.
    answer: Option<(u64, u64)>,
}

impl Calibration {
    /// Reads the counts of the model's last answer, if there are any.
    pub(crate) fn of(entries: &[(EntryId, EntryVersion)], model: &str) -> Option<Self> {
        let is_counted = |entry: &EntryVersion| {
            entry.usage.is_some()
                && entry.extra.contains_key(ESTIMATE)
                && entry.model.as_deref() == Some(model)
        };
        let at = entries.iter().rposition(|(_, entry)| is_counted(entry))?;
        let (_, entry) = &entries[at];
        let usage = entry.usage.as_ref()?;
        let counted = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        let estimated: u64 = entry.extra.get(ESTIMATE)?.as_str().parse().ok()?;
        let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
        let continues = entries[at + 1..].iter().all(|(_, entry)| entry.blocks.iter().all(is_result));
        let answer = continues.then(|| {
            let messages = converse(&entries[at..=at]).messages;
            let tokens = |message| message_tokens(message, &|media, _| usual_picture_tokens(media));
            (usage.output_tokens, messages.iter().map(tokens).sum())
        });
        let plausible = estimated / MOST_OFF..=u64::saturating_mul(estimated, MOST_OFF);
        (counted > 0 && plausible.contains(&counted)).then_some(Self { counted, estimated, answer })
    }

    /// The tokens of a request, given its estimate.
    pub(crate) fn apply(&self, estimate: u64) -> u64 {
        let (output, answer_estimate) = self.answer.unwrap_or_default();
        let known = self.counted.saturating_add(output).saturating_add(estimate);
        let tokens = known.saturating_sub(self.estimated.saturating_add(answer_estimate));
        tokens.clamp(estimate / MOST_OFF, estimate.saturating_mul(MOST_OFF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use retake_model::entry::Usage;
    use retake_model::json::Json;
    use retake_model::time::Timestamp;

    /// Recorded: counted tokens, answer tokens, estimate of the additions, and the next count.
    const RECORDED: [(u64, u64, u64, u64); 12] = [
        (3294, 103, 11, 3418),
        (1542, 30, 11, 1586),
        (1070, 107, 93, 1346),
        (189, 1017, 28, 1256),
        (501, 189, 398, 1070),
        (791, 41, 10, 845),
        (596, 75, 33, 771),
        (594, 84, 32, 721),
        (573, 125, 12, 708),
        (57, 424, 10, 494),
        (402, 61, 0, 473),
        (297, 45, 13, 359),
    ];

    #[test]
    fn the_next_count_is_within_a_tenth_on_recorded_exchanges() {
        for (counted, output, added, next) in RECORDED {
            // Estimate a third too low, as is typical.
            let estimated = counted * 2 / 3;
            let calibration = Calibration { counted, estimated, answer: Some((output, output / 2)) };
            let estimate = estimated + output / 2 + added;
            let found = calibration.apply(estimate);
            assert!(found.abs_diff(next) * 10 < next, "{found} for {next}");
            // The control: the estimate alone is not accurate.
            assert!(estimate.abs_diff(next) * 10 > next, "{estimate} for {next}");
        }
    }

    fn entry_of(role: &str, text: &str) -> (EntryId, EntryVersion) {
        let entry = EntryVersion::from_text(role, text, Timestamp::from_millis(1));
        (EntryId::from_bytes([1; 16]), entry)
    }

    fn answer(estimate: u64, usage: Usage) -> (EntryId, EntryVersion) {
        let (id, mut entry) = entry_of("AI", "yes");
        entry.usage = Some(usage);
        entry.model = Some("m".to_owned());
        entry.extra.insert(ESTIMATE.to_owned(), Json::new(estimate.to_string()).expect("a number"));
        (id, entry)
    }

    #[test]
    fn only_content_added_since_the_last_count_is_estimated() {
        let usage = Usage {
            input_tokens: 100,
            cache_read_input_tokens: 1_400,
            output_tokens: 300,
            ..Usage::default()
        };
        let mut entries = vec![entry_of("User", "hello"), answer(1_000, usage.clone())];
        let calibration = Calibration::of(&entries, "m").expect("counted");
        // The answer's text is one token by the estimate; its thoughts are the rest.
        assert_eq!(calibration.apply(1_000 + 1 + 50), 1_500 + 300 + 50);
        entries.push(entry_of("User", "and now?"));
        let calibration = Calibration::of(&entries, "m").expect("counted");
        assert_eq!(calibration.apply(1_000 + 1 + 2), 1_500 + 3);
        // Half of it was deleted since.
        assert_eq!(calibration.apply(500), 1_000);
        assert_eq!(Calibration::of(&entries, "other"), None);
        assert_eq!(Calibration::of(&entries[..1], "m"), None);
        // A provider without counts, and one with implausible counts.
        assert_eq!(Calibration::of(&[answer(9, Usage::default())], "m"), None);
        let absurd = Usage { input_tokens: 1_000_000_000, ..usage.clone() };
        assert_eq!(Calibration::of(&[answer(9, absurd)], "m"), None);
        // Other counts apply, but never by more than a factor.
        let calibration = Calibration::of(&[answer(1_000, usage)], "m").expect("counted");
        assert_eq!((calibration.apply(1), calibration.apply(100_000)), (4, 100_799));
    }
}
