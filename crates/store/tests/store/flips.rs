//! Flipped bytes of the database are detected: a read returns the written data or an error, and `verify`
//! finds data that can no longer be read.

use std::collections::BTreeMap;
use std::fs;

use crate::support::*;
use retake_model::command::Command;
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
    let range = if round.is_multiple_of(5) { PAGE as u64 } else { bytes.len() as u64 };
    let at = random.below(range) as usize;
    let bit = 1 << random.below(8);
    damaged[at] ^= bit;
    (damaged, format!("byte {at} (page {}) flipped by {bit}", at / PAGE + 1))
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

/// A row of the log whose own bytes are intact can still be damaged around them.
#[test]
fn a_log_row_that_damage_moved_is_never_served() {
    let check = |damage: &str, is_served: bool| {
        let folder = Folder::new();
        let store = folder.open();
        let last = publish(&store, grow(&store).threads[0], Command::Pin { pinned: true }).sequence;
        drop(store);
        without_index_of_log(&folder, damage);
        let store = folder.open();
        let reading = store.read().expect("a read transaction");
        let served = reading.queries().operations_since(last - 1, 10).is_ok();
        assert_eq!(served, is_served, "{damage}");
        assert_eq!(reading.queries().operations_since(0, usize::MAX).is_ok(), is_served, "{damage}");
        drop(reading);
        assert_eq!(verify(&store).is_clean(), is_served, "{damage}");
    };
    let last = "sequence = (SELECT max(sequence) FROM operation)";
    check("UPDATE operation SET sequence = sequence", true);
    check(&format!("UPDATE operation SET thread = 2 WHERE {last}"), false);
    check(&format!("UPDATE operation SET version = version + 1 WHERE {last}"), false);
    check(&format!("UPDATE operation SET body = NULL WHERE {last}"), false);
    check(&format!("UPDATE operation SET sequence = sequence + 1 WHERE {last}"), false);
}

/// Changes rows of the log, but not its index, as damage does.
fn without_index_of_log(folder: &Folder, change: &str) {
    const NAME: &str = "operation_version";
    let writable = || {
        let raw = folder.raw();
        raw.pragma_update(None, "writable_schema", true).expect("a plain connection");
        raw
    };
    let raw = writable();
    let (root, sql): (i64, String) = raw
        .query_row("SELECT rootpage, sql FROM sqlite_schema WHERE name = ?1", [NAME], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("an index");
    raw.execute("DELETE FROM sqlite_schema WHERE name = ?1", [NAME]).expect("damage planted");
    drop(raw);
    folder.raw().execute(change, []).expect("damage planted");
    writable()
        .execute("INSERT INTO sqlite_schema VALUES ('index', ?1, 'operation', ?2, ?3)", (NAME, root, sql))
        .expect("the index is back");
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
