//! Aligns the turns of takes by their prompts, so that answers to the same prompt stand beside each other.
//!
//! ```text
//!   main      a   b       c          row      main   retry
//!   retry     a       x   c           1        a       a
//!                                     2        b       x        between equal prompts: in their order
//!                                     3        c       c
//! ```
//!
//! The takes join one by one: each is compared with the rows so far, as lines of a text are.

use std::collections::HashMap;

use retake_model::diff::{LineChange, changes, lines};

/// A row: for each take, the position of its turn, if it has one here.
pub(super) type Row = Vec<Option<usize>>;

/// Aligns takes that are given as the prompts of their turns.
pub(super) fn align(takes: &[Vec<&str>]) -> Vec<Row> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut rows: Vec<(usize, Row)> = Vec::new();
    for (index, prompts) in takes.iter().enumerate() {
        let prompts: Vec<usize> = prompts
            .iter()
            .map(|prompt| {
                let next = numbers.len();
                *numbers.entry(prompt).or_insert(next)
            })
            .collect();
        rows = join(rows, &prompts, index);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Adds a take to the rows of the takes before it.
fn join(rows: Vec<(usize, Row)>, prompts: &[usize], index: usize) -> Vec<(usize, Row)> {
    let known: Vec<usize> = rows.iter().map(|(prompt, _)| *prompt).collect();
    let mut joined = Vec::with_capacity(rows.len().max(prompts.len()));
    let mut rows = rows.into_iter();
    let mut next = 0;
    let mut pair = |rows: &mut dyn Iterator<Item = (usize, Row)>, old: usize, new: std::ops::Range<usize>| {
        let mut new = new;
        for (prompt, mut row) in rows.take(old) {
            row.push(new.next());
            joined.push((prompt, row));
        }
        joined.extend(new.map(|position| {
            let mut row = vec![None; index];
            row.push(Some(position));
            (prompts[position], row)
        }));
    };
    for change in differences(&known, prompts) {
        // Equal prompts, then those between them.
        let equal = change.after.start - next;
        pair(&mut rows, equal, next..change.after.start);
        pair(&mut rows, change.before.len(), change.after.clone());
        next = change.after.end;
    }
    pair(&mut rows, usize::MAX, next..prompts.len());
    joined
}

/// The differences of two lists; all of them, if there are too many to compare.
fn differences(before: &[usize], after: &[usize]) -> Vec<LineChange> {
    let text = |list: &[usize]| list.iter().map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
    let (one, other) = (text(before), text(after));
    debug_assert_eq!(lines(one.as_bytes()).count(), before.len());
    changes(one.as_bytes(), other.as_bytes())
        .unwrap_or_else(|_| vec![LineChange { before: 0..before.len(), after: 0..after.len() }])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the rows as text: one row per word, one letter per take.
    fn check(takes: &[&str], expected: &str) {
        let letters = |take: &&'static str| -> Vec<&'static str> {
            (0..take.len()).map(|start| &take[start..=start]).collect()
        };
        let takes: Vec<&'static str> = takes.iter().map(|take| &*String::leak((*take).to_owned())).collect();
        let prompts: Vec<Vec<&str>> = takes.iter().map(letters).collect();
        let rows = align(&prompts);
        let word = |row: &Row| -> String {
            assert_eq!(row.len(), prompts.len());
            row.iter().zip(&prompts).map(|(cell, prompts)| cell.map_or("-", |cell| prompts[cell])).collect()
        };
        assert_eq!(rows.iter().map(word).collect::<Vec<_>>().join(" "), expected, "{takes:?}");
        for (index, prompts) in prompts.iter().enumerate() {
            let order: Vec<usize> = rows.iter().filter_map(|row| row[index]).collect();
            assert_eq!(order, (0..prompts.len()).collect::<Vec<_>>(), "each turn once, in order: {takes:?}");
        }
    }

    #[test]
    fn equal_prompts_share_a_row() {
        check(&["abc", "abc"], "aa bb cc");
        check(&["abc", "axc"], "aa bx cc");
        check(&["abc", "xabc"], "-x aa bb cc");
        check(&["abc", "ac"], "aa b- cc");
        check(&["a", "b"], "ab");
        check(&["", "ab"], "-a -b");
        check(&["ab", ""], "a- b-");
        check(&["", ""], "");
        check(&["abc", "axc", "ac"], "aaa bx- ccc");
        check(&["ac", "abc", "abc"], "aaa -bb ccc");
        check(&["a", "bc", "bd"], "abb -cd");
    }
}
