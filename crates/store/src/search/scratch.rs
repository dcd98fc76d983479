//! An in-memory FTS5 table of one text, to split it into words and to locate matches.
//!
//! The index on disk has no text, so it cannot locate a match in an entry. A reimplementation would sooner or later
//! disagree with FTS5 about case, diacritics or word boundaries, so the text is indexed temporarily and searched
//! again. This also verifies the hit: a damaged index can name a wrong entry, but not pass this check.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::segment::{SegmentedText, TOKENIZER};

/// Characters that a segmented text cannot contain.
const OPENING: char = '\u{1}';
const CLOSING: char = '\u{2}';

pub(super) struct Scratch {
    connection: Connection,
}

impl Scratch {
    pub(super) fn new() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(&format!(
            "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = '{TOKENIZER}');
             CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, instance);"
        ))?;
        Ok(Self { connection })
    }

    /// The words of a segmented text, in order, as FTS5 stores them.
    pub(super) fn words(&self, segmented: &str) -> rusqlite::Result<Vec<String>> {
        let holding = self.insert_text(segmented)?;
        let mut statement = holding.prepare_cached("SELECT term FROM vocabulary ORDER BY offset")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// The matches in the original text; `None` if there are none.
    pub(super) fn matches(
        &self,
        expression: &str,
        text: &SegmentedText<'_>,
    ) -> rusqlite::Result<Option<Vec<Range<usize>>>> {
        let holding = self.insert_text(text.text())?;
        let marked: Option<String> = holding
            .prepare_cached("SELECT highlight(words, 0, ?2, ?3) FROM words WHERE words MATCH ?1")?
            .query_row(params![expression, OPENING.to_string(), CLOSING.to_string()], |row| row.get(0))
            .optional()?;
        Ok(marked.map(|marked| {
            let found = marked_ranges(&marked);
            in_order(found.iter().map(|range| text.original(range)).collect())
        }))
    }

    /// Inserts a text until the transaction is dropped, which rolls it back.
    fn insert_text(&self, segmented: &str) -> rusqlite::Result<Transaction<'_>> {
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred)?;
        transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (1, ?1)")?.execute([segmented])?;
        Ok(transaction)
    }
}

/// The ranges between the marker characters, as offsets into the text without them.
fn marked_ranges(marked: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let signs = marked.match_indices([OPENING, CLOSING]);
    for (before, (place, sign)) in signs.enumerate() {
        let place = place - before * OPENING.len_utf8();
        if sign.starts_with(OPENING) {
            start = place;
        } else {
            ranges.push(start..place);
        }
    }
    ranges
}

/// Sorts ranges and joins those that overlap: a name may match as a whole and by its parts.
fn in_order(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::segment::segment;

    #[test]
    fn words_are_those_of_fts5() {
        let scratch = Scratch::new().expect("a database in memory");
        let check = |text: &str, expected: &[&str]| {
            let words = scratch.words(&segment(text)).expect("words");
            assert_eq!(words, expected, "{text:?}");
        };
        check("Parse_History foo::bar", &["parse", "history", "foo", "bar"]);
        check("Crème BRÛLÉE", &["creme", "brulee"]);
        check("हिन्दी में", &["हिन्दी", "में"]);
        check("\u{301} !? →", &[]);
        check("", &[]);
        check("修正🐛", &["修", "正", "uemoji1f41b"]);
    }

    #[test]
    fn matches_are_ranges_of_the_original() {
        let scratch = Scratch::new().expect("a database in memory");
        let text = "Un café, 修正 and CAFE\u{301}.";
        let segmented = SegmentedText::new(text);
        let found = scratch.matches("\"cafe\"", &segmented).expect("a valid expression");
        let found: Vec<&str> = found.expect("a match").into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["café", "CAFE\u{301}"]);
        assert_eq!(scratch.matches("\"tea\"", &segmented).expect("a valid expression"), None);
        let text = "The parseHistory of a history: HistoryItem, parseHistory.";
        let segmented = SegmentedText::new(text);
        let found = scratch.matches("\"history\"", &segmented).expect("a valid expression");
        let found: Vec<&str> = found.expect("a match").into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["History", "history", "History", "History"]);
        let found = scratch.matches("(\"parsehistory\" OR \"parse history\")", &segmented);
        let found = found.expect("a valid expression").expect("a match");
        let found: Vec<&str> = found.into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["parseHistory", "parseHistory"]);
    }
}
