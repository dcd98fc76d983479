//! Compares the content that was read with the original.

use std::collections::BTreeSet;

use super::everything::{ReadResult, StoreReadout};

/// The differences, apart from refused reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Content that is wrong, out of order, or never existed.
    pub(super) wrong: BTreeSet<String>,
    /// Content that is missing without an error.
    pub(super) absent: BTreeSet<String>,
    /// Number of refused reads.
    pub(super) refused: usize,
}

impl Differences {
    /// Nothing is wrong or missing.
    pub(super) fn none(&self) -> bool {
        self.wrong.is_empty() && self.absent.is_empty()
    }
}

/// Compares everything.
pub(super) fn compare(found: &StoreReadout, expected: &StoreReadout) -> Differences {
    let mut differences = Differences::default();
    for (name, thing) in found {
        match (thing, expected.get(name)) {
            (ReadResult::Refused, _) => differences.refused += 1,
            (ReadResult::Absent, Some(ReadResult::Read(_))) => {
                differences.absent.insert(kind_of(name));
            }
            (thing, Some(right)) if thing == right => {}
            // The order of an incomplete list is not compared.
            (_, Some(_)) if !complete(name, found, expected) => {}
            _ => {
                differences.wrong.insert(kind_of(name));
            }
        }
    }
    for name in expected.keys().filter(|name| !found.contains_key(*name)) {
        let list = name.split('/').next().unwrap_or(name);
        // A refused list counts once; a thread that cannot be found has no lists.
        if list != name && matches!(found.get(list), Some(ReadResult::Read(_))) {
            differences.absent.insert(kind_of(name));
        }
    }
    differences
}

/// Whether all elements of a list were read.
fn complete(list: &str, found: &StoreReadout, expected: &StoreReadout) -> bool {
    let prefix = format!("{list}/");
    let elements = |things: &StoreReadout| things.keys().filter(|name| name.starts_with(&prefix)).count();
    list.contains('/') || elements(found) == elements(expected)
}

/// The kind of an item, without thread, version and element.
fn kind_of(name: &str) -> String {
    let list = name.split('/').next().unwrap_or(name);
    let words = list.split(' ').filter(|word| !word.chars().any(|letter| letter.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> ReadResult {
        ReadResult::Read(blake3::hash(content.as_bytes()))
    }

    fn things(things: &[(&str, ReadResult)]) -> StoreReadout {
        things.iter().map(|(name, thing)| ((*name).to_owned(), thing.clone())).collect()
    }

    #[test]
    fn wrong_missing_and_refused_items_are_distinguished() {
        let whole = things(&[("list", read("a b")), ("list/a", read("1")), ("list/b", read("2"))]);
        let check = |found: &[(&str, ReadResult)], wrong: usize, absent: usize, refused: usize| {
            let found = compare(&things(found), &whole);
            assert_eq!((found.wrong.len(), found.absent.len(), found.refused), (wrong, absent, refused));
        };
        check(&[("list", read("a b")), ("list/a", read("1")), ("list/b", read("2"))], 0, 0, 0);
        check(&[("list", read("a b")), ("list/a", read("1")), ("list/b", read("3"))], 1, 0, 0);
        check(&[("list", read("b a")), ("list/a", read("1")), ("list/b", read("2"))], 1, 0, 0);
        check(&[("list", read("a")), ("list/a", read("1"))], 0, 1, 0);
        check(&[("list", read("a")), ("list/a", read("1")), ("list/b", ReadResult::Absent)], 1, 1, 0);
        check(&[("list", ReadResult::Refused)], 0, 0, 1);
    }
}
