//! Bytes of the database that change by themselves are noticed: what is read is what was written, or an
//! error, and what can no longer be read is found by `verify`.

mod support;

use std::collections::BTreeMap;
use std::fs;

use retake_store::Store;
use support::*;

/// How a reading of a damaged store went.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Everything is as it was.
    Unharmed,
    /// Opening or reading said that something is wrong.
    Refused,
    /// Something is not shown, and verification says so.
    Noticed,
}

fn outcome(folder: &Folder, original: &BTreeMap<String, String>) -> Result<Outcome, String> {
    let Ok(store) = Store::open(&folder.path) else {
        return Ok(Outcome::Refused);
    };
    let Ok(found) = dump(&store) else {
        return Ok(Outcome::Refused);
    };
    if found == *original {
        return Ok(Outcome::Unharmed);
    }
    let noticed = match store.verify(&mut |_| {}) {
        Ok(verified) => !verified.is_clean(),
        Err(_) => true,
    };
    let differing: Vec<String> = original
        .iter()
        .filter(|(name, value)| found.get(*name) != Some(value))
        .map(|(name, value)| format!("{name}: {value} became {:?}", found.get(name)))
        .chain(found.keys().filter(|name| !original.contains_key(*name)).map(|name| format!("{name} is new")))
        .collect();
    if noticed {
        // Facets have no guard of their own; all else is itself or is not shown.
        let altered = found.iter().find(|(name, value)| {
            !name.starts_with("facet") && original.get(*name).is_some_and(|was| was != *value)
        });
        match altered {
            None => Ok(Outcome::Noticed),
            Some((name, _)) => Err(format!("{name} was served altered: {differing:?}")),
        }
    } else {
        Err(format!("not noticed: {differing:?}"))
    }
}

#[test]
fn flipped_and_cut_bytes_are_never_served_silently() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let original = dump(&store).expect("readable");
    drop(store);
    let bytes = fs::read(folder.database()).expect("readable");
    let mut random = Random(0x5eed);
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    assert_eq!(outcome(&folder, &original), Ok(Outcome::Unharmed), "the control");
    for round in 0..400 {
        let mut damaged = bytes.clone();
        let what = if round % 10 == 9 {
            let length = random.below(bytes.len() as u64) as usize;
            damaged.truncate(length);
            format!("cut to {length}")
        } else {
            // A fifth of the flips go to the page that says where all others belong.
            let range = if round % 5 == 0 { 4096 } else { bytes.len() as u64 };
            let at = random.below(range) as usize;
            let bit = 1 << random.below(8);
            damaged[at] ^= bit;
            format!("byte {at} (page {}) flipped by {bit}", at / 4096 + 1)
        };
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(folder.path.join(format!("retake.db{ending}")));
        }
        fs::write(folder.database(), &damaged).expect("writes");
        match outcome(&folder, &original) {
            Ok(outcome) => *outcomes.entry(format!("{outcome:?}")).or_default() += 1,
            Err(said) => panic!("round {round}, {what}: {said}"),
        }
    }
    // All three must occur, or the test is looking at nothing.
    assert_eq!(outcomes.len(), 3, "{outcomes:?}");
}
