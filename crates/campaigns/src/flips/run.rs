//! The campaign: copy, damage, open, read, compare.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use retake_model::id::ThreadId;
use retake_timeline::{Rules, Timeline};

use super::build::{BuiltStore, build, copy};
use super::compare::{Differences, compare};
use super::damage::{Damage, damage};
use super::everything::{LOG_END, ReadResult, StoreReadout, everything};
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

pub(super) const CAMPAIGN: &str = "flips";

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of damaged copies.
    pub points: u64,
    /// Whether pages may also be overwritten with other valid pages.
    pub misplaced: bool,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Damaged copies.
    pub points: u64,
    /// Harmless: all content was intact.
    pub whole: u64,
    /// Detected: some content could not be read, the rest was intact.
    pub noticed: u64,
    /// Of these, stores that could not be opened.
    pub refused: u64,
    /// The log was damaged, and the store is at an earlier version without knowing it.
    pub older: u64,
    /// Undetected damage that `verify` did not report either.
    pub unnamed: u64,
    /// Content that was shown and never existed, with its count.
    pub wrong: BTreeMap<String, u64>,
    /// Content that was silently missing, with its count.
    pub absent: BTreeMap<String, u64>,
}

/// The intact store, and its content at each of its last versions.
pub(super) struct Baseline {
    pub(super) built: BuiltStore,
    /// The last one is the complete store.
    pub(super) moments: Vec<StoreReadout>,
    pub(super) versions: BTreeMap<ThreadId, u64>,
}

/// The result for one damaged copy.
#[derive(Debug)]
pub(super) enum Outcome {
    Whole,
    Noticed,
    Refused,
    Older,
    /// Content differs without an error.
    Silent(Differences),
    Panicked,
}

/// Damages copies; the first one with silent differences is a violation.
pub fn run(options: Options) -> Result<Summary, CampaignError> {
    let (summary, violations) = survey(options)?;
    match violations.into_iter().next() {
        Some(violation) => Err(violation.into()),
        None => Ok(summary),
    }
}

/// Damages copies; returns every violation besides the counts.
pub fn survey(options: Options) -> Result<(Summary, Vec<Violation>), CampaignError> {
    let scratch = ScratchDir::new().map_err(CampaignError::trouble)?;
    let baseline = Baseline::new(scratch.path(), options.seed)?;
    let mut summary = Summary::default();
    let mut violations = Vec::new();
    let mut rng = Rng::new(options.seed);
    for point in 0..options.points {
        let place = scratch.path().join("damaged");
        // There is nothing to remove the first time.
        let _ = fs::remove_dir_all(&place);
        let mut rng = rng.split();
        // With a log, most damage to the database is covered by it.
        let settled = !rng.once_in(3);
        copy(if settled { &baseline.built.settled } else { baseline.pristine()? }, &place)?;
        let Some(damage) = damage(&place, options.misplaced, &mut rng)? else { continue };
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
    pub(super) fn new(scratch: &Path, seed: u64) -> Result<Self, BoxError> {
        let built = build(scratch, seed)?;
        let last = built.moments.last().ok_or("nothing was built")?;
        let versions = {
            // A copy, because opening changes files.
            let place = copy(last, &scratch.join("counted"))?;
            let timeline = Timeline::open(&place, Rules::default())?;
            let reader = timeline.read()?;
            let count = |thread: &ThreadId| Ok((*thread, reader.thread(*thread)?.summary.version));
            built.threads.iter().map(count).collect::<Result<BTreeMap<_, _>, BoxError>>()?
        };
        let mut moments = Vec::new();
        for (number, moment) in built.moments.iter().enumerate() {
            let place = copy(moment, &scratch.join(format!("read-{number}")))?;
            let found = everything(&place, &built.threads, &|thread| versions[&thread])?;
            moments.push(found);
        }
        Ok(Self { built, moments, versions })
    }

    pub(super) fn pristine(&self) -> Result<&Path, BoxError> {
        Ok(self.built.moments.last().ok_or("nothing was built")?)
    }

    /// Opens a store, reads everything, and classifies the result.
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
        if found.get(LOG_END) == Some(&ReadResult::Refused) && (older || whole.wrong.is_empty()) {
            // Opening reports the lost end, and the rest is intact.
            return Outcome::Noticed;
        }
        if log && older {
            return Outcome::Older;
        }
        Outcome::Silent(whole)
    }
}

/// Whether `verify` reports a problem.
fn named(place: &Path) -> bool {
    let verified = Timeline::open(place, Rules::default())
        .map_err(BoxError::from)
        .and_then(|timeline| Ok(timeline.store().verify(&mut |_| {})?));
    !verified.is_ok_and(|verified| verified.is_clean())
}
