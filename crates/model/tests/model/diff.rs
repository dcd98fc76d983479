//! Text diffs: applying the hunks to the first text gives the second.

use std::fmt::Write;

use proptest::prelude::*;
use retake_model::diff::{
    DiffError, Hunk, LineChange, LineCounts, LineSide, MAX_LINES, MAX_TEXT_BYTES, changes, hunks, lines,
};

/// Applies the hunks to the first text.
fn apply(before: &[u8], hunks: &[Hunk]) -> Vec<u8> {
    let lines: Vec<&[u8]> = lines(before).collect();
    let mut made = Vec::new();
    let mut done = 0;
    for hunk in hunks {
        made.extend_from_slice(&lines[done..hunk.before.start].concat());
        assert_eq!(hunk.text(LineSide::Removed), lines[hunk.before.clone()].concat(), "what was there");
        made.extend(hunk.text(LineSide::Added));
        done = hunk.before.end;
    }
    made.extend_from_slice(&lines[done..].concat());
    made
}

/// Formats hunks as readable text, with changed words in brackets.
fn draw(before: &str, after: &str, context: usize) -> String {
    let changes = changes(before.as_bytes(), after.as_bytes()).expect("short texts");
    let mut drawn = String::new();
    for hunk in hunks(before.as_bytes(), after.as_bytes(), &changes, context) {
        writeln!(drawn, "@ {:?} {:?}", hunk.before, hunk.after).expect("writing into memory");
        for line in &hunk.lines {
            drawn.push(match line.side {
                LineSide::Both => ' ',
                LineSide::Removed => '-',
                LineSide::Added => '+',
            });
            for part in &line.parts {
                let text = str::from_utf8(&part.bytes).expect("valid UTF-8").trim_end_matches('\n');
                let (open, close) = if part.changed { ("[", "]") } else { ("", "") };
                drawn.extend([open, text, close]);
            }
            drawn.push_str(if line.is_ended() { "\n" } else { "¬\n" });
        }
    }
    drawn
}

#[test]
fn changes_have_context_lines() {
    let before = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";
    let after = "one\ntwo\n3\nfour\nfive\nsix\nseven\neight\nnine\n";
    assert_eq!(draw(before, after, 1), "@ 1..4 1..4\n two\n-three\n+3\n four\n@ 7..8 7..9\n eight\n+nine\n");
    assert_eq!(draw(before, after, 0), "@ 2..3 2..3\n-three\n+3\n@ 8..8 8..9\n+nine\n");
    assert_eq!(draw(before, after, 3).matches('@').count(), 1);
    assert_eq!(draw("", "a\n", 3), "@ 0..0 0..1\n+a\n");
    assert_eq!(draw("a\n", "", 3), "@ 0..1 0..0\n-a\n");
    assert_eq!(draw("a\n", "a\n", 3), "");
}

#[test]
fn changed_words_and_a_missing_final_newline_are_marked() {
    assert_eq!(draw("let a = 1;\n", "let b = 1;\n", 0), "@ 0..1 0..1\n-let [a] = 1;\n+let [b] = 1;\n");
    assert_eq!(draw("x\nend", "x\nend\n", 1), "@ 0..2 0..2\n x\n-end¬\n+end[]\n");
}

#[test]
fn incomparable_texts_are_reported() {
    assert_eq!(changes(b"a\0", b"a"), Err(DiffError::Binary));
    assert_eq!(changes(b"a", &vec![b'x'; MAX_TEXT_BYTES + 1]), Err(DiffError::TooLarge));
    assert_eq!(changes(&b"\n".repeat(MAX_LINES + 1), b"a"), Err(DiffError::TooLarge));
}

#[test]
fn added_and_removed_lines_are_counted() {
    let changes = vec![LineChange { before: 0..1, after: 0..3 }, LineChange { before: 4..6, after: 6..6 }];
    assert_eq!(LineCounts::of(&changes), LineCounts { added: 3, removed: 3 });
}

/// Texts with few distinct lines, so that they have many in common.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("a"),
        Just("b"),
        Just("let a = b;"),
        Just("let a = c;"),
        Just("ünï 今日"),
        Just(""),
        Just("x\r"),
    ];
    (prop::collection::vec(line, 0..24), any::<bool>(), prop::collection::vec(128_u8..255, 0..3)).prop_map(
        |(lines, ended, odd)| {
            let mut text = lines.join("\n").into_bytes();
            text.extend(odd);
            if ended {
                text.push(b'\n');
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn hunks_applied_to_the_first_text_give_the_second(before in text(), after in text(), context in 0_usize..5) {
        let changes = changes(&before, &after).expect("short texts");
        let hunks = hunks(&before, &after, &changes, context);
        prop_assert_eq!(apply(&before, &hunks), after.clone());
        // Changes never touch, hunks never overlap, and each has at least one change.
        for pair in changes.windows(2) {
            prop_assert!(pair[0].before.end < pair[1].before.start || pair[0].after.end < pair[1].after.start);
        }
        for pair in hunks.windows(2) {
            prop_assert!(pair[0].before.end <= pair[1].before.start);
        }
        for hunk in &hunks {
            prop_assert!(hunk.lines.iter().any(|line| line.side != LineSide::Both));
            let count = |side| hunk.lines.iter().filter(|l| l.side == side || l.side == LineSide::Both).count();
            prop_assert_eq!(count(LineSide::Removed), hunk.before.len());
            prop_assert_eq!(count(LineSide::Added), hunk.after.len());
        }
        let counts = LineCounts::of(&changes);
        let (old, new) = (lines(&before).count() as u64, lines(&after).count() as u64);
        prop_assert_eq!(old + counts.added, new + counts.removed);
        prop_assert_eq!(changes.is_empty(), before == after);
    }
}
