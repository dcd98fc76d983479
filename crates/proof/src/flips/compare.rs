//! What was read, compared with what should have been.

use std::collections::BTreeSet;

use super::everything::{Everything, Thing};

/// How what was read differs from what should have been, apart from what could not be read at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Shown with other content, in another order, or though it never was.
    pub(super) wrong: BTreeSet<String>,
    /// Left out of a list, or said not to exist.
    pub(super) absent: BTreeSet<String>,
    /// How many things could not be read, and said so.
    pub(super) refused: usize,
}

impl Differences {
    /// Nothing is wrong and nothing is left out.
    pub(super) fn none(&self) -> bool {
        self.wrong.is_empty() && self.absent.is_empty()
    }
}

/// Compares everything.
pub(super) fn compare(found: &Everything, expected: &Everything) -> Differences {
    let mut differences = Differences::default();
    for (name, thing) in found {
        match (thing, expected.get(name)) {
            (Thing::Refused, _) => differences.refused += 1,
            (Thing::Absent, Some(Thing::Read(_))) => {
                differences.absent.insert(kind_of(name));
            }
            (thing, Some(right)) if thing == right => {}
            // The order of a list says nothing that its elements do not say, unless all are there.
            (_, Some(_)) if !complete(name, found, expected) => {}
            _ => {
                differences.wrong.insert(kind_of(name));
            }
        }
    }
    for name in expected.keys().filter(|name| !found.contains_key(*name)) {
        let list = name.split('/').next().unwrap_or(name);
        // A list that could not be read is refused as a whole; a thread that cannot be found has no lists.
        if list != name && matches!(found.get(list), Some(Thing::Read(_))) {
            differences.absent.insert(kind_of(name));
        }
    }
    differences
}

/// Whether every element that a list should have is there.
fn complete(list: &str, found: &Everything, expected: &Everything) -> bool {
    let prefix = format!("{list}/");
    let elements = |things: &Everything| things.keys().filter(|name| name.starts_with(&prefix)).count();
    list.contains('/') || elements(found) == elements(expected)
}

/// What kind of thing it is, without the thread, the version and the element.
fn kind_of(name: &str) -> String {
    let list = name.split('/').next().unwrap_or(name);
    let words = list.split(' ').filter(|word| !word.chars().any(|letter| letter.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Thing {
        Thing::Read(blake3::hash(content.as_bytes()))
    }

    fn things(things: &[(&str, Thing)]) -> Everything {
        things.iter().map(|(name, thing)| ((*name).to_owned(), thing.clone())).collect()
    }

    #[test]
    fn what_is_wrong_is_told_from_what_is_left_out_and_what_was_refused() {
        let whole = things(&[("list", read("a b")), ("list/a", read("1")), ("list/b", read("2"))]);
        let check = |found: &[(&str, Thing)], wrong: usize, absent: usize, refused: usize| {
            let found = compare(&things(found), &whole);
            assert_eq!((found.wrong.len(), found.absent.len(), found.refused), (wrong, absent, refused));
        };
        check(&[("list", read("a b")), ("list/a", read("1")), ("list/b", read("2"))], 0, 0, 0);
        check(&[("list", read("a b")), ("list/a", read("1")), ("list/b", read("3"))], 1, 0, 0);
        check(&[("list", read("b a")), ("list/a", read("1")), ("list/b", read("2"))], 1, 0, 0);
        check(&[("list", read("a")), ("list/a", read("1"))], 0, 1, 0);
        check(&[("list", read("a")), ("list/a", read("1")), ("list/b", Thing::Absent)], 1, 1, 0);
        check(&[("list", Thing::Refused)], 0, 0, 1);
    }
}
