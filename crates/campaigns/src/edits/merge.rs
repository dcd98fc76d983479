//! Texts with numbered values, and their merge.

use std::fmt::Write as _;

/// Number of values per text.
pub(super) const VALUES_PER_TEXT: usize = 5;

/// The last value of texts that are large enough to be stored in chunks.
const LARGE: u64 = 3;

/// The text with these values.
pub(super) fn text(values: &[u64; VALUES_PER_TEXT]) -> Vec<u8> {
    let mut text = String::new();
    for (place, value) in values.iter().enumerate() {
        writeln!(text, "place {place} is {value}").expect("writing into memory cannot fail");
        // Enough lines between two values that changes of both never touch.
        for line in 0..3 {
            if (place, *value, line) == (VALUES_PER_TEXT - 1, LARGE, 2) {
                text.extend(
                    (0..1_500).map(|number| format!("  line {number} of a text that is stored in chunks\n")),
                );
            }
            writeln!(text, "  line {line} after place {place}").expect("writing into memory cannot fail");
        }
    }
    text.into_bytes()
}

/// Parses the values; `None` for other bytes.
pub(super) fn values(bytes: &[u8]) -> Option<[u64; VALUES_PER_TEXT]> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut values = [0; VALUES_PER_TEXT];
    let mut found = 0;
    for line in text.lines().filter(|line| line.starts_with("place ")) {
        *values.get_mut(found)? = line.rsplit(' ').next()?.parse().ok()?;
        found += 1;
    }
    (found == VALUES_PER_TEXT).then_some(values)
}

/// Merges two changes value by value; `None` on a conflict, or for other texts.
pub(super) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (base, ours, theirs) = (values(base)?, values(ours)?, values(theirs)?);
    let mut merged = [0; VALUES_PER_TEXT];
    for place in 0..VALUES_PER_TEXT {
        merged[place] = match (ours[place] == base[place], theirs[place] == base[place]) {
            (true, _) => theirs[place],
            (false, true) => ours[place],
            (false, false) if ours[place] == theirs[place] => ours[place],
            (false, false) => return None,
        };
    }
    Some(text(&merged))
}
