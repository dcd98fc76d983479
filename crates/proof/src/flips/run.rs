//! The campaign: copy, damage, open, read, compare.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use retake_model::id::ThreadId;
use retake_timeline::{Rules, Timeline};

use super::build::{Built, build, copy};
use super::damage::{Damage, damage};
use super::everything::{Everything, everything};
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
    /// The log was damaged, and everything is as it was at an earlier moment.
    pub older: u64,
    /// Something was shown that never was: what, and how often.
    pub silent: BTreeMap<String, u64>,
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
    /// These things are not what they were.
    Silent(Vec<String>),
}

/// Damages that many copies; the first one that is shown as if it were whole is a violation.
pub fn run(options: Options) -> Result<Summary, Failed> {
    let (summary, first) = survey(options)?;
    match first {
        Some(violation) => Err(violation.into()),
        None => Ok(summary),
    }
}

/// Damages that many copies, whatever comes; gives the first violation beside the counts.
pub fn survey(options: Options) -> Result<(Summary, Option<Violation>), Failed> {
    let ground = Ground::new().map_err(Failed::trouble)?;
    let baseline = Baseline::new(ground.path(), options.seed)?;
    let mut summary = Summary::default();
    let mut first = None;
    let mut dice = Dice::new(options.seed);
    for point in 0..options.points {
        let place = ground.path().join("damaged");
        // The first one finds nothing to remove.
        let _ = fs::remove_dir_all(&place);
        copy(baseline.pristine()?, &place)?;
        let Some(damage) = damage(&place, &mut dice.split())? else { continue };
        summary.points += 1;
        match baseline.judge(&place, Some(&damage)) {
            Outcome::Whole => summary.whole += 1,
            Outcome::Noticed => summary.noticed += 1,
            Outcome::Refused => {
                summary.noticed += 1;
                summary.refused += 1;
            }
            Outcome::Older => summary.older += 1,
            Outcome::Silent(things) => {
                for thing in &things {
                    *summary.silent.entry(kind_of(thing)).or_default() += 1;
                }
                let what = format!("{damage}: {} shown as if whole", things.join(", "));
                first.get_or_insert(Violation { campaign: CAMPAIGN, seed: options.seed, step: point, what });
            }
        }
    }
    Ok((summary, first))
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
            return Outcome::Silent(vec!["a panic".to_owned()]);
        };
        let Ok(found) = found else {
            return Outcome::Refused;
        };
        let whole = self.moments.last().map(|whole| differences(&found, whole)).unwrap_or_default();
        if whole.is_empty() {
            let errors = found.values().filter(|thing| thing.is_err()).count();
            return if errors == 0 { Outcome::Whole } else { Outcome::Noticed };
        }
        let log = damage.is_some_and(|damage| damage.log);
        if log && self.moments.iter().any(|moment| differences(&found, moment).is_empty()) {
            return Outcome::Older;
        }
        Outcome::Silent(whole)
    }
}

/// Things that were read without an error and are not what they should be.
fn differences(found: &Everything, expected: &Everything) -> Vec<String> {
    let differs = |(name, thing): &(&String, &Result<blake3::Hash, String>)| {
        thing.is_ok() && expected.get(*name).and_then(|thing| thing.as_ref().ok()) != thing.as_ref().ok()
    };
    found.iter().filter(differs).map(|(name, _)| name.clone()).collect()
}

/// What kind of thing it is, without the thread and the version.
fn kind_of(thing: &str) -> String {
    let words = thing.split(' ').filter(|word| !word.chars().any(|letter| letter.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}
