//! The campaign: copy, damage, open, read, compare.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use retake_model::id::ThreadId;
use retake_timeline::{Rules, Timeline};

use super::build::{Built, build, copy};
use super::compare::{Differences, compare};
use super::damage::{Damage, damage};
use super::everything::{Everything, LOST_END, Thing, everything};
use crate::dice::Dice;
use crate::ground::Ground;
use crate::violation::{Failed, Trouble, Violation};

pub(super) const CAMPAIGN: &str = "flips";

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the dice start from.
    pub seed: u64,
    /// How many times a copy is damaged.
    pub points: u64,
    /// Whether a page may also be written over another one, which leaves every page whole.
    pub misplaced: bool,
}

/// What became of the damaged copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Copies that were damaged.
    pub points: u64,
    /// Nothing that can be read was touched.
    pub whole: u64,
    /// Something could not be read, and everything else was right.
    pub noticed: u64,
    /// Of these, those that could not even be opened.
    pub refused: u64,
    /// The log was damaged, everything is as it was at an earlier moment, and the store does not know.
    pub older: u64,
    /// Of those where something was wrong, left out or older, how many `verify` did not name either.
    pub unnamed: u64,
    /// Something was shown that never was: what, and how often.
    pub wrong: BTreeMap<String, u64>,
    /// Something was left out, as if it had never been: what, and how often.
    pub absent: BTreeMap<String, u64>,
}

/// The undamaged store, and everything in it at each of its last moments.
pub(super) struct Baseline {
    pub(super) built: Built,
    /// The last one is the whole store.
    pub(super) moments: Vec<Everything>,
    pub(super) versions: BTreeMap<ThreadId, u64>,
}

/// What became of one damaged copy.
#[derive(Debug)]
pub(super) enum Outcome {
    Whole,
    Noticed,
    Refused,
    Older,
    /// Something is not what it was, and nothing says so.
    Silent(Differences),
    Panicked,
}

/// Damages that many copies; the first one that is shown as if it were whole is a violation.
pub fn run(options: Options) -> Result<Summary, Failed> {
    let (summary, violations) = survey(options)?;
    match violations.into_iter().next() {
        Some(violation) => Err(violation.into()),
        None => Ok(summary),
    }
}

/// Damages that many copies, whatever comes; gives every violation beside the counts.
pub fn survey(options: Options) -> Result<(Summary, Vec<Violation>), Failed> {
    let ground = Ground::new().map_err(Failed::trouble)?;
    let baseline = Baseline::new(ground.path(), options.seed)?;
    let mut summary = Summary::default();
    let mut violations = Vec::new();
    let mut dice = Dice::new(options.seed);
    for point in 0..options.points {
        let place = ground.path().join("damaged");
        // The first one finds nothing to remove.
        let _ = fs::remove_dir_all(&place);
        let mut dice = dice.split();
        // With a log on top, most damage to the database is covered by it.
        let settled = !dice.once_in(3);
        copy(if settled { &baseline.built.settled } else { baseline.pristine()? }, &place)?;
        let Some(damage) = damage(&place, options.misplaced, &mut dice)? else { continue };
        summary.points += 1;
        match baseline.judge(&place, Some(&damage)) {
            Outcome::Whole => summary.whole += 1,
            Outcome::Noticed => summary.noticed += 1,
            Outcome::Refused => {
                summary.noticed += 1;
                summary.refused += 1;
            }
            Outcome::Older => {
                summary.older += 1;
                summary.unnamed += u64::from(!named(&place));
            }
            Outcome::Panicked => {
                let what = format!("{damage}: a panic");
                violations.push(Violation { campaign: CAMPAIGN, seed: options.seed, step: point, what });
            }
            Outcome::Silent(Differences { wrong, absent, .. }) => {
                let named = named(&place);
                summary.unnamed += u64::from(!named);
                let verify = if named { "verify names it" } else { "VERIFY IS CLEAN" };
                let what = format!("{damage}: wrong {wrong:?}, left out {absent:?}; {verify}");
                for thing in wrong {
                    *summary.wrong.entry(thing).or_default() += 1;
                }
                for thing in absent {
                    *summary.absent.entry(thing).or_default() += 1;
                }
                violations.push(Violation { campaign: CAMPAIGN, seed: options.seed, step: point, what });
            }
        }
    }
    Ok((summary, violations))
}

impl Baseline {
    pub(super) fn new(ground: &Path, seed: u64) -> Result<Self, Trouble> {
        let built = build(ground, seed)?;
        let last = built.moments.last().ok_or("nothing was built")?;
        let versions = {
            // Opened as a copy, for opening changes files.
            let place = copy(last, &ground.join("counted"))?;
            let timeline = Timeline::open(&place, Rules::default())?;
            let looking = timeline.look()?;
            let count = |thread: &ThreadId| Ok((*thread, looking.thread(*thread)?.summary.version));
            built.threads.iter().map(count).collect::<Result<BTreeMap<_, _>, Trouble>>()?
        };
        let mut moments = Vec::new();
        for (number, moment) in built.moments.iter().enumerate() {
            let place = copy(moment, &ground.join(format!("read-{number}")))?;
            let found = everything(&place, &built.threads, &|thread| versions[&thread])?;
            moments.push(found);
        }
        Ok(Self { built, moments, versions })
    }

    pub(super) fn pristine(&self) -> Result<&Path, Trouble> {
        Ok(self.built.moments.last().ok_or("nothing was built")?)
    }

    /// Opens a store, reads everything, and says what became of it.
    pub(super) fn judge(&self, place: &Path, damage: Option<&Damage>) -> Outcome {
        let read = || everything(place, &self.built.threads, &|thread| self.versions[&thread]);
        let Ok(found) = catch_unwind(AssertUnwindSafe(read)) else {
            return Outcome::Panicked;
        };
        let Ok(found) = found else {
            return Outcome::Refused;
        };
        let whole = self.moments.last().map(|whole| compare(&found, whole)).unwrap_or_default();
        if whole.none() {
            return if whole.refused == 0 { Outcome::Whole } else { Outcome::Noticed };
        }
        let log = damage.is_some_and(|damage| damage.log);
        let older = self.moments.iter().any(|moment| compare(&found, moment).none());
        if found.get(LOST_END) == Some(&Thing::Refused) && (older || whole.wrong.is_empty()) {
            // Whoever opens the store is told that its end is lost, and what is left is right.
            return Outcome::Noticed;
        }
        if log && older {
            return Outcome::Older;
        }
        Outcome::Silent(whole)
    }
}

/// Whether verification says that something is wrong with a store.
fn named(place: &Path) -> bool {
    let verified = Timeline::open(place, Rules::default())
        .map_err(Trouble::from)
        .and_then(|timeline| Ok(timeline.store().verify(&mut |_| {})?));
    !verified.is_ok_and(|verified| verified.is_clean())
}
