//! Verification finds and classifies damage to files, folders and pending moves.

use retake_model::content::{ContentId, Kind};
use retake_store::{Problem, Referrer};
use rusqlite::{Connection, params};

use super::world::*;
use crate::support::*;

pub(crate) type Plant = fn(&World);

/// Each kind of damage, the problems reported for it, and the changes that a repair makes.
pub(crate) const DAMAGE: &[(&str, &[&str], &[&str], Plant)] = &[
    ("none (the control)", &[], &[], |_| {}),
    (
        "a snapshot gone",
        &["files_incomplete", "reference_missing"],
        &["content_lost", "intent_dropped"],
        |world| remove(world, Kind::Snapshot, "ASC"),
    ),
    (
        "a tree gone",
        &["files_incomplete", "reference_missing"],
        &["content_lost", "folder_forgotten", "intent_dropped"],
        |world| remove(world, Kind::Tree, "DESC"),
    ),
    (
        "the parts of a long file gone",
        &["files_incomplete", "reference_missing"],
        &["content_lost", "folder_forgotten", "intent_dropped"],
        |world| remove(world, Kind::Parts, "ASC"),
    ),
    (
        "a list of what was left out gone",
        &["files_incomplete", "reference_missing"],
        &["content_lost", "folder_forgotten", "intent_dropped"],
        |world| remove(world, Kind::Excluded, "DESC"),
    ),
    (
        "a pack gone, with the bytes of a file",
        &["files_incomplete", "pack_missing", "reference_missing"],
        &["content_lost", "index_repaired"],
        |world| {
            // The second pack: the pending move needs only the first.
            std::fs::remove_file(&pack_files(&world.store)[1]).expect("damage planted");
            forget_cached(world);
        },
    ),
    (
        "an operation that misleads whoever looks for files",
        &["intent_misplaced", "last_file_operation_wrong"],
        &["intent_dropped", "log_joined"],
        |world| look_wrongly(&world.store, world.thread, world.snapshots[1]),
    ),
    ("a folder's record altered", &["folder_damaged"], &["folder_forgotten"], |world| {
        flip(&world.folder.raw(), "folder", "record");
    }),
    ("a folder's guard altered", &["folder_damaged"], &["folder_forgotten"], |world| {
        run(world, "UPDATE folder SET digest = digest + 1");
    }),
    ("a folder under another key", &["folder_damaged"], &["folder_forgotten"], |world| {
        run(world, "UPDATE folder SET key = x'00'");
    }),
    (
        "a folder that needs what is not there",
        &["reference_missing"],
        &["content_lost", "folder_forgotten"],
        |world| {
            put_folder(&world.store, world.project, ContentId::of(Kind::Snapshot, b"nowhere"));
        },
    ),
    ("an intent altered", &["intent_damaged"], &["intent_dropped"], |world| {
        flip(&world.folder.raw(), "intent", "body");
    }),
    ("an intent of another thread", &["intent_damaged"], &["intent_dropped"], |world| {
        run(world, "UPDATE intent SET thread = zeroblob(16)");
    }),
    ("an intent that the log went past", &["intent_misplaced"], &["intent_dropped"], |world| {
        publish(&world.store, world.thread, say(active(&world.store, world.thread), "User", "never mind"));
    }),
    (
        "an intent that needs what is not there",
        &["reference_missing"],
        &["content_lost", "intent_dropped"],
        |world| {
            run(world, "DELETE FROM intent");
            let nowhere = ContentId::of(Kind::Snapshot, b"nowhere");
            begin(&world.store, world.thread, world.project, world.snapshots[1], nowhere);
        },
    ),
];

#[test]
fn every_kind_of_damage_is_found() {
    for (name, expected, _, plant) in DAMAGE {
        let world = World::moving();
        plant(&world);
        let verified = verify(&world.store);
        let problems: Vec<String> = verified.problems.iter().map(ToString::to_string).collect();
        assert_eq!(codes(&verified), *expected, "{name}: {problems:#?}");
        for problem in &verified.problems {
            assert_eq!(serde_json::to_value(problem).expect("serializes")["code"], problem.code());
        }
    }
}

#[test]
fn the_referrer_of_missing_content_is_named() {
    let world = World::new();
    let nowhere = ContentId::of(Kind::Snapshot, b"nowhere");
    look(&world.store, world.thread, world.snapshots[1], nowhere);
    let elsewhere = ContentId::of(Kind::Snapshot, b"elsewhere");
    let intent = begin(&world.store, world.thread, world.project, world.snapshots[1], elsewhere);
    let third = ContentId::of(Kind::Snapshot, b"third");
    put_folder(&world.store, world.project, third);
    let problems = verify(&world.store).problems;
    let by = |wanted: ContentId| {
        problems.iter().find_map(|problem| match problem {
            Problem::ReferenceMissing { id, by, .. } if *id == wanted => Some(*by),
            _ => None,
        })
    };
    assert!(matches!(by(nowhere), Some(Referrer::Operation { version: 7, .. })), "{problems:?}");
    assert_eq!(by(elsewhere), Some(Referrer::Intent { intent }));
    assert!(matches!(by(third), Some(Referrer::Folder { .. })));
    let files = problems.iter().find_map(|problem| match problem {
        Problem::FilesIncomplete { versions, newest_complete, .. } => Some((*versions, *newest_complete)),
        _ => None,
    });
    assert_eq!(files, Some((1, Some(5))));
}

#[test]
fn content_is_read_once_for_any_number_of_operations() {
    let world = World::new();
    let before = verify(&world.store);
    for _ in 0..50 {
        look(&world.store, world.thread, world.snapshots[1], world.snapshots[0]);
        look(&world.store, world.thread, world.snapshots[0], world.snapshots[1]);
    }
    let mut reported = Vec::new();
    let after = world.store.verify(&mut |progress| reported.push(progress)).expect("run succeeds");
    assert_eq!(after.operations, before.operations + 100);
    assert_eq!((after.objects, after.object_bytes), (before.objects, before.object_bytes));
    assert!(reported.iter().all(|progress| progress.done <= progress.total), "{reported:?}");
    assert!(after.is_clean());
}

fn run(world: &World, sql: &str) {
    let changed = world.folder.raw().execute(sql, []).expect("damage planted");
    assert!(changed > 0, "nothing was planted by {sql}");
}

/// Flips a byte in the only row of a table.
fn flip(raw: &Connection, table: &str, column: &str) {
    let mut bytes: Vec<u8> = raw
        .query_row(&format!("SELECT {column} FROM {table}"), [], |row| row.get(0))
        .expect("a matching row");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    raw.execute(&format!("UPDATE {table} SET {column} = ?1"), [bytes]).expect("damage planted");
}

/// Removes the oldest or newest object of a kind, and its index row.
fn remove(world: &World, kind: Kind, order: &str) {
    let raw = world.folder.raw();
    let sql = format!("SELECT number FROM object WHERE kind = ?1 ORDER BY number {order} LIMIT 1");
    let number: i64 = raw.query_row(&sql, [kind as i64], |row| row.get(0)).expect("a matching row");
    for sql in ["DELETE FROM object WHERE number = ?1", "DELETE FROM object_index WHERE number = ?1"] {
        assert_eq!(raw.execute(sql, params![number]).expect("damage planted"), 1);
    }
    forget_cached(world);
}

/// Invalidates the store's caches.
fn forget_cached(world: &World) {
    let raw = world.folder.raw();
    raw.execute("INSERT INTO erasure DEFAULT VALUES", []).expect("damage planted");
}
