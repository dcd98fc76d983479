//! Names that every provider accepts.

use std::collections::{HashMap, HashSet};

/// The longest call id of Responses. Chat Completions accepts fewer characters and shortens longer ids.
const CALL_CHARS: usize = 64;
/// The longest tool name that all providers accept.
const TOOL_CHARS: usize = 64;

/// The name of a tool for providers: letters, digits, `_` and `-`, starting with a letter or `_`.
pub fn tool_name(name: &str) -> String {
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let prefix = if begins_well { "" } else { "_" };
    spelled(prefix, name, TOOL_CHARS)
}

/// Gives each call of a conversation a unique id, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct CallNames {
    taken: HashSet<String>,
    /// The next suffix to try for an id that is taken: some providers reuse the same few ids in every round.
    next: HashMap<String, u64>,
    /// The names in order, so that the last ones can be taken back.
    given: Vec<GivenName>,
}

#[derive(Clone, Debug)]
struct GivenName {
    name: String,
    /// The id that got a suffix, and the next suffix to try before.
    numbered: Option<(String, Option<u64>)>,
}

impl CallNames {
    /// Whether the id given to a call is only another spelling of its name, not an id that was taken.
    pub(super) fn is_spelling(name: &str, call: &str) -> bool {
        name == spelled("", call, CALL_CHARS)
    }

    /// A unique id based on the given one.
    pub(super) fn name(&mut self, call: &str) -> String {
        let plain = spelled(if call.is_empty() { "call" } else { "" }, call, CALL_CHARS);
        if self.taken.insert(plain.clone()) {
            self.given.push(GivenName { name: plain.clone(), numbered: None });
            return plain;
        }
        let before = self.next.get(&plain).copied();
        let number = self.next.entry(plain.clone()).or_insert(2);
        loop {
            let ending = format!("_{number}");
            let kept = plain.len().min(CALL_CHARS - ending.len());
            let name = format!("{}{ending}", &plain[..kept]);
            *number += 1;
            if self.taken.insert(name.clone()) {
                self.given.push(GivenName { name: name.clone(), numbered: Some((plain, before)) });
                return name;
            }
        }
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.given.len()
    }

    /// Takes back all names but the first `len`.
    pub(super) fn rewind(&mut self, len: usize) {
        for GivenName { name, numbered } in self.given.drain(len.min(self.given.len())..).rev() {
            self.taken.remove(&name);
            match numbered {
                Some((plain, Some(before))) => _ = self.next.insert(plain, before),
                Some((plain, None)) => _ = self.next.remove(&plain),
                None => {}
            }
        }
    }
}

/// Replaces characters that some providers refuse, and limits the length; the result is ASCII.
fn spelled(prefix: &str, name: &str, most: usize) -> String {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let letters = prefix.chars().chain(name.chars());
    letters.map(|letter| if good(letter) { letter } else { '_' }).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_are_valid_for_every_provider() {
        for (name, expected) in [
            ("read", "read"),
            ("mcp/server.tool", "mcp_server_tool"),
            ("7zip", "_7zip"),
            ("-x", "_-x"),
            ("", "_"),
            ("größe", "gr__e"),
        ] {
            assert_eq!(tool_name(name), expected);
        }
        assert_eq!(tool_name(&"x".repeat(99)).len(), TOOL_CHARS);
    }

    #[test]
    fn repeated_names_take_constant_time() {
        let mut names = CallNames::default();
        let last = (0..200_000).map(|_| names.name("call_1")).last();
        assert_eq!(last.as_deref(), Some("call_1_200000"));
    }

    #[test]
    fn names_that_were_taken_back_are_given_again() {
        let given = ["a", "a", "b", "a_2", "a", "", "b", "a", "a_2", "a_4"];
        let all: Vec<String> =
            given.iter().scan(CallNames::default(), |names, call| Some(names.name(call))).collect();
        for start in 0..=given.len() {
            let mut names = CallNames::default();
            for call in given {
                names.name(call);
            }
            names.rewind(start);
            let again: Vec<String> = given[start..].iter().map(|call| names.name(call)).collect();
            assert_eq!(again, all[start..]);
        }
    }

    #[test]
    fn call_names_are_unique() {
        let mut names = CallNames::default();
        let long = "y".repeat(80);
        let given = ["a", "a", "a_2", "a", "", "", "é", "_", &long, &long];
        let named: Vec<String> = given.iter().map(|call| names.name(call)).collect();
        assert_eq!(named[..8], ["a", "a_2", "a_2_2", "a_3", "call", "call_2", "_", "__2"]);
        assert_eq!(named.iter().collect::<HashSet<_>>().len(), given.len());
        assert!(named.iter().all(|name| name.len() <= CALL_CHARS));
    }
}
