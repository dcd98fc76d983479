//! A cancellable matcher.
//!
//! ```text
//!   states of the pattern × bytes     few ──► ripgrep's engine, not cancellable but fast
//!                                     many ─► a lazy automaton, which checks the cancel flag
//! ```
//!
//! The worst case of the engine is the product of both factors: `(a{100}){100}b` on a line of 5 MB takes
//! minutes. A limit on either factor alone would exclude realistic searches.

use std::cell::RefCell;

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

use crate::cancel::Cancel;

/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES: usize = 4 << 20;
/// Maximum bytes of the lazy state cache.
const CACHE_BYTES: usize = 8 << 20;
/// States × bytes that the engine handles in well under 200 ms.
const FAST_MATCH_COST: usize = 16 << 20;
/// Maximum states × bytes for lines that need the engine: about a second.
const MAX_MATCH_COST: usize = 256 << 20;
/// Work between checks of the cancel flag, in states × bytes.
const CANCEL_CHECK_BYTES: usize = 1 << 20;

/// A search pattern.
pub(super) struct Pattern<'a> {
    pub(super) text: &'a str,
    pub(super) literal: bool,
    pub(super) ignore_case: bool,
}

/// Matches lines until cancelled.
pub(super) struct StoppableMatcher<'a> {
    engine: RegexMatcher,
    automaton: DFA,
    cache: RefCell<Cache>,
    states: usize,
    cancel: &'a Cancel,
}

/// Why a line could not be matched.
#[derive(Debug, thiserror::Error)]
pub(super) enum MatchError {
    #[error("the search was cancelled")]
    Cancelled,
    #[error("the pattern is too costly for a line of this length")]
    TooCostly,
}

/// Why a pattern is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct PatternError(String);

impl<'a> StoppableMatcher<'a> {
    pub(super) fn new(pattern: &Pattern<'_>, cancel: &'a Cancel) -> Result<Self, PatternError> {
        let engine = RegexMatcherBuilder::new()
            .fixed_strings(pattern.literal)
            .case_insensitive(pattern.ignore_case)
            // `^` and `$` match at line ends, not at the ends of the buffer.
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(CACHE_BYTES)
            .build(pattern.text)
            .map_err(|error| PatternError(error.to_string()))?;
        let text = if pattern.literal { escaped(pattern.text) } else { pattern.text.to_owned() };
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true);
        let syntax = syntax::Config::new().multi_line(true).case_insensitive(pattern.ignore_case).utf8(false);
        let compiled = thompson::Config::new().utf8(false).nfa_size_limit(Some(PATTERN_BYTES));
        let automaton = DFA::builder()
            .configure(config)
            .syntax(syntax)
            .thompson(compiled)
            .build(&text)
            .map_err(|error| PatternError(error.to_string()))?;
        let cache = RefCell::new(automaton.create_cache());
        let states = automaton.get_nfa().states().len().max(1);
        Ok(Self { engine, automaton, cache, states, cancel })
    }

    fn check(&self) -> Result<(), MatchError> {
        if self.cancel.is_set() { Err(MatchError::Cancelled) } else { Ok(()) }
    }

    fn is_cheap(&self, length: usize) -> bool {
        length.saturating_mul(self.states) <= FAST_MATCH_COST
    }

    /// Whether a line, without its terminator, matches.
    fn matches(&self, line: &[u8]) -> Result<bool, MatchError> {
        self.check()?;
        if self.is_cheap(line.len()) {
            return Ok(self.engine.is_match(line).unwrap_or_default());
        }
        match self.match_stepwise(line)? {
            Some(matches) => Ok(matches),
            // The automaton does not support all Unicode word boundaries.
            None if line.len().saturating_mul(self.states) <= MAX_MATCH_COST => {
                Ok(self.engine.is_match(line).unwrap_or_default())
            }
            None => Err(MatchError::TooCostly),
        }
    }

    /// Whether a line matches; `None` if the automaton cannot decide.
    fn match_stepwise(&self, line: &[u8]) -> Result<Option<bool>, MatchError> {
        let cache = &mut *self.cache.borrow_mut();
        let piece = (CANCEL_CHECK_BYTES / self.states).clamp(1, 64 * 1024);
        let Ok(mut state) = self.automaton.start_state_forward(cache, &Input::new(line)) else {
            return Ok(None);
        };
        for piece in line.chunks(piece) {
            self.check()?;
            for byte in piece {
                let Ok(next) = self.automaton.next_state(cache, state, *byte) else { return Ok(None) };
                state = next;
                if state.is_tagged() {
                    if state.is_match() {
                        return Ok(Some(true));
                    } else if state.is_dead() {
                        return Ok(Some(false));
                    } else if state.is_quit() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(self.automaton.next_eoi_state(cache, state).ok().map(|state| state.is_match()))
    }
}

impl Matcher for StoppableMatcher<'_> {
    type Captures = NoCaptures;
    type Error = MatchError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, MatchError> {
        self.check()?;
        if self.is_cheap(haystack.len()) {
            return Ok(self.engine.find_at(haystack, at).unwrap_or_default());
        }
        // The search does not need the position inside a long line.
        let found = self.matches(&haystack[at..])?;
        Ok(found.then(|| Match::new(at, haystack.len())))
    }

    fn new_captures(&self) -> Result<NoCaptures, MatchError> {
        Ok(NoCaptures::new())
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.engine.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, MatchError> {
        self.check()?;
        if self.is_cheap(haystack.len()) {
            return Ok(self.engine.find_candidate_line(haystack).unwrap_or_default());
        }
        let mut start = 0;
        for line in haystack.split_inclusive(|byte| *byte == b'\n') {
            if self.matches(line.strip_suffix(b"\n").unwrap_or(line))? {
                return Ok(Some(LineMatchKind::Confirmed(start)));
            }
            start += line.len();
        }
        Ok(None)
    }
}

/// Escapes a literal text.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        // Not all punctuation: `\<` would be a word boundary.
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matcher<'a>(text: &str, cancel: &'a Cancel) -> StoppableMatcher<'a> {
        let pattern = Pattern { text, literal: false, ignore_case: false };
        StoppableMatcher::new(&pattern, cancel).expect("a pattern")
    }

    #[test]
    fn every_character_of_a_literal_matches_itself() {
        let text: String = (' '..='~').collect::<String>() + "äé日";
        let cancel = Cancel::new();
        let pattern = Pattern { text: &text, literal: true, ignore_case: true };
        let matcher = StoppableMatcher::new(&pattern, &cancel).expect("a pattern");
        assert_eq!(
            matcher.match_stepwise(text.to_uppercase().as_bytes()).expect("not cancelled"),
            Some(true)
        );
        assert_eq!(matcher.match_stepwise(&text.as_bytes()[1..]).expect("not cancelled"), Some(false));
    }

    #[test]
    fn patterns_that_take_too_much_memory_are_refused() {
        for text in ["a{1000}{1000}", r"\w{1000}", "((a{100}){100}){100}"] {
            let pattern = Pattern { text, literal: false, ignore_case: false };
            assert!(StoppableMatcher::new(&pattern, &Cancel::new()).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn stepwise_and_whole_line_matching_agree(
            text in r"(\^|)([ab.]|\\w|\\b|[ab]\*|\(a\|bb\)){1,5}(\$|)",
            line in "[abcä \r]{0,12}",
        ) {
            let cancel = Cancel::new();
            let matcher = matcher(&text, &cancel);
            let quick = matcher.engine.is_match(line.as_bytes()).expect("it cannot fail");
            let stepped = matcher.match_stepwise(line.as_bytes()).expect("not cancelled");
            prop_assert!(stepped.is_none_or(|stepped| stepped == quick), "{text:?} on {line:?}");
        }
    }
}
