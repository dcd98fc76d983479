//! Flipped bytes of the database are detected: a read returns the written data or an error, and `verify`
//! finds data that can no longer be read.

use std::collections::BTreeMap;
use std::fs;

use crate::support::*;
use retake_model::time::Timestamp;
use retake_store::{OpenError, Store};

/// The outcome of reading a damaged store.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// All data is unchanged.
    Unharmed,
    /// Opening or reading failed with an error.
    Refused,
    /// Data is missing, and verification reports it.
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
        // Facets have no digest. Everything else must be unchanged or absent.
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

/// Damages a file in one way; returns the bytes and a description.
fn damage(bytes: &[u8], round: u64, random: &mut Random) -> (Vec<u8>, String) {
    let mut damaged = bytes.to_vec();
    if round % 10 == 9 {
        let length = random.below(bytes.len() as u64) as usize;
        damaged.truncate(length);
        return (damaged, format!("cut to {length}"));
    }
    // A fifth of the flips hit the first page, which describes all others.
    let range = if round.is_multiple_of(5) { 4096 } else { bytes.len() as u64 };
    let at = random.below(range) as usize;
    let bit = 1 << random.below(8);
    damaged[at] ^= bit;
    (damaged, format!("byte {at} (page {}) flipped by {bit}", at / 4096 + 1))
}

fn put(folder: &Folder, bytes: &[u8]) {
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(folder.path.join(format!("retake.db{ending}")));
    }
    fs::write(folder.database(), bytes).expect("write succeeds");
}

#[test]
fn flipped_and_truncated_bytes_are_never_served_silently() {
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
        let (damaged, what) = damage(&bytes, round, &mut random);
        put(&folder, &damaged);
        match outcome(&folder, &original) {
            Ok(outcome) => *outcomes.entry(format!("{outcome:?}")).or_default() += 1,
            Err(error) => panic!("round {round}, {what}: {error}"),
        }
    }
    // Both must occur, or the test checks nothing. `ProjectChange` is rare.
    assert!(outcomes.contains_key("Unharmed") && outcomes.contains_key("Refused"), "{outcomes:?}");
}

#[test]
fn a_repair_always_leaves_a_complete_store_with_nothing_altered() {
    let folder = Folder::new();
    let store = folder.open();
    grow(&store);
    let original = dump(&store).expect("readable");
    drop(store);
    let bytes = fs::read(folder.database()).expect("readable");
    let mut random = Random(0xfade);
    let mut saved = 0;
    let rounds = 100;
    for round in 0..rounds {
        let (damaged, what) = damage(&bytes, round, &mut random);
        put(&folder, &damaged);
        let now = Timestamp::from_millis(START + 1_000_000);
        if let Err(error) = Store::salvage(&folder.path, &mut |_| {}, now) {
            // Too little remains, or the header names another application.
            let refused = matches!(error, OpenError::Newer { .. } | OpenError::Foreign(_));
            assert!(refused, "round {round}, {what}: {error}");
            continue;
        }
        let store =
            Store::open(&folder.path).unwrap_or_else(|error| panic!("round {round}, {what}: {error}"));
        let verified = verify(&store);
        assert!(verified.is_clean(), "round {round}, {what}: {:?}", verified.problems);
        saved += 1;
        if what.starts_with("cut") {
            continue;
        }
        // Content under an unchanged name must be unchanged; content that the repair wrote has new names.
        let found = dump_what_is_left(&store);
        for (name, value) in &found {
            let content = ["state", "settings", "entry"].iter().any(|kind| name.starts_with(kind));
            if let Some(was) = original.get(name).filter(|_| content) {
                assert_eq!(was, value, "round {round}, {what}: {name}");
            }
        }
    }
    assert!(saved * 10 > rounds * 8, "only {saved} of {rounds} were saved");
}
