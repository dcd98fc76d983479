//! Compares the trace with a naive implementation on random histories.
//!
//! A text is a set of numbered lines, always in the order of their numbers, so that there is only one way to match two
//! of them and both implementations must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

type Lines = BTreeSet<u8>;

/// A version is its own id here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Id(u64);

impl Id {
    fn of(lines: &Lines) -> Self {
        Self(lines.iter().fold(0, |bits, line| bits | 1 << line))
    }
}

struct GeneratedText;

impl TextSource<Id> for GeneratedText {
    type Error = Infallible;

    fn text(&self, Id(bits): Id) -> Result<Vec<u8>, Infallible> {
        let lines = (0..64).filter(|line| bits & (1 << line) != 0);
        Ok(lines.flat_map(|line| format!("line {line}\n").into_bytes()).collect())
    }
}

/// All versions so far, with the origin of each line.
struct NaiveTrace {
    versions: Vec<BTreeMap<u8, Origin>>,
}

impl NaiveTrace {
    fn now(&self) -> &BTreeMap<u8, Origin> {
        self.versions.last().expect("there is a first one")
    }

    fn step(&mut self, number: u32, does: StepEffect, after: &Lines) {
        let same = |version: &&BTreeMap<u8, Origin>| version.keys().eq(after.iter());
        let again = self.versions.iter().rev().find(same).filter(|_| does == StepEffect::Restore);
        let made = again.cloned().unwrap_or_else(|| {
            let origin = |line: &u8| {
                let captured = |version: &&BTreeMap<u8, Origin>| version.contains_key(line);
                let from = match does {
                    StepEffect::Write => Some(self.now()).filter(captured),
                    StepEffect::Restore => self.versions.iter().rev().find(captured),
                };
                from.map_or(Some(number), |version| version[line])
            };
            after.iter().map(|line| (*line, origin(line))).collect()
        });
        self.versions.push(made);
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Removes some lines and adds others.
    Write(Lines, Lines),
    /// Restores the version of that many steps ago.
    Restored(usize),
    /// Merges these lines of an older version into the current one.
    Mix(usize, Lines),
    /// Removes the file.
    Remove,
}

fn some_lines() -> impl Strategy<Value = Lines> {
    prop::collection::btree_set(0_u8..24, 0..6)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (some_lines(), some_lines()).prop_map(|(go, come)| Step::Write(go, come)),
        2 => (0_usize..12).prop_map(Step::Restored),
        2 => (0_usize..12, some_lines()).prop_map(|(ago, lines)| Step::Mix(ago, lines)),
        1 => Just(Step::Remove),
    ]
}

proptest! {
    #[test]
    fn origins_agree_with_the_naive_algorithm(
        first in some_lines(),
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let mut plain = NaiveTrace { versions: vec![first.iter().map(|line| (*line, None)).collect()] };
        let mut trace = Trace::new();
        let mut now: Option<Lines> = Some(first);
        for (number, step) in (0_u32..).zip(steps) {
            let ago = |ago: usize| -> Lines {
                let at = plain.versions.len().saturating_sub(ago + 1);
                plain.versions[at].keys().copied().collect()
            };
            let present = now.clone().unwrap_or_default();
            let (does, after) = match step {
                Step::Write(go, come) => {
                    (StepEffect::Write, Some(present.difference(&go).copied().chain(come).collect()))
                }
                Step::Restored(back) => (StepEffect::Restore, Some(ago(back))),
                Step::Mix(back, lines) => {
                    let old = ago(back);
                    let kept = present.difference(&lines).copied();
                    (StepEffect::Restore, Some(kept.chain(old.intersection(&lines).copied()).collect()))
                }
                Step::Remove => (StepEffect::Write, None),
            };
            if after == now {
                continue;
            }
            let (before, next) = (now.as_ref().map(Id::of), after.as_ref().map(Id::of));
            let Ok(()) = trace.step(number, does, before, next, &GeneratedText);
            if let Some(after) = &after {
                if now.is_none() && does == StepEffect::Write {
                    // A file that is created again inherits nothing.
                    plain.versions.push(BTreeMap::new());
                }
                plain.step(number, does, after);
                let Ok(found) = trace.lines(Id::of(after), &GeneratedText);
                let expected: Vec<Origin> = plain.now().values().copied().collect();
                prop_assert_eq!(found, expected);
            }
            now = after;
        }
    }
}

#[test]
fn lines_without_a_recorded_change_predate_every_step() {
    let mut trace = Trace::new();
    let version = |lines: &[u8]| Id::of(&lines.iter().copied().collect());
    let Ok(()) =
        trace.step(0, StepEffect::Write, Some(version(&[1])), Some(version(&[1, 2])), &GeneratedText);
    // Line 3 appeared between the two steps, without one.
    let Ok(()) = trace.step(
        1,
        StepEffect::Write,
        Some(version(&[1, 2, 3])),
        Some(version(&[1, 2, 3, 4])),
        &GeneratedText,
    );
    let Ok(found) = trace.lines(version(&[1, 2, 3, 4]), &GeneratedText);
    assert_eq!(found, [None, Some(0), None, Some(1)]);
}
